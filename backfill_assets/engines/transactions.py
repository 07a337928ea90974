"""All or nothing, the same for every engine that has transactions; engines say how theirs begin and commit."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Protocol, TypeVar

from backfill_assets.engines.protocol import Claim
from backfill_assets.errors import BackfillError


class Connection(Protocol):
    """What is opened and closed: a session of any engine."""

    def open(self) -> None: ...

    def close(self) -> None: ...


C = TypeVar("C", bound=Connection)


@contextlib.contextmanager
def opened(session: C) -> Generator[C, None, None]:
    """Open a session, and close it whatever happens: what was not committed by then is rolled back."""
    try:
        session.open()
        yield session
    finally:
        session.close()


class Transactions:
    """The part of a session that begins, commits and rolls back."""

    # the first error inside the open transaction: it dooms it, whoever swallows it
    _doomed: BackfillError | None = None

    def execute(self, sql: str) -> int:
        """Run one statement."""
        raise NotImplementedError

    def prepare(self, claim: Claim) -> None:
        """Do nothing: most engines claim with what is there."""

    def may_cost(self, most: float | None) -> None:
        """Do nothing: most engines cap no statement's cost."""

    def cost(self, seconds: float) -> float | None:
        """Tell no cost."""
        return None

    def _begin(self) -> None:
        self.execute("BEGIN TRANSACTION")

    def _commit(self) -> None:
        self.execute("COMMIT")

    @contextlib.contextmanager
    def transaction(self) -> Generator[None, None, None]:
        """Commit what the body did, or roll it back on any error, also on one that was swallowed in there."""
        self._doomed = None
        try:
            self._begin()
            yield
            # COMMIT would return normally, and write nothing or half of it
            if self._doomed is not None:
                raise self._doomed
            self._commit()
        except BaseException:
            # the first error is the one to tell; closing rolls back where ROLLBACK itself fails
            with contextlib.suppress(BackfillError):
                self.execute("ROLLBACK")
            raise
        finally:
            self._doomed = None
