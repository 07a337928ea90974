"""What a replacement on Databricks rests on, on real Delta tables (delta-rs, whose commits follow Delta's protocol).

This is not Databricks: its SQL is another engine's. What is shown is the table format: a replacement is one commit, by a
condition that is half-open, it refuses rows outside of it, and of two that began at one version the second is refused.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from backfill_assets.engines.databricks import SPELLING
from backfill_assets.engines.databricks_errors import told
from backfill_assets.engines.sql import predicate
from backfill_assets.errors import SliceBusy
from backfill_assets.slice import Slice
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import Window

deltalake = pytest.importorskip("deltalake", reason="pip install deltalake: real Delta tables")

DAY = date(2026, 5, 12)
SALES = Table("mart.fct_sales", SliceColumn("day", "date"))
EVENTS = Table("mart.events", SliceColumn("at", "timestamptz"))


def condition(table: Table, day: str) -> str:
    """Return the condition that the engine sends, as the SQL of delta-rs has it."""
    import sqlglot

    ours = predicate(SPELLING, Slice(table, Window.day(day)))
    said = sqlglot.transpile(ours, read="databricks", write="postgres")[0]
    # which compares instants only with those of the same unit
    return re.sub(
        r"CAST\(('[^']*') AS TIMESTAMPTZ\)",
        r"""arrow_cast(\1, 'Timestamp(Microsecond, Some("UTC"))')""",
        said,
    )


def rows(day: date, *ids: int) -> pa.Table:
    return pa.table(
        {"day": pa.array([day] * len(ids), pa.date32()), "id": pa.array(ids, pa.int64())}
    )


@pytest.fixture
def table(tmp_path: Path) -> str:
    """A day with two rows, and one row on each day beside it."""
    place = str(tmp_path / "fct_sales")
    for day, ids in ((11, (1,)), (12, (2, 3)), (13, (4,))):
        deltalake.write_deltalake(place, rows(date(2026, 5, day), *ids), mode="append")
    return place


def held(place: str) -> list[tuple[Any, ...]]:
    found = deltalake.DeltaTable(place).to_pyarrow_table()
    return sorted(zip(*(column.to_pylist() for column in found.columns), strict=True))


def replace(at: Any, new: pa.Table, where: str) -> None:
    deltalake.write_deltalake(at, new, mode="overwrite", predicate=where)


def test_a_replacement_is_one_commit_that_takes_the_day_and_leaves_its_neighbours(
    table: str,
) -> None:
    before = deltalake.DeltaTable(table).version()
    replace(table, rows(DAY, 7, 8, 9), condition(SALES, "2026-05-12"))
    assert held(table) == [
        (date(2026, 5, 11), 1), (DAY, 7), (DAY, 8), (DAY, 9), (date(2026, 5, 13), 4),
    ]  # fmt: skip
    assert deltalake.DeltaTable(table).version() == before + 1
    # what was there can still be read, so that it can be put back
    assert deltalake.DeltaTable(table, version=before).to_pyarrow_table().num_rows == 4


def test_a_replacement_by_nothing_empties_the_day_alone(table: str) -> None:
    replace(table, rows(DAY), condition(SALES, "2026-05-12"))
    assert held(table) == [(date(2026, 5, 11), 1), (date(2026, 5, 13), 4)]


def test_an_instant_at_the_end_of_a_day_belongs_to_the_next(tmp_path: Path) -> None:
    place = str(tmp_path / "events")
    instants = [
        datetime(2026, 5, 12, tzinfo=timezone.utc),
        datetime(2026, 5, 12, 23, 59, 59, 999999, tzinfo=timezone.utc),
        datetime(2026, 5, 13, tzinfo=timezone.utc),
    ]
    kind = pa.timestamp("us", tz="UTC")
    deltalake.write_deltalake(place, pa.table({"at": pa.array(instants, kind), "id": [1, 2, 3]}))
    new = pa.table({"at": pa.array(instants[:1], kind), "id": [9]})
    replace(place, new, condition(EVENTS, "2026-05-12"))
    assert [i for _, i in held(place)] == [9, 3]


def test_a_row_outside_the_condition_is_refused_and_changes_nothing(table: str) -> None:
    before = held(table)
    with pytest.raises(deltalake.exceptions.DeltaError, match="failed validation"):
        replace(table, rows(date(2026, 5, 13), 5), condition(SALES, "2026-05-12"))
    assert held(table) == before


@pytest.mark.parametrize("day", ["2026-05-12", "2026-06-01"], ids=["full", "empty"])
def test_of_two_that_replace_one_slice_from_one_version_the_second_is_refused(
    table: str, day: str
) -> None:
    """Also where the slice was empty, so that neither removes a row that the other could miss."""
    new = rows(date.fromisoformat(day), 7)
    first, second = deltalake.DeltaTable(table), deltalake.DeltaTable(table)
    replace(first, new, condition(SALES, day))
    with pytest.raises(deltalake.exceptions.CommitFailedError, match="concurrent"):
        replace(second, new, condition(SALES, day))
    assert [row for row in held(table) if str(row[0]) == day] == [(date.fromisoformat(day), 7)]


def test_two_that_replace_different_days_do_not_meet(table: str) -> None:
    first, second = deltalake.DeltaTable(table), deltalake.DeltaTable(table)
    replace(first, rows(DAY, 7), condition(SALES, "2026-05-12"))
    replace(second, rows(date(2026, 5, 13), 8), condition(SALES, "2026-05-13"))
    assert [i for _, i in held(table)] == [1, 7, 8]


def test_two_that_update_one_row_of_claims_meet(tmp_path: Path) -> None:
    """A claim is an UPDATE of rows that are free: the one that comes second changes nothing."""
    place = str(tmp_path / "claims")
    free = pa.table({"bucket": [0, 1], "token": pa.array([None, None], pa.string())})
    deltalake.write_deltalake(place, free, configuration={"delta.isolationLevel": "Serializable"})
    first, second = deltalake.DeltaTable(place), deltalake.DeltaTable(place)
    where = "bucket IN (1) AND token IS NULL"
    assert first.update(updates={"token": "'a'"}, predicate=where)["num_updated_rows"] == 1
    with pytest.raises(deltalake.exceptions.CommitFailedError):
        second.update(updates={"token": "'b'"}, predicate=where)
    late = deltalake.DeltaTable(place)
    assert late.update(updates={"token": "'b'"}, predicate=where)["num_updated_rows"] == 0
    assert held(place) == [(0, None), (1, "a")]


def test_what_delta_calls_such_a_conflict_is_a_busy_slice() -> None:
    from databricks.sql.exc import ServerOperationError

    for name in (
        "ConcurrentAppendException", "ConcurrentDeleteReadException", "ConcurrentDeleteDeleteException",
        "ConcurrentWriteException", "MetadataChangedException",
    ):  # fmt: skip
        error = ServerOperationError(f"io.delta.exceptions.{name}: files were changed")
        assert isinstance(told(error), SliceBusy)
