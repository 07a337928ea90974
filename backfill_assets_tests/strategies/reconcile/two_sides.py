"""Two tables to compare: in one warehouse, in two of unlike engines, or files beside a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backfill_assets.slice import Slice
from backfill_assets.strategies.dual_write import FileSide, Migration, Side
from backfill_assets.strategies.reconcile.comparing import Found, compare, marks, null_days
from backfill_assets.strategies.reconcile.day import DayCompared, KeyFound, Mark
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import Window
from backfill_assets_tests.warehouses import Warehouse

DAY = "2026-05-12"
CUT = SliceColumn("at", "timestamptz")
PLACES = (
    "duckdb", "postgres", "duckdb_and_postgres", "postgres_and_duckdb", "files_and_duckdb", "files_and_postgres",
)  # fmt: skip


@dataclass
class Two:
    """The old side and the new one; `files` is where the old side's rows go, where it is files."""

    old: Warehouse
    new: Warehouse
    files: Path | None = None
    given: dict[str, Any] = field(default_factory=dict[str, Any])

    def have(
        self,
        columns: str,
        old: Sequence[str],
        new: Sequence[str],
        *,
        old_columns: str | None = None,
        cuts: tuple[SliceColumn, SliceColumn] = (CUT, CUT),
        **declared: Any,
    ) -> Two:
        """Make both tables of these columns, in PostgreSQL's types, with these rows of SQL; declare the migration."""
        self._make(self.old, "orders_old", old_columns or columns, old)
        self._make(self.new, "orders_new", columns, new)
        table = Table("orders_old", cuts[0])
        if self.files is not None:
            self.old.execute(f"COPY orders_old TO '{self.files}' (FORMAT parquet)")
            side: Side = FileSide(table, files=self.files)
        else:
            side = Side(table, None if self.old is self.new else self.old.url)
        self.given = {
            "key": "id",
            **declared,
            "old": side,
            "new": Side(Table("orders_new", cuts[1])),
        }
        return self

    def _make(self, where: Warehouse, name: str, columns: str, rows: Sequence[str]) -> None:
        where.execute(f"DROP TABLE IF EXISTS {name}", f"CREATE TABLE {name} ({columns})")
        if rows:
            where.execute(f"INSERT INTO {name} VALUES {', '.join(rows)}")

    def migration(self, **declared: Any) -> Migration:
        return Migration("orders", **{**self.given, **declared})

    def slices(self, *days: str) -> list[Slice]:
        table = self.migration().new.table
        zone = table.slice_column.zone if table.slice_column else "UTC"
        return [Slice(table, Window.day(day, zone), partition=day) for day in days or (DAY,)]

    def compared(self, *days: str, **declared: Any) -> list[Found]:
        """Compare some days, and see that the sums of each add up."""
        found = list(
            compare(
                self.migration(**declared), self.slices(*days), self.new.engine(), run_id="a-run", who="a test"
            )
        )  # fmt: skip
        for day, _ in found:
            assert day.old.rows == day.equal + day.differing + day.only_old, day
            assert day.new.rows == day.equal + day.differing + day.only_new, day
        return found

    def day(self, day: str = DAY, **declared: Any) -> DayCompared:
        return self.compared(day, **declared)[0][0]

    def keys(self, day: str = DAY, **declared: Any) -> list[KeyFound]:
        return self.compared(day, **declared)[0][1]

    def marks(self, *days: str, **declared: Any) -> list[tuple[Mark, Mark]]:
        return marks(self.migration(**declared), self.slices(*days), self.new.engine())

    def null_days(self) -> tuple[int, int]:
        return null_days(self.migration(), self.new.engine())


def told(day: DayCompared) -> tuple[int, int, int, int]:
    """Return the four numbers of a day: equal, differing, only in old, only in new."""
    return day.equal, day.differing, day.only_old, day.only_new
