"""The one family of errors: each is a sentence that says what happened, why, and what to do now.

`Refused` means that a decision kept the slice as it was; `WarehouseError` means that the warehouse did.
Nothing here imports a driver: engines translate their drivers' errors into these.
"""

from __future__ import annotations

import re
from typing import ClassVar, Literal


class BackfillError(Exception):
    """What happened, why, and what to do now; `then` says it in a word.

    'stop': the same attempt would end the same. 'wait': somebody else is in the way, or a quota is, and is not for
    ever. 'retry': at once is good. `retry` is true for the last two.
    """

    then: ClassVar[Literal["stop", "wait", "retry"]] = "stop"
    # whether launching what is left may do more than this
    launch_again: ClassVar[bool] = True

    @property
    def retry(self) -> bool:
        """Whether the same attempt may pass later."""
        return self.then != "stop"

    def __init__(self, what: str, why: str, do: str) -> None:
        # every way out shows no password: the sentence, and each part of it in a run's metadata
        self.what, self.why, self.do = (without_secrets(part) for part in (what, why, do))
        super().__init__(f"{_sentence(f'{self.what}: {self.why}')} {_sentence(self.do)}")


class DeclarationError(BackfillError, ValueError):
    """A table, window, slice, URL or setting that cannot be right, found before anything is touched."""


class Refused(BackfillError):
    """A slice was left as it was because a rule said so."""


class BadRows(Refused):
    """Rows that do not belong: outside the window, without a slice value, or sharing a unique key."""


class SchemaMismatch(Refused):
    """Columns or types that do not fit the table under its declared policy."""


class EmptySlice(Refused):
    """No rows came, and an empty slice is not declared to be right."""


class ShrunkSlice(Refused):
    """Far fewer rows came than the slice holds."""


class NotAsExpected(Refused):
    """What came differs from what the table is declared to expect."""


class StaleSource(Refused):
    """The source was read before the read behind the rows that are there now."""


class SliceBusy(Refused):
    """Another writer holds the claim on the slice."""

    then = "wait"


class WarehouseError(BackfillError):
    """The warehouse did not do what was asked; the slice is as it was."""


class WarehouseBusy(WarehouseError):
    """The warehouse is held by somebody else; waiting longer may help."""

    then = "wait"


class QuotaExceeded(WarehouseError):
    """The warehouse takes no more for now: a quota, a rate or a spending limit of the account is reached."""

    then = "wait"


class Unreachable(WarehouseError):
    """No connection: wrong address or credentials."""


class Away(Unreachable):
    """No connection any more, or none for now: the server is starting, failing over, full or out of reach."""

    then = "retry"


class MissingTable(WarehouseError):
    """A table or column that a statement names is not there."""


class MissingRight(WarehouseError):
    """The role may not do what was asked."""


class HiddenRows(MissingRight):
    """The role may not see all rows of the table, so it cannot replace them."""


class WriteFailed(WarehouseError):
    """A statement failed, or the audit row was not there after the commit; the transaction was rolled back."""


class LimitReached(WriteFailed):
    """A statement took longer, or would read more, than it may: the limit or the statement has to change."""


class OutcomeUnknown(WriteFailed):
    """The slice is whole, old or new; the connection broke before the warehouse said which."""

    then = "retry"


class Unsettled(WriteFailed):
    """A writer ended in the middle of a slice, which holds neither its old rows nor its new ones: somebody has to look."""


class MissingDriver(BackfillError, ImportError):
    """A package that this warehouse or feature needs is not installed."""


_PASSWORD = re.compile(
    r"(?P<head>(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{0,40}://[^/\s:@]*:)(?!password@)(?:\S{0,500}|[^/'\"\n]{0,500})(?=@)",
    re.IGNORECASE,
)
# password=..., "token": "...", \"api_key\": \"...\" inside another text, private-key: ...
_OPTION = re.compile(
    r"(?P<head>(?:password|passwd|pwd|passphrase|passcode|token|secret|private[_-]?key|api[_-]?key"
    r"|access[_-]?key(?:[_-]?id)?|secret[_-]?key|credentials?)\\*[\"']?\s*[:=]\s*)"
    r"(?:(?P<quote>\\*[\"'])(?:\\.|.)*?(?P=quote)|[^\s&;]+)",
    re.IGNORECASE,
)
_AUTHORIZATION = re.compile(
    r"(?P<head>\bauthorization\\*[\"']?\s*[:=]\s*\\*[\"']?(?:\w+\s+)?)[^\s\"'\\,;]+", re.IGNORECASE
)
_BEARER = re.compile(r"(?P<head>\bBearer\s+)[^\s\"'\\,;]{8,}")
# web hooks whose path is the secret, and the URLs by which Apprise names such services
_HOOK = re.compile(
    r"(?P<head>https?://(?:hooks\.slack\.com|discord(?:app)?\.com/api/webhooks|chat\.googleapis\.com"
    r"|[\w.-]+\.webhook\.office\.com|[\w.-]+\.logic\.azure\.com)[^\s/]*/"
    r"|\b(?:slack|discord|msteams|workflows|gchat|pagerduty|opsgenie|tgram|pover|ntfys?|twilio|sendgrid)://)"
    r"[^\s\"'>)]+",
    re.IGNORECASE,
)
_SECRETS = (_PASSWORD, _HOOK, _AUTHORIZATION, _BEARER, _OPTION)


def without_secrets(text: str) -> str:
    """Return `text` with the passwords and tokens of URLs, options, headers and web hooks replaced by `***`."""
    for pattern in _SECRETS:
        text = pattern.sub(r"\g<head>***", text)
    return text


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if text.endswith((".", "!", "?")) else f"{text}."


def shown_cause(error: BaseException) -> BaseException | None:
    """Return a driver's error to chain to one of ours, or None where its text shows a secret."""
    return error if without_secrets(str(error)) == str(error) else None
