"""What a session that was opened to read may be asked, where the warehouse itself has no session that only reads."""

from __future__ import annotations

import re

from backfill_assets.errors import MissingRight

_FIRST = ("SELECT", "WITH", "SHOW", "DESCRIBE", "WAITFOR", "(")
_TRANSACTION = ("BEGIN", "COMMIT", "ROLLBACK", "USE")
# a WITH may go on to change rows, a SELECT may fill a table, and a batch may hold more than its first statement
_WRITES = re.compile(
    r"\b(?:INSERT|UPDATE|DELETE|MERGE|TRUNCATE|CREATE|ALTER|DROP|INTO|EXEC|EXECUTE|CALL|COPY|GRANT|REVOKE)\b",
    re.IGNORECASE,
)
_FUNCTIONS = ("INSERT", "TRUNCATE")
_BEFORE = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)+", re.DOTALL)


def opened_to_read(what: str = "nothing was written") -> MissingRight:
    """Return what to raise where a session that was opened to read is to write."""
    return MissingRight(what, "the session was opened to read", "Open it to write")


def refuse_write(dialect: str, sql: str, *, transactions: bool = False) -> None:
    """Raise unless a statement only reads; `transactions` lets pass what begins and ends one."""
    before = _BEFORE.match(sql)
    word = re.match(r"\(|\w*", sql[before.end() if before else 0 :])
    first = word[0].upper() if word else ""
    if transactions and first in _TRANSACTION:
        return
    if first not in _FIRST or (_WRITES.search(sql) and _writes(dialect, sql)):
        raise opened_to_read()


def _writes(dialect: str, sql: str) -> bool:
    """Tell whether one of these words is said as such, and not in a text, a comment, a name or as a function."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        tokens = sqlglot.tokenize(sql, read=dialect)
    except SqlglotError:
        return True
    quoted = ("STRING", "NATIONAL_STRING", "RAW_STRING", "IDENTIFIER")
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        is_part = before is not None and before.token_type.name in ("DOT", "ALIAS")
        is_function = token.text.upper() in _FUNCTIONS and after is not None and after.text == "("
        is_word = token.token_type.name not in quoted and _WRITES.fullmatch(token.text)
        if is_word and not (is_part or is_function):
            return True
    return False
