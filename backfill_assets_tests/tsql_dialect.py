"""T-SQL, as far as our engines and tests speak it, into DuckDB's SQL: sqlglot's translation, and what it has otherwise.

What SQL Server refuses and DuckDB would run is refused here, with SQL Server's number: the point is not to be kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokens import TokenType

# SQLSTATE, number, words
Fault = tuple[str, int, str]
SYNTAX: Fault = ("42000", 102, "Incorrect syntax near '{}'.")
_TEXT = ("nvarchar", "varchar", "nchar", "char")
_PLAIN = {
    "bit": "BOOLEAN", "tinyint": "UTINYINT", "smallint": "SMALLINT", "int": "INTEGER", "bigint": "BIGINT",
    "float": "DOUBLE", "real": "REAL", "money": "DECIMAL(19,4)", "date": "DATE", "datetime": "TIMESTAMP",
    "time": "TIME", "uniqueidentifier": "UUID", "varbinary": "BLOB", "binary": "BLOB",
}  # fmt: skip
_SAME = {
    "integer": "int", "double precision": "float", "numeric": "decimal", "dec": "decimal", "text": "varchar(max)",
    "datetime2": "datetime2(7)", "timestamp": "datetime2(7)", "datetimeoffset": "datetimeoffset(7)", "char": "char(1)",
    "time": "time(7)", "float(53)": "float", "double": "float", "boolean": "bit", "nvarchar": "nvarchar(1)",
    "varchar": "varchar(1)", "decimal": "decimal(18,0)", "varbinary": "varbinary(1)", "float(24)": "real",
}  # fmt: skip
# what another SQL has and T-SQL (of 2016, and of a dedicated pool) has not
_FOREIGN = (TokenType.LIMIT, TokenType.DCOLON, TokenType.DPIPE, TokenType.ILIKE)
_CONDITIONS = (
    exp.EQ,
    exp.NEQ,
    exp.GT,
    exp.GTE,
    exp.LT,
    exp.LTE,
    exp.Is,
    exp.And,
    exp.Or,
    exp.Not,
    exp.In,
    exp.Like,
)
_MOST_CASES = 10
_CONVERT = re.compile(r"CONVERT\(\s*n?varchar\s*\(\s*(?:max|\d+)\s*\)\s*,", re.IGNORECASE)
_BATCH_OF_HASH = re.compile(r"HASHBYTES\('SHA2_256',", re.IGNORECASE)

MACROS = (
    "CREATE MACRO datalength(x) AS 2 * length(CAST(x AS VARCHAR))",
    # the styles differ in spelling alone, and each tells every bit
    "CREATE MACRO convert_text(x, style) AS CAST(x AS VARCHAR)",
    "CREATE MACRO switchoffset(x, zone) AS x",
    # 60 bits of the hash stand for its 64
    "CREATE MACRO hash_number(x) AS CAST('0x' || left(sha256(x), 15) AS BIGINT)",
    "CREATE MACRO hash_bytes(x) AS unhex(sha256(x))",
)


class Refused(Exception):
    """What a server of T-SQL would answer with an error."""

    def __init__(self, fault: Fault, about: object = "") -> None:
        self.state, self.number, words = fault
        super().__init__(words.format(about))


def parsed(sql: str) -> exp.Expression:
    """Return one statement as a tree, or refuse it as SQL Server would."""
    marked = _BATCH_OF_HASH.sub("hashbytes_sha2_256(", _CONVERT.sub("convert_text(", sql))
    try:
        for token in sqlglot.tokenize(marked, read="tsql"):
            if token.token_type in _FOREIGN:
                raise Refused(SYNTAX, token.text)
        trees = sqlglot.parse(marked, read="tsql")
    except SqlglotError as error:
        raise Refused(SYNTAX, str(error)[:60]) from error
    if len(trees) != 1 or trees[0] is None or isinstance(trees[0], exp.Command):
        raise Refused(SYNTAX, sql[:60])
    tree = trees[0]
    _must_be_tsql(tree)
    return tree


def in_duckdb(tree: exp.Expression) -> str:
    """Return a parsed statement in DuckDB's SQL."""
    # from the leaves up, so that what is put in place of a node holds children that are changed already
    for node in reversed(list(tree.walk())):
        new = _changed(node)
        if new is not node:
            node.replace(new)
            tree = new if node is tree else tree
    return tree.sql(dialect="duckdb")


def canonical(kind: str) -> str:
    """Return a type as a catalog has it: `DECIMAL(18, 2)` is decimal(18,2)."""
    plain = re.sub(r"\s*([(),])\s*", r"\1", kind.lower()).strip()
    head, bracket, rest = plain.partition("(")
    if not bracket:
        return _SAME.get(plain, plain)
    return _SAME.get(plain, f"{'decimal' if head == 'numeric' else head}({rest}")


def duck_type(kind: str) -> str:
    """Return the type of DuckDB that holds a canonical one."""
    head, _, rest = kind.partition("(")
    if head in _TEXT:
        return "VARCHAR"
    if head == "decimal":
        return f"DECIMAL({rest}"
    if head == "datetime2":
        return {"0)": "TIMESTAMP_S", "3)": "TIMESTAMP_MS"}.get(rest, "TIMESTAMP")
    if head == "datetimeoffset":
        return "TIMESTAMPTZ"
    if head not in _PLAIN:
        raise Refused(("42000", 2715, "Cannot find data type {}."), kind)
    return _PLAIN[head]


def tsql_type(kind: str, *, wide: bool) -> str:
    """Return the type of T-SQL that a column of DuckDB's `kind` has as the result of a query."""
    head, _, rest = kind.partition("(")
    if head == "DECIMAL":
        return f"decimal({rest}"
    names = {
        "BOOLEAN": "bit", "UTINYINT": "tinyint", "SMALLINT": "smallint", "INTEGER": "int", "BIGINT": "bigint",
        "HUGEINT": "bigint", "DOUBLE": "float", "FLOAT": "real", "DATE": "date", "TIMESTAMP": "datetime2(6)",
        "TIMESTAMP WITH TIME ZONE": "datetimeoffset(6)", "TIME": "time(6)", "UUID": "uniqueidentifier",
        "BLOB": "varbinary(max)", "VARCHAR": "nvarchar(4000)" if wide else "varchar(8000)",
        "TIMESTAMP_S": "datetime2(0)", "TIMESTAMP_MS": "datetime2(3)",
    }  # fmt: skip
    return names[kind]


def text_length(kind: str) -> int | None:
    """Return how many characters a type of text takes; None where there is no end to them, or no text."""
    found = re.fullmatch(r"n?(?:var)?char\((\d+)\)", kind)
    return int(found[1]) if found else None


def _must_be_tsql(tree: exp.Expression) -> None:
    for node in tree.walk():
        if isinstance(
            node, (exp.Boolean, exp.Filter, exp.Extract, exp.Interval, exp.NullSafeNEQ, exp.Qualify)
        ):
            raise Refused(SYNTAX, node.sql(dialect="tsql"))
        if isinstance(node, exp.Group) and any(e.is_int for e in node.expressions):
            raise Refused(
                (
                    "42000",
                    164,
                    "Each GROUP BY expression must contain a column that is not an outer reference.",
                )
            )
        if isinstance(node, exp.Select) and any(
            isinstance(e, _CONDITIONS) for e in node.expressions
        ):
            raise Refused(SYNTAX, "=")
        if isinstance(node, exp.Subquery) and isinstance(node.parent, (exp.From, exp.Join)):
            _must_be_derived(node)
    _must_be_flat(tree)


def _must_be_derived(node: exp.Subquery) -> None:
    inner = node.this
    if inner.args.get("with_") or inner.args.get("with"):
        raise Refused(("42000", 156, "Incorrect syntax near the keyword '{}'."), "WITH")
    if not node.alias:
        raise Refused(SYNTAX, ")")
    if inner.args.get("order") and not inner.args.get("limit"):
        raise Refused(
            (
                "42000",
                1033,
                "The ORDER BY clause is invalid in views, inline functions, derived tables ... {}",
            )
        )
    if isinstance(inner, exp.Select) and not node.alias_column_names:
        names = [
            e.output_name if isinstance(e, (exp.Alias, exp.Column)) else ""
            for e in inner.expressions
            if not e.is_star
        ]
        if "" in names:
            raise Refused(
                ("42000", 8155, "No column name was specified for a column of '{}'."), node.alias
            )
        low = [name.lower() for name in names]
        if len(set(low)) < len(low):
            raise Refused(
                ("42000", 8156, "The column was specified multiple times for '{}'."), node.alias
            )


def _must_be_flat(tree: exp.Expression, depth: int = 0) -> None:
    if depth > _MOST_CASES:
        raise Refused(("42000", 125, "Case expressions may only be nested to level 10."))
    for child in tree.iter_expressions():
        _must_be_flat(child, depth + isinstance(tree, exp.Case))


def _changed(node: exp.Expression) -> exp.Expression:
    for kind, change in _CHANGES:
        if isinstance(node, kind):
            return change(node)
    return node


def _cast(node: Any) -> exp.Expression:
    hashed = node.this.this if isinstance(node.this, exp.Substring) else None
    if isinstance(hashed, exp.Anonymous) and hashed.name.lower() == "hash_bytes":
        return exp.func("hash_number", *hashed.expressions)
    kind = canonical(node.to.sql(dialect="tsql"))
    made = type(node)(
        this=node.this, to=exp.DataType.build(duck_type(kind), dialect="duckdb", udt=True)
    )
    length = text_length(kind)
    return exp.func("left", made, exp.Literal.number(length)) if length is not None else made


def _anonymous(node: Any) -> exp.Expression:
    is_hash = node.name.lower() == "hashbytes_sha2_256"
    return exp.func("hash_bytes", *node.expressions) if is_hash else node


def _added(node: Any) -> exp.Expression:
    return (
        exp.DPipe(this=node.this, expression=node.expression, safe=False)
        if _is_text(node)
        else node
    )


def _is_text(node: exp.Expression) -> bool:
    if isinstance(node, (exp.Add, exp.DPipe)):
        return _is_text(node.this) or _is_text(node.expression)
    if isinstance(node, (exp.Coalesce, exp.Collate, exp.Paren)):
        return _is_text(node.this)
    if isinstance(node, exp.Cast):
        return node.to.this in exp.DataType.TEXT_TYPES
    is_function = isinstance(node, exp.Anonymous) and node.name.lower() == "convert_text"
    return isinstance(node, (exp.National, exp.Left, exp.Concat)) or is_function or node.is_string


_CHANGES: tuple[tuple[Any, Callable[[Any], exp.Expression]], ...] = (
    (exp.Cast, _cast),
    (exp.Anonymous, _anonymous),
    (exp.Add, _added),
    (exp.National, lambda node: exp.Literal.string(node.this)),
    (exp.Collate, lambda node: node.this),
)
