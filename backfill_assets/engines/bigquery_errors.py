"""What BigQuery's errors mean to somebody who rewrites slices: by the reason of the job, the HTTP status, the words."""

from __future__ import annotations

from typing import Any, cast

from backfill_assets.engines.wording import AS_IT_WAS, Rule, shortened
from backfill_assets.errors import (
    Away,
    BackfillError,
    LimitReached,
    MissingRight,
    MissingTable,
    QuotaExceeded,
    SchemaMismatch,
    SliceBusy,
    Unreachable,
    WriteFailed,
)

_GONE: Rule = (
    Away,
    "BigQuery cannot be reached",
    "Check the network and BigQuery's status page, then launch this again",
)
_REFUSED: Rule = (
    Unreachable,
    "BigQuery lets nobody in like this",
    "Renew the credentials (credentials_path in the warehouse URL, or GOOGLE_APPLICATION_CREDENTIALS), then launch"
    " this again",
)
_ABSENT: Rule = (
    MissingTable,
    "a statement names something that is not there",
    "Load the table or correct the name (or the location in the warehouse URL), then launch this again",
)
_FORBIDDEN: Rule = (
    MissingRight,
    f"the account may not do what was asked{AS_IT_WAS}",
    "Grant the role that docs/engines/bigquery.md lists for it",
)
_QUOTA: Rule = (
    QuotaExceeded,
    f"BigQuery takes no more for now{AS_IT_WAS}",
    "Launch this partition again later, run fewer partitions at once, or ask for a higher quota",
)
_BUSY: Rule = (
    SliceBusy,
    f"another writer changed the table at the same time{AS_IT_WAS}",
    "Let that writer finish, then launch this partition again",
)
_STREAMED: Rule = (
    SliceBusy,
    f"rows of the slice were streamed into the table just now, and BigQuery lets nobody delete those yet{AS_IT_WAS}",
    "Launch this partition again in 30 to 90 minutes",
)
_UNFIT: Rule = (
    SchemaMismatch,
    f"a value does not fit its column{AS_IT_WAS}",
    "Correct the value or change the column's type",
)
_BILLED: Rule = (
    LimitReached,
    f"a statement would have read more bytes than it may{AS_IT_WAS}",
    "Raise maximum_bytes_billed in the warehouse URL or the backfill's budget/cost, or let the query read less (a filter"
    " on the partition column)",
)
_UNFILTERED: Rule = (
    WriteFailed,
    f"a statement would have read all partitions of a table that asks for a filter{AS_IT_WAS}",
    "Compare the table's partition column with the window: declare it as the slice column, and give `on` in a Select",
)
_STOPPED: Rule = (
    LimitReached,
    f"a statement was stopped{AS_IT_WAS}",
    "Raise statement_timeout in the warehouse URL, cut the slice smaller, or ask who cancelled the job",
)
_OTHER: Rule = (
    WriteFailed,
    f"BigQuery refused a statement{AS_IT_WAS}",
    "Correct what it names, then launch this again",
)

# in this order: `invalidQuery` and `accessDenied` are reasons of many things that only the words tell apart
_BY_WORDS: tuple[tuple[tuple[str, ...], Rule], ...] = (
    (("aborted due to concurrent", "could not serialize access"), _BUSY),
    (("streaming buffer",), _STREAMED),
    (("without a filter over column",), _UNFILTERED),
    (("bytes billed", "bytesbilledlimitexceeded"), _BILLED),
    # it goes on with "or perhaps it does not exist", of tables that do
    (("access denied",), _FORBIDDEN),
    (("job timed out", "timed out and was cancelled", "exceeded the timeout"), _STOPPED),
    (
        (
            "unrecognized name",
            "not found inside",
            "not found in from clause",
            "was not found in",
            "table with name",
            "does not exist",
        ),
        _ABSENT,
    ),
    (
        (
            "bad int64 value",
            "bad double value",
            "bad bool value",
            "invalid date",
            "invalid datetime",
            "invalid timestamp",
            "invalid numeric",
            "invalid bignumeric",
            "could not cast",
            "invalid cast",
            "out of range",
            "overflow",
            "has type",
            "maximum length",
            "conversion error",
            "cannot be assigned",
        ),
        _UNFIT,
    ),
)
_BY_REASON: dict[str, Rule] = {
    "accessDenied": _FORBIDDEN,
    "authError": _REFUSED,
    "backendError": _GONE,
    "internalError": _GONE,
    "jobBackendError": _GONE,
    "jobInternalError": _GONE,
    "tableUnavailable": _GONE,
    "billingTierLimitExceeded": _BILLED,
    "bytesBilledLimitExceeded": _BILLED,
    "billingNotEnabled": _QUOTA,
    "jobRateLimitExceeded": _QUOTA,
    "quotaExceeded": _QUOTA,
    "rateLimitExceeded": _QUOTA,
    "notFound": _ABSENT,
    "resourcesExceeded": (
        LimitReached,
        f"a statement needed more than BigQuery gives one{AS_IT_WAS}",
        "Cut the slice smaller, or let the query join and sort less",
    ),
    "responseTooLarge": (
        LimitReached,
        "a result is larger than BigQuery hands over",
        "Let the query return less, or write it with a Select, which never leaves the warehouse",
    ),
    "resourceInUse": _BUSY,
    "stopped": _STOPPED,
    "timeout": _STOPPED,
}
_BY_STATUS: dict[int, Rule] = {
    401: _REFUSED,
    403: _FORBIDDEN,
    404: _ABSENT,
    408: _GONE,
    429: _QUOTA,
    499: _STOPPED,
    500: _GONE,
    502: _GONE,
    503: _GONE,
    504: _GONE,
}


def families() -> tuple[type[Exception], ...]:
    """Return what the client raises: its own errors, those of credentials and those of the connection."""
    from concurrent.futures import TimeoutError as WaitedTooLong  # before Python 3.11 another one

    import requests
    from google.api_core.exceptions import GoogleAPIError
    from google.auth.exceptions import GoogleAuthError
    from google.resumable_media import DataCorruption, InvalidResponse

    return (
        GoogleAPIError,
        GoogleAuthError,
        InvalidResponse,
        DataCorruption,
        requests.exceptions.RequestException,
        TimeoutError,
        WaitedTooLong,
        ConnectionError,
    )


def told(error: Exception) -> BackfillError:
    """Say an error of the client as a sentence of ours."""
    kind, what, do = _rule(error)
    return kind(what, _said(error), do)


def is_twin(error: Exception) -> bool:
    """Tell whether something could not be made because it is there already."""
    return _status(error) == 409 and "already exists" in str(error).lower()


def _rule(error: Exception) -> Rule:
    import concurrent.futures

    from google.api_core.exceptions import RetryError
    from google.auth.exceptions import GoogleAuthError, TransportError

    if isinstance(error, concurrent.futures.TimeoutError):
        return _STOPPED
    if isinstance(error, RetryError):
        return _GONE
    if isinstance(error, GoogleAuthError):
        return _GONE if isinstance(error, TransportError) else _REFUSED
    status = _status(error)
    if status is None:
        return _GONE  # no answer at all
    said = str(error).lower()
    for words, rule in _BY_WORDS:
        if any(word in said for word in words):
            return rule
    for reason in _reasons(error):
        if reason in _BY_REASON:
            return _BY_REASON[reason]
    return _BY_STATUS.get(status, _OTHER)


def _status(error: Exception) -> int | None:
    code = getattr(error, "code", None)
    if code is None:
        code = getattr(getattr(error, "response", None), "status_code", None)
    return int(code) if isinstance(code, int) else None


def _reasons(error: Exception) -> list[str]:
    return [str(one.get("reason")) for one in _details(error)]


def _details(error: Exception) -> list[dict[str, Any]]:
    """Return what a job's error consists of, the chief cause first."""
    found: Any = getattr(error, "errors", None) or ()
    return [cast("dict[str, Any]", one) for one in found if isinstance(one, dict)]


def _said(error: Exception) -> str:
    """Return BigQuery's words, without what the client adds to them: on one line, of bearable length."""
    messages = [str(one["message"]) for one in _details(error) if one.get("message")]
    said = messages[0] if messages else str(getattr(error, "message", None) or error)
    return shortened(said) or type(error).__name__
