"""Rules of one's own, asked of many slices in one statement."""

from __future__ import annotations

from collections.abc import Mapping

from backfill_assets.engines import Spelling
from backfill_assets.expectations import NoRows
from backfill_assets.writing.expecting import broken_by, trimmed

_ROWS = "slice_rows"
_PLACE = "_of_place_"


def asked_together(spelling: Spelling, rule: NoRows, rows: Mapping[int, str]) -> str | None:
    """Return the query for (place, rows that break `rule`) of slices, whose rows are the queries `rows` by place.

    None where the engine takes a WITH nowhere but in front, and the rule cannot be read to put it there.
    """
    if spelling.nested_ctes:
        return " UNION ALL ".join(
            f"SELECT {place} AS place, count(*) AS rows_broken FROM ({broken_by(rule, query)}) AS broken"
            for place, query in rows.items()
        )
    parts = _in_parts(spelling, rule)
    if parts is None:
        return None
    ctes: list[str] = []
    counts: list[str] = []
    for place, query in rows.items():
        own, asked = (part.replace(_PLACE, f"_{place}") for part in parts)
        ctes.append(f"{_ROWS}_{place} AS (\n{query}\n){own}")
        counts.append(
            f"SELECT {place} AS place, count(*) AS rows_broken FROM (\n{asked}\n) AS broken"
        )
    return f"WITH {', '.join(ctes)} {' UNION ALL '.join(counts)}"


def _in_parts(spelling: Spelling, rule: NoRows) -> tuple[str, str] | None:
    """Return what a rule's own WITH holds, and the rest, with a mark in each name that a slice has for itself."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(trimmed(rule.sql), read=spelling.dialect)
    except SqlglotError:
        return None
    named = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    if not isinstance(tree, exp.Query) or _ROWS in named:
        return None
    for table in list(tree.find_all(exp.Table)):
        if not table.db and table.name.lower() in {_ROWS, *named}:
            # columns may be told by the name that the table had
            if not table.alias:
                table.set("alias", exp.TableAlias(this=table.this.copy()))
            table.set("this", exp.to_identifier(f"{table.name}{_PLACE}", quoted=table.this.quoted))
    for cte in tree.find_all(exp.CTE):
        name = cte.args["alias"].this
        cte.args["alias"].set("this", exp.to_identifier(f"{name.name}{_PLACE}", quoted=name.quoted))
    where = "with_" if "with_" in tree.arg_types else "with"  # sqlglot has renamed it
    own = tree.args.get(where)
    tree.set(where, None)
    shown = [cte.sql(dialect=spelling.dialect) for cte in own.expressions] if own else []
    return "".join(f", {cte}" for cte in shown), tree.sql(dialect=spelling.dialect)
