"""The latest results of an asset's checks for each partition, as Dagster's instance has them.

Read as they are stored, whoever defines the checks. A statement for each check, and one more for one that failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg

from backfill_assets.errors import without_secrets
from backfill_assets.operations.reports.values import Check, CheckResult

_FAILED_READ = 1000


def checks_of(
    instance: dg.DagsterInstance, repository: Any, asset: dg.AssetKey, runs: Mapping[str, str]
) -> Mapping[str | None, tuple[Check, ...]]:
    """Return the checks of each partition of `asset` (None: of all of it), in order of their names.

    `runs` are the statuses of the backfill's runs by id. A result that is older than the rows is left out, unless it
    comes from one of them.
    """
    storage: Any = instance.event_log_storage
    keys = sorted(repository.asset_graph.get_check_keys_for_assets({asset}), key=str)
    if not keys or not storage.supports_asset_checks:
        return {}
    found: dict[str | None, list[Check]] = {}
    for key in keys:
        infos = storage.get_asset_check_partition_info([key])
        status = {info.partition_key: info.latest_execution_status.value for info in infos}
        why = _failures(storage, key) if "FAILED" in status.values() else {}
        planned_anew: set[str | None] = set()
        for info in infos:
            part, run = info.partition_key, info.latest_planned_run_id
            if run in runs or (part is not None and info.is_current):
                result, said = _result(status[part], runs.get(run), why.get(part))
                found.setdefault(part, []).append(Check(key.name, result, said))
            else:
                planned_anew.add(part)
        for part, check in _before(storage, key, runs, planned_anew).items():
            found.setdefault(part, []).append(check)
    return {part: tuple(checks) for part, checks in found.items()}


def _result(
    status: str, run: str | None, failure: tuple[bool, str] | None
) -> tuple[CheckResult, str]:
    if status == "SUCCEEDED":
        return "passed", ""
    if status == "FAILED":
        warns, said = failure or (False, "")
        return ("warned" if warns else "failed"), said
    ended = ("SUCCESS", "FAILURE", "CANCELED")
    return ("not run" if run is None or run in ended else "running"), ""


def _before(
    storage: Any, key: Any, runs: Mapping[str, str], parts: set[str | None]
) -> Mapping[str | None, Check]:
    """Return what the backfill's own runs found in partitions that another run, perhaps in the queue, checks anew."""
    from dagster._core.storage.asset_check_execution_record import (
        AssetCheckExecutionRecordStatus as Status,
    )

    found: dict[str | None, Check] = {}
    if not parts:
        return found
    records = storage.get_asset_check_execution_history(
        key, limit=_FAILED_READ, status={Status.SUCCEEDED, Status.FAILED}
    )
    for record in records:
        evaluation, part = record.evaluation, record.partition
        if part in parts and part not in found and record.run_id in runs and evaluation is not None:
            warns = evaluation.severity == dg.AssetCheckSeverity.WARN
            said = without_secrets(evaluation.description or "")
            result, _ = _result(record.status.value, None, (warns, said))
            found[part] = Check(key.name, result, "" if evaluation.passed else said)
    return found


def _failures(storage: Any, key: Any) -> dict[str | None, tuple[bool, str]]:
    """Return for each partition whether its newest failure only warns, and what it says."""
    from dagster._core.storage.asset_check_execution_record import (
        AssetCheckExecutionRecordStatus as Status,
    )

    found: dict[str | None, tuple[bool, str]] = {}
    records = storage.get_asset_check_execution_history(
        key, limit=_FAILED_READ, status={Status.FAILED}
    )
    for record in records:
        evaluation = record.evaluation
        if evaluation is not None and record.partition not in found:
            warns = evaluation.severity == dg.AssetCheckSeverity.WARN
            found[record.partition] = warns, without_secrets(evaluation.description or "")
    return found
