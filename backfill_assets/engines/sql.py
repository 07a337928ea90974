"""Names, literals and the window predicate as SQL text: every identifier quoted, every value typed.

The predicate of a slice is spelled here and nowhere else, so that DELETE, INSERT and verification agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from backfill_assets.engines.protocol import Spelling
from backfill_assets.errors import DeclarationError

if TYPE_CHECKING:
    from backfill_assets.slice import Slice
    from backfill_assets.table import Bound, SliceColumn, Table
    from backfill_assets.window import Window


# what SQL without quotes folds; anything else has to be quoted to be written at all
_PLAIN = re.compile(r"[a-z_][a-z0-9_$]*")
# `(10, 2)` of `decimal(10, 2)`
_PARAMETERS = re.compile(r"\s*\([^)]*\)")


def quoted(spelling: Spelling, name: str) -> str:
    """Return `name` as one quoted identifier, whatever characters it holds."""
    return _quoted(
        spelling.dialect, spelling.longest_name, spelling.forbidden, stored(spelling, name)
    )


def stored(spelling: Spelling, name: str) -> str:
    """Return `name` as the engine stores it: where it folds, `fct_sales` is FCT_SALES, and `createdAt` stays."""
    return name.upper() if spelling.folds_upper and _PLAIN.fullmatch(name) else name


def told(spelling: Spelling, name: str) -> str:
    """Return a name that the engine stores as we write it: the way back from `stored`."""
    plain = name.lower()
    return plain if spelling.folds_upper and stored(spelling, plain) == name else name


@lru_cache(maxsize=4096)
def _quoted(dialect: str, longest: int, forbidden: str, name: str) -> str:
    from sqlglot import exp

    if not name or "\x00" in name or len(name.encode()) > longest:
        raise DeclarationError(
            f"the name {name[:40]!r} cannot be used",
            f"{dialect} takes names of 1 to {longest} bytes without NUL, and this one has {len(name.encode())}",
            "Give another name",
        )
    if any(letter in forbidden for letter in name):
        raise DeclarationError(
            f"the name {name[:40]!r} cannot be used",
            f"{dialect} takes no name with any of {forbidden} in it, however it is quoted",
            "Give another name",
        )
    return exp.to_identifier(name, quoted=True).sql(dialect=dialect)


def qualified(spelling: Spelling, table: Table) -> str:
    """Return the table's full name, each part quoted."""
    parts = (table.database, table.schema, table.name)
    return ".".join(quoted(spelling, part) for part in parts if part)


def text(spelling: Spelling, value: str | None) -> str:
    """Return a text literal, or NULL."""
    from sqlglot import exp

    if value is None:
        return "NULL"
    return spelling.text.format(literal=exp.Literal.string(value).sql(dialect=spelling.dialect))


def same_text(spelling: Spelling, column: str, value: str) -> str:
    """Return the condition that the column holds exactly this text, by every letter and blank."""
    return spelling.same_text.format(column=quoted(spelling, column), value=text(spelling, value))


def first(spelling: Spelling, count: int, rest: str, *, distinct: bool = False) -> str:
    """Return `SELECT rest` with no more than `count` rows of its result."""
    return spelling.first.format(distinct="DISTINCT " * distinct, rest=rest, count=int(count))


def by_type(templates: Mapping[str, str], kind: str) -> str:
    """Return the template of a column's type, or that of all other types, which is named ''."""
    return templates.get(_PARAMETERS.sub("", kind).lower(), templates[""])


def summed(spelling: Spelling, column: str) -> str:
    """Return the sum of an expression."""
    return spelling.sum.format(column=column)


def create_schema(spelling: Spelling, *parts: str) -> str:
    """Return the statement that makes the schema (of a database, where two names are given) if it is not there."""
    name = ".".join(quoted(spelling, part) for part in parts)
    return spelling.create_schema.format(name=name, name_text=text(spelling, ".".join(parts)))


def create_table(spelling: Spelling, relation: str, columns: str) -> str:
    """Return the statement that makes a table if it is not there."""
    return spelling.create_table.format(
        name=relation, name_text=text(spelling, relation), columns=columns
    )


def add_column(spelling: Spelling, relation: str, name: str, kind: str) -> str:
    """Return the statement that adds a column if it is not there."""
    return spelling.add_column.format(
        table=relation,
        table_text=text(spelling, relation),
        name=quoted(spelling, name),
        name_text=text(spelling, name),
        type=kind,
    )


def grouped(spelling: Spelling, columns: Sequence[str]) -> str:
    """Return what stands behind GROUP BY for the first columns of a SELECT, which are `columns`."""
    if spelling.group_by_place:
        return ", ".join(str(n + 1) for n in range(len(columns)))
    return ", ".join(column for column in columns if not column.isdigit())


def instant(spelling: Spelling, value: datetime | None) -> str:
    """Return a literal of an aware instant, or NULL."""
    return (
        "NULL" if value is None else spelling.literals["timestamptz"].format(value.isoformat(" "))
    )


def bound(spelling: Spelling, column: SliceColumn, value: Bound) -> str:
    """Return one end of a window as the typed literal that the slice column needs."""
    shown = value.isoformat(" ") if isinstance(value, datetime) else value
    shown = shown.isoformat() if isinstance(shown, date) else shown
    return spelling.literals[column.kind].format(shown)


def within(spelling: Spelling, column: SliceColumn, window: Window, *, prefix: str = "") -> str:
    """Return `column >= start AND column < end`: half-open, the bare column against typed literals."""
    start, end = (bound(spelling, column, value) for value in column.bounds(window))
    name = prefix + quoted(spelling, column.name)
    return f"{name} >= {start} AND {name} < {end}"


def predicate(spelling: Spelling, slice_: Slice) -> str:
    """Return the condition that holds for the rows of a slice and no others; `TRUE`-like for a whole table."""
    parts: list[str] = []
    if slice_.window is not None and slice_.table.slice_column is not None:
        parts.append(within(spelling, slice_.table.slice_column, slice_.window))
    for column, value in slice_.fixed:
        parts.append(same_text(spelling, column, value))
    return " AND ".join(parts) or "1 = 1"


def replacement(spelling: Spelling, relation: str, slice_: Slice, query: str) -> str:
    """Return the one statement that replaces the rows of a slice by those of a query."""
    if slice_.window is None and not slice_.fixed:
        return spelling.replace_all.format(table=relation, query=query)
    return spelling.replace.format(
        table=relation, condition=predicate(spelling, slice_), query=query
    )


def listed(spelling: Spelling, names: Iterable[str]) -> str:
    """Return quoted names, separated by commas."""
    return ", ".join(quoted(spelling, name) for name in names)
