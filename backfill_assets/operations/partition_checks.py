"""Asset checks per partition: what was written is looked at again, and the UI shows each day's result.

A run over several days gives each of them a result of its own, which Dagster's own `AssetCheckResult` cannot.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from typing import Any

import dagster as dg

from backfill_assets.checks.verdicts import Verdict, checks_of, verdicts
from backfill_assets.controls.lanes import lane_by_tags
from backfill_assets.io_managers.check_results import CheckFound, results
from backfill_assets.io_managers.declaration import declared_table
from backfill_assets.io_managers.kinds import kind_of
from backfill_assets.io_managers.reporting import as_failure
from backfill_assets.operations.poison import POISON, poison_verdicts, replays
from backfill_assets.operations.ranges import partitions_of_asset, target_for
from backfill_assets.writing import AuditTable

_NOT_BLOCKING = ("late_rows", POISON)


def partition_checks(
    asset: dg.AssetsDefinition,
    io_manager_key: str = "io_manager",
    *,
    blocking: bool = True,
    key: dg.AssetKey | None = None,
) -> dg.AssetChecksDefinition:
    """Return the checks of a partitioned asset, by what its metadata declares; `key` is needed where it makes several.

    `row_count`, `missing_partitions`, `schema`, and, where declared, `duplicate_keys`, `totals`, `late_rows` and rules
    of the table's own; `poison_events` where it is replayed. A failing one of severity `block` fails the run, keeps what is downstream from starting, and
    trips the circuit breaker of a backfill; with `blocking=False` it is only shown.
    """
    key = key or asset.key
    definition = partitions_of_asset(asset, key)
    metadata = asset.metadata_by_key.get(key, {})
    # what it expects is known without its slices
    table = declared_table(
        metadata, name=key.path[-1], schema="any", slice_column=None, dimensions=()
    )
    specs = [
        dg.AssetCheckSpec(
            name,
            asset=key,
            partitions_def=definition,
            blocking=blocking and name not in _NOT_BLOCKING,
            description=_DESCRIPTIONS.get(name, "A rule of the table's own: no row may break it."),
        )
        for name in (*checks_of(table), *([POISON] if replays(metadata) else []))
    ]

    @dg.multi_asset_check(
        name=f"check_{key.to_python_identifier()}",
        specs=specs,
        required_resource_keys={io_manager_key},
        can_subset=True,
    )
    def check(context: dg.AssetCheckExecutionContext):
        manager: Any = getattr(context.resources, io_manager_key)
        wanted = [check.name for check in context.selected_asset_check_keys]
        with as_failure():
            found = list(_found(context, manager, asset, key, wanted))
        yield from results(context, key, wanted, [_as_found(verdict) for verdict in found])

    return check


_DESCRIPTIONS = {
    "row_count": "The rows are as many as the last load left, and as the table expects.",
    "missing_partitions": "There are rows, unless none is expected; no hour is missing where hours are declared.",
    "schema": "The columns are those that are declared.",
    "duplicate_keys": "No value of the unique key comes twice.",
    "totals": "Sums agree with the source.",
    POISON: "No event was put aside because it could not be read when the partition was loaded.",
    "late_rows": "No row has reached the source since the partition was loaded.",
}


def _found(
    context: dg.AssetCheckExecutionContext,
    manager: Any,
    asset: dg.AssetsDefinition,
    key: dg.AssetKey,
    wanted: Sequence[str],
) -> Iterator[Verdict]:
    lane = lane_by_tags(context.run.tags, manager.controls.live_days)
    engine, audit = manager.engine_of(lane), AuditTable(schema=manager.audit_schema)
    keys = context.partition_keys if partitions_of_asset(asset, key) is not None else []
    with engine.session(who="checks", read_only=True, report=context.log.info) as session:
        target = target_for(
            manager,
            key,
            asset,
            keys,
            lambda table, column: kind_of(session, table, column, None),
        )
        now = datetime.now(timezone.utc)
        yield from verdicts(session, target.table, target.slices, audit, now, wanted)
        if POISON in wanted:
            yield from poison_verdicts(session, target.table, target.slices, audit)


def _as_found(verdict: Verdict) -> CheckFound:
    return CheckFound(
        verdict.check,
        verdict.slice.partition,
        verdict.slice.name,
        verdict.passed,
        verdict.severity == "block",
        verdict.why,
        metadata_of(verdict),
    )


def metadata_of(verdict: Verdict) -> dict[str, Any]:
    """Return what the UI shows of a verdict: numbers as numbers, so that it plots them."""
    worst = verdict.worst
    found: dict[str, Any] = {
        "expected": _number(worst.expected),
        "found": _number(worst.found),
        "tolerance": float(worst.may_differ),
        "query": dg.MetadataValue.md(f"```sql\n{verdict.sql}\n```"),
    }
    if worst.expected is not None and worst.found is not None:
        found["difference"] = _number(float(worst.found) - float(worst.expected))
    if verdict.sample:
        found["sample"] = dg.MetadataValue.text("\n".join(verdict.sample))
    if len(verdict.findings) > 1:
        found["findings"] = dg.MetadataValue.json([f.as_plain() for f in verdict.findings])
    return {name: value for name, value in found.items() if value is not None}


def _number(value: Any) -> int | float | str | None:
    if value is None or isinstance(value, int):
        return value
    as_float = float(value)
    return as_float if as_float == as_float and abs(as_float) != float("inf") else str(value)
