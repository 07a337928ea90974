"""One side of a migration: a table of a warehouse, or files that a job of its own writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backfill_assets.engines import Engine, open_engine
from backfill_assets.engines.protocol import Spelling
from backfill_assets.engines.sql import qualified
from backfill_assets.errors import DeclarationError
from backfill_assets.settings import told_now
from backfill_assets.table import SliceColumn, Table


@dataclass(frozen=True)
class Side:
    """A table that one path writes: `table` with its slice column, and the warehouse that holds it.

    `warehouse` is a URL, a `dagster.EnvVar` that holds one, or an engine; None is the warehouse of the asset that
    reconciles.
    """

    table: Table
    warehouse: Any = None

    def __post_init__(self) -> None:
        given: Any = self.table
        if not isinstance(given, Table):
            raise DeclarationError(
                "a side of a migration cannot be declared so",
                f"its table is given as {given!r}",
                "Give Table('schema.table', SliceColumn('the_time_column'))",
            )
        if self.table.slice_column is None:
            raise DeclarationError(
                f"{self.name} cannot be a side of a migration",
                "it declares no slice column, so no day of it could be compared",
                "Declare slice_column=SliceColumn(...) of the Table",
            )

    @property
    def name(self) -> str:
        """What a sentence calls it."""
        return self.table.qualified

    @property
    def column(self) -> SliceColumn:
        """The column that holds a row's time."""
        assert self.table.slice_column is not None
        return self.table.slice_column

    def engine(self, own: Engine) -> Engine:
        """Return the warehouse that holds it, `own` being that of the asset that reconciles."""
        if self.warehouse is None:
            return own
        found = told_now(self.warehouse, f"the warehouse of {self.name}")
        return open_engine(found) if isinstance(found, str) else found

    def relation(self, spelling: Spelling) -> str:
        """Return what stands behind FROM."""
        return qualified(spelling, self.table)


@dataclass(frozen=True)
class FileSide(Side):
    """Parquet files that a job of its own writes, such as Spark: read with a DuckDB of the comparison's own, never written.

    `files` is a path or a pattern, `/lake/fct_orders/**/*.parquet`; columns in the names of folders (`day=2026-05-01`)
    are columns. `table` gives the slice column and the name that sentences and records use.
    """

    files: str | Path = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not str(self.files).strip():
            raise DeclarationError(
                f"{self.name} cannot be a side of a migration",
                "it is made of files and names none",
                "Give files='/lake/orders/**/*.parquet'",
            )

    def relation(self, spelling: Spelling) -> str:
        """Return what stands behind FROM."""
        path = str(self.files).replace("'", "''")
        return f"read_parquet('{path}', hive_partitioning = true, union_by_name = true)"
