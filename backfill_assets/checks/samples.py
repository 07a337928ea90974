"""A few offending rows of a slice and the query for all of them, asked for some slices only: bounded, whatever is wrong."""

from __future__ import annotations

from dataclasses import replace

from backfill_assets.checks.verdict import Verdict
from backfill_assets.engines import Session
from backfill_assets.engines.sql import first, instant, listed, predicate, qualified, quoted
from backfill_assets.errors import BackfillError
from backfill_assets.expectations import NoRows
from backfill_assets.slice import Slice
from backfill_assets.table import Table
from backfill_assets.writing.expecting import broken_by
from backfill_assets.writing.reference import reference

_ROWS = 5
_SLICES = 10


class Samples:
    """Hands out the samples of one check, to the first slices that fail it."""

    def __init__(self, session: Session, table: Table) -> None:
        self._session, self._table, self._left = session, table, _SLICES

    def shown(self, verdict: Verdict) -> Verdict:
        """Return the verdict with the query that shows what is wrong, and some of its rows."""
        sql = self._query(verdict)
        if sql is None:
            return verdict
        verdict = replace(verdict, sql=sql)
        if self._left <= 0:
            return verdict
        self._left -= 1
        try:
            some = first(self._session.spelling, _ROWS, f"* FROM (\n{sql}\n) AS offending")
            rows = self._session.fetch(some)
        except BackfillError:  # the verdict has failed anyway, and says why
            return verdict
        return replace(verdict, sample=tuple(", ".join(map(_shown, row))[:300] for row in rows))

    def _query(self, verdict: Verdict) -> str | None:
        spelling, table, slice_ = self._session.spelling, self._table, verdict.slice
        rule = table.rule(verdict.check)
        if rule is not None:
            return self._broken(rule, slice_)
        relation, where = qualified(spelling, table), predicate(spelling, slice_)
        if verdict.check == "duplicate_keys":
            keys = listed(spelling, table.unique_key)
            return (
                f"SELECT {keys}, count(*) AS copies FROM {relation} WHERE {where}"
                f" GROUP BY {keys} HAVING count(*) > 1"
            )
        return self._late(verdict) if verdict.check == "late_rows" else None

    def _broken(self, rule: NoRows, slice_: Slice) -> str:
        spelling = self._session.spelling
        rows = (
            f"SELECT * FROM {qualified(spelling, self._table)} WHERE {predicate(spelling, slice_)}"
        )
        return broken_by(rule, rows)

    def _late(self, verdict: Verdict) -> str | None:
        source, since = self._table.source, verdict.since
        if source is None or source.ingested_at is None or since is None:
            return None
        spelling = self._session.spelling
        try:
            at = reference(self._session, self._table, source)
        except BackfillError:
            return None
        (own,) = at.slices([verdict.slice])
        return (
            f"SELECT * FROM {at.relation} WHERE {predicate(spelling, own)}"
            f" AND {quoted(spelling, source.ingested_at)} >= {instant(spelling, since)}"
        )


def _shown(value: object) -> str:
    return "no value" if value is None else str(value)
