"""One warehouse session for a run's slices: opened when first needed, given back while an asset computes."""

from __future__ import annotations

import contextlib
from types import TracebackType

from backfill_assets.engines import Engine, Report, Session, Spelling


class Sessions:
    """Hands out the open session of a run, opening it on first use."""

    def __init__(
        self, engine: Engine, who: str, report: Report, *, read_only: bool = False
    ) -> None:
        self._engine, self._who, self._report, self._read_only = engine, who, report, read_only
        self._open = contextlib.ExitStack()
        self._session: Session | None = None

    @property
    def spelling(self) -> Spelling:
        """How the warehouse spells things; asking for it opens nothing."""
        return self._engine.spelling

    def get(self) -> Session:
        """Return the open session."""
        if self._session is None:
            self._session = self._open.enter_context(
                self._engine.session(who=self._who, read_only=self._read_only, report=self._report)
            )
        return self._session

    def get_open(self) -> Session | None:
        """Return the session if it is open."""
        return self._session

    def release(self) -> None:
        """Close the session, so that code which is not ours may open the warehouse itself."""
        self._session = None
        self._open.close()

    def __enter__(self) -> Sessions:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._session = None
        self._open.__exit__(kind, error, trace)
