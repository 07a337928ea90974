"""The runs of a backfill as a report needs them: which partitions each was about, how it stands, why it failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import dagster as dg

from backfill_assets.controls.held import is_held
from backfill_assets.controls.lanes import BACKFILL, PARTITION, RANGE, partitions_of
from backfill_assets.errors import Refused, without_secrets

_PAGE = 500
_FAILURES = {dg.DagsterEventType.STEP_FAILURE, dg.DagsterEventType.PIPELINE_FAILURE}


@dataclass(frozen=True)
class RunFact:
    """What a report keeps of a run; `assets` is None where it selects all of its job, and has those `steps`."""

    run_id: str
    status: str
    assets: frozenset[dg.AssetKey] | None
    steps: frozenset[str]
    key: str | None
    edges: tuple[str, str] | None
    subset: tuple[str, ...] | None
    began: bool
    held: bool
    where: str
    ended: float | None

    @property
    def goes_on(self) -> bool:
        """Whether the run has not ended."""
        return self.status not in ("SUCCESS", "FAILURE", "CANCELED")


@dataclass(frozen=True)
class Reason:
    """Why a step (None: the run as a whole) failed, and whether a rule refused it."""

    step: str | None
    why: str
    refused: bool


def runs_of(instance: dg.DagsterInstance, backfill: str) -> Iterator[RunFact]:
    """Yield the runs of a backfill, newest first, a page at a time."""
    cursor: str | None = None
    steps = lru_cache(maxsize=64)(lambda plan: _steps(instance, plan))
    while True:
        page = instance.get_run_records(
            dg.RunsFilter(tags={BACKFILL: backfill}), limit=_PAGE, cursor=cursor
        )
        yield from (_fact(record, steps) for record in page)
        if len(page) < _PAGE:
            return
        cursor = page[-1].dagster_run.run_id


def _fact(record: Any, steps: Callable[[str | None], frozenset[str]]) -> RunFact:
    run: dg.DagsterRun = record.dagster_run
    start, end = (run.tags.get(edge) for edge in RANGE)
    subset: Any = run.partitions_subset
    return RunFact(
        run.run_id,
        run.status.value,
        frozenset(run.asset_selection) if run.asset_selection else None,
        frozenset() if run.asset_selection else steps(run.execution_plan_snapshot_id),
        run.tags.get(PARTITION),
        (start, end) if start and end else None,
        tuple(subset.get_partition_keys()) if subset is not None else None,
        record.start_time is not None,
        is_held(run),
        "...".join(partitions_of(run.tags)),
        record.end_time,
    )


def _steps(instance: dg.DagsterInstance, plan: str | None) -> frozenset[str]:
    if plan is None:
        return frozenset()
    found = instance.get_execution_plan_snapshot(plan).step_keys_to_execute
    return frozenset(step_of_node(key) for key in found)


def step_of_node(key: str) -> str:
    """Return the outermost node of a step: an asset's own, also where it is a graph or has mapped steps."""
    return key.split("[")[0].split(".")[0]


def step_named(asset: Any, key: dg.AssetKey) -> str:
    """Return the name of the step that makes an asset; its key's last part where it has none."""
    return asset.node_def.name if asset is not None and asset.is_executable else key.path[-1]


class KeysOf:
    """Which partitions of an asset a run is about; ranges are counted out once for each partitions definition."""

    def __init__(self) -> None:
        self._range = lru_cache(maxsize=4096)(_range)

    def __call__(self, run: RunFact, definition: Any) -> tuple[str | None, ...]:
        """Return the keys, `(None,)` for an asset without partitions."""
        if definition is None:
            return (None,)
        if run.subset is not None:
            return run.subset
        if run.edges is not None:
            return self._range(definition, *run.edges)
        return (run.key,) if run.key else ()


def _range(definition: Any, start: str, end: str) -> tuple[str, ...]:
    try:
        found = definition.get_partition_keys_in_range(dg.PartitionKeyRange(start, end))
    except Exception:  # the definition has changed since, and no longer has them
        return (start, end)
    return tuple(str(key) for key in found)


def reasons(instance: dg.DagsterInstance, run: RunFact) -> list[Reason]:
    """Return why a failed run failed: a reason for each failed step, or one for the run; never none."""
    records = instance.get_records_for_run(run.run_id, of_type=_FAILURES).records
    events = [record.event_log_entry.dagster_event for record in records]
    steps = [_of_step(event) for event in events if event is not None and event.is_step_failure]
    if steps:
        return steps
    said = next((event.message for event in events if event is not None and event.message), "")
    why = said or "its process ended without a word"
    # the coordinator refuses before a run begins; a process that could not be started is no refusal
    refused = not run.began and "Refused: " in why
    return [Reason(None, without_secrets(why), refused)]


def _of_step(event: Any) -> Reason:
    data = event.step_failure_data
    told = data.user_failure_data.description if data.user_failure_data is not None else None
    chain = [data.error] if data.error is not None else []
    while chain and chain[-1].cause is not None:
        chain.append(chain[-1].cause)
    said = told or (_bare(chain[-1].message) if chain else "it says nothing")
    return Reason(
        event.step_key,
        without_secrets(" ".join(said.split())),
        any(error.cls_name in _refusals() for error in chain),
    )


def _bare(message: str) -> str:
    return message.removeprefix("dagster._core.definitions.events.Failure: ")


@lru_cache(maxsize=1)
def _refusals() -> frozenset[str]:
    """Return the names of the errors that say that a rule left a slice as it was."""
    found, left = {Refused.__name__}, [Refused]
    while left:
        for kind in left.pop().__subclasses__():
            found.add(kind.__name__)
            left.append(kind)
    return frozenset(found)
