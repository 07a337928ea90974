"""Which partitions a preview is about: from the first to the last that a person names, both included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dagster as dg

from backfill_assets.errors import DeclarationError
from backfill_assets.partition_keys import time_dimension


def keys_between(definition: Any, first: str, last: str, what: str) -> list[str]:
    """Return the keys in partition order; of two dimensions, all keys whose day lies between. `what` is for errors.

    Order is the definition's own: a key's text may be written day first. Dynamic keys come from the instance, by
    Dagster's `partition_loading_context`.
    """
    if not isinstance(definition, dg.MultiPartitionsDefinition):
        return _between(definition.get_partition_keys(), first, last, what)
    time: Any = time_dimension(definition)
    if time is None:
        raise DeclarationError(
            "the asset cannot be previewed",
            "neither of its dimensions is time",
            "Preview one that has days",
        )
    days = set(_between(time.partitions_def.get_partition_keys(), first, last, what))
    keys: Sequence[Any] = definition.get_partition_keys()
    return [str(key) for key in keys if key.keys_by_dimension[time.name] in days]


def _between(keys: Sequence[str], first: str, last: str, what: str) -> list[str]:
    places = {key: place for place, key in enumerate(keys)}
    for name in (first, last):
        if name not in places:
            raise DeclarationError(
                what,
                f"there is no partition {name!r}",
                "Give partitions that the asset's page lists",
            )
    if places[first] > places[last]:
        raise DeclarationError(
            what, "its first partition comes after its last", "Give them the other way round"
        )
    return list(keys[places[first] : places[last] + 1])
