"""A slice where no transaction holds several statements: claim, intent, one atomic replacement, read back, done.

Each statement is committed by itself, so a process that dies leaves what it had done by then. The intent says before
what is about to be written and what was there; `unfinished.py` tells by it what became of a writer that died.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from backfill_assets.engines.protocol import Replacing
from backfill_assets.engines.sql import predicate, qualified, replacement
from backfill_assets.errors import BackfillError, OutcomeUnknown, Unreachable, WriteFailed
from backfill_assets.writing import measure
from backfill_assets.writing.attempt import Attempt
from backfill_assets.writing.audit import Load
from backfill_assets.writing.measure import Facts
from backfill_assets.writing.unfinished import give_up, settle

_log = logging.getLogger(__name__)


def replace_slice(session: Replacing, attempt: Attempt) -> Load:
    """Replace the slice by what is staged; on any error that is told, the old rows are there or are put back."""
    slice_, audit = attempt.slice_, attempt.audit
    with session.hold(attempt.claim):
        # what a writer that died has written counts for the order of reads too
        uncertain = settle(session, slice_, audit, attempt.run, attempt.started)
        attempt.refuse_stale(session)
        version = session.version_of(qualified(session.spelling, slice_.table))
        before = measure.facts_of_table(session, slice_, attempt.found)
        measure.refuse_shrunk(slice_, before.rows, attempt.staged, attempt.run)
        audit.intents.record(session, _intent(session, attempt, before, version))
        session.still_holds(attempt.claim)
        load = _Replacement(session, attempt, before, version).done()
        for intent in uncertain:
            give_up(session, audit, intent, "another run has written the slice since")
    return load


def _intent(session: Replacing, attempt: Attempt, before: Facts, version: str) -> Load:
    columns = dict(zip(attempt.found.names, attempt.found.types, strict=True))
    load = attempt.load(
        session,
        before.rows,
        attempt.staged,
        "intended",
        columns=columns,
        checksum_before=before.checksum,
        version_before=version,
    )
    return replace(load, cost=None)


class _Replacement:
    """The one statement, and what is left to do once it was sent."""

    def __init__(self, session: Replacing, attempt: Attempt, before: Facts, version: str) -> None:
        self._session, self._attempt = session, attempt
        self._before, self._version = before, version
        self._took_effect = False
        # its audit row was sent: only while that is not there the slice may be put back
        self._was_told = False

    def done(self) -> Load:
        """Replace the slice and return its audit row; put the old rows back where that cannot be finished."""
        try:
            inserted = self._replace(
                self._attempt.found.select_whole(self._session.spelling, self._attempt.stage)
            )
            self._took_effect = True
            return self._confirmed(inserted)
        except OutcomeUnknown:
            raise
        except Unreachable as error:
            # the warehouse may still be at it, so that nothing that is read now would prove anything
            raise self._unknown(error.why) from error
        except BackfillError as error:
            try:
                is_back = self._put_back()
            except BackfillError as second:
                raise self._unknown(
                    f"{error.why}; the old rows could not be put back ({second.why})"
                ) from error
            if not is_back:
                raise self._unknown(f"it was, but not confirmed: {error.why}") from error
            raise
        except BaseException:
            try:
                self._put_back()
            except BackfillError as second:
                _log.warning("%s may hold the new rows: %s", self._attempt.slice_.label, second)
            raise

    def _confirmed(self, inserted: int) -> Load:
        session, attempt = self._session, self._attempt
        written = self._facts()
        measure.must_agree(attempt.slice_, attempt.staged, inserted, written)
        load = attempt.load(session, self._before.rows, written)
        self._was_told = True
        attempt.audit.record(session, load)
        attempt.audit.must_hold(session, load)
        return load

    def _replace(self, query: str) -> int:
        spelling, slice_ = self._session.spelling, self._attempt.slice_
        return self._session.execute(
            replacement(spelling, qualified(spelling, slice_.table), slice_, query)
        )

    def _facts(self) -> Facts:
        return measure.facts_of_table(self._session, self._attempt.slice_, self._attempt.found)

    def _put_back(self) -> bool:
        """Let the slice hold what it held in the version before; tell False where its audit row is there already.

        What somebody else has written is left, where our own statement was refused.
        """
        attempt, spelling = self._attempt, self._session.spelling
        if self._was_told and attempt.audit.holds(self._session, attempt.audit_id):
            return False
        now = self._facts()
        if now == self._before or not (self._took_effect or now == attempt.staged):
            return True
        # another writer who has the claim by now may have written these very rows, and they are its own
        self._session.still_holds(attempt.claim)
        slice_ = attempt.slice_
        relation = qualified(spelling, slice_.table)
        was = spelling.as_of.format(table=relation, version=self._version)
        self._replace(f"SELECT * FROM {was} WHERE {predicate(spelling, slice_)}")
        if self._facts() != self._before:
            raise WriteFailed(
                f"{slice_.label} could not be put back",
                f"it does not hold what it held in version {self._version}",
                "Look for a writer that does not go through here",
            )
        return True

    def _unknown(self, why: str) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"whether {self._attempt.slice_.label} was replaced is not known, though it is whole, old or new",
            why,
            "Launch this partition again: what became of this attempt is found out first, and replacing it twice does"
            " no harm",
        )
