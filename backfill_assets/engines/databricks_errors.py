"""What the errors of Databricks and its connector mean to somebody who rewrites slices.

The service begins its words with a class in brackets and ends them with a SQLSTATE; the connector has only the status
of the request, or what the network said.
"""

from __future__ import annotations

import re
from typing import Any

from backfill_assets.engines.wording import AS_IT_WAS, Rule, shortened
from backfill_assets.errors import (
    Away,
    BackfillError,
    BadRows,
    LimitReached,
    MissingRight,
    MissingTable,
    QuotaExceeded,
    SchemaMismatch,
    SliceBusy,
    Unreachable,
    WriteFailed,
    without_secrets,
)

_GONE: Rule = (
    Away,
    "Databricks cannot be reached",
    "Check host, network and proxy, then launch this again",
)
_STARTING: Rule = (
    Away,
    f"the SQL warehouse is not running yet{AS_IT_WAS}",
    "Launch this again in some minutes, or raise connect_wait in the warehouse URL",
)
_ENDED: Rule = (
    Away,
    "the session with the SQL warehouse has ended",
    "Launch this again: a new session is let in",
)
_REFUSED: Rule = (
    Unreachable,
    "Databricks lets nobody in like this",
    "Renew the token, or the service principal's secret, in the warehouse URL, the profile or the environment",
)
_NO_COMPUTE: Rule = (
    Unreachable,
    f"there is no SQL warehouse to run it{AS_IT_WAS}",
    "Correct http_path in the warehouse URL, let somebody start the warehouse, or grant CAN USE on it",
)
_ABSENT: Rule = (
    MissingTable,
    "a statement names something that is not there, or that the user may not see",
    "Load the table, correct the name, or grant USE CATALOG, USE SCHEMA and SELECT, then launch this again",
)
_RIGHT: Rule = (
    MissingRight,
    f"the user may not do what was asked{AS_IT_WAS}",
    "Grant the right (docs/engines/databricks.md has the script)",
)
_CONFLICT: Rule = (
    SliceBusy,
    f"another writer changed the table at the same time{AS_IT_WAS}",
    "Let that writer finish, then launch this partition again",
)
_UNFIT: Rule = (
    SchemaMismatch,
    f"a value does not fit its column{AS_IT_WAS}",
    "Correct the value or change the column's type",
)
_REFUSED_ROWS: Rule = (
    BadRows,
    f"a constraint of the table refuses a row{AS_IT_WAS}",
    "Give every row what the constraint asks for in the transform",
)
_OUTSIDE: Rule = (
    BadRows,
    f"a row does not belong to the slice{AS_IT_WAS}",
    "Filter the source to the slice and give every row a value",
)
_STOPPED: Rule = (
    LimitReached,
    f"a statement was stopped, or took longer than it may{AS_IT_WAS}",
    "Raise statement_timeout in the warehouse URL or the warehouse's own STATEMENT_TIMEOUT, cut the slice smaller, or"
    " ask who cancelled it",
)
_QUOTA: Rule = (
    QuotaExceeded,
    f"Databricks takes no more for now{AS_IT_WAS}",
    "Launch this partition again later, run fewer partitions at once, or let somebody raise the quota",
)
_UNREAD: Rule = (
    WriteFailed,
    f"Databricks cannot read a statement{AS_IT_WAS}",
    "Quote names that are words of SQL (such as `order`) with backticks, and correct the rest",
)
_ELSE: Rule = (
    WriteFailed,
    f"Databricks refused a statement{AS_IT_WAS}",
    "Correct what it names, then launch this again",
)

# the beginning of the class in brackets -> rule, the longer before the shorter
_BY_CLASS: tuple[tuple[str, Rule], ...] = (
    ("DELTA_REPLACE_WHERE_MISMATCH", _OUTSIDE),
    ("DELTA_CONCURRENT", _CONFLICT),
    ("CONCURRENT_", _CONFLICT),
    ("DELTA_METADATA_CHANGED", _CONFLICT),
    ("DELTA_PROTOCOL_CHANGED", _CONFLICT),
    ("DELTA_EXCEED_CHAR_VARCHAR_LIMIT", _UNFIT),
    ("DELTA_FAILED_TO_MERGE_FIELDS", _UNFIT),
    ("DELTA_NOT_NULL_CONSTRAINT_VIOLATED", _REFUSED_ROWS),
    ("DELTA_VIOLATE_CONSTRAINT", _REFUSED_ROWS),
    ("DELTA_TABLE_NOT_FOUND", _ABSENT),
    ("TABLE_OR_VIEW_NOT_FOUND", _ABSENT),
    ("SCHEMA_NOT_FOUND", _ABSENT),
    ("CATALOG_NOT_FOUND", _ABSENT),
    ("NO_SUCH_CATALOG", _ABSENT),
    ("UNRESOLVED_COLUMN", _ABSENT),
    ("INSUFFICIENT_PERMISSIONS", _RIGHT),
    ("PERMISSION_DENIED", _RIGHT),
    ("INSUFFICIENT_PRIVILEGES", _RIGHT),
    ("QUERY_EXECUTION_TIMEOUT", _STOPPED),
    ("STATEMENT_TIMEOUT", _STOPPED),
    ("OPERATION_CANCELED", _STOPPED),
    ("QUOTA_EXCEEDED", _QUOTA),
    ("RESOURCE_EXHAUSTED", _QUOTA),
    ("REQUEST_LIMIT_EXCEEDED", _QUOTA),
    ("PARSE_SYNTAX_ERROR", _UNREAD),
    ("INVALID_HANDLE", _ENDED),
    ("SESSION_CLOSED", _ENDED),
)
_BY_STATE: tuple[tuple[str, Rule], ...] = (
    ("2D521", _CONFLICT),
    ("42501", _RIGHT),
    ("42P01", _ABSENT),
    ("42703", _ABSENT),
    ("42704", _ABSENT),
    ("42601", _UNREAD),
    ("57014", _STOPPED),
    ("57KD0", _STOPPED),
    ("22", _UNFIT),
    ("23", _REFUSED_ROWS),
    ("28", _REFUSED),
    ("53", _QUOTA),
)
_BY_STATUS: dict[int, Rule] = {
    400: _ELSE,
    401: _REFUSED,
    403: _REFUSED,
    404: _NO_COMPUTE,
    429: _QUOTA,
    503: _STARTING,
}
_BY_WORDS: tuple[tuple[str, Rule], ...] = (
    ("concurrentappendexception", _CONFLICT),
    ("concurrentdeletereadexception", _CONFLICT),
    ("concurrentdeletedeleteexception", _CONFLICT),
    ("concurrentwriteexception", _CONFLICT),
    ("concurrentmodificationexception", _CONFLICT),
    ("metadatachangedexception", _CONFLICT),
    ("invalid access token", _REFUSED),
    ("token is expired", _REFUSED),
    ("token expired", _REFUSED),
    ("invalid_client", _REFUSED),
    ("cannot configure default credentials", _REFUSED),
    ("unauthorized", _REFUSED),
    ("invalid sessionhandle", _ENDED),
    ("temporarily_unavailable", _STARTING),
    ("is not running", _STARTING),
    ("is starting", _STARTING),
    ("is stopped", _NO_COMPUTE),
    ("was deleted", _NO_COMPUTE),
    ("timed out due to", _STOPPED),
    ("query timed out", _STOPPED),
    ("has been timed out", _STOPPED),
    ("cancelled", _STOPPED),
    ("canceled", _STOPPED),
    ("quota", _QUOTA),
    ("rate limit", _QUOTA),
    ("permission denied", _RIGHT),
    ("does not have permission", _RIGHT),
)
_CLASS = re.compile(r"\[([A-Z][A-Z0-9_]+)(?:\.[A-Z0-9_.]+)?\]")
_STATE = re.compile(r"SQLSTATE[:=]?\s*([0-9A-Z]{5})")


def families() -> tuple[type[BaseException], ...]:
    """Return what the connector raises: its own errors, and those of the network that it lets through."""
    from databricks.sql import exc
    from urllib3.exceptions import HTTPError

    return (exc.Error, HTTPError, OSError)


def told(error: BaseException) -> BackfillError:
    """Return an error of the connector as one of ours."""
    kind, what, do = _rule(error)
    return kind(what, said(error), do)


def unreachable(error: BaseException, shown: str) -> BackfillError:
    """Return what to raise where no session could be opened."""
    kind, _, do = _rule(error)
    if not issubclass(kind, (Unreachable, QuotaExceeded)):
        kind, _, do = _REFUSED if isinstance(error, ValueError) else _GONE
    return kind(f"the warehouse {shown} cannot be reached", said(error), do)


def already_there(error: BackfillError) -> bool:
    """Tell whether DDL met a twin that made the same before."""
    return any(
        name in error.why
        for name in ("ALREADY_EXISTS", "FIELD_ALREADY_EXISTS", "FIELDS_ALREADY_EXISTS")
    )


def said(error: BaseException) -> str:
    """Return the service's words on one line, of bearable length and without secrets."""
    words = str(getattr(error, "message", None) or error)
    context: Any = getattr(error, "context", None)
    if context:
        status: Any = context.get("http-code")
        more: Any = context.get("error-message") or context.get("original-exception")
        words += f" ({more})" if more else ""
        words += f" (HTTP {status})" if status and int(status) >= 400 else ""
    return without_secrets(shortened(words))


def _rule(error: BaseException) -> Rule:
    from databricks.sql.exc import Error, RequestError
    from urllib3.exceptions import HTTPError

    words = said(error)
    for name in _CLASS.findall(words):
        for beginning, rule in _BY_CLASS:
            if name.startswith(beginning):
                return rule
    for state in _STATE.findall(words):
        for beginning, rule in _BY_STATE:
            if state.startswith(beginning):
                return rule
    for phrase, rule in _BY_WORDS:
        if phrase in words.lower():
            return rule
    context: Any = getattr(error, "context", None) or {}
    status = context.get("http-code") if isinstance(error, Error) else None
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return _GONE if isinstance(error, (RequestError, HTTPError, OSError)) else _ELSE
