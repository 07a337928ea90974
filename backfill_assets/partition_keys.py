"""What Dagster's partition keys mean: when they end, which dimension is time, who knows them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import dagster as dg

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}(-\d{2}:\d{2})?")


def end_by_name(keys: Sequence[str]) -> datetime | None:
    """Return the end of the oldest of `keys` that is named after a day or an hour in UTC; None without any.

    For runs whose partitions nobody can ask for their windows. A key of two dimensions is looked through.
    """
    found = [match.group() for key in keys if (match := _DAY.search(key))]
    ends: list[datetime] = []
    for name in found:
        hourly = len(name) > len("2026-05-01")
        try:
            day, hour = name[:10], name[11:] if hourly else "00:00"
            begin = datetime.fromisoformat(f"{day}T{hour}:00+00:00")
        except ValueError:
            continue
        ends.append(begin + timedelta(hours=1 if hourly else 24))
    return min(ends, default=None)


def oldest_end(definition: Any, keys: Sequence[str]) -> datetime | None:
    """Return the end (aware) of the oldest of `keys` as their definition cuts them; None where they have no time."""
    if not keys:
        return None
    if isinstance(definition, dg.MultiPartitionsDefinition):
        dimension = time_dimension(definition)
        if dimension is None:
            return None
        split = (definition.get_partition_key_from_str(str(key)) for key in keys)
        names = [key.keys_by_dimension[dimension.name] for key in split]
        return oldest_end(dimension.partitions_def, names)
    if not isinstance(definition, dg.TimeWindowPartitionsDefinition):
        return None
    # ranges come in order, and keys that are named in order sort in order
    return min(definition.time_window_for_partition_key(key).end for key in {min(keys), keys[0]})


def time_dimension(definition: dg.MultiPartitionsDefinition) -> Any:
    """Return the first dimension that is time, None when neither is."""
    timed = (
        dimension
        for dimension in definition.partitions_defs
        if isinstance(dimension.partitions_def, dg.TimeWindowPartitionsDefinition)
    )
    return next(timed, None)


def is_dynamic(definition: Any) -> bool:
    """Tell whether keys come from the instance, which Dagster itself asks when it makes the run."""
    if isinstance(definition, dg.MultiPartitionsDefinition):
        return any(is_dynamic(part.partitions_def) for part in definition.partitions_defs)
    return isinstance(definition, dg.DynamicPartitionsDefinition)
