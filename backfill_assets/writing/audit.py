"""`load_audit`: one row per replaced slice, written in the transaction that replaced it, and one per attempt that was not.

Its columns are the fields of `Load`. The table is made on first use, and may be made beforehand with
`AuditTable.definition` for roles that may not create tables. Where an engine pays for each column of a small
write, the rows are kept in `load_audit_entries`, most fields as JSON, and `load_audit` is a view of it.
"""

from __future__ import annotations

import json
import uuid
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from typing import Any
from weakref import WeakKeyDictionary

from backfill_assets.engines.protocol import Session, Spelling
from backfill_assets.engines.sql import (
    create_schema,
    create_table,
    first,
    instant,
    listed,
    qualified,
    quoted,
    text,
)
from backfill_assets.errors import BackfillError, OutcomeUnknown, WriteFailed
from backfill_assets.slice import Slice
from backfill_assets.table import Table
from backfill_assets.window import Window
from backfill_assets.writing.making import make
from backfill_assets.writing.run import Run


@dataclass(frozen=True)
class Load:
    """One attempt at a slice. Times are aware and UTC, on the warehouse's clock; `seconds` is the attempt's length.

    `outcome` is `committed`, or `refused` (by a rule) or `failed` (by the warehouse): then the slice kept its old
    rows, which both counts tell, `committed_at` is when the attempt ended, and `detail` says why.
    Where no transaction holds slice and audit together, a row of a table of its own says before what is `intended`;
    the row that tells what became of it has its `audit_id`.
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

    @classmethod
    def of(
        cls,
        slice_: Slice,
        run: Run,
        *,
        source_read_at: datetime,
        started_at: datetime,
        committed_at: datetime,
        outcome: str,
        rows_before: int,
        rows_after: int,
        checksum: str,
        cost: float | None = None,
        audit_id: str | None = None,
        **detail: object,
    ) -> Load:
        """Return the row of one attempt at `slice_` by `run`; more `detail` stands beside that of the run."""
        told = {**json.loads(run.detail or "{}"), **{k: v for k, v in detail.items() if v}}
        if run.allows:
            told["allowed"] = sorted(run.allows)
        return cls(
            audit_id=audit_id or uuid.uuid4().hex,
            table_name=slice_.table.qualified,
            partition_key=slice_.name,
            window_start=slice_.window.start if slice_.window else None,
            window_end=slice_.window.end if slice_.window else None,
            dimensions=dimensions_of(slice_),
            outcome=outcome,
            strategy=run.strategy,
            lane=run.lane,
            rows_before=rows_before,
            rows_after=rows_after,
            checksum=checksum,
            reason=run.reason,
            ticket=run.ticket,
            launched_by=run.launched_by,
            run_id=run.run_id,
            backfill_id=run.backfill_id,
            code_version=run.code_version,
            source_read_at=source_read_at,
            started_at=started_at,
            committed_at=committed_at,
            seconds=round((committed_at - started_at).total_seconds(), 6),
            cost=cost,
            detail=json.dumps(told, ensure_ascii=False) if told else None,
        )

    @property
    def allowed(self) -> list[str]:
        """What the run was launched to pass."""
        return json.loads(self.detail or "{}").get("allowed", [])

    @property
    def source(self) -> dict[str, Any]:
        """What the slice's source told of its rows: the offsets of a replay, for example."""
        return json.loads(self.detail or "{}").get("source", {})

    @property
    def findings(self) -> list[dict[str, Any]]:
        """What the table's rules found, as `Finding.as_plain` gives it."""
        return json.loads(self.detail or "{}").get("findings", [])


@dataclass(frozen=True)
class Told:
    """A load, and of the committed load of the slice before it what tells why rows differ; None where there is none."""

    load: Load
    run_before: str | None
    code_before: str | None
    checksum_before: str | None
    read_before: datetime | None


@dataclass(frozen=True)
class Spent:
    """What loads and attempts took: seconds of their attempts, rows written, cost in the engine's unit."""

    seconds: float = 0.0
    rows: float = 0
    cost: float = 0.0


# what a slice and its loads have in common, by `key_of`
Key = tuple[str, "datetime | None", "datetime | None"]

_TYPES = {
    "datetime": "TIMESTAMPTZ",
    "int": "BIGINT",
    "float": "DOUBLE PRECISION",
    "str": "TEXT",
}
_TYPE_OF = {field.name: str(field.type).split(" ")[0] for field in fields(Load)}
# what `Told` keeps of the load before
_BEFORE = ("run_id", "code_version", "checksum", "source_read_at")
# the columns of `load_audit_entries`, apart from `entry`, which holds the other fields
_ASKED = ("audit_id", "table_name", "source_read_at")
# what each slice asks of it: who read later than I did, and is my row there
_INDEXES = (("table_name", "source_read_at"), ("audit_id",))
_IDS_AT_ONCE = 1000


# the audit tables that a session has seen, so that a run over a year asks once
_seen: WeakKeyDictionary[Session, set[AuditTable]] = WeakKeyDictionary()


@dataclass(frozen=True)
class AuditTable:
    """Where loads are recorded; the default is `backfill.load_audit` in the warehouse itself."""

    schema: str = "backfill"
    name: str = "load_audit"

    @property
    def intents(self) -> AuditTable:
        """Where it is said what is about to be written, for engines without transactions over several statements."""
        return AuditTable(self.schema, f"{self.name}_intents")

    def relation(self, spelling: Spelling) -> str:
        """Return the quoted name of what has the fields of `Load` as its columns, to be read."""
        return qualified(spelling, Table(self.name, schema=self.schema))

    def definition(self, spelling: Spelling) -> list[str]:
        """Return the statements that make the table, for whoever may run them."""
        stored = _ASKED if spelling.log_field else tuple(_TYPE_OF)
        columns = [
            f"{quoted(spelling, name)} {spelling.log_column.format(type=log_type(spelling, name))}"
            for name in stored
        ]
        if spelling.log_field:
            columns.append(f"entry {spelling.log_column.format(type='TEXT')}")
        return [
            create_schema(spelling, self.schema),
            create_table(spelling, self.stored(spelling), ", ".join(columns)),
            *(self._index(spelling, *names) for names in _INDEXES if spelling.index is not None),
            *([self._view(spelling)] if spelling.log_field else []),
        ]

    def stored(self, spelling: Spelling) -> str:
        """Return the quoted name of the table that the rows are written to."""
        name = f"{self.name}_entries" if spelling.log_field else self.name
        return qualified(spelling, Table(name, schema=self.schema))

    def _view(self, spelling: Spelling) -> str:
        return (
            f"CREATE VIEW IF NOT EXISTS {self.relation(spelling)} AS SELECT {_fields(spelling)}"
            f" FROM {self.stored(spelling)}"
        )

    def _index(self, spelling: Spelling, *names: str) -> str:
        return str(spelling.index).format(
            name=quoted(spelling, f"{self.name}_{names[-1]}"),
            name_text=text(spelling, f"{self.name}_{names[-1]}"),
            table=self.stored(spelling),
            table_text=text(spelling, self.stored(spelling)),
            columns=listed(spelling, names),
        )

    def ensure(self, session: Session) -> None:
        """Make the table if it is not there; say the statements to run where the role may not."""
        if self.is_there(session):
            return
        schema, *others = self.definition(session.spelling)
        what = f"the audit table {self.schema}.{self.name} is not there and cannot be made"
        make(session, what, others, schema=schema)

    def is_there(self, session: Session) -> bool:
        """Tell whether the table has been made; asked until it has."""
        seen = _seen.setdefault(session, set())
        if self not in seen and session.columns_of(self.stored(session.spelling)) is not None:
            seen.add(self)
        return self in seen

    def record(self, session: Session, load: Load) -> None:
        """Insert the row; belongs inside the transaction of the slice."""
        spelling = session.spelling
        values = {name: getattr(load, name) for name in _TYPE_OF}
        if spelling.log_field:
            rest = {name: values.pop(name) for name in _TYPE_OF if name not in _ASKED}
            values["entry"] = _packed(rest)
        literals = ", ".join(log_literal(spelling, value) for value in values.values())
        session.execute(
            f"INSERT INTO {self.stored(spelling)} ({listed(spelling, values)})"
            f" {spelling.one_row.format(values=literals)}"
        )

    def unfinished(
        self, session: Session, table: Table, window: Window | None = None
    ) -> list[Load]:
        """Return the intents of `table` that nobody knows the end of, newest first; of those only that touch `window`."""
        spelling = session.spelling
        rows = _rows_of(session, table, window)
        found = session.fetch(
            f"SELECT {_whole(spelling)} FROM {self.intents.stored(spelling)} WHERE {rows}"
            f" AND audit_id NOT IN (SELECT audit_id FROM {self.stored(spelling)} WHERE {rows})"
        )
        loads = {load.audit_id: load for load in (_load(spelling, row) for row in found)}
        return sorted(loads.values(), key=lambda load: load.committed_at, reverse=True)

    def newer_read(
        self, session: Session, slice_: Slice, read_at: datetime
    ) -> tuple[str, datetime] | None:
        """Return run and source read time of the newest committed load, if it read later than `read_at`."""
        spelling = session.spelling
        later = session.fetch(
            f"SELECT {_field(spelling, 'run_id')}, source_read_at, {_field(spelling, 'dimensions')}"
            f" FROM {self.stored(spelling)}"
            f" WHERE {_committed(session, slice_.table, slice_.window)} AND source_read_at > {instant(spelling, read_at)}"
        )
        # few or none: sorting here costs less than having an engine plan it
        rivals = ((str(run), aware(at)) for run, at, fixed in later if may_meet(slice_, fixed))
        return max(rivals, key=lambda load: load[1], default=None)

    def was_loaded(self, session: Session, slice_: Slice) -> bool:
        """Tell whether any committed load touched the slice."""
        spelling = session.spelling
        if not self.is_there(session):
            return False
        found = session.fetch(
            f"SELECT DISTINCT {_field(spelling, 'dimensions')} FROM {self.stored(spelling)}"
            f" WHERE {_committed(session, slice_.table, slice_.window)}"
        )
        return any(may_meet(slice_, fixed) for (fixed,) in found)

    def were_loaded(self, session: Session, slices: Sequence[Slice]) -> list[bool]:
        """Tell the same of many slices of one table, in one statement."""
        if not slices or not self.is_there(session):
            return [False] * len(slices)
        spelling, whole = session.spelling, spanning([slice_.window for slice_ in slices])
        apart = ", ".join(
            _field(spelling, name) for name in ("window_start", "window_end", "dimensions")
        )
        found = session.fetch(
            f"SELECT DISTINCT {apart} FROM {self.stored(spelling)}"
            f" WHERE {_committed(session, slices[0].table, whole)}"
        )
        return _touched(slices, [tuple(map(aware, row)) for row in found])

    def written_by(
        self,
        session: Session,
        runs: Sequence[str],
        table: Table,
        backfills: Sequence[str] = (),
    ) -> dict[str, Load]:
        """Return what `runs`, or any run of `backfills`, have committed of `table`: the newest load of each key."""
        spelling = session.spelling
        if not (runs or backfills) or not self.is_there(session):
            return {}
        loads: list[Load] = []
        for name, ids in (("run_id", runs), ("backfill_id", backfills)):
            for at in range(0, len(ids), _IDS_AT_ONCE):
                some = ", ".join(text(spelling, one) for one in ids[at : at + _IDS_AT_ONCE])
                found = session.fetch(
                    f"SELECT {_whole(spelling)} FROM {self.stored(spelling)}"
                    f" WHERE {_committed(session, table)} AND {_field(spelling, name)} IN ({some})"
                )
                loads += [_load(spelling, row) for row in found]
        return {load.partition_key: load for load in sorted(loads, key=lambda at: at.committed_at)}

    def newest(self, session: Session, table: Table, window: Window | None) -> list[Load]:
        """Return the newest committed load of each window and dimensions of `table` that touches `window`."""
        spelling = session.spelling
        if not self.is_there(session):
            return []
        apart = ", ".join(
            _field(spelling, name) for name in ("dimensions", "window_start", "window_end")
        )
        ranked = (
            f"SELECT {_whole(spelling)}, row_number() OVER (PARTITION BY {apart}"
            f" ORDER BY {_field(spelling, 'committed_at')} DESC) AS newest_is_1"
            f" FROM {self.stored(spelling)} WHERE {_committed(session, table, window)}"
        )
        found = session.fetch(
            f"SELECT {_whole(spelling)} FROM ({ranked}) AS ranked WHERE newest_is_1 = 1"
        )
        return [_load(spelling, row) for row in found]

    def last_of(self, session: Session, slice_: Slice) -> Load | None:
        """Return the newest committed load of exactly this slice, unless a later one of another cut touches it."""
        found = self.newest(session, slice_.table, slice_.window)
        return last_loads(found, [slice_]).get(key_of(slice_))

    def told(
        self, session: Session, table: Table, window: Window | None, backfill_id: str
    ) -> list[Told]:
        """Return every row of a backfill that touches `window`, oldest first, and the newest load of each slice.

        Rows of the backfill that were not committed come along: they say what was refused or failed.
        """
        spelling = session.spelling
        if not self.is_there(session):
            return []
        committed = f"{_field(spelling, 'outcome')} = 'committed'"
        mine = f"{_field(spelling, 'backfill_id')} = {text(spelling, backfill_id)}"
        slices = ("dimensions", "window_start", "window_end")
        apart = [*(_field(spelling, name) for name in slices), f"CASE WHEN {committed} THEN 1 END"]
        by, at = f"PARTITION BY {', '.join(apart)}", _field(spelling, "committed_at")
        before = ", ".join(
            f"lag({_field(spelling, name)}) OVER ({by} ORDER BY {at}) AS before_{name}"
            for name in _BEFORE
        )
        ranked = (
            f"SELECT {_fields(spelling)}, {before},"
            f" row_number() OVER ({by} ORDER BY {at} DESC) AS newest_is_1 FROM {self.stored(spelling)}"
            f" WHERE {_rows_of(session, table, window)} AND ({committed} OR {mine})"
        )
        names = ", ".join([listed(spelling, _TYPE_OF), *(f"before_{name}" for name in _BEFORE)])
        is_mine = f"{quoted(spelling, 'backfill_id')} = {text(spelling, backfill_id)}"
        found = session.fetch(
            f"SELECT {names} FROM ({ranked}) AS ranked WHERE newest_is_1 = 1 OR {is_mine}"
            f" ORDER BY {quoted(spelling, 'committed_at')}"
        )
        wide = len(_TYPE_OF)
        return [
            Told(Load(**dict(zip(_TYPE_OF, row[:wide], strict=True))), *row[wide:])
            for row in (tuple(map(aware, found_row)) for found_row in found)
        ]

    def usual(
        self, session: Session, table: Table, most: int
    ) -> tuple[list[float] | None, list[float]]:
        """Return seconds and costs of the last loads of `table`, at most `most`; None without any load."""
        spelling = session.spelling
        if not self.is_there(session):
            return None, []
        found = session.fetch(
            first(
                spelling,
                most,
                f"{_field(spelling, 'seconds')}, {_field(spelling, 'cost')} FROM {self.stored(spelling)}"
                f" WHERE {_committed(session, table)} ORDER BY {_field(spelling, 'committed_at')} DESC",
            )
        )
        costs = [float(cost) for _, cost in found if cost is not None]
        return ([float(seconds) for seconds, _ in found] or None), costs

    def spent(
        self,
        session: Session,
        *,
        backfills: Sequence[str] = (),
        runs: Sequence[str] = (),
        table: Table | None = None,
    ) -> Spent:
        """Sum what these backfills (or, without any, these runs) have spent, on one table or on all.

        Refused and failed attempts took their seconds, and wrote no rows.
        """
        spelling = session.spelling
        if not self.is_there(session):
            return Spent()
        whose, ids = ("backfill_id", backfills) if backfills else ("run_id", runs)
        listed_ids = ", ".join(text(spelling, one) for one in ids)
        parts = [f"{_field(spelling, whose)} IN ({listed_ids})"]
        if table is not None:
            parts.append(names_of(session, table))
        wrote = f"CASE WHEN {_field(spelling, 'outcome')} = 'committed' THEN {_field(spelling, 'rows_after')} END"
        values = (_field(spelling, "seconds"), wrote, _field(spelling, "cost"))
        sums = ", ".join(f"coalesce(sum({value}), 0)" for value in values)
        (found,) = session.fetch(
            f"SELECT {sums} FROM {self.stored(spelling)} WHERE {' AND '.join(parts)}"
        )
        return Spent(*(float(value) for value in found))

    def holds(self, session: Session, audit_id: str) -> bool:
        """Tell whether the row is there."""
        return self._rows(session, audit_id) > 0

    def _rows(self, session: Session, audit_id: str) -> int:
        found = session.fetch(
            f"SELECT count(*) FROM {self.stored(session.spelling)}"
            f" WHERE audit_id = {text(session.spelling, audit_id)}"
        )
        return int(found[0][0])

    def must_hold(self, session: Session, load: Load) -> None:
        """Raise unless the row is there after the commit: a COMMIT that returns proves nothing."""
        try:
            found = self._rows(session, load.audit_id)
        except BackfillError as error:
            raise OutcomeUnknown(
                f"{load.table_name} {load.partition_key} was replaced, and that could not be confirmed",
                error.why,
                "Launch this partition again: replacing it twice does no harm",
            ) from error
        # without a transaction, a driver may have sent the row again where the network failed before the answer
        if found != 1 and not (found and session.spelling.replace):
            raise WriteFailed(
                f"{load.table_name} {load.partition_key} was not replaced",
                f"its audit row {load.audit_id} is not there after the commit"
                + ("" if session.spelling.replace else ", so the transaction was rolled back"),
                "Launch this partition again",
            )


def _committed(session: Session, table: Table, window: Window | None = None) -> str:
    """Return the condition for committed loads of `table`, of those only that touch `window` where one is given."""
    outcome = _field(session.spelling, "outcome")
    return f"{_rows_of(session, table, window)} AND {outcome} = 'committed'"


def _rows_of(session: Session, table: Table, window: Window | None) -> str:
    """Return the condition for audit rows of `table`, whatever their outcome, that touch `window` if one is given."""
    spelling = session.spelling
    parts = [names_of(session, table)]
    if window is not None:
        first, last = (_field(spelling, name) for name in ("window_start", "window_end"))
        start, end = (instant(spelling, edge) for edge in (window.start, window.end))
        parts.append(f"({first} IS NULL OR ({first} < {end} AND {last} > {start}))")
    return " AND ".join(parts)


def names_of(session: Session, table: Table) -> str:
    """Return the condition for audit rows of `table`, by whatever name it was written: `t` is `main.t` is `W.MAIN.T`."""
    spelling = session.spelling
    column, parts = "table_name", [table.database or "", table.schema or "", table.name]
    own = session.database
    if not spelling.case_sensitive:
        column, own, parts = "lower(table_name)", own.lower(), [part.lower() for part in parts]
    database, schema, name = parts
    schema = schema or spelling.default_schema
    names = [f"{schema}.{name}", *([name] if schema == spelling.default_schema else [])]
    if database and database != own:
        names = [f"{database}.{schema}.{name}"]
    else:
        names.append(f"{own}.{schema}.{name}")
    return f"{column} IN ({', '.join(text(spelling, name) for name in names)})"


def spanning(windows: Sequence[Window | None]) -> Window | None:
    """Return the window from the first start to the last end; None where any of them is the whole table."""
    known = [window for window in windows if window is not None]
    if not known or len(known) < len(windows):
        return None
    return Window(min(w.start for w in known), max(w.end for w in known))


def _touched(slices: Sequence[Slice], loads: Sequence[tuple[Any, ...]]) -> list[bool]:
    """Tell of each slice whether any of `loads` (start, end, dimensions) may be of its rows."""
    timed = sorted({slice_.window for slice_ in slices if slice_.window}, key=lambda w: w.start)
    ends = [window.end for window in timed]
    by_window: dict[Window | None, set[str]] = {}
    for start, end, dimensions in loads:
        first = 0 if start is None else bisect_right(ends, start)
        until = len(timed) if end is None else bisect_left(timed, end, key=lambda w: w.start)
        for window in (None, *timed[first:until]):
            by_window.setdefault(window, set()).add(str(dimensions))
    return [
        any(may_meet(slice_, fixed) for fixed in by_window.get(slice_.window, ()))
        for slice_ in slices
    ]


def may_meet(slice_: Slice, dimensions: str) -> bool:
    """Tell whether rows of a load with these `dimensions` may be rows of `slice_`: unless a shared one differs."""
    theirs = json.loads(dimensions)
    return all(theirs.get(column, value) == value for column, value in slice_.fixed)


def key_of(slice_: Slice) -> Key:
    """Return what a slice and its loads have in common: the dimensions and the edges of the window."""
    window = slice_.window
    start, end = (window.start, window.end) if window else (None, None)
    return dimensions_of(slice_), start, end


def last_loads(found: Sequence[Load], slices: Sequence[Slice]) -> dict[Key, Load]:
    """Return of the newest loads that were `found` those that tell what `slices` were left with.

    Since a later load of another cut (a week over its days), nobody can say what the slice's own one has left.
    """
    loads = {(load.dimensions, load.window_start, load.window_end): load for load in found}
    wanted = {key_of(slice_): slice_ for slice_ in slices}
    others = [load for key, load in loads.items() if key not in wanted]
    return {
        key: load
        for key, slice_ in wanted.items()
        if (load := loads.get(key)) is not None
        and not any(
            other.committed_at > load.committed_at and _touches(slice_, other) for other in others
        )
    }


def _touches(slice_: Slice, load: Load) -> bool:
    """Tell whether rows of `load` may be rows of `slice_`."""
    window = slice_.window
    if load.window_start is None or load.window_end is None or window is None:
        return may_meet(slice_, load.dimensions)
    apart = load.window_start >= window.end or load.window_end <= window.start
    return not apart and may_meet(slice_, load.dimensions)


def dimensions_of(slice_: Slice) -> str:
    """Return the static dimensions as JSON, keys in order; `{}` when there are none."""
    return json.dumps(dict(slice_.fixed), sort_keys=True)


def _field(spelling: Spelling, name: str) -> str:
    """Return a field of `Load` as it is read from what is stored, in its type."""
    if spelling.log_field is None or name in _ASKED:
        return quoted(spelling, name)
    found = spelling.log_field.format(column="entry", name=name)
    return found if _TYPE_OF[name] == "str" else f"CAST({found} AS {log_type(spelling, name)})"


def _fields(spelling: Spelling) -> str:
    """Return every field of `Load` under its name."""
    return ", ".join(f"{_field(spelling, name)} AS {quoted(spelling, name)}" for name in _TYPE_OF)


def _whole(spelling: Spelling) -> str:
    """Return the columns that hold a whole row, as `_load` takes them."""
    return listed(spelling, (*_ASKED, "entry") if spelling.log_field else _TYPE_OF)


def _load(spelling: Spelling, row: Sequence[Any]) -> Load:
    """Return the load that a row of `_whole` is."""
    if not spelling.log_field:
        return Load(**dict(zip(_TYPE_OF, map(aware, row), strict=True)))
    *asked, entry = row
    told: dict[str, Any] = json.loads(entry)
    given: dict[str, Any] = {
        name: datetime.fromisoformat(value) if _TYPE_OF[name] == "datetime" else value
        for name, value in told.items()
    }
    whole: dict[str, Any] = dict.fromkeys(_TYPE_OF)
    return Load(**{**whole, **given, **dict(zip(_ASKED, asked, strict=True))})


def aware(value: Any) -> Any:
    """Return an instant with its zone, where the engine keeps instants as a clock that shows UTC; all else as it is."""
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=timezone.utc)
    return value


def _packed(values: dict[str, object]) -> str:
    told = {name: value for name, value in values.items() if value is not None}
    return json.dumps(told, default=datetime.isoformat, ensure_ascii=False, separators=(",", ":"))


def log_table(spelling: Spelling, table: Table, columns: Mapping[str, str]) -> str:
    """Return the statement that makes another log: its columns, each with that of the audit whose type it has."""
    listed_ = ", ".join(
        f"{quoted(spelling, n)} {log_type(spelling, of)}" for n, of in columns.items()
    )
    return create_table(spelling, qualified(spelling, table), listed_)


def log_type(spelling: Spelling, name: str) -> str:
    """Return the SQL type of the column `name` of the audit, for other logs too."""
    from sqlglot import exp

    kind = _TYPE_OF[name]
    if name in spelling.log_types or kind in spelling.log_types:
        return spelling.log_types.get(name, spelling.log_types.get(kind, ""))
    if kind == "str":
        return spelling.text_type
    return exp.DataType.build(_TYPES[kind]).sql(dialect=spelling.dialect)


def log_literal(spelling: Spelling, value: object) -> str:
    """Return a value of a log as a literal: an instant, a text, a number or nothing."""
    if isinstance(value, datetime):
        return instant(spelling, value)
    return (
        text(spelling, value)
        if isinstance(value, str)
        else ("NULL" if value is None else repr(value))
    )
