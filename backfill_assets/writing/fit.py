"""How staged columns meet the table's: by name, by the declared policy, and never rounded or retyped silently."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast
from weakref import WeakKeyDictionary

from backfill_assets.engines.protocol import Session, Spelling
from backfill_assets.engines.sql import (
    add_column,
    create_schema,
    create_table,
    qualified,
    quoted,
    text,
)
from backfill_assets.errors import SchemaMismatch
from backfill_assets.slice import Slice
from backfill_assets.table import SliceKind, Table
from backfill_assets.writing.making import make
from backfill_assets.writing.select import Select

if TYPE_CHECKING:
    from sqlglot import exp

# the family of types that a column of each kind has
FAMILY_OF: dict[SliceKind, str] = {
    "date": "date",
    "timestamp": "timestamp",
    "timestamptz": "timestamptz",
    "int_yyyymmdd": "integer",
    "iso_text": "text",
}
# a type that is either, where instants are kept as a clock that shows UTC
_EITHER = ("timestamp", "timestamptz")
_NUMBERS = ("integer", "decimal", "float")
_CALENDAR = ("date", "timestamp")
# the queries whose source a session has looked at, and what it found
_resolved: WeakKeyDictionary[Session, dict[Select, Select]] = WeakKeyDictionary()
_RAW = ("bytea", "blob", "binary", "varbinary")


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
    """The columns to insert, in the table's order: the staged name, the value and the type of each.

    `table` is every column that the table will have, and `create` and `add` are what it needs first: (name, type)
    each. `casts` maps a name to
    (staged type, target type) where the two differ.
    """

    sources: dict[str, str]
    values: tuple[str, ...]
    types: tuple[str, ...]
    casts: dict[str, tuple[str, str]]
    create: tuple[tuple[str, str], ...] = ()
    add: tuple[tuple[str, str], ...] = ()
    table: tuple[tuple[str, str], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The table's names of the columns."""
        return tuple(self.sources)

    def select(self, spelling: Spelling, stage: str) -> str:
        """Return the staged rows as the table will hold them."""
        columns = ", ".join(
            f"{value} AS {quoted(spelling, name)}"
            for name, value in zip(self.names, self.values, strict=True)
        )
        return f"SELECT {columns} FROM {stage}"

    def select_whole(self, spelling: Spelling, stage: str) -> str:
        """Return the same with every column of the table in its order, for engines that insert by place."""
        given = dict(zip(self.names, self.values, strict=True))
        columns = ", ".join(
            f"{given.get(name, f'CAST(NULL AS {kind})')} AS {quoted(spelling, name)}"
            for name, kind in self.table
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
    staged_by = by_key(staged, spelling, f"the rows for {slice_.label}")
    wanted_by = by_key(wanted, spelling, f"table {table.qualified}")
    _refuse_undeclared_lack(slice_, wanted_by, spelling)
    _refuse_missing_essentials(slice_, staged_by, wanted_by, spelling)
    new = [staged_by[key] for key in staged_by if key not in wanted_by]
    missing = [wanted_by[key] for key in wanted_by if key not in staged_by]
    if missing and existing is not None:
        computed = filled_by_the_table(session, qualified(spelling, table))
        missing = [name for name in missing if name not in computed]
    if table.on_schema_change == "fail" and (new or missing):
        raise _changed(slice_, new, missing, staged, wanted)
    declared = table.columns or {}
    # a column whose values nobody has seen waits for the first slice that has some, which gives its type
    added = tuple(
        (name, declared.get(name, staged[name]))
        for name in new
        if name in declared or name not in stage.untyped
    )
    if table.on_schema_change != "add":
        added = ()
    pairs = [
        (name, staged_by[key], wanted[name]) for key, name in wanted_by.items() if key in staged_by
    ]
    pairs += [(name, name, kind) for name, kind in added]
    differing = {
        name: (staged[source], kind) for name, source, kind in pairs if staged[source] != kind
    }
    sources = {name: source for name, source, _ in pairs}
    casts = {name: types for name, types in differing.items() if sources[name] not in stage.untyped}
    _refuse_other_families(slice_, casts, spelling)
    _refuse_wrong_kind(slice_, {name: kind for name, _, kind in pairs}, spelling)
    values = tuple(
        quoted(spelling, source)
        if name not in differing
        else f"CAST({quoted(spelling, source) if name in casts else 'NULL'} AS {kind})"
        for name, source, kind in pairs
    )
    create = () if existing is not None else tuple(wanted.items())
    types = tuple(kind for _, _, kind in pairs)
    return Fit(sources, values, types, casts, create, added, (*wanted.items(), *added))


def filled_by_the_table(session: Session, relation: str) -> frozenset[str]:
    """Return the columns of a table that nobody may insert: it computes them itself."""
    spelling = session.spelling
    if spelling.computed is None:
        return frozenset()
    found = session.fetch(spelling.computed.format(table=text(spelling, relation)))
    return frozenset(str(name) for (name,) in found)


def make_room(session: Session, table: Table, found: Fit) -> bool:
    """Create the table or add its new columns where needed; tell whether it was."""
    spelling = session.spelling
    relation = qualified(spelling, table)
    statements: list[str] = []
    schema = None
    if found.create:
        columns = ", ".join(f"{quoted(spelling, name)} {kind}" for name, kind in found.create)
        if table.schema:
            # not every engine takes the name of a database there, and its own need not be said
            other = table.database if table.database not in (None, session.database) else None
            parts = [part for part in (other, table.schema) if part]
            schema = create_schema(spelling, *parts)
        statements.append(create_table(spelling, relation, columns))
    statements += [add_column(spelling, relation, name, kind) for name, kind in found.add]
    if statements:
        what = f"{table.qualified} is not as these rows need it, and cannot be changed"
        make(session, what, statements, schema=schema)
    return bool(statements)


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
    if (
        parsed.this == T.BIT
    ):  # a truth to one engine, a row of bits to others, and to none of them a number
        return "bit"
    if spelling.scale_0_is_whole and _is_whole(parsed):
        return "integer"
    for name, types in (
        ("integer", exp.DataType.INTEGER_TYPES),
        ("float", exp.DataType.FLOAT_TYPES),
        ("decimal", exp.DataType.NUMERIC_TYPES),
        ("text", exp.DataType.TEXT_TYPES),
    ):
        if parsed.this in types:
            return name
    return parsed.sql(dialect=spelling.dialect).lower()


def _is_whole(kind: exp.DataType) -> bool:
    """Tell whether a type is a decimal without places."""
    places = [argument.name for argument in kind.expressions]
    return kind.this == kind.Type.DECIMAL and places[1:] in ([], ["0"])


def holds_kind(kind: SliceKind, holds: str, spelling: Spelling) -> bool:
    """Tell whether a column whose types are of the family `holds` can be of a kind."""
    either = spelling.instants_are_utc and holds == "timestamp"
    return FAMILY_OF[kind] == holds or (either and kind in _EITHER)


def may_be_either(holds: str, zone: str, spelling: Spelling) -> bool:
    """Tell whether nobody can tell a wall clock of `zone` from an instant: in UTC they are the same."""
    return spelling.instants_are_utc and holds == "timestamp" and zone != "UTC"


def folded(name: str, spelling: Spelling) -> str:
    """Return a column's name the way the engine tells names apart."""
    return name if spelling.case_sensitive else name.lower()


def by_key(columns: Iterable[str], spelling: Spelling, whose: str) -> dict[str, str]:
    """Index column names the way the engine tells them apart."""
    found: dict[str, str] = {}
    for name in columns:
        key = folded(name, spelling)
        if key in found:
            raise SchemaMismatch(
                f"{whose} cannot be written",
                f"columns {found[key]!r} and {name!r} are the same name to {spelling.dialect}",
                "Rename one of them",
            )
        found[key] = name
    return found


def _refuse_missing_essentials(
    slice_: Slice, staged: dict[str, str], wanted: dict[str, str], spelling: Spelling
) -> None:
    """Raise unless rows and table have what cuts the slice, and the rows the unique key."""
    table = slice_.table
    cutting = list(table.dimensions)
    if slice_.window is not None and table.slice_column is not None:
        cutting.insert(0, table.slice_column.name)
    for whose, columns, needed in (
        ("the rows have", staged, [*cutting, *table.unique_key]),
        (f"table {table.qualified} has", wanted, cutting),
    ):
        absent = [name for name in needed if folded(name, spelling) not in columns]
        if absent:
            raise SchemaMismatch(
                f"{slice_.label} was left as it was",
                f"{whose} no column {', '.join(map(repr, absent))}, only {_some(columns.values())}",
                "Return that column, or correct the name in partition_expr or unique_key (a column's name, not SQL)",
            )


def _refuse_undeclared_lack(slice_: Slice, there: dict[str, str], spelling: Spelling) -> None:
    """Raise when the table lacks a column that its declaration has, and nothing says that it may."""
    table = slice_.table
    lacking = [name for name in table.columns or () if folded(name, spelling) not in there]
    if lacking and table.on_schema_change == "fail":
        raise SchemaMismatch(
            f"{slice_.label} was left as it was",
            f"table {table.qualified} is declared with {_some(lacking)} and has no such column",
            "Add the column, or correct the declaration, or declare on_schema_change='add' or 'ignore'",
        )


def _changed(
    slice_: Slice,
    new: list[str],
    missing: list[str],
    staged: dict[str, str],
    wanted: dict[str, str],
) -> SchemaMismatch:
    parts: list[str] = []
    if new:
        parts.append(
            "the rows bring "
            + ", ".join(f"{n!r} ({staged[n]})" for n in new)
            + ", which the table has not"
        )
    if missing:
        parts.append(
            "the table has "
            + ", ".join(f"{n!r} ({wanted[n]})" for n in missing)
            + ", which the rows lack"
        )
    return SchemaMismatch(
        f"{slice_.label} was left as it was",
        " and ".join(parts),
        "Correct the rows, or declare on_schema_change='add' (add new, fill missing) or 'ignore' (leave out, fill missing)",
    )


def _refuse_other_families(
    slice_: Slice, casts: dict[str, tuple[str, str]], spelling: Spelling
) -> None:
    for name, (staged, wanted) in casts.items():
        was, will = family(staged, spelling), family(wanted, spelling)
        numbers = was in _NUMBERS and will in _NUMBERS
        calendar = was in _CALENDAR and will in _CALENDAR
        parsed = was == "text" and will not in (*_NUMBERS, *_CALENDAR, *_RAW, "timestamptz")
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
    wanted = folded(column.name, spelling)
    actual = next(kind for name, kind in types.items() if folded(name, spelling) == wanted)
    if not holds_kind(column.kind, family(actual, spelling), spelling):
        raise SchemaMismatch(
            f"{slice_.label} was left as it was",
            f"column {column.name!r} is declared to hold {column.kind} and the table holds {actual}",
            "Declare the kind that the column really has",
        )


def resolved(session: Session, slice_: Slice, select: Select) -> Select:
    """Return `select` with the kind that its source's column `on` really has; raise where it is declared otherwise.

    An engine compares a wall clock with an instant without a word, by the session's zone, and rows at the edges would
    be cut elsewhere. Asked once a session.
    """
    if select.on is None or slice_.window is None:
        return select
    found = _resolved.setdefault(session, {})
    if select not in found:
        found[select] = _with_kind(session, slice_, select)
    return found[select]


def _with_kind(session: Session, slice_: Slice, select: Select) -> Select:
    spelling, column = session.spelling, slice_.table.slice_column
    zone = select.on_zone or (column.zone if column is not None else "UTC")
    query = select.probe(spelling)
    columns = session.columns_of(f"(\n{query}\n) AS source_column") if query else None
    for actual in (columns or {}).values():
        kind = family(actual, spelling)
        is_time = kind in ("date", *_EITHER) and not may_be_either(kind, zone, spelling)
        if select.on_kind is None and is_time:
            return replace(select, on_kind=cast("SliceKind", kind))
        if select.on_kind is None or not holds_kind(select.on_kind, kind, spelling):
            declared = select.on_kind or "a time"
            raise SchemaMismatch(
                f"{slice_.label} was left as it was",
                f"column {select.on!r} of the source is declared to hold {declared} and holds {actual}",
                "Give on_kind (and on_zone) of the Select as the column really is",
            )
    return select


def _some(names: Iterable[str]) -> str:
    shown = list(names)
    return (
        ", ".join(map(repr, shown[:12]))
        + (f" and {len(shown) - 12} more" if len(shown) > 12 else "")
        or "none"
    )
