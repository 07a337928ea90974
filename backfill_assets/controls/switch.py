"""The kill switch: backfills of everything, of one table or of one backfill are paused, by whom, since when, why.

The circuit breaker throws the same switch. Live runs never ask. A switch that cannot be read counts as on.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any
from weakref import WeakKeyDictionary

import dagster as dg

from backfill_assets.controls.store import Change, Document, Store, unreadable
from backfill_assets.controls.tables import same_table
from backfill_assets.errors import BackfillError, DeclarationError

DOCUMENT = "switch"
ASSET = dg.AssetKey("backfill_switch")
EVERYTHING = "everything"
_HISTORY = 200
_log = logging.getLogger(__name__)


class AlreadyPaused(BackfillError):
    """What was to be paused is paused; the first reason stays."""


@dataclass(frozen=True)
class Scope:
    """What a switch stops: everything (both None), one table (`schema.table` or an asset key), or one backfill.

    However a table is spelled, it is the same scope. `assets` are the keys of the assets that write it, where
    whoever pauses knows them: by these the queue knows its runs.
    """

    table: str | None = None
    backfill: str | None = None
    assets: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if self.table is not None:
            object.__setattr__(self, "table", same_table(self.table))
        if self.backfill is not None:
            object.__setattr__(self, "backfill", self.backfill.strip())
        if self.table is not None and self.backfill is not None:
            raise DeclarationError(
                "the switch cannot be set",
                f"both a table ({self.table}) and a backfill ({self.backfill}) are given",
                "Give one of them, or neither for all backfills",
            )
        if "" in (self.table, self.backfill):
            raise DeclarationError(
                "the switch cannot be set",
                "the table or the backfill is given as an empty text",
                "Name it, or leave it out for all backfills",
            )

    @property
    def name(self) -> str:
        """The scope in words."""
        if self.table is not None:
            return f"table {self.table}"
        return f"backfill {self.backfill}" if self.backfill is not None else EVERYTHING

    @property
    def tables(self) -> frozenset[str]:
        """Every name of the table, as `same_table` gives it."""
        return frozenset(map(same_table, (self.table, *self.assets) if self.table else ()))

    def covers(self, tables: Iterable[str], *backfills: str | None) -> bool:
        """Tell whether a run of any of `backfills` over `tables` is stopped; a table may be named with dots or slashes."""
        if self.table is not None:
            return not self.tables.isdisjoint(map(same_table, tables))
        return self.backfill is None or self.backfill in backfills


@dataclass(frozen=True)
class Pause:
    """One switch that is on."""

    scope: Scope
    reason: str
    by: str
    since: datetime

    def told(self, now: datetime) -> str:
        """Return who stopped what, when and why."""
        days = (now - self.since).days
        age = f", {days} days ago" if days else ""
        what = "backfills" if self.scope.name == EVERYTHING else self.scope.name
        return (
            f"{what} paused by {self.by} since {self.since:%Y-%m-%d %H:%M} UTC{age}: {self.reason}"
        )


# what a process last read, by instance
_recent: WeakKeyDictionary[dg.DagsterInstance, tuple[float, list[Pause]]] = WeakKeyDictionary()


class Switch:
    """Reads and throws the switches of an instance."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self._instance, self._store = instance, Store(instance)

    def pauses(self) -> list[Pause]:
        """Return the switches that are on, oldest first; raise `Unreachable` when nobody can tell."""
        return _pauses(self._store.read(DOCUMENT))

    def recent(self, seconds: float) -> list[Pause]:
        """Return the switches that were on at most so many seconds ago: a run asks often, and pauses are rare."""
        asked_at, found = _recent.get(self._instance, (float("-inf"), []))
        if time.monotonic() - asked_at >= seconds:
            found = self.pauses()
            _recent[self._instance] = (time.monotonic(), found)
        return found

    def pause(self, scope: Scope, reason: str, by: str, *, now: datetime | None = None) -> Pause:
        """Switch `scope` off for backfills; raise when it is already, so that the first reason stays."""
        _must_be_told(reason, by)
        moment = now or datetime.now(timezone.utc)
        wanted = Pause(scope, reason.strip(), by.strip(), moment)

        def add(document: Document) -> Document:
            there = {pause.scope: pause for pause in _pauses(document)}
            if scope in there:
                raise AlreadyPaused(
                    f"{scope.name} was not paused again",
                    there[scope].told(moment),
                    "Nothing is left to do; resume_backfills ends the pause",
                )
            return _with(document, [*there.values(), wanted], _line("paused", wanted, moment))

        self._change(add)
        self._show("paused", wanted, moment)
        return wanted

    def resume(
        self, scope: Scope, reason: str, by: str, *, now: datetime | None = None
    ) -> list[Pause]:
        """End the pause of exactly this `scope`, and return those that are still on; raise when there was none."""
        _must_be_told(reason, by)
        moment = now or datetime.now(timezone.utc)
        ended = Pause(scope, reason.strip(), by.strip(), moment)

        def remove(document: Document) -> Document:
            there = _pauses(document)
            left = [pause for pause in there if pause.scope != scope]
            if len(left) == len(there):
                raise BackfillError(
                    f"{scope.name} was not resumed",
                    "no such pause is on; on are: "
                    + ("; ".join(p.told(moment) for p in there) or "none"),
                    "Give the table or the backfill of a pause that is on",
                )
            return _with(document, left, _line("resumed", ended, moment))

        document = self._change(remove)
        self._show("resumed", ended, moment)
        return _pauses(document)

    def _change(self, change: Change) -> Document:
        document = self._store.change(DOCUMENT, change)
        _recent.pop(self._instance, None)  # whoever asks next in this process sees the change
        return document

    def history(self) -> list[dict[str, str]]:
        """Return who paused and resumed what, newest first."""
        return list(reversed(self._store.read(DOCUMENT).get("history", [])))

    def _show(self, what: str, pause: Pause, moment: datetime) -> None:
        """Put the change on the asset's page; the switch holds whether or not this works."""
        try:
            on = [p.told(moment) for p in self.pauses()]
            self._instance.report_runless_asset_event(_event(what, pause, moment, on))
        except Exception as error:
            name = ASSET.to_user_string()
            _log.error(
                "%s is %s, and the page of %s does not show it (%s).",
                *(pause.scope.name, what, name, type(error).__name__),
            )


def holding(pauses: Iterable[Pause], tables: Iterable[str], *backfills: str | None) -> list[Pause]:
    """Return those of `pauses` that stop a run of any of `backfills` over `tables`."""
    tables = list(tables)
    return [pause for pause in pauses if pause.scope.covers(tables, *backfills)]


def forgotten(pauses: Iterable[Pause], now: datetime) -> str:
    """Return the pauses that are on for more than a day, in words to append to a refusal; empty without any."""
    old = [pause.told(now) for pause in pauses if now - pause.since > timedelta(days=1)]
    return f" (still on: {'; '.join(old)})" if old else ""


def _pauses(document: Document) -> list[Pause]:
    try:
        return sorted(
            (
                Pause(
                    Scope(one.get("table"), one.get("backfill"), tuple(one.get("assets", ()))),
                    one["reason"],
                    one["by"],
                    _aware(one["since"]),
                )
                for one in document.get("on", [])
            ),
            key=lambda pause: pause.since,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        why = f"what is stored is none ({type(error).__name__}: {error})"
        raise unreadable(DOCUMENT, why) from error


def _aware(text: str) -> datetime:
    """Return the moment; a time without a zone, which only a hand can have written, is UTC like all of ours."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=timezone.utc)


def _with(document: Document, pauses: list[Pause], line: dict[str, str]) -> Document:
    on: list[dict[str, Any]] = [
        {
            **dataclasses.asdict(p.scope),
            "reason": p.reason,
            "by": p.by,
            "since": p.since.isoformat(),
        }
        for p in pauses
    ]
    return {"on": on, "history": [*document.get("history", []), line][-_HISTORY:]}


def _event(what: str, pause: Pause, moment: datetime, on: list[str]) -> dg.AssetMaterialization:
    return dg.AssetMaterialization(
        ASSET,
        description=f"{pause.scope.name} {what} by {pause.by}: {pause.reason}",
        metadata={
            **_line(what, pause, moment),
            "on": dg.MetadataValue.md("\n".join(f"- {line}" for line in on) or "nothing"),
            "switches_on": len(on),
        },
    )


def _line(what: str, pause: Pause, moment: datetime) -> dict[str, str]:
    return {
        "what": what,
        "scope": pause.scope.name,
        "by": pause.by,
        "reason": pause.reason,
        "at": moment.isoformat(timespec="seconds"),
    }


def _must_be_told(reason: str, by: str) -> None:
    missing = [name for name, value in (("reason", reason), ("by", by)) if not value.strip()]
    if missing:
        raise DeclarationError(
            "the switch was left as it was",
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} empty",
            "Say why, and who you are: both are shown to everyone whose backfill is stopped",
        )
