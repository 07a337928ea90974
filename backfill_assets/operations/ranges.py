"""Ranges of partitions as people give them, and lists of partitions as people can paste them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dagster as dg

from backfill_assets.errors import DeclarationError
from backfill_assets.partition_keys import is_dynamic, time_dimension


def all_keys(definition: Any, instance: Any) -> list[str]:
    """Return every partition key, in the definition's own order."""
    if is_dynamic(definition):
        return [
            str(key) for key in definition.get_partition_keys(dynamic_partitions_store=instance)
        ]
    return [str(key) for key in definition.get_partition_keys()]


def keys_between(definition: Any, instance: Any, first: str, last: str, what: str) -> list[str]:
    """Return the keys from `first` to `last`, both included; an empty text stands for the first or last there is.

    Of two dimensions the one that is time is meant, or else the whole key. Raises `DeclarationError`, which says that
    `what` cannot be done and why.
    """
    keys = all_keys(definition, instance)
    names = [_named(definition, key) for key in keys]
    order = list(dict.fromkeys(names))
    for name in (first, last):
        if name and name not in order:
            raise DeclarationError(
                what,
                f"there is no partition {name!r}",
                "Give partitions that the asset's page lists",
            )
    if not order:
        raise DeclarationError(what, "the asset has no partition yet", "Add one first")
    start, end = order.index(first or order[0]), order.index(last or order[-1])
    if start > end:
        raise DeclarationError(
            what, "its first partition comes after its last", "Give them the other way round"
        )
    wanted = set(order[start : end + 1])
    return [key for key, name in zip(keys, names, strict=True) if name in wanted]


def _named(definition: Any, key: str) -> str:
    """Return what people call a partition in a range: its time where it has one beside something else."""
    if not isinstance(definition, dg.MultiPartitionsDefinition):
        return key
    dimension = time_dimension(definition)
    if dimension is None:
        return key
    return definition.get_partition_key_from_str(key).keys_by_dimension[dimension.name]


def as_selection(keys: Sequence[str], definition: Any, instance: Any) -> str:
    """Return keys as the UI's partition field takes them: `[2026-05-03...2026-05-05], 2026-05-09`."""
    if isinstance(definition, dg.MultiPartitionsDefinition):
        return ", ".join(keys)
    place = {key: number for number, key in enumerate(all_keys(definition, instance))}
    runs: list[list[str]] = []
    for key in sorted(keys, key=place.__getitem__):
        if runs and place[key] == place[runs[-1][-1]] + 1:
            runs[-1].append(key)
        else:
            runs.append([key])
    shown = [f"[{run[0]}...{run[-1]}]" if len(run) > 2 else ", ".join(run) for run in runs]
    return ", ".join(shown)
