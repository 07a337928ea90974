"""Whether a table's columns are those that its owner declares."""

from __future__ import annotations

import re
from collections.abc import Mapping

from backfill_assets.engines import Session, Spelling
from backfill_assets.table import Table
from backfill_assets.writing.fit import family, folded, holds_kind

# standard SQL: so many binary digits, of which an engine has two sizes
_FLOAT = re.compile(r"^\s*float\s*\(\s*(\d+)\s*\)\s*$", re.I)
_DIGITS_OF_REAL = 24


def _of_bits(found: re.Match[str]) -> str:
    return "real" if int(found[1]) <= _DIGITS_OF_REAL else "double precision"


def schema_problems(session: Session, table: Table, columns: Mapping[str, str] | None) -> list[str]:
    """Return what is wrong with the table's columns, in words; nothing when it is as declared."""
    if columns is None:
        return ["the table is not there"]
    spelling = session.spelling
    there = {folded(name, spelling): kind for name, kind in columns.items()}
    needed: list[str] = [*table.unique_key, *table.dimensions, *(table.columns or {})]
    column = table.slice_column
    names: list[str] = list(dict.fromkeys([*([column.name] if column else []), *needed]))
    found = [f"column {name!r} is missing" for name in names if folded(name, spelling) not in there]
    kind = there.get(folded(column.name, spelling)) if column is not None else None
    if (
        column is not None
        and kind
        and not holds_kind(column.kind, family(kind, spelling), spelling)
    ):
        found.append(f"column {column.name!r} is declared to hold {column.kind} and holds {kind}")
    for name, declared in (table.columns or {}).items():
        actual = there.get(folded(name, spelling))
        if actual is not None and not _is(declared, actual, spelling):
            found.append(f"column {name!r} is declared as {declared} and is {actual}")
    if table.columns is not None and table.on_schema_change == "fail":
        declared_names = {folded(name, spelling) for name in table.columns}
        found += [
            f"column {name!r} is not declared" for name in there if name not in declared_names
        ]
    return found


def _is(declared: str, actual: str, spelling: Spelling) -> bool:
    """Tell whether two spellings are one type; what a declaration leaves out, such as a scale, the engine chose."""
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    declared, actual = (_FLOAT.sub(_of_bits, kind) for kind in (declared, actual))
    try:
        ours, theirs = (exp.DataType.build(k, dialect=spelling.dialect) for k in (declared, actual))
    except SqlglotError:
        return declared.upper() == actual.upper()
    said, has = ([part.sql() for part in one.expressions] for one in (ours, theirs))
    return ours.this == theirs.this and has[: len(said)] == said
