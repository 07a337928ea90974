"""dbt as a child process: what it is told of the run, which warehouse it is led to, and how a pause ends it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
from dagster_dbt import DbtCliInvocation, DbtCliResource

from backfill_assets.controls.budget import USED_UP
from backfill_assets.controls.lanes import lane_by_tags
from backfill_assets.dbt.environment import dbt_environment, is_ours
from backfill_assets.errors import DeclarationError
from backfill_assets.io_managers import DeleteInsertIOManager
from backfill_assets.slice import Slice
from backfill_assets.window import zone_named
from backfill_assets.writing import Run

# as fresh as every other answer of the switch
_PAUSE_SECONDS = 1.0
_END_SECONDS = 2.0


@dataclass(frozen=True)
class Ended:
    """What an invocation told Dagster, whether it failed and what its error says, and whether a pause or a budget ended it."""

    events: Sequence[Any]
    said: Sequence[str]
    paused: bool
    failed: bool

    @property
    def used_up(self) -> bool:
        """Whether the budget was, as the audit had it."""
        return any(USED_UP in words for words in self.said)


def invoked(
    context: dg.AssetExecutionContext,
    dbt: DbtCliResource,
    manager: DeleteInsertIOManager,
    command: Sequence[str],
    holds: Callable[[], bool],
) -> Ended:
    """Run dbt to its end; interrupt it once `holds` says so, upon which it rolls back the slice under way."""
    # the project may lie where nobody may write
    with tempfile.TemporaryDirectory(prefix="dbt-") as folder:
        with reaching(manager):
            process = dbt.cli(
                list(command), context=context, raise_on_error=False, target_path=Path(folder)
            )
        with _left_to_nobody(process), _ended_by_a_pause(process, holds) as paused:
            events = list(process.stream())
        error = process.get_error()
    # of a process that was killed only its command would be told, and by whom nobody knows
    was_killed = (process.process.returncode or 0) < 0
    said = [str(error)] if error is not None and not was_killed else []
    return Ended(events, said, paused.is_set(), failed=error is not None)


def command_for(
    run: Run,
    manager: DeleteInsertIOManager,
    wanted: Mapping[str, Sequence[Slice]],
    budgets: Mapping[str, Any],
) -> list[str]:
    """Return the command that builds the `wanted` slices of each table (by name), in order of their days."""
    slices = [slice_ for some in wanted.values() for slice_ in some]
    told: dict[str, Any] = {
        "start": str(min(map(_day, slices))),
        "end": str(max(map(_last, slices))),
        "run_id": run.run_id,
        "backfill_id": run.backfill_id,
        "lane": run.lane,
        "reason": run.reason,
        "ticket": run.ticket,
        "launched_by": run.launched_by,
        "allow": ",".join(sorted(run.allows)),
        "run_detail": run.detail,
        "backfill_audit_schema": manager.audit_schema,
        "require_reason": manager.controls.require_reason,
        "budget": {name: budget for name, budget in budgets.items() if budget},
    }
    days = {table: sorted({str(_day(slice_)) for slice_ in some}) for table, some in wanted.items()}
    # also where a calendar leaves days out, which the window would bring in
    every = (max(map(_last, slices)) - min(map(_day, slices))).days
    if any(len(found) != every for found in days.values()):
        told["only_days"] = days
    given = {name: value for name, value in told.items() if value not in (None, "", {})}
    return ["build", "--target", run.lane, "--vars", json.dumps(given)]


@contextlib.contextmanager
def reaching(manager: DeleteInsertIOManager) -> Iterator[None]:
    """Lead a dbt process that is started in the body to the IO manager's warehouse, by each lane's own door."""
    mine = dbt_environment(manager.url, manager.lane_url)
    before = {name: value for name, value in os.environ.items() if is_ours(name)}
    _replace(before, mine)
    try:
        yield
    finally:
        _replace(mine, before)


def _replace(old: Mapping[str, str], new: Mapping[str, str]) -> None:
    for name in old:
        os.environ.pop(name, None)
    os.environ.update(new)


def lane_of(context: dg.AssetExecutionContext, manager: DeleteInsertIOManager) -> str:
    """Return the lane of a run without partitions, which is dbt's target."""
    return lane_by_tags(context.run.tags, manager.controls.live_days)


def _day(slice_: Slice) -> Any:
    return _local(slice_, slice_.window.start if slice_.window else None)


def _last(slice_: Slice) -> Any:
    """Return the day at which the slice ends, excluded."""
    return _local(slice_, slice_.window.end if slice_.window else None)


def _local(slice_: Slice, instant: Any) -> Any:
    column = slice_.table.slice_column
    if (
        instant is None
        or slice_.window is None
        or column is None
        or not slice_.window.is_whole_days(column.zone)
        or len(slice_.window.days(column.zone)) != 1
    ):
        raise DeclarationError(
            f"{slice_.label} cannot be built by dbt",
            "backfill_slices are single days of the model's time_zone",
            "Partition the asset by days of that zone: a week or a month would count as done with its first day",
        )
    return instant.astimezone(zone_named(column.zone)).date()


@contextlib.contextmanager
def _left_to_nobody(dbt: DbtCliInvocation) -> Iterator[None]:
    """End dbt with the body, however that ends: alone it would commit one day after the other, and keep its file."""
    try:
        yield
    finally:
        for end in (dbt.process.terminate, dbt.process.kill):
            if dbt.process.poll() is None:
                end()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    dbt.process.wait(_END_SECONDS)


@contextlib.contextmanager
def _ended_by_a_pause(
    dbt: DbtCliInvocation, holds: Callable[[], bool]
) -> Iterator[threading.Event]:
    """Ask while dbt runs whether a pause is on, and interrupt it then: it rolls back the slice under way."""
    over, paused = threading.Event(), threading.Event()

    def watch() -> None:
        while not over.wait(_PAUSE_SECONDS):
            if holds():
                paused.set()
                dbt.process.send_signal(signal.SIGINT)
                try:
                    dbt.process.wait(_END_SECONDS)
                except subprocess.TimeoutExpired:
                    # DuckDB hears no interrupt between two statements, and what a shell started in the background none
                    dbt.process.terminate()
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield paused
    finally:
        over.set()
        watcher.join()
