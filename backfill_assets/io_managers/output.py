"""The slices of one output, written in order: each when its turn has come and nothing holds it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import dagster as dg

from backfill_assets.engines import Session
from backfill_assets.errors import BadRows
from backfill_assets.io_managers.computing import Computed
from backfill_assets.io_managers.controlled import RunGate
from backfill_assets.io_managers.reporting import Progress, closing_failed, keep, stopped
from backfill_assets.io_managers.sessions import Sessions
from backfill_assets.slice import Slice
from backfill_assets.writing import AuditTable, Load, rewrite


class Output:
    """Writes `slices`; what is committed stays, and is told to Dagster, when a later one fails."""

    def __init__(
        self,
        context: dg.OutputContext,
        slices: Sequence[Slice],
        sessions: Sessions,
        gate: RunGate,
        audit: AuditTable,
    ) -> None:
        self._context, self._slices = context, slices
        self._sessions, self._gate, self._audit = sessions, gate, audit
        self._done: list[Load] = []

    def write(self, parts: Iterable[Sequence[Computed]]) -> list[Load]:
        """Write what comes, and return the loads; between two batches the asset's own code runs."""
        progress = Progress(self._context.log.info, len(self._slices))
        try:
            for batch in parts:
                for computed in batch:
                    session = self._turn(computed)
                    self._done.append(
                        rewrite(session, computed.slice, computed.rows, computed.run, self._audit)
                    )
                    progress.after(self._done)
                self._sessions.release()  # the asset's code may open the warehouse itself
        except BaseException as error:  # a run that is terminated keeps its days too
            self._stop(error)
            raise
        return self._done

    def _turn(self, computed: Computed) -> Session:
        """Return the open session once nothing holds the slice.

        Asked with the warehouse in hand: getting it may take minutes, in which somebody pauses or a deadline passes.
        """
        while True:
            session = self._sessions.get()
            if self._done:
                session.breathe()
            self._gate.ask(computed)
            if self._sessions.get_open() is session:
                return session  # and otherwise it was given back while the run waited

    def _stop(self, error: BaseException) -> None:
        """Raise what is to be told of `error` instead of itself, after telling Dagster what is committed."""
        done, slices = self._done, self._slices
        if done and len(done) == len(slices) and isinstance(error, Exception):
            keep(self._context, slices, done, self._sessions.spelling)
            raise closing_failed(slices[-1], error) from error
        if len(slices) <= 1 or (not done and isinstance(error, BadRows)):
            return  # the sentence says it all, and for a stray row that no day was begun
        keep(self._context, slices, done, self._sessions.spelling)
        if isinstance(error, Exception):
            raise stopped(slices, len(done), error) from error
