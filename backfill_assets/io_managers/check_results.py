"""A check's result for each partition of a run, which Dagster's own `AssetCheckResult` cannot give for a range."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData,
)

from backfill_assets.controls.lanes import PARTITION


@dataclass(frozen=True)
class CheckFound:
    """What a check says of one partition (None for a whole table), called `name` in sentences; `blocks` if it is wrong."""

    check: str
    partition: str | None
    name: str
    passed: bool
    blocks: bool
    why: str
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)

    @property
    def severity(self) -> dg.AssetCheckSeverity:
        """What it is shown as where it failed."""
        return dg.AssetCheckSeverity.ERROR if self.blocks else dg.AssetCheckSeverity.WARN


def results(
    context: dg.AssetCheckExecutionContext,
    key: dg.AssetKey,
    wanted: Sequence[str],
    found: Sequence[CheckFound],
) -> Iterator[dg.AssetCheckResult]:
    """Yield a result for each check; before them, where there are several partitions, log one for each of them."""
    for name in wanted:
        own = [one for one in found if one.check == name]
        # Dagster knows which partition a result is about only where the run was launched for one, and not for a range
        if len(own) == 1 and (PARTITION in context.run.tags or own[0].partition is None):
            yield _result(key, own[0])
            continue
        targets = newest_materializations(context, key, [str(one.partition) for one in own])
        for one in own:
            context.op_execution_context.log_event(evaluation(key, one, targets))  # pyright: ignore[reportArgumentType]
        yield _together(key, name, own)


def _result(key: dg.AssetKey, one: CheckFound) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        asset_key=key,
        check_name=one.check,
        passed=one.passed,
        severity=one.severity,
        description=one.why,
        metadata=one.metadata,
    )


def evaluation(
    key: dg.AssetKey, one: CheckFound, targets: Mapping[str, Any]
) -> dg.AssetCheckEvaluation:
    """Return the event that tells a partition's result, by `newest_materializations`."""
    partition = str(one.partition)
    return dg.AssetCheckEvaluation(
        asset_key=key,
        check_name=one.check,
        passed=one.passed,
        partition=partition,
        severity=one.severity,
        description=one.why or None,
        metadata=one.metadata,
        # without the materialization that was looked at, Dagster takes the result for an old one
        target_materialization_data=targets.get(partition),
    )


def _together(key: dg.AssetKey, name: str, own: Sequence[CheckFound]) -> dg.AssetCheckResult:
    """Return the result of the whole run, which blocks what is downstream if any partition does."""
    wrong = [one for one in own if not one.passed]
    stops = any(one.blocks for one in wrong)
    return dg.AssetCheckResult(
        asset_key=key,
        check_name=name,
        passed=not wrong,
        severity=dg.AssetCheckSeverity.ERROR if stops or not wrong else dg.AssetCheckSeverity.WARN,
        description=f"{len(wrong)} of {len(own)} partitions failed"
        + "".join(f"; {one.name}: {one.why}" for one in wrong[:10]),
        metadata={
            "partitions": len(own),
            "failed": len(wrong),
            "failed_partitions": dg.MetadataValue.json([str(one.partition) for one in wrong]),
        },
    )


def newest_materializations(
    context: dg.AssetCheckExecutionContext | dg.AssetExecutionContext,
    key: dg.AssetKey,
    partitions: Sequence[str],
) -> dict[str, Any]:
    """Return for each partition the materialization that its result is about."""
    found: dict[str, Any] = {}
    wanted = set(partitions)
    cursor = None
    while wanted - found.keys():
        page = context.instance.fetch_materializations(
            dg.AssetRecordsFilter(asset_key=key, asset_partitions=sorted(wanted)),
            limit=1000,
            cursor=cursor,
        )
        for record in page.records:
            if record.partition_key is not None and record.partition_key not in found:
                found[record.partition_key] = AssetCheckEvaluationTargetMaterializationData(
                    storage_id=record.storage_id,
                    run_id=record.event_log_entry.run_id,
                    timestamp=record.timestamp,
                )
        if not page.has_more:
            break
        cursor = page.cursor
    return found
