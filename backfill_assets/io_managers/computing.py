"""When the rows of each slice are made: all at once, or by the asset, a little ahead of being written."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Protocol

from backfill_assets.errors import DeclarationError
from backfill_assets.io_managers.frames import arrow_of, is_arrow, is_pandas
from backfill_assets.io_managers.values import Made, PerRange, PerSlice
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
    """The rows to write to a slice, and the run with the time at which their source was read.

    `begun`: its rows are made already, so that a later pause does not stop it. `since` is the moment (aware) after which
    a pause is a later one; None where the gate itself has let the slice in.
    """

    slice: Slice
    rows: pa.Table | Select
    run: Run
    begun: bool = False
    since: datetime | None = None


class Door(Protocol):
    """What is asked before the asset's own code computes a slice."""

    def holds(self) -> bool:
        """Tell whether a wait is due before the next slice."""
        ...

    def let_in(self, slice_: Slice) -> None:
        """Return when the slice may be computed; raise when it may not."""
        ...


def adapted(obj: Any, label: str) -> Any:
    """Return what an asset returned in the form that the write path takes."""
    if isinstance(obj, (Select, PerSlice, PerRange)):
        return obj
    if is_pandas(type(obj)) or is_arrow(type(obj)):
        rows = arrow_of(obj, label) if is_pandas(type(obj)) else obj
        must_have_columns(rows, label)
        return rows
    raise DeclarationError(
        f"{label} cannot be written",
        f"the asset returned a {type(obj).__module__}.{type(obj).__qualname__}",
        "Return a pandas.DataFrame, a pyarrow.Table, a Select, a PerSlice or a PerRange",
    )


def batches(
    slices: list[Slice],
    wanted: list[Slice],
    rows: Any,
    run: Run,
    door: Door,
    read_at: datetime | None = None,
) -> Iterator[list[Computed]]:
    """Yield what to write next of `wanted`, in order; between two batches the asset's own code runs.

    Rows of a frame belong to any of `slices`, of which `wanted` may be a part.

    `door` is asked before the asset's own code computes a slice. `read_at` is when a `PerSlice`
    read its source; None where it does so for each slice.

    A frame of many days is cut before the first of them is yielded, so that a stray row changes nothing.
    """
    if isinstance(rows, PerSlice):
        yield from _ahead(wanted, rows, run, door, read_at)
    elif isinstance(rows, Select):
        yield [Computed(slice_, rows, run) for slice_ in wanted]
    else:
        parts = [rows] if len(slices) == 1 else cut(rows, slices)
        pairs = [pair for pair in zip(slices, parts, strict=True) if pair[0] in wanted]
        yield [_of_frame(*pair, run, first=place == 0) for place, pair in enumerate(pairs)]


def _of_frame(slice_: Slice, rows: pa.Table, run: Run, *, first: bool) -> Computed:
    """Return one slice of a frame: the first is under way since the step began, and a pause stops the others."""
    begun = first and run.source_read_at is not None
    return Computed(slice_, rows, run, begun, run.source_read_at if begun else None)


def _told(run: Run, found: Any, read: datetime) -> Run:
    """Return the run as the audit remembers it of one slice, with what the slice's source told."""
    if not isinstance(found, Made):
        return dataclasses.replace(run, source_read_at=read)
    detail = {**json.loads(run.detail or "{}"), "source": dict(found.told)}
    return dataclasses.replace(run, source_read_at=found.read_at, detail=json.dumps(detail))


def _ahead(
    slices: list[Slice],
    rows: PerSlice,
    run: Run,
    door: Door,
    read_at: datetime | None,
) -> Iterator[list[Computed]]:
    batch: list[Computed] = []
    began, size = time.monotonic(), 0
    for slice_ in slices:
        if batch and door.holds():
            yield batch  # what is made is written before the wait, and not after it
            batch = []
        try:
            door.let_in(slice_)
            read = read_at or datetime.now(timezone.utc)
            found = rows.compute(slice_)
            own = _told(run, found, read)
            made = adapted(found.rows if isinstance(found, Made) else found, slice_.label)
        except Exception:
            yield batch  # what was made before the failing slice is good
            raise
        batch.append(Computed(slice_, made, own, begun=not isinstance(made, Select)))
        size += 0 if isinstance(made, Select) else made.nbytes
        late = time.monotonic() - began > _AHEAD_SECONDS
        if late or size > _AHEAD_BYTES or len(batch) >= _AHEAD_SLICES:
            yield batch
            batch, began, size = [], time.monotonic(), 0
    yield batch
