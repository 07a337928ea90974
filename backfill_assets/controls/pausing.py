"""Whether a run is paused right now, asked of the switch at most once a second; unreadable counts as paused."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone

import dagster as dg

from backfill_assets.controls.family import is_over
from backfill_assets.controls.switch import Pause, Switch, forgotten, holding
from backfill_assets.errors import BackfillError

_FRESH_SECONDS = 1.0


class Paused:
    """Asks whether a run of any of `backfills` over `tables` is paused, and answers in words."""

    def __init__(
        self, instance: dg.DagsterInstance, tables: Iterable[str], *backfills: str | None
    ) -> None:
        self._switch, self._tables, self._backfills = Switch(instance), tuple(tables), backfills

    def why(self) -> str | None:
        """Return who paused the run, when and why; None when nobody did."""
        return self._told(None)

    def why_before(self, moment: datetime) -> str | None:
        """Return the same of pauses that were on at `moment` (aware)."""
        return self._told(moment)

    def _told(self, before: datetime | None) -> str | None:
        found = self._now()
        if isinstance(found, BackfillError):
            return str(found)
        now = datetime.now(timezone.utc)
        on = [pause.told(now) for pause in found if before is None or pause.since <= before]
        return "; ".join(on) or None

    def _now(self) -> list[Pause] | BackfillError:
        try:
            return holding(self._switch.recent(_FRESH_SECONDS), self._tables, *self._backfills)
        except BackfillError as error:
            return error


def forgotten_pauses(instance: dg.DagsterInstance) -> str:
    """Return what to append to a refusal: pauses that somebody may have forgotten, but for those of what has ended."""
    try:
        pauses = [
            pause
            for pause in Switch(instance).pauses()
            if pause.scope.backfill is None or not is_over(instance, pause.scope.backfill)
        ]
        return forgotten(pauses, datetime.now(timezone.utc))
    except BackfillError as error:
        return f" ({error})"
