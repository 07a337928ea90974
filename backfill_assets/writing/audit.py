"""`load_audit`: one row per replaced slice, written in the transaction that replaced it.

Its columns are the fields of `Load`. The table is made on first use, and may be made beforehand with
`AuditTable.definition` for roles that may not create tables.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from datetime import datetime
from weakref import WeakKeyDictionary

from backfill_assets.engines.protocol import Session, Spelling
from backfill_assets.engines.sql import instant, listed, qualified, quoted, text
from backfill_assets.errors import WriteFailed
from backfill_assets.slice import Slice
from backfill_assets.table import Table
from backfill_assets.writing.making import make


@dataclass(frozen=True)
class Load:
    """One replaced slice. Times are aware and UTC, on the warehouse's clock; `seconds` is the attempt's length.

    `rows_before` and `rows_after` count the slice; `checksum` is the order-independent sum of its row
    hashes, comparable within one engine; `cost` is in the engine's unit, or None where it tells none.
    `dimensions` and `detail` are JSON.
    """

    audit_id: str
    table_name: str
    partition_key: str
    window_start: datetime | None
    window_end: datetime | None
    dimensions: str
    outcome: str
    strategy: str
    lane: str
    rows_before: int
    rows_after: int
    checksum: str
    reason: str | None
    ticket: str | None
    launched_by: str | None
    run_id: str
    backfill_id: str | None
    code_version: str | None
    source_read_at: datetime
    started_at: datetime
    committed_at: datetime
    seconds: float
    cost: float | None = None
    detail: str | None = None


_TYPES = {
    "datetime": "TIMESTAMPTZ",
    "int": "BIGINT",
    "float": "DOUBLE PRECISION",
    "str": "TEXT",
}
# what each slice asks of it: who read later than I did, and is my row there
_INDEXES = (("table_name", "source_read_at"), ("audit_id",))


# the audit tables that a session has seen, so that a run over a year asks once
_seen: WeakKeyDictionary[Session, set[AuditTable]] = WeakKeyDictionary()


@dataclass(frozen=True)
class AuditTable:
    """Where loads are recorded; the default is `backfill.load_audit` in the warehouse itself."""

    schema: str = "backfill"
    name: str = "load_audit"

    def relation(self, spelling: Spelling) -> str:
        """Return the table's quoted name."""
        return qualified(spelling, Table(self.name, schema=self.schema))

    def definition(self, spelling: Spelling) -> list[str]:
        """Return the statements that make the table, for whoever may run them."""
        columns = ", ".join(
            f"{quoted(spelling, field.name)} {_column_type(str(field.type), spelling)}"
            for field in fields(Load)
        )
        return [
            f"CREATE SCHEMA IF NOT EXISTS {quoted(spelling, self.schema)}",
            f"CREATE TABLE IF NOT EXISTS {self.relation(spelling)} ({columns})",
            *(self._index(spelling, *names) for names in _INDEXES if spelling.index is not None),
        ]

    def _index(self, spelling: Spelling, *names: str) -> str:
        return str(spelling.index).format(
            name=quoted(spelling, f"{self.name}_{names[-1]}"),
            table=self.relation(spelling),
            columns=listed(spelling, names),
        )

    def ensure(self, session: Session) -> None:
        """Make the table if it is not there; say the statements to run where the role may not."""
        if self in _seen.setdefault(session, set()):
            return
        if session.columns_of(self.relation(session.spelling)) is not None:
            _seen[session].add(self)
            return
        schema, *others = self.definition(session.spelling)
        what = f"the audit table {self.schema}.{self.name} is not there and cannot be made"
        make(session, what, others, schema=schema)

    def record(self, session: Session, load: Load) -> None:
        """Insert the row; belongs inside the transaction of the slice."""
        names = ", ".join(quoted(session.spelling, field.name) for field in fields(Load))
        values = ", ".join(
            _literal(session.spelling, getattr(load, field.name)) for field in fields(Load)
        )
        session.execute(
            f"INSERT INTO {self.relation(session.spelling)} ({names}) VALUES ({values})"
        )

    def newer_read(
        self, session: Session, slice_: Slice, read_at: datetime
    ) -> tuple[str, datetime] | None:
        """Return run and source read time of the newest committed load, if it read later than `read_at`."""
        spelling = session.spelling
        found = session.fetch(
            f"SELECT run_id, source_read_at FROM {self.relation(spelling)} WHERE {_overlapping(spelling, slice_)}"
            f" AND source_read_at > {instant(spelling, read_at)} ORDER BY source_read_at DESC LIMIT 1"
        )
        return (str(found[0][0]), found[0][1]) if found else None

    def must_hold(self, session: Session, load: Load) -> None:
        """Raise unless the row is there after the commit: a COMMIT that returns proves nothing."""
        found = session.fetch(
            f"SELECT count(*) FROM {self.relation(session.spelling)} WHERE audit_id = {text(session.spelling, load.audit_id)}"
        )
        if found[0][0] != 1:
            raise WriteFailed(
                f"{load.table_name} {load.partition_key} was not replaced",
                f"its audit row {load.audit_id} is not there after the commit, so the transaction was rolled back",
                "Launch this partition again",
            )


def _overlapping(spelling: Spelling, slice_: Slice) -> str:
    parts = [
        f"table_name = {text(spelling, slice_.table.qualified)}",
        "outcome = 'committed'",
        f"(dimensions = {text(spelling, dimensions_of(slice_))} OR dimensions = '{{}}')",
    ]
    if slice_.window is not None:
        start, end = (instant(spelling, edge) for edge in (slice_.window.start, slice_.window.end))
        parts.append(f"(window_start IS NULL OR (window_start < {end} AND window_end > {start}))")
    return " AND ".join(parts)


def dimensions_of(slice_: Slice) -> str:
    """Return the static dimensions as JSON, keys in order; `{}` when there are none."""
    return json.dumps(dict(slice_.fixed), sort_keys=True)


def _column_type(annotation: str, spelling: Spelling) -> str:
    from sqlglot import exp

    kind = exp.DataType.build(_TYPES[annotation.split(" ")[0]]).sql(dialect=spelling.dialect)
    return spelling.log_column.format(type=kind)


def _literal(spelling: Spelling, value: object) -> str:
    if isinstance(value, datetime):
        return instant(spelling, value)
    return (
        text(spelling, value)
        if isinstance(value, str)
        else ("NULL" if value is None else repr(value))
    )
