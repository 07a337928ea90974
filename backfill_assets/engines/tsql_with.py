"""WITH at the beginning of a statement, the only place where T-SQL takes it; other engines take it inside parentheses."""

from __future__ import annotations

import re
from typing import Any

_INSIDE = re.compile(r"\(\s*WITH\b", re.IGNORECASE)


def apart(sql: str) -> tuple[str, str]:
    """Return a query as its WITH (empty without one) and the rest."""
    tree = _parsed(sql)
    ctes = tree.args.get(_place(tree)) if tree is not None else None
    if tree is None or ctes is None:
        return "", sql
    tree.set(_place(tree), None)
    return f"{ctes.sql(dialect='tsql')} ", tree.sql(dialect="tsql")


def hoisted(sql: str) -> str:
    """Return a statement in which no WITH stands inside parentheses; one that cannot be read is left to the server."""
    if not _INSIDE.search(sql):
        return sql
    tree = _parsed(sql)
    if tree is None:
        return sql
    from sqlglot import exp

    found: list[Any] = []
    for inner in list(tree.find_all(exp.Query)):
        if inner is not tree and (ctes := inner.args.get(_place(inner))) is not None:
            inner.set(_place(inner), None)
            # what stands further in may be named by what stands around it
            found = [*ctes.expressions, *found]
    own = tree.args.get(_place(tree))
    found += own.expressions if own is not None else []
    names = [cte.alias.lower() for cte in found]
    if not found or len(set(names)) < len(names):
        return sql
    tree.set(_place(tree), exp.With(expressions=found))
    return tree.sql(dialect="tsql")


def _parsed(sql: str) -> Any:
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(sql, read="tsql")
    except SqlglotError:
        return None
    return tree if isinstance(tree, (exp.Query, exp.Insert)) else None


def _place(tree: Any) -> str:
    """Return sqlglot's name for a WITH, which it has changed once."""
    return "with_" if "with_" in tree.arg_types else "with"
