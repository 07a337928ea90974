"""What the error numbers of Snowflake and its connector mean to somebody who rewrites slices."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

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
)

if TYPE_CHECKING:
    from snowflake.connector.errors import Error


_GONE: Rule = (
    Away,
    f"the account cannot be reached{AS_IT_WAS}",
    "Check account, network and proxy, then launch this again",
)
_REFUSED: Rule = (
    Unreachable,
    "the account lets nobody in like this",
    "Correct or renew the account, the user's password, key, token or role in the warehouse URL or connection file",
)
_ABSENT: Rule = (
    MissingTable,
    "a statement names something that is not there, or that the role may not see",
    "Load the table, correct the name or its upper and lower case (quoted names keep theirs), or grant the role"
    " its use, then launch this again",
)
_RIGHT: Rule = (
    MissingRight,
    f"the role may not do what was asked{AS_IT_WAS}",
    "Grant the right (docs/engines/snowflake.md has the script)",
)
_LOCKED: Rule = (
    SliceBusy,
    f"another session holds what this one needs{AS_IT_WAS}",
    "Let that session finish, then launch this partition again",
)
_UNFIT: Rule = (
    SchemaMismatch,
    f"a value does not fit its column{AS_IT_WAS}",
    "Correct the value or change the column's type",
)
_NO_COMPUTE: Rule = (
    Unreachable,
    f"there is no warehouse to run it{AS_IT_WAS}",
    "Name a warehouse in the URL, let it resume by itself (AUTO_RESUME), and grant the role USAGE on it",
)
_QUOTA: Rule = (
    QuotaExceeded,
    f"the warehouse is stopped by a resource monitor{AS_IT_WAS}",
    "Wait for the monitor's next interval, raise its quota, or give the lane another warehouse",
)
_UNREAD: Rule = (
    WriteFailed,
    f"the account cannot read a statement{AS_IT_WAS}",
    'Quote names that are words of SQL (such as "order"), and correct the rest',
)
_FAULT: Rule = (
    Away,
    f"the service had a fault of its own{AS_IT_WAS}",
    "Launch this again; where it fails so each time, give the incident in its words to Snowflake's support",
)
_ELSE: Rule = (
    WriteFailed,
    f"the account refused a statement{AS_IT_WAS}",
    "Correct what it names, then launch this again",
)

# error number -> rule; asked before the SQLSTATE, which says the same of very different things (22000, 57014)
_BY_NUMBER: dict[int, Rule] = {
    **dict.fromkeys((604,), (
        LimitReached,
        f"a statement was cancelled{AS_IT_WAS}",
        "Ask who cancelled it, then launch this partition again",
    )),
    **dict.fromkeys((630, 631), (
        LimitReached,
        f"a statement took longer than it may{AS_IT_WAS}",
        "Raise statement_timeout in the warehouse URL, or the warehouse's own STATEMENT_TIMEOUT_IN_SECONDS",
    )),
    603: _FAULT,
    606: _NO_COMPUTE,
    609: _NO_COMPUTE,
    90073: _QUOTA,
    # the connector's own: a proof of who asks that came too late, a login that nobody answered
    **dict.fromkeys((251010, 251011, 251012, 251016), _GONE),
    # files on their way to a stage, pages of a result on their way back
    **dict.fromkeys((252007, 252010, 252013, 253002, 253003, 253009), _GONE),
    625: _LOCKED,
    2040: _UNFIT,
    2023: _UNFIT,
    904: _ABSENT,
    2003: _ABSENT,
    2043: _ABSENT,
    90105: _ABSENT,
    90106: _ABSENT,
    1003: _UNREAD,
    1044: _UNREAD,
    3001: _RIGHT,
    3003: _RIGHT,
    3041: _RIGHT,
    100072: (
        BadRows,
        f"a column that needs a value got none{AS_IT_WAS}",
        "Give every row a value in the transform",
    ),
    100183: _UNFIT,
    # the session has ended; a new one is let in
    **dict.fromkeys((390111, 390112, 390114, 390115, 390195), (
        Away,
        f"the session with the account has expired{AS_IT_WAS}",
        "Launch this again; for runs of many hours add client_session_keep_alive=true to the warehouse URL",
    )),
    390201: (
        MissingTable,
        "the database, schema, warehouse or role of the warehouse URL is not there, or not for this role",
        "Correct its name or grant its use",
    ),
}  # fmt: skip
# the beginning of a six-digit number: logging in, files, the connector's own network
_BY_RANGE = {
    "300": _FAULT,
    "390": _REFUSED,
    "3943": _REFUSED,
    "3945": _REFUSED,
    "250": _GONE,
    "251": _REFUSED,
    "290": _GONE,
}
_BY_STATE = {
    "08": _GONE,
    "22": _UNFIT,
    "28": _REFUSED,
    "42501": _RIGHT,
    "42S02": _ABSENT,
    "57P03": _NO_COMPUTE,
    "XX": _FAULT,
}
# what is said without a number of its own
_BY_WORDS = (
    ("resource monitor", _QUOTA),
    ("verify the account name", _REFUSED),
    ("incorrect username or password", _REFUSED),
    ("token is invalid", _REFUSED),
    ("token has expired", _REFUSED),
    ("failed to authenticate", _REFUSED),
    (": http 5", _GONE),
    ("processing aborted due to error 300", _FAULT),
)
# what another session may have made first, and what an emulator says of two that make it at once
_TWINS = (2002,)


def told(error: Error) -> BackfillError:
    """Say an error of the connector as a sentence of ours."""
    kind, what, do = _rule(error)
    return kind(what, said(error), do)


def unreachable(error: Exception, shown: str) -> BackfillError:
    """Say why there is no session with the account of URL `shown` (without its secrets)."""
    kind, _, do = _rule(error)
    if not issubclass(kind, (Unreachable, MissingTable)):
        kind, do = Unreachable, _REFUSED[2]
    return kind(f"the warehouse {shown} cannot be reached", said(error), do)


def is_lock(error: Any) -> bool:
    """Tell whether a statement waited in vain for another transaction."""
    return getattr(error, "errno", None) == 625


def lost_race(error: Any) -> bool:
    """Tell whether `IF NOT EXISTS` met a twin that made the same at the same time."""
    return getattr(error, "errno", None) in _TWINS


def said(error: Any) -> str:
    """Return the account's words, or the connector's: on one line, of bearable length, without ids of statements."""
    words = str(getattr(error, "raw_msg", None) or getattr(error, "msg", None) or error)
    words = re.sub(r"^\d{6} \([0-9A-Z]{5}\): ?", "", " ".join(words.split()))
    words = re.sub(r"^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}: ?", "", words)
    return shortened(words)


def _rule(error: Any) -> Rule:
    from snowflake.connector.errors import InterfaceError, OperationalError

    words = str(error).lower()
    for phrase, rule in _BY_WORDS:
        if phrase in words:
            return rule
    number = getattr(error, "errno", None)
    if number in _BY_NUMBER:
        return _BY_NUMBER[number]
    if number is not None and number > 0:
        for beginning, rule in _BY_RANGE.items():
            if f"{number:06d}".startswith(beginning):
                return rule
    state = str(getattr(error, "sqlstate", None) or "")
    for beginning, rule in _BY_STATE.items():
        if state.startswith(beginning):
            return rule
    lost = isinstance(error, (OperationalError, InterfaceError, OSError))
    return _GONE if lost and number in (None, -1) else _ELSE
