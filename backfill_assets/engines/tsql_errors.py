"""What SQL Server's errors mean to somebody who rewrites slices.

The driver gives no error number, only the server's words and a phrase for the SQLSTATE. The number is asked of the
server (`@@ERROR`), which decides; where it tells none (a login that failed, a connection that is lost, a bulk copy),
the words that Microsoft documents for a number do, and then the driver's phrase.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from backfill_assets.engines.wording import AS_IT_WAS, shortened
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

_NUMBER = re.compile(r"\b(?:Msg|Error|error number|code)[:\s]+(\d{3,5})\b|\((\d{3,5})\)")
# what the network says in numbers of its own
_NETWORK = {
    "0x2749": "nobody listens at that host and port",
    "0x274c": "no answer came in time",
    "0x274d": "the host refuses connections at that port",
    "0x2af9": "no host of that name is known",
}


@dataclass(frozen=True)
class Rule:
    """An error of ours, and what it says and advises."""

    kind: type[BackfillError]
    what: str
    do: str


_LOCKED = Rule(
    SliceBusy,
    f"another session holds what this one needs{AS_IT_WAS}",
    "Let that session finish, then launch this partition again",
)
_GONE = Rule(
    Away,
    "the database cannot be reached",
    "Check that the server is up, then launch this again",
)
_BUSY = Rule(
    QuotaExceeded,
    f"the database takes no more work for now{AS_IT_WAS}",
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
    f"the login may not do what was asked{AS_IT_WAS}",
    "Grant the right: the page of this engine lists them all",
)
_UNFIT = Rule(
    SchemaMismatch,
    f"a value does not fit its column{AS_IT_WAS}",
    "Correct the value or change the column's type",
)
_BROKEN = Rule(
    BadRows,
    f"the rows break a constraint of the table{AS_IT_WAS}",
    "Correct the rows or the constraint",
)
_STOPPED = Rule(
    LimitReached,
    f"a statement was stopped{AS_IT_WAS}",
    "Raise statement_timeout in the warehouse URL, or ask who cancelled it",
)
_FULL = Rule(
    WriteFailed,
    f"the database could not write{AS_IT_WAS}",
    "Its log, tempdb or disk is full, or the transaction is larger than its tier allows: free some, or cut smaller slices",
)
_OTHER = Rule(
    WriteFailed,
    f"the database refused a statement{AS_IT_WAS}",
    "Correct what it names, then launch this again",
)
_TWIN = Rule(
    WriteFailed,
    "it is there already",
    "Launch this again",
)
_PAUSED = Rule(
    QuotaExceeded,
    "the pool is paused or warming up",
    "Resume it, then launch this again",
)

# numbers, words of their messages, rule; the first that is found decides
RULES: tuple[tuple[tuple[int, ...], tuple[str, ...], Rule], ...] = (
    ((1205,), ("deadlock victim", "deadlocked on"), _LOCKED),
    ((1222, 1204), ("lock request time out", "cannot obtain a lock resource"), _LOCKED),
    # tables that are kept in memory
    ((41301, 41302, 41305, 41325, 41839), ("updated since", "dependency failure", "validation failure"), _LOCKED),
    # somebody's KILL, and a database on its way to be there
    ((596, 615, 922, 926, 952, 4221), ("in the kill state", "is being recovered", "is in transition"), _GONE),
    ((24556, 24706, 3960, 3961), ("snapshot isolation transaction aborted",), _LOCKED),
    ((2714, 2759, 1913, 2705), ("there is already an object named", "already exists"), _TWIN),
    ((208, 207, 2812, 4902, 3701), ("invalid object name", "invalid column name", "cannot find the object"), _ABSENT),
    ((2760,), ("specified schema name",), _ABSENT),
    ((229, 230, 262, 297, 300, 15151, 15247), ("permission was denied", "permission denied"), _RIGHT),
    ((1088, 916), ("do not have permission", "is not able to access the database"), _RIGHT),
    ((8152, 2628), ("would be truncated",), _UNFIT),
    ((220, 8115, 517, 1007), ("arithmetic overflow", "out-of-range value"), _UNFIT),
    ((241, 242, 245, 295, 8114), ("conversion failed", "error converting data type"), _UNFIT),
    ((2601, 2627, 547, 515), ("duplicate key", "conflicted with the", "cannot insert the value null"), _BROKEN),
    ((42108, 42109), ("since it is paused", "is warming up"), _PAUSED),
    ((40501, 49918, 49919, 49920), ("service is currently busy", "not enough resources", "cannot process"), _BUSY),
    ((10928, 10929, 10936), ("resource id", "limit for the database"), _BUSY),
    ((24801, 24802, 24803, 42119), ("capacity has exceeded", "capacity limits", "free amount allowance"), _BUSY),
    ((701, 8645, 8651), ("insufficient system memory", "waiting for memory resources"), _BUSY),
    ((40613, 40197, 40143, 40166, 40540), ("is not currently available", "encountered an error processing"), _GONE),
    ((983, 6005, 6001), ("shutdown is in progress", "unable to access availability database"), _GONE),
    ((18456, 4060, 18452, 18470, 18486, 18487, 18488), ("login failed", "cannot open database"), _REFUSED),
    ((40532, 40615, 40914), ("cannot open server", "is not allowed to access the server"), _REFUSED),
    ((), ("certificate verify failed", "ssl provider", "certificate chain"), _REFUSED),
    ((9002, 1105, 1101, 40544), ("transaction log for", "could not allocate", "size quota"), _FULL),
    ((40549, 40551, 40552, 40553), ("session is terminated because",), _FULL),
    ((3617,), ("query timeout expired", "operation canceled", "operation cancelled"), _STOPPED),
    ((64, 233, 10053, 10054, 10060), ("communication link", "tcp provider", "login timeout", "forcibly closed"), _GONE),
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


def told(error: BaseException, number_of: Callable[[], int] | None = None) -> BackfillError:
    """Say an error of the driver as a sentence of ours; `number_of` asks the server for the error's number."""
    words = _words(error)
    rule = rule_of(words, str(getattr(error, "driver_error", "")))
    # a connection that is gone has nobody to ask, and a statement that was stopped left no number
    if number_of is not None and rule not in (_GONE, _STOPPED):
        rule = _by_number({number_of()}) or rule
    return rule.kind(rule.what, _said(words), rule.do)


def unreachable(error: BaseException, shown: str) -> BackfillError:
    """Say why there is no connection to the warehouse at URL `shown` (without its secrets)."""
    words = _words(error)
    if "load the driver" in words or "could not be loaded" in words:
        return MissingDriver(
            f"the warehouse {shown} cannot be reached",
            "a system library that Microsoft's driver needs is not there",
            "Run: apt-get install -y libltdl7 (on Debian and Ubuntu; where they are missing, libkrb5-3 and"
            " libgssapi-krb5-2 too)",
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
    """Return the rule of an error, by a number in the server's words, the words, or the driver's phrase."""
    low = words.lower()
    numbered = _by_number({int(a or b) for a, b in _NUMBER.findall(words)})
    if numbered is not None:
        return numbered
    for _, said, rule in RULES:
        if any(word in low for word in said):
            return rule
    return _PHRASES.get(phrase, _OTHER)


def is_twin(error: BackfillError) -> bool:
    """Tell whether somebody else has just made what was to be made."""
    return error.what == _TWIN.what


def _by_number(numbers: set[int]) -> Rule | None:
    return next((rule for codes, _, rule in RULES if numbers & set(codes)), None)


def _words(error: BaseException) -> str:
    return str(getattr(error, "ddbc_error", "") or error)


def _said(words: str) -> str:
    said = shortened(words.replace("[Microsoft]", "").replace("[SQL Server]", ""))
    meaning = next((meant for code, meant in _NETWORK.items() if code in said.lower()), None)
    return f"{meaning} ({said})" if meaning else said
