"""Rows that were read earlier never replace rows that were read later, however they reach the writer."""

import functools
from collections.abc import Callable

import dagster as dg
import pandas as pd
import pytest

from backfill_assets.io_managers import PerSlice, Relation, Select
from backfill_assets_tests.io_managers.conftest import Warehouse, failure_of

DAYS = dg.DailyPartitionsDefinition("2026-05-01")
FIRST, SECOND = "2026-05-03", "2026-05-04"
HOW = {"partition_expr": "day", "partition_kind": "date"}


def rows(*days: str, said: str) -> pd.DataFrame:
    return pd.DataFrame([{"day": pd.Timestamp(day).date(), "said": said} for day in days])


def day_of(frame: pd.DataFrame, slice_) -> pd.DataFrame:
    return frame[frame.day.astype(str).str[:10] == slice_.partition]


def target(make: Callable[..., object], **metadata: object) -> dg.AssetsDefinition:
    @dg.asset(key_prefix=["mart"], partitions_def=DAYS, metadata={**HOW, **metadata})
    def told(context: dg.AssetExecutionContext):
        return make(context)

    return told


def another_run_writes(warehouse: Warehouse, day: str, **metadata: object) -> None:
    newer = target(lambda _: rows(day, said="new"), **metadata)
    result = dg.materialize(
        [newer],
        partition_key=day,
        instance=dg.DagsterInstance.ephemeral(),
        resources={"io_manager": warehouse.io_manager},
    )
    assert result.success


def while_the_first_is_computed(warehouse: Warehouse, frame: pd.DataFrame) -> Callable:
    def one(slice_) -> pd.DataFrame:
        if slice_.partition == FIRST:
            another_run_writes(warehouse, SECOND)
        return day_of(frame, slice_)

    return one


def said(warehouse: Warehouse) -> dict[str, str]:
    return {str(day): told for day, told in warehouse.rows("SELECT day, said FROM mart.told")}


def test_an_input_that_was_loaded_once_does_not_overwrite_a_day_that_was_written_since(
    either: Warehouse,
) -> None:
    @dg.asset(key_prefix=["mart"], partitions_def=DAYS, metadata=HOW)
    def source(context: dg.AssetExecutionContext) -> pd.DataFrame:
        return rows(context.partition_key, said="old")

    @dg.asset(key_prefix=["mart"], partitions_def=DAYS, metadata=HOW)
    def told(source: pd.DataFrame):
        return PerSlice(while_the_first_is_computed(either, source))

    for day in (FIRST, SECOND):
        either.run(source, partition_key=day)
    result = either.run_range(FIRST, SECOND, source, told, selection=[told], ok=False)
    assert "after this run read its own" in failure_of(result)
    assert said(either) == {FIRST: "old", SECOND: "new"}


def test_an_input_of_another_io_manager_counts_as_read_when_the_step_began(
    warehouse: Warehouse,
) -> None:
    class Elsewhere(dg.IOManager):
        def handle_output(self, context: dg.OutputContext, obj: object) -> None:
            raise AssertionError

        def load_input(self, context: dg.InputContext) -> pd.DataFrame:
            return rows(FIRST, SECOND, said="old")

    source = dg.AssetSpec("source").with_io_manager_key("elsewhere")

    @dg.asset(key_prefix=["mart"], partitions_def=DAYS, metadata=HOW)
    def told(source: pd.DataFrame):
        return PerSlice(while_the_first_is_computed(warehouse, source))

    result = dg.materialize(
        [told, source],
        instance=warehouse.instance,
        resources={"io_manager": warehouse.io_manager, "elsewhere": Elsewhere()},
        tags={
            "dagster/asset_partition_range_start": FIRST,
            "dagster/asset_partition_range_end": SECOND,
        },
        raise_on_error=False,
    )
    assert "after this run read its own" in failure_of(result)
    assert said(warehouse) == {FIRST: "old", SECOND: "new"}


def by_partial(one: Callable, frame: pd.DataFrame) -> Callable:
    return functools.partial(lambda frame, slice_: one(frame, slice_), frame)


def by_default(one: Callable, frame: pd.DataFrame) -> Callable:
    return lambda slice_, frame=frame: one(frame, slice_)


def by_closure(one: Callable, frame: pd.DataFrame) -> Callable:
    return lambda slice_: one(frame, slice_)


@pytest.mark.parametrize("given", [by_closure, by_default, by_partial])
def test_a_frame_that_the_body_read_for_all_days_does_not_overwrite_a_newer_one(
    warehouse: Warehouse, given: Callable
) -> None:
    def one(frame: pd.DataFrame, slice_) -> pd.DataFrame:
        return while_the_first_is_computed(warehouse, frame)(slice_)

    asset = target(lambda _: PerSlice(given(one, rows(FIRST, SECOND, said="old"))))
    result = warehouse.run_range(FIRST, SECOND, asset, ok=False)
    assert "after this run read its own" in failure_of(result)
    assert said(warehouse) == {FIRST: "old", SECOND: "new"}


def test_a_function_that_reads_each_day_anew_may_replace_what_was_written_while_the_run_went_on(
    warehouse: Warehouse,
) -> None:
    def one(slice_) -> pd.DataFrame:
        if slice_.partition == FIRST:
            another_run_writes(warehouse, SECOND)
        return rows(slice_.partition, said="newest")

    warehouse.run_range(FIRST, SECOND, target(lambda _: PerSlice(one)))
    assert said(warehouse) == {FIRST: "newest", SECOND: "newest"}


def test_a_query_over_an_input_that_stays_in_the_warehouse_is_read_anew(
    warehouse: Warehouse,
) -> None:
    @dg.asset(key_prefix=["mart"], partitions_def=DAYS, metadata=HOW)
    def source(context: dg.AssetExecutionContext) -> pd.DataFrame:
        return rows(context.partition_key, said="from the source")

    @dg.asset(key_prefix=["mart"], partitions_def=DAYS, metadata=HOW)
    def told(source: Relation):
        def one(slice_) -> Select:
            if slice_.partition == FIRST:
                another_run_writes(warehouse, SECOND)
            return Select(f"SELECT * FROM {source} AS s", on="day")

        return PerSlice(one)

    for day in (FIRST, SECOND):
        warehouse.run(source, partition_key=day)
    warehouse.run_range(FIRST, SECOND, source, told, selection=[told])
    assert set(said(warehouse).values()) == {"from the source"}
