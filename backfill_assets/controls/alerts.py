"""Telling people: one message through Apprise to Slack, mail, PagerDuty, a webhook or whatever else a URL names.

An alert that cannot be sent is logged without its URL, which may hold a secret, and changes nothing else.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from backfill_assets.errors import DeclarationError, MissingDriver

_SECONDS = 15.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Alert:
    """A message: one line of title, and the lines below it."""

    title: str
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """The lines as one text."""
        return "\n".join(self.lines)


Send = Callable[[Alert], None]


def sender(urls: Sequence[str]) -> Send:
    """Return what sends an alert to all `urls`, or nowhere when there are none; it never raises."""
    return (lambda alert: _send(urls, alert)) if urls else _nowhere


def must_be_usable(urls: Sequence[str]) -> None:
    """Raise `DeclarationError` that counts the URLs which no service answers to, without showing them."""
    if not urls:
        return
    apprise = _apprise()
    wrong = [
        f"{number} ({url.partition('://')[0] if '://' in url else 'no scheme'}://...)"
        for number, url in enumerate(urls, start=1)
        if apprise.Apprise.instantiate(url, suppress_exceptions=True) is None
    ]
    if wrong:
        which = (
            f"URL number {wrong[0]} is"
            if len(wrong) == 1
            else f"URLs number {', '.join(wrong)} are"
        )
        raise DeclarationError(
            "BACKFILL_ALERTS cannot be used",
            f"its {which} none that Apprise understands",
            "Write each as https://github.com/caronc/apprise describes for the service",
        )


def _send(urls: Sequence[str], alert: Alert) -> None:
    """Send in a thread of its own: a service that does not answer keeps nobody waiting for long."""
    thread = threading.Thread(target=_notify, args=(urls, alert), daemon=True)
    thread.start()
    thread.join(_SECONDS)
    if thread.is_alive():
        _log.error("The alert %r was not sent within %g s.", alert.title, _SECONDS)


def _notify(urls: Sequence[str], alert: Alert) -> None:
    try:
        apprise = _apprise()
        service = apprise.Apprise()
        for url in urls:
            service.add(url)
        sent = bool(service.notify(body=alert.text, title=alert.title))
    except Exception as error:
        _log.error("The alert %r was not sent: %s.", alert.title, type(error).__name__)
        return
    if not sent:
        _log.error(
            "The alert %r was not sent: a service refused it or did not answer.", alert.title
        )


def _nowhere(alert: Alert) -> None:
    _log.warning(
        "%s\n%s\n(BACKFILL_ALERTS names no service, so nobody was told.)", alert.title, alert.text
    )


def _apprise():
    try:
        import apprise
    except ImportError as error:
        raise MissingDriver(
            "BACKFILL_ALERTS cannot be used",
            "the package apprise is not installed",
            "Install backfill-assets[alerts], or leave the variable out",
        ) from error
    # it logs URLs, and URLs hold tokens
    logging.getLogger("apprise").setLevel(logging.CRITICAL)
    return apprise
