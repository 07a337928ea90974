"""How staged columns meet the table's: by name, by the declared policy, and never rounded or retyped silently."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from backfill_assets.engines.protocol import Session, Spelling
from backfill_assets.engines.sql import qualified, quoted
from backfill_assets.errors import MissingRight, SchemaMismatch
from backfill_assets.slice import Slice
from backfill_assets.table import Table

_MATCHING_KIND = {
    "date": ("date",),
    "timestamp": ("timestamp",),
    "timestamptz": ("timestamptz",),
    "int_yyyymmdd": ("integer",),
    "iso_text": ("text",),
}
_NUMBERS = ("integer", "decimal", "float")
_CALENDAR = ("date", "timestamp")


@dataclass(frozen=True)
class Stage:
    """Rows beside the table: the relation's SQL name, and what its types do not say.

    `untyped` columns hold no value and fit any type; `undecided` ones give no type to make a column with.
    """

    relation: str
    untyped: frozenset[str] = frozenset()
    undecided: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Fit:
    """The columns to insert, in the table's order, and how each is made from the stage.

    `create` and `add` are what the table needs first: (name, type) each. `casts` maps a name to
    (staged type, target type) where the two differ.
    """

    names: tuple[str, ...]
    values: tuple[str, ...]
    casts: dict[str, tuple[str, str]]
    create: tuple[tuple[str, str], ...] = ()
    add: tuple[tuple[str, str], ...] = ()

    def select(self, spelling: Spelling, stage: str) -> str:
        """Return the staged rows as the table will hold them."""
        columns = ", ".join(
            f"{value} AS {quoted(spelling, name)}" for name, value in zip(self.names, self.values, strict=True)
        )
        return f"SELECT {columns} FROM {stage}"


def fit(session: Session, slice_: Slice, stage: Stage) -> Fit:
    """Return how `stage` fits the table, or raise `SchemaMismatch`; nothing is changed yet."""
    table, spelling = slice_.table, session.spelling
    staged = session.columns_of(stage.relation) or {}
    existing = session.columns_of(qualified(spelling, table))
    if existing is None and table.columns is None and stage.undecided:
        raise SchemaMismatch(
            f"{slice_.label} was left as it was",
            f"the table is not there yet, and the empty frame gives {_some(sorted(stage.undecided))} no type to make"
            " it with",
            "Declare the columns with their types, or load a day that has rows first",
        )
    wanted = dict(existing if existing is not None else table.columns or staged)
    staged_by = _by_key(staged, spelling, f"the rows for {slice_.label}")
    wanted_by = _by_key(wanted, spelling, f"table {table.qualified}")
    _refuse_missing_essentials(slice_, staged_by, spelling)
    new = [staged_by[key] for key in staged_by if key not in wanted_by]
    missing = [wanted_by[key] for key in wanted_by if key not in staged_by]
    if table.on_schema_change == "fail" and (new or missing):
        raise _changed(slice_, new, missing, staged, wanted)
    added = tuple((name, (table.columns or staged).get(name, staged[name])) for name in new)
    if table.on_schema_change != "add":
        added = ()
    pairs = [(name, staged_by[key], wanted[name]) for key, name in wanted_by.items() if key in staged_by]
    pairs += [(name, name, kind) for name, kind in added]
    differing = {name: (staged[source], kind) for name, source, kind in pairs if staged[source] != kind}
    casts = {name: types for name, types in differing.items() if name not in stage.untyped}
    _refuse_other_families(slice_, casts, spelling)
    _refuse_wrong_kind(slice_, {name: kind for name, _, kind in pairs}, spelling)
    values = tuple(
        f"CAST({quoted(spelling, source)} AS {kind})" if name in casts else quoted(spelling, source)
        for name, source, kind in pairs
    )
    create = () if existing is not None else tuple(wanted.items())
    return Fit(tuple(name for name, _, _ in pairs), values, casts, create, added)


def make_room(session: Session, table: Table, found: Fit) -> None:
    """Create the table or add its new columns: before the transaction, since DDL may commit one."""
    spelling = session.spelling
    relation = qualified(spelling, table)
    statements: list[str] = []
    if found.create:
        columns = ", ".join(f"{quoted(spelling, name)} {kind}" for name, kind in found.create)
        if table.schema:
            schema = [part for part in (table.database, table.schema) if part]
            statements.append("CREATE SCHEMA IF NOT EXISTS " + ".".join(quoted(spelling, p) for p in schema))
        statements.append(f"CREATE TABLE IF NOT EXISTS {relation} ({columns})")
    for name, kind in found.add:
        statements.append(f"ALTER TABLE {relation} ADD COLUMN IF NOT EXISTS {quoted(spelling, name)} {kind}")
    try:
        for statement in statements:
            session.define(statement)
    except MissingRight as error:
        raise MissingRight(
            f"{table.qualified} is not as these rows need it, and cannot be changed",
            error.why,
            f"Let somebody with the right run once: {'; '.join(statements)}",
        ) from error


def family(kind: str, spelling: Spelling) -> str:
    """Return what a type in the engine's spelling is: integer, decimal, float, text, date, timestamp ... or itself."""
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        parsed = exp.DataType.build(kind, dialect=spelling.dialect)
    except SqlglotError:
        return kind.lower()
    T = exp.DataType.Type
    if parsed.this in (T.TIMESTAMPTZ, T.TIMESTAMPLTZ):
        return "timestamptz"
    if parsed.this in (T.DATE, T.DATE32):
        return "date"
    if parsed.this in exp.DataType.TEMPORAL_TYPES and parsed.this not in (T.TIME, T.TIMETZ):
        return "timestamp"
    for name, types in (
        ("integer", exp.DataType.INTEGER_TYPES),
        ("float", exp.DataType.FLOAT_TYPES),
        ("decimal", exp.DataType.NUMERIC_TYPES),
        ("text", exp.DataType.TEXT_TYPES),
    ):
        if parsed.this in types:
            return name
    return parsed.sql(dialect=spelling.dialect).lower()


def _by_key(columns: Iterable[str], spelling: Spelling, whose: str) -> dict[str, str]:
    """Index column names the way the engine tells them apart."""
    found: dict[str, str] = {}
    for name in columns:
        key = name if spelling.case_sensitive else name.lower()
        if key in found:
            raise SchemaMismatch(
                f"{whose} cannot be written",
                f"columns {found[key]!r} and {name!r} are the same name to {spelling.dialect}",
                "Rename one of them",
            )
        found[key] = name
    return found


def _refuse_missing_essentials(slice_: Slice, staged: dict[str, str], spelling: Spelling) -> None:
    table = slice_.table
    needed = [*table.unique_key, *table.dimensions]
    if slice_.window is not None and table.slice_column is not None:
        needed.insert(0, table.slice_column.name)
    absent = [n for n in needed if (n if spelling.case_sensitive else n.lower()) not in staged]
    if absent:
        raise SchemaMismatch(
            f"{slice_.label} was left as it was",
            f"the rows have no column {', '.join(map(repr, absent))}, only {_some(staged.values())}",
            "Return that column, or correct the name in partition_expr or unique_key (a column's name, not SQL)",
        )


def _changed(
    slice_: Slice, new: list[str], missing: list[str], staged: dict[str, str], wanted: dict[str, str]
) -> SchemaMismatch:
    parts: list[str] = []
    if new:
        parts.append("the rows bring " + ", ".join(f"{n!r} ({staged[n]})" for n in new) + ", which the table has not")
    if missing:
        parts.append("the table has " + ", ".join(f"{n!r} ({wanted[n]})" for n in missing) + ", which the rows lack")
    return SchemaMismatch(
        f"{slice_.label} was left as it was",
        " and ".join(parts),
        "Correct the rows, or declare on_schema_change='add' (add new, fill missing) or 'ignore' (leave out, fill missing)",
    )


def _refuse_other_families(slice_: Slice, casts: dict[str, tuple[str, str]], spelling: Spelling) -> None:
    for name, (staged, wanted) in casts.items():
        was, will = family(staged, spelling), family(wanted, spelling)
        numbers = was in _NUMBERS and will in _NUMBERS
        calendar = was in _CALENDAR and will in _CALENDAR
        parsed = was == "text" and will not in (*_NUMBERS, *_CALENDAR, "timestamptz")
        if not (was == will or numbers or calendar or parsed):
            raise SchemaMismatch(
                f"{slice_.label} was left as it was",
                f"column {name!r} holds {wanted} and the rows bring {staged}, which would have to be reinterpreted",
                f"Convert the column to {wanted} in the transform, where it is said how",
            )


def _refuse_wrong_kind(slice_: Slice, types: dict[str, str], spelling: Spelling) -> None:
    column = slice_.table.slice_column
    if column is None or slice_.window is None:
        return
    actual = next(kind for name, kind in types.items() if name.lower() == column.name.lower())
    if family(actual, spelling) not in _MATCHING_KIND[column.kind]:
        raise SchemaMismatch(
            f"{slice_.label} was left as it was",
            f"column {column.name!r} is declared to hold {column.kind} and the table holds {actual}",
            "Declare the kind that the column really has",
        )


def _some(names: Iterable[str]) -> str:
    shown = list(names)
    return ", ".join(map(repr, shown[:12])) + (f" and {len(shown) - 12} more" if len(shown) > 12 else "") or "none"
