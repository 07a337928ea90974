"""What Dagster's partition keys mean: when they end, which dimension is time, who knows them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import dagster as dg

# 2026-05-01, 2026/05/01, 20260501, the hours 2026-05-01-23:00 and 2026-05-01T23:00, and the month 2026-05
_DATED = re.compile(
    r"(?P<year>\d{4})(?P<between>[-/]?)(?P<month>\d{2})(?P=between)(?P<day>\d{2})"
    r"(?:[-T ](?P<hour>\d{2}):?\d{2}(?::?\d{2})?)?"
)
_MONTH = re.compile(r"(?P<year>\d{4})[-/](?P<month>\d{2})")


def end_by_name(keys: Sequence[str]) -> datetime | None:
    """Return the end of the oldest of `keys` that is named after a month, a day or an hour in UTC; None without any.

    For runs whose partitions nobody can ask for their windows. Of a key of two dimensions each is looked at; a date
    that is a part of a longer name (`sku-2020-01-01`) is none.
    """
    parts = [part for key in keys for part in str(key).split("|")]
    return min((end for part in parts if (end := _end_of(part))), default=None)


def _end_of(name: str) -> datetime | None:
    found = _DATED.fullmatch(name) or _MONTH.fullmatch(name)
    if found is None:
        return None
    told = {part: int(text) for part, text in found.groupdict("").items() if text.isdigit()}
    try:
        begin = datetime(
            told["year"],
            told["month"],
            told.get("day", 1),
            told.get("hour", 0),
            tzinfo=timezone.utc,
        )
    except ValueError:
        return None
    if "day" not in told:
        return (begin + timedelta(days=31)).replace(day=1)
    return begin + timedelta(hours=1 if "hour" in told else 24)


def oldest_of(
    definitions: Sequence[Any], keys: Sequence[str], *, is_range: bool
) -> datetime | None:
    """Return the end of the oldest partition that a run with these keys (both ends of a range) is about.

    None where none of the definitions knows the keys, or they have no time.
    """
    for definition in definitions:
        known = known_keys(definition, keys, is_range=is_range)
        if known:
            return oldest_end(definition, known)
    return None


def known_keys(definition: Any, keys: Sequence[str], *, is_range: bool) -> Sequence[str]:
    """Return the keys of the range or the key itself, nothing when the definition does not have them."""
    if not keys:
        return ()
    try:
        if is_range:
            return definition.get_partition_keys_in_range(dg.PartitionKeyRange(keys[0], keys[-1]))
        return keys if definition.has_partition_key(keys[0]) else ()
    except Exception:  # keys of another definition, or dynamic ones
        return ()


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
