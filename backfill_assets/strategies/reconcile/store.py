"""`reconciliation_daily` and `reconciliation_keys`: what came of comparing each day, and the keys that differ.

One row a day and migration, replaced together with its keys whenever the day is compared again. Both tables are in the
warehouse of the new side, made on first use.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from backfill_assets.engines.protocol import Claim, Session, Spelling
from backfill_assets.engines.sql import (
    create_schema,
    instant,
    listed,
    qualified,
    quoted,
    text,
)
from backfill_assets.strategies.reconcile.day import DayCompared, KeyFound, Mark
from backfill_assets.table import Table
from backfill_assets.window import Window
from backfill_assets.writing.audit import aware, log_table
from backfill_assets.writing.claims import alone
from backfill_assets.writing.making import make

# each column with the one of the audit whose type it has
_DAILY = {
    "migration": "table_name",
    "partition_key": "partition_key",
    "window_start": "window_start",
    "window_end": "window_end",
    "rows_old": "rows_before",
    "rows_new": "rows_after",
    "only_old": "rows_before",
    "only_new": "rows_before",
    "differing": "rows_before",
    "equal": "rows_before",
    "checksum_old": "checksum",
    "checksum_new": "checksum",
    "measures": "detail",
    "columns": "detail",
    "verdict": "outcome",
    "fingerprint": "checksum",
    "run_id": "run_id",
    "compared_at": "committed_at",
}
_KEYS = {
    "migration": "table_name",
    "partition_key": "partition_key",
    "place": "rows_before",
    "kind": "outcome",
    "key": "detail",
    "old": "detail",
    "new": "detail",
    "columns": "detail",
    "copies": "rows_before",
}

Found = tuple[DayCompared, Sequence[KeyFound]]


@dataclass(frozen=True)
class ReconciliationStore:
    """Where it is kept what came of comparing; the default is the schema `backfill`."""

    schema: str = "backfill"

    @property
    def daily(self) -> Table:
        """The table with a row for each day."""
        return Table("reconciliation_daily", schema=self.schema)

    @property
    def keys(self) -> Table:
        """The table with a row for each key that differs, of those that are kept."""
        return Table("reconciliation_keys", schema=self.schema)

    def definition(self, spelling: Spelling) -> list[str]:
        """Return the statements that make the tables, for whoever may run them."""
        made = [
            log_table(spelling, table, columns)
            for table, columns in ((self.daily, _DAILY), (self.keys, _KEYS))
        ]
        return [create_schema(spelling, self.schema), *made]

    def ensure(self, session: Session) -> None:
        """Make the tables if they are not there; say the statements to run where the role may not."""
        if self.is_there(session):
            return
        schema, *others = self.definition(session.spelling)
        what = f"nothing is compared, since {self.schema}.reconciliation_daily is not there and cannot be made"
        make(session, what, others, schema=schema)

    def is_there(self, session: Session) -> bool:
        """Tell whether both tables have been made."""
        return all(
            session.columns_of(qualified(session.spelling, table)) is not None
            for table in (self.daily, self.keys)
        )

    def replace(self, session: Session, found: Sequence[Found], run: str) -> None:
        """Put the days in the place of what was known of them, in one transaction where there is one."""
        if not found:
            return
        spelling = session.spelling
        daily, keys = (qualified(spelling, table) for table in (self.daily, self.keys))
        claim = Claim(daily, None, self.daily.qualified, f"run {run[:8]}")
        session.prepare(claim)
        mark = uuid.uuid4().hex
        names = f"backfill_stage_{mark}_d", f"backfill_stage_{mark}_k"
        days = session.stage_arrow(names[0], _arrow(_DAILY, [_day_row(day) for day, _ in found]))
        pairs = [_key_row(key, n) for _, own in found for n, key in enumerate(own)]
        try:
            differing = session.stage_arrow(names[1], _arrow(_KEYS, pairs)) if pairs else None
            with alone(session, claim):
                _write(session, (daily, days), (keys, differing), found)
        finally:
            for name in names:
                session.drop_stage(name)

    def days(
        self, session: Session, migration: str, window: Window | None = None
    ) -> list[DayCompared]:
        """Return what is known of each day of a migration, in order; of those only that lie in `window`."""
        if not self.is_there(session):
            return []
        spelling = session.spelling
        where = f"{quoted(spelling, 'migration')} = {text(spelling, migration)}"
        if window is not None:
            where += (
                f" AND {quoted(spelling, 'window_start')} >= {instant(spelling, window.start)}"
                f" AND {quoted(spelling, 'window_end')} <= {instant(spelling, window.end)}"
            )
        rows = session.fetch(
            f"SELECT {listed(spelling, _DAILY)} FROM {qualified(spelling, self.daily)} WHERE {where}"
        )
        return sorted((_day(row) for row in rows), key=lambda day: day.window_start)

    def worst_keys(self, session: Session, migration: str, partition: str) -> list[KeyFound]:
        """Return the keys of one day that are kept, the largest difference first."""
        if not self.is_there(session):
            return []
        spelling = session.spelling
        rows = session.fetch(
            f"SELECT {listed(spelling, _KEYS)} FROM {qualified(spelling, self.keys)}"
            f" WHERE {quoted(spelling, 'migration')} = {text(spelling, migration)}"
            f" AND {quoted(spelling, 'partition_key')} = {text(spelling, partition)}"
        )
        return [_key(row) for row in sorted(rows, key=lambda row: row[2])]


def _write(
    session: Session, daily: tuple[str, str], keys: tuple[str, str | None], found: Sequence[Found]
) -> None:
    """Replace days and keys; the days go first and come last, so that no day is told by keys of another time."""
    spelling, (first, _) = session.spelling, found[0]
    names = ", ".join(text(spelling, day.partition_key) for day, _ in found)
    own = (
        f"{quoted(spelling, 'migration')} = {text(spelling, first.migration)}"
        f" AND {quoted(spelling, 'partition_key')} IN ({names})"
    )
    for relation in (daily[0], keys[0]):
        session.execute(f"DELETE FROM {relation} WHERE {own}")
    for (relation, stage), columns in ((keys, _KEYS), (daily, _DAILY)):
        if stage is not None:
            told = listed(spelling, columns)
            session.execute(f"INSERT INTO {relation} ({told}) SELECT {told} FROM {stage}")


def _day_row(day: DayCompared) -> dict[str, Any]:
    sums = {
        name: {"old": str(day.old.sums[name]), "new": str(day.new.sums[name])}
        for name in day.old.sums
    }
    return {
        **{name: getattr(day, name) for name in _DAILY if hasattr(day, name)},
        "rows_old": day.old.rows,
        "rows_new": day.new.rows,
        "checksum_old": day.old.checksum,
        "checksum_new": day.new.checksum,
        "measures": json.dumps(sums),
        "columns": json.dumps(dict(day.columns), ensure_ascii=False),
    }


def _day(row: Sequence[Any]) -> DayCompared:
    told: dict[str, Any] = dict(zip(_DAILY, map(aware, row), strict=True))
    measures: Mapping[str, Mapping[str, str]] = json.loads(told.pop("measures"))
    sides = {
        side: Mark(
            int(told.pop(f"rows_{side}")),
            told.pop(f"checksum_{side}"),
            {name: Decimal(sums[side]) for name, sums in measures.items()},
        )
        for side in ("old", "new")
    }
    return DayCompared(**{**told, **sides, "columns": json.loads(told["columns"])})


def _key_row(key: KeyFound, place: int) -> dict[str, Any]:
    return {
        "migration": key.migration,
        "partition_key": key.partition_key,
        "place": place,
        "kind": key.kind,
        **{name: _json(dict(getattr(key, name))) for name in ("key", "old", "new")},
        "columns": _json(list(key.columns)),
        "copies": key.copies,
    }


def _key(row: Sequence[Any]) -> KeyFound:
    told: dict[str, Any] = dict(zip(_KEYS, row, strict=True))
    del told["place"]
    for name in ("key", "old", "new", "columns"):
        told[name] = json.loads(told[name])
    return KeyFound(**{**told, "columns": tuple(told["columns"]), "copies": int(told["copies"])})


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _arrow(columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> Any:
    import pyarrow as pa

    kinds = {"rows_before": pa.int64(), "rows_after": pa.int64()}
    times = ("window_start", "window_end", "committed_at")
    schema = pa.schema(
        [
            (name, pa.timestamp("us", "UTC") if like in times else kinds.get(like, pa.string()))
            for name, like in columns.items()
        ]
    )
    return pa.Table.from_pylist([dict(row) for row in rows], schema=schema)
