"""What SQL Server's errors mean to somebody who rewrites slices.

The driver gives no error number, only the server's words and a phrase for the SQLSTATE; so each rule is found by its
number where the words hold one, or by words of the message that Microsoft documents for that number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from backfill_assets.errors import (
    Away,
    BackfillError,
    BadRows,
    LimitReached,
    MissingDriver,
    MissingRight,
    MissingTable,
    QuotaExceeded,
    SchemaMismatch,
    SliceBusy,
    Unreachable,
    WriteFailed,
)

_LONGEST = 300
_AS_IT_WAS = ", and the slice is as it was"
_NUMBER = re.compile(r"\b(?:Msg|Error|error number|code)[:\s]+(\d{3,5})\b|\((\d{3,5})\)")


@dataclass(frozen=True)
class Rule:
    """An error of ours, and what it says and advises."""

    kind: type[BackfillError]
    what: str
    do: str


_LOCKED = Rule(
    SliceBusy,
    f"another session holds what this one needs{_AS_IT_WAS}",
    "Let that session finish, then launch this partition again",
)
_GONE = Rule(
    Away,
    "the database cannot be reached",
    "Check that the server is up, then launch this again",
)
_BUSY = Rule(
    QuotaExceeded,
    f"the database takes no more work for now{_AS_IT_WAS}",
    "Wait, or give the lane a larger service tier, then launch this partition again",
)
_REFUSED = Rule(
    Unreachable,
    "the database lets nobody in like this",
    "Correct user, password, authentication or database in the warehouse URL",
)
_ABSENT = Rule(
    MissingTable,
    "a statement names something that is not there",
    "Load the table or correct the name, then launch this again",
)
_RIGHT = Rule(
    MissingRight,
    f"the login may not do what was asked{_AS_IT_WAS}",
    "Grant the right: the page of this engine lists them all",
)
_UNFIT = Rule(
    SchemaMismatch,
    f"a value does not fit its column{_AS_IT_WAS}",
    "Correct the value or change the column's type",
)
_BROKEN = Rule(
    BadRows,
    f"the rows break a constraint of the table{_AS_IT_WAS}",
    "Correct the rows or the constraint",
)
_STOPPED = Rule(
    LimitReached,
    f"a statement was stopped{_AS_IT_WAS}",
    "Raise statement_timeout in the warehouse URL, or ask who cancelled it",
)
_FULL = Rule(
    WriteFailed,
    f"the database could not write{_AS_IT_WAS}",
    "Its log, tempdb or disk is full, or the transaction is larger than its tier allows: free some, or cut smaller slices",
)
_OTHER = Rule(
    WriteFailed,
    f"the database refused a statement{_AS_IT_WAS}",
    "Correct what it names, then launch this again",
)
_TWIN = Rule(
    WriteFailed,
    "it is there already",
    "Launch this again",
)

# numbers, words of their messages, rule; the first that is found decides
RULES: tuple[tuple[tuple[int, ...], tuple[str, ...], Rule], ...] = (
    ((1205,), ("deadlock victim", "deadlocked on"), _LOCKED),
    ((1222,), ("lock request time out",), _LOCKED),
    ((24556, 24706, 3960), ("snapshot isolation transaction aborted",), _LOCKED),
    ((2714, 2759, 1913, 2705), ("there is already an object named", "already exists"), _TWIN),
    ((208, 207, 2812, 4902), ("invalid object name", "invalid column name"), _ABSENT),
    ((229, 230, 262, 297, 300), ("permission was denied", "permission denied"), _RIGHT),
    ((1088,), ("do not have permissions",), _RIGHT),
    ((8152, 2628), ("would be truncated",), _UNFIT),
    ((220, 8115), ("arithmetic overflow",), _UNFIT),
    ((241, 242, 245, 8114), ("conversion failed", "error converting data type"), _UNFIT),
    ((8115, 517), ("out-of-range value",), _UNFIT),
    ((2601, 2627, 547, 515), ("duplicate key", "conflicted with the", "cannot insert the value null"), _BROKEN),
    ((40613,), ("is not currently available",), _GONE),
    ((18456, 4060, 18470), ("login failed", "cannot open database", "cannot open server"), _REFUSED),
    ((40501, 49918, 49919, 49920), ("service is currently busy", "not enough resources", "cannot process"), _BUSY),
    ((10928, 10929), ("resource id", "limit for the database"), _BUSY),
    ((9002, 1105, 40544), ("transaction log for database", "could not allocate space", "size quota"), _FULL),
    ((), ("query timeout expired", "operation canceled", "operation cancelled"), _STOPPED),
    ((10053, 10054, 10060, 233), ("communication link", "tcp provider", "login timeout", "forcibly closed"), _GONE),
)  # fmt: skip
# the driver's phrase for the SQLSTATE decides where no words did
_PHRASES = {
    "Base table or view not found": _ABSENT,
    "Column not found": _ABSENT,
    "Invalid authorization specification": _REFUSED,
    "Invalid catalog name": _REFUSED,
    "Client unable to establish connection": _GONE,
    "Server rejected the connection": _REFUSED,
    "Connection not open": _GONE,
    "Connection failure during transaction": _GONE,
    "Communication link failure": _GONE,
    "Timeout expired": _STOPPED,
    "Connection timeout expired": _GONE,
    "Operation canceled": _STOPPED,
    "Serialization failure": _LOCKED,
    "Integrity constraint violation": _BROKEN,
    "String data, right-truncated": _UNFIT,
    "Numeric value out of range": _UNFIT,
    "Invalid datetime format": _UNFIT,
    "Datetime field overflow": _UNFIT,
    "Invalid character value for cast specification": _UNFIT,
}


def told(error: BaseException) -> BackfillError:
    """Say an error of the driver as a sentence of ours."""
    words = str(getattr(error, "ddbc_error", "") or error)
    phrase = str(getattr(error, "driver_error", ""))
    rule = rule_of(words, phrase)
    return rule.kind(rule.what, _said(words), rule.do)


def unreachable(error: BaseException, shown: str) -> BackfillError:
    """Say why there is no connection to the warehouse at URL `shown` (without its secrets)."""
    words = str(getattr(error, "ddbc_error", "") or error)
    if "load the driver" in words or "could not be loaded" in words:
        return MissingDriver(
            f"the warehouse {shown} cannot be reached",
            "a system library that Microsoft's ODBC driver needs is not there",
            "Install it: apt-get install libltdl7 libkrb5-3 libgssapi-krb5-2 (Debian, Ubuntu)",
        )
    rule = rule_of(words, str(getattr(error, "driver_error", "")))
    kind = rule.kind if issubclass(rule.kind, (Unreachable, QuotaExceeded)) else Away
    do = (
        "Check host, port, database, user and password in its URL, and that the server is up"
        if kind is not QuotaExceeded
        else rule.do
    )
    return kind(f"the warehouse {shown} cannot be reached", _said(words), do)


def rule_of(words: str, phrase: str) -> Rule:
    """Return the rule of an error, by the server's words, the number in them, or the driver's phrase."""
    low = words.lower()
    numbers = {int(a or b) for a, b in _NUMBER.findall(words)}
    for codes, _, rule in RULES:
        if numbers & set(codes):
            return rule
    for _, said, rule in RULES:
        if any(word in low for word in said):
            return rule
    return _PHRASES.get(phrase, _OTHER)


def is_twin(error: BackfillError) -> bool:
    """Tell whether somebody else has just made what was to be made."""
    return error.what == _TWIN.what


def _said(words: str) -> str:
    said = " ".join(words.replace("[Microsoft]", "").replace("[SQL Server]", "").split())
    return said if len(said) <= _LONGEST else f"{said[:_LONGEST]}..."
