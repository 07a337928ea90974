"""Dagster at the edge: an IO manager that replaces slices, and the values that assets may return to it."""

from backfill_assets.io_managers.controlled import Controls
from backfill_assets.io_managers.declaration import table_metadata
from backfill_assets.io_managers.delete_insert import DeleteInsertIOManager
from backfill_assets.io_managers.values import PerSlice, Relation
from backfill_assets.writing.select import Select

__all__ = ["Controls", "DeleteInsertIOManager", "PerSlice", "Relation", "Select", "table_metadata"]
