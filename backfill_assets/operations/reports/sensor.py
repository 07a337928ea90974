"""The sensor that writes the report of each backfill when it has ended; its cursor survives restarts."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import dagster as dg
from dagster._core.execution.backfill import BULK_ACTION_TERMINAL_STATUSES
from dagster._core.storage.dagster_run import NOT_FINISHED_STATUSES

from backfill_assets.controls.lanes import BACKFILL
from backfill_assets.errors import without_secrets
from backfill_assets.operations.reports.gathering import Reader
from backfill_assets.operations.reports.publishing import publish

_PAGE = 50
_DAY = 86_400
_TRIES = 8
# the daemon gives up on a tick after a minute, and would then forget what was done in it
_TICK_SECONDS = 20
_PATIENCE = {"lock_wait": 10.0, "statement_timeout": 20.0}


def report_sensor(io_manager_key: str = "io_manager") -> dg.SensorDefinition:
    """Return the sensor; it reads the warehouse through the IO manager of that key."""

    @dg.sensor(
        name="backfill_reports",
        minimum_interval_seconds=15,
        default_status=dg.DefaultSensorStatus.RUNNING,
        required_resource_keys={io_manager_key},
        description="Writes the report of each backfill that has ended.",
    )
    def backfill_reports(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        """Write what is due, and say what could not be written; it is tried again later, and nothing waits for it."""
        manager: Any = getattr(context.resources, io_manager_key)
        engine = manager.engine_of("backfill").limited(**_PATIENCE)
        reader = Reader(context.instance, context.repository_def, manager, io_manager_key, engine)
        waiting = Waiting.of(context.cursor)
        told = list(waiting.work(reader, time.time()))
        context.update_cursor(waiting.cursor)
        for line in told:
            context.log.info(line)
        return dg.SkipReason(" ".join(told) or "No backfill has ended.")

    return backfill_reports


class Waiting:
    """Backfills whose report is to be written: how often that was tried, and when it is tried next."""

    def __init__(self, newest: str | None, due: dict[str, tuple[int, float]]) -> None:
        self._newest, self._due = newest, due

    @classmethod
    def of(cls, cursor: str | None) -> Waiting:
        """Return what an earlier tick left; a cursor that somebody has changed by hand begins anew."""
        try:
            found = json.loads(cursor) if cursor else {}
            due = {name: (int(n), float(at)) for name, (n, at) in found.get("due", {}).items()}
            return cls(found.get("newest"), due)
        except (ValueError, TypeError, AttributeError):
            return cls(None, {})

    @property
    def cursor(self) -> str:
        return json.dumps({"newest": self._newest, "due": self._due})

    def work(self, reader: Reader, now: float) -> Iterator[str]:
        """Write the reports that are due, the least tried first, and yield a sentence for each attempt."""
        self._look(reader.instance, now)
        began = time.monotonic()
        for name, (tries, at) in sorted(self._due.items(), key=lambda item: item[1]):
            if at > now or time.monotonic() - began > _TICK_SECONDS:
                continue
            backfill = reader.instance.get_backfill(name)
            if backfill is None or not _is_of(reader.repository, backfill):
                del self._due[name]
            elif _has_ended(reader.instance, backfill):
                yield self._written(reader, name, tries, now)

    def _look(self, instance: dg.DagsterInstance, now: float) -> None:
        """Take up the backfills that came since; the first time, those that go on or are a day old at most."""
        new = list(_since(instance, self._newest, now))
        for backfill in new:
            over = backfill.status in BULK_ACTION_TERMINAL_STATUSES
            last = backfill.backfill_end_timestamp or backfill.backfill_timestamp
            if self._newest is not None or not over or now - last < _DAY:
                self._due.setdefault(backfill.backfill_id, (0, 0.0))
        self._newest = new[0].backfill_id if new else self._newest

    def _written(self, reader: Reader, name: str, tries: int, now: float) -> str:
        try:
            report = reader.report(name)
            paths, _ = publish(reader.instance, report)
        except Exception as error:
            why = f"{type(error).__name__}: {without_secrets(str(error))}"
            if tries + 1 >= _TRIES:
                del self._due[name]
                return f"The report of backfill {name} could not be written, and is given up: {why} Launch report_backfill when that is mended."
            self._due[name] = (tries + 1, now + 15 * 2**tries)
            return f"The report of backfill {name} could not be written, and is tried again: {why}"
        del self._due[name]
        return f"Backfill {name}: {report.headline} Written to {paths}."


def _since(instance: dg.DagsterInstance, newest: str | None, now: float) -> Iterator[Any]:
    """Yield backfills in the order in which they were put there, newest first, down to the one seen last."""
    cursor: str | None = None
    while True:
        page = instance.get_backfills(limit=_PAGE, cursor=cursor)
        for backfill in page:
            if backfill.backfill_id == newest or backfill.backfill_timestamp < now - 30 * _DAY:
                return
            yield backfill
        if len(page) < _PAGE:
            return
        cursor = page[-1].backfill_id


def _is_of(repository: Any, backfill: Any) -> bool:
    """Tell whether any of it belongs to this location; others write their own."""
    if backfill.asset_selection:
        return any(asset in repository.assets_defs_by_key for asset in backfill.asset_selection)
    return backfill.job_name is None or repository.has_job(backfill.job_name)


def _has_ended(instance: dg.DagsterInstance, backfill: Any) -> bool:
    if backfill.status not in BULK_ACTION_TERMINAL_STATUSES:
        return False
    going = dg.RunsFilter(tags={BACKFILL: backfill.backfill_id}, statuses=NOT_FINISHED_STATUSES)
    return not instance.get_run_records(going, limit=1)
