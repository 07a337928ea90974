"""The sensor `late_rows`: looks at tables that ask for it by metadata, and tells or requests what came late.

Off until it is switched on. Each partition is requested once for the newest row that came; a newer one requests it
again, and a run that fails is not requested again for the same rows.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from typing import Any

import dagster as dg

from backfill_assets.checks.late import LateSlice
from backfill_assets.controls.alerts import Alert, Send, sender
from backfill_assets.errors import BackfillError
from backfill_assets.io_managers.declaration import late_rows_of
from backfill_assets.operations.late_jobs import late_partitions, reason_for
from backfill_assets.operations.launching import command
from backfill_assets.settings import settings

NAME = "late_rows"
_MOST = 100
_SECONDS = 900


def late_rows_sensor(io_manager_key: str = "io_manager") -> dg.SensorDefinition:
    """Return the sensor; it reads through the IO manager of that key."""

    @dg.sensor(
        name=NAME,
        asset_selection=dg.AssetSelection.all(),
        required_resource_keys={io_manager_key},
        minimum_interval_seconds=_SECONDS,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description="Finds rows that came after their partition was loaded, in tables with the metadata late_rows.",
    )
    def late_rows(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        """Look at every table that asks for it; one that cannot be read is told and keeps the others waiting for nothing."""
        manager: Any = getattr(context.resources, io_manager_key)
        told: dict[str, str] = json.loads(context.cursor or "{}")
        tick = _Tick(context, told, sender(settings().alert_urls))
        requests = [
            request
            for key, asset in _opted_in(context.repository_def)
            for request in tick.look(manager, key, asset)
        ]
        return dg.SensorResult(run_requests=requests, cursor=json.dumps(told))

    return late_rows


class _Tick:
    """One look at all tables; `told` remembers what was said last of each, so that it is said once."""

    def __init__(
        self, context: dg.SensorEvaluationContext, told: dict[str, str], send: Send
    ) -> None:
        self._context, self._told, self._send = context, told, send

    def look(
        self, manager: Any, key: dg.AssetKey, asset: dg.AssetsDefinition
    ) -> Iterator[dg.RunRequest]:
        """Yield the runs that a table's late rows need, or say what was found."""
        name = key.to_user_string()
        try:
            wanted = late_rows_of(asset.metadata_by_key.get(key, {}), name)
            late = late_partitions(
                self._context.instance, manager, key, asset, self._context.log.info
            )
        except BackfillError as error:
            self._say(name, f"error {error}", f"{name} was not looked through", str(error))
            return
        found = [one for one in late if _has_ended(one)]
        if not found:
            self._told.pop(name, None)
        elif wanted == "backfill" and len(found) <= _MOST:
            self._told.pop(name, None)
            yield from (_request(key, one) for one in found)
        else:
            self._report(name, found, too_many=wanted == "backfill")

    def _report(self, name: str, found: Sequence[LateSlice], *, too_many: bool) -> None:
        config = {"table": name, "launch": True}
        again = command(self._context.repository_def, "find_late_rows", config)
        why = (
            f" More than {_MOST} partitions at once look like a source that was filled anew, so none was requested."
            if too_many
            else ""
        )
        text = f"{reason_for(found)}.{why} To load them again: {again}"
        mark = f"{len(found)} {sum(one.rows for one in found)} {max(one.newest for one in found)}"
        self._say(name, mark, f"Late rows of {name}", text)

    def _say(self, name: str, mark: str, title: str, text: str) -> None:
        self._context.log.info(f"{title}: {text}")
        if self._told.get(name) != mark:
            self._told[name] = mark
            self._send(Alert(title, (text,)))


def _has_ended(late: LateSlice) -> bool:
    """Tell whether the slice's window is over; until then rows keep coming, and the live load takes them."""
    window = late.slice.window
    return window is None or window.end <= _now()


def _now() -> datetime:
    return datetime.now(timezone.utc)


def _opted_in(repository: Any) -> list[tuple[dg.AssetKey, dg.AssetsDefinition]]:
    return [
        (key, asset)
        for key, asset in sorted(repository.assets_defs_by_key.items())
        if asset.is_executable and NAME in asset.metadata_by_key.get(key, {})
    ]


def _request(key: dg.AssetKey, late: LateSlice) -> dg.RunRequest:
    """Return the run for one partition; the same rows have the same key, and are not requested twice."""
    name = key.to_user_string()
    return dg.RunRequest(
        run_key=f"{name}|{late.slice.name}|{late.newest.isoformat()}|{late.rows}",
        partition_key=late.slice.name,
        asset_selection=[key],
        tags={
            "reason": reason_for([late]),
            "launched_by": f"sensor {NAME}",
            "lane": "backfill",
            NAME: name,
        },
    )
