"""What a table may be called: by the key of an asset that writes it, or by its own name; and the tags that say so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import dagster as dg

TABLE_TAG = "table/"


def same_table(name: str) -> str:
    """Return a table's name or an asset's key in the form in which both compare equal."""
    return name.replace('"', "").replace("/", ".").strip().casefold()


def table_of(key: dg.AssetKey, metadata: Mapping[str, Any]) -> str:
    """Return the table that an asset writes by its metadata and key, in that form.

    A schema that is configured at the IO manager alone is known to nobody but that.
    """

    def told(name: str, default: str) -> str:
        value = metadata.get(name)
        return str(getattr(value, "value", value) or default)

    prefix = key.path[-2] if len(key.path) > 1 else "public"
    return same_table(f"{told('schema', prefix)}.{told('table', key.path[-1])}")


def names_of(key: dg.AssetKey, metadata: Mapping[str, Any]) -> frozenset[str]:
    """Return both names of what an asset writes: its key, and the table."""
    return frozenset({same_table(key.to_user_string()), table_of(key, metadata)})


def table_tags(names: Iterable[str]) -> dict[str, str]:
    """Return the tags by which the queue holds a run over tables of these names."""
    return {f"{TABLE_TAG}{same_table(name)}": "yes" for name in names}


def tables_in(tags: Mapping[str, str]) -> list[str]:
    """Return the names that a run's tags hold."""
    return [tag[len(TABLE_TAG) :] for tag in tags if tag.startswith(TABLE_TAG)]
