"""When the rows of a `PerSlice` were read: anew for each slice, or once, before the asset returned."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import Any

from backfill_assets.io_managers.frames import is_arrow, is_pandas
from backfill_assets.io_managers.values import PerSlice, Relation
from backfill_assets.writing import Run


def read_once(step: Any, rows: Any, run: Run) -> datetime | None:
    """Return since when the function of a `PerSlice` has held what it reads; None where it reads for each slice.

    Inputs, whatever IO manager loads them, and frames that the asset's body made were read when the step began,
    however late their slice is written: a later time would let them overwrite what another run wrote in between.
    """
    if not isinstance(rows, PerSlice) or not (_loads_inputs(step) or _holds_rows(rows.compute)):
        return None
    return run.source_read_at or datetime.now(timezone.utc)


def _loads_inputs(step: Any) -> bool:
    """Tell whether the step was given anything but what stays in the warehouse."""
    if step is None:
        return False
    types = (definition.dagster_type for definition in step.op_def.input_defs)
    return any(not kind.is_nothing and kind.typing_type is not Relation for kind in types)


def _holds_rows(function: Callable[..., Any]) -> bool:
    kinds = (type(value) for value in _held(function))
    return any(is_pandas(kind) or is_arrow(kind) for kind in kinds)


def _held(function: Any) -> Iterator[Any]:
    """Yield what a function was given when it was made: by its body's names, its defaults or `partial`."""
    if isinstance(function, functools.partial):
        yield from (*function.args, *function.keywords.values())
        function = function.func
    for cell in getattr(function, "__closure__", None) or ():
        try:
            yield cell.cell_contents
        except ValueError:  # a name that the body has not set
            continue
    yield from getattr(function, "__defaults__", None) or ()
    yield from (getattr(function, "__kwdefaults__", None) or {}).values()
