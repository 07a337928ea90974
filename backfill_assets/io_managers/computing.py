"""When the rows of each slice are made: all at once, or by the asset, a little ahead of being written."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from backfill_assets.errors import DeclarationError
from backfill_assets.io_managers.frames import arrow_of, is_arrow, is_pandas
from backfill_assets.io_managers.values import PerSlice
from backfill_assets.slice import Slice
from backfill_assets.writing import Run, Select
from backfill_assets.writing.arrow import cut, must_have_columns

if TYPE_CHECKING:
    import pyarrow as pa

# an asset that computes quickly is let run ahead, since opening a warehouse can cost more than a small slice
_AHEAD_SECONDS = 1.0
_AHEAD_BYTES = 32 * 2**20
_AHEAD_SLICES = 31


@dataclass(frozen=True)
class Computed:
    """The rows to write to a slice, and the run with the time at which their source was read."""

    slice: Slice
    rows: pa.Table | Select
    run: Run


def adapted(obj: Any, label: str) -> Any:
    """Return what an asset returned in the form that the write path takes."""
    if isinstance(obj, (Select, PerSlice)):
        return obj
    if is_pandas(type(obj)) or is_arrow(type(obj)):
        rows = arrow_of(obj, label) if is_pandas(type(obj)) else obj
        must_have_columns(rows, label)
        return rows
    raise DeclarationError(
        f"{label} cannot be written",
        f"the asset returned a {type(obj).__module__}.{type(obj).__qualname__}",
        "Return a pandas.DataFrame, a pyarrow.Table, a Select or a PerSlice",
    )


def batches(
    slices: list[Slice],
    wanted: list[Slice],
    rows: Any,
    run: Run,
    before: Callable[[Slice], None],
    read_at: datetime | None = None,
) -> Iterator[list[Computed]]:
    """Yield what to write next of `wanted`, in order; between two batches the asset's own code runs.

    Rows of a frame belong to any of `slices`, of which `wanted` may be a part.

    `before` is called with each slice that the asset's own code is about to compute. `read_at` is when a `PerSlice`
    read its source; None where it does so for each slice.

    A frame of many days is cut before the first of them is yielded, so that a stray row changes nothing.
    """
    if isinstance(rows, PerSlice):
        yield from _ahead(wanted, rows, run, before, read_at)
    elif isinstance(rows, Select) or len(slices) == 1:
        yield [Computed(slice_, rows, run) for slice_ in wanted]
    else:
        parts = cut(rows, slices)
        pairs = zip(slices, parts, strict=True)
        yield [Computed(s, part, run) for s, part in pairs if s in wanted]


def _ahead(
    slices: list[Slice],
    rows: PerSlice,
    run: Run,
    before: Callable[[Slice], None],
    read_at: datetime | None,
) -> Iterator[list[Computed]]:
    batch: list[Computed] = []
    began, size = time.monotonic(), 0
    for slice_ in slices:
        try:
            before(slice_)
            read = read_at or datetime.now(timezone.utc)
            made = adapted(rows.compute(slice_), slice_.label)
        except Exception:
            yield batch  # what was made before the failing slice is good
            raise
        batch.append(Computed(slice_, made, dataclasses.replace(run, source_read_at=read)))
        size += 0 if isinstance(made, Select) else made.nbytes
        late = time.monotonic() - began > _AHEAD_SECONDS
        if late or size > _AHEAD_BYTES or len(batch) >= _AHEAD_SLICES:
            yield batch
            batch, began, size = [], time.monotonic(), 0
    yield batch
