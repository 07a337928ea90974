"""What a written slice tells Dagster: metadata of its materialization, and one sentence when a run stops."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dagster as dg

from backfill_assets.controls.lanes import BACKFILL
from backfill_assets.engines import Report, Spelling
from backfill_assets.engines.sql import predicate, qualified
from backfill_assets.errors import BackfillError, OutcomeUnknown, WarehouseError, shown_cause
from backfill_assets.io_managers.partitions import Target
from backfill_assets.io_managers.run_context import step_of
from backfill_assets.slice import Slice
from backfill_assets.writing.audit import Load


@contextlib.contextmanager
def as_failure() -> Iterator[None]:
    """Show an error of ours as its sentence; Dagster retries only what may pass later."""
    try:
        yield
    except BackfillError as error:
        raise dg.Failure(
            str(error),
            metadata={"what": error.what, "why": error.why, "what to do": error.do},
            allow_retries=error.retry,
        ) from shown_cause(error.__cause__ or error)


class Progress:
    """Says in the run's log how far a run over several slices has come, once a second at the most.

    Each line is a row in Dagster's storage, and costs about as much as a small slice.
    """

    def __init__(self, say: Report, total: int) -> None:
        self._say, self._total, self._told = say, total, time.monotonic()

    def after(self, done: list[Load]) -> None:
        """Speak when it is time to, after the last of `done`."""
        last = len(done) == self._total > 1
        if last or time.monotonic() - self._told >= 1:
            self._told = time.monotonic()
            rows = sum(load.rows_after for load in done)
            self._say(
                f"{len(done)} of {self._total} partitions of {done[-1].table_name} are replaced, the last"
                f" of them {done[-1].partition_key}; {rows} rows so far."
            )


def tell(
    context: dg.OutputContext, target: Target, loads: Mapping[str, Load], spelling: Spelling
) -> None:
    """Put counts, audit id and the query to see the rows on the materialization of each partition.

    Dagster records every partition of the run, so those that a run before this one wrote are told of too.
    """
    step = step_of(context)
    told = [(slice_, loads[slice_.name]) for slice_ in target.slices if slice_.name in loads]
    if not told:
        return
    if (
        step is None
        or not target.partitioned
        or (len(told) == 1 and len(context.asset_partition_keys) == 1)
    ):
        context.add_output_metadata(metadata_of_load(*told[0], spelling))
        return
    for slice_, load in told:
        step.add_asset_metadata(
            metadata_of_load(slice_, load, spelling),
            asset_key=context.asset_key,
            partition_key=slice_.partition,
        )


def keep(
    context: dg.OutputContext,
    slices: Sequence[Slice],
    done: Sequence[Load],
    spelling: Spelling,
) -> None:
    """Before a run fails: let Dagster know those of `slices` that are committed, so that a resume leaves them out.

    On success Dagster records every partition itself, so this is only for the way out.
    """
    step = step_of(context)
    backfill = step.get_tag(BACKFILL) if step is not None else None
    for slice_, load in zip(slices, done, strict=False):
        context.log_event(
            dg.AssetMaterialization(
                asset_key=context.asset_key,
                partition=slice_.partition,
                metadata=metadata_of_load(slice_, load, spelling),
                tags={BACKFILL: backfill} if backfill else None,
            )
        )


def stopped(slices: Sequence[Slice], at: int, error: Exception) -> BackfillError:
    """Return the error of a run over several partitions that stopped at the one with number `at`."""
    slice_, last, total = slices[at], slices[-1], len(slices)
    why, do = (
        (error.why, error.do)
        if isinstance(error, BackfillError)
        else (f"{type(error).__name__}: {error}", "")
    )
    if getattr(error, "launch_again", True):
        rest = slice_.name if slice_ is last else f"{slice_.name}...{last.name}"
        then = f"{do.rstrip('.')}; then launch" if do else "Launch"
        do = f"{then} {rest} ('Re-execute from failure' on a backfill's page does just that)"
    kind: type[BackfillError] = type(error) if isinstance(error, BackfillError) else BackfillError
    return kind(
        f"{slice_.label} failed, partition {at + 1} of {total} in this run; the {at} before it are committed and"
        f" stay, the {total - at - 1} after it were not begun",
        why,
        do,
    )


def closing_failed(last: Slice, error: Exception) -> BackfillError:
    """Return the error of a run whose every slice is committed, and that failed after the last of them."""
    why = error.why if isinstance(error, BackfillError) else f"{type(error).__name__}: {error}"
    kind = OutcomeUnknown if isinstance(error, OutcomeUnknown) else WarehouseError
    return kind(
        f"{last.label} is committed, like every slice of this run, and what came after it failed",
        why,
        "Look at the warehouse; running it again does no harm",
    )


def metadata_of_load(slice_: Slice, load: Load, spelling: Spelling) -> dict[str, Any]:
    """Return what the UI shows of a load: numbers as numbers, so that it plots them."""
    found: dict[str, Any] = {
        "rows_before": load.rows_before,
        "rows_after": load.rows_after,
        "seconds": load.seconds,
        "audit_id": load.audit_id,
        "written_by_run": load.run_id,
        "checksum": load.checksum,
        "Query": dg.MetadataValue.md(
            f"```sql\nSELECT * FROM {qualified(spelling, slice_.table)} WHERE {predicate(spelling, slice_)}\n```"
        ),
        "dagster/table_name": load.table_name,
    }
    found |= {name: _shown(value) for name, value in load.source.items()}
    warnings = [f"{f['rule']}: {f['why']}" for f in load.findings if not f["passed"]]
    if warnings:
        found["warnings"] = dg.MetadataValue.md("\n".join(f"- {warning}" for warning in warnings))
    if slice_.window is not None:
        found["window_start"] = slice_.window.start.isoformat()
        found["window_end"] = slice_.window.end.isoformat()
    found["dagster/partition_row_count" if slice_.partition else "dagster/row_count"] = (
        load.rows_after
    )
    return found


def _shown(value: Any) -> Any:
    """Return what a source told of a slice as the UI shows it: numbers and texts as they are, all else as JSON."""
    return value if isinstance(value, (int, float, str)) else dg.MetadataValue.json(value)
