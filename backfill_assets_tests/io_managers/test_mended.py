"""Faults that a strict reader found where Dagster meets the write path."""

import getpass

import dagster as dg
import pandas as pd
import pytest

from backfill_assets.engines.duckdb_file import OpenFile
from backfill_assets.errors import BackfillError
from backfill_assets.io_managers import PerSlice, Select, table_metadata
from backfill_assets.io_managers.declaration import declared_table
from backfill_assets.io_managers.reporting import as_failure
from backfill_assets.table import SliceColumn, Table
from backfill_assets_tests.io_managers.conftest import Warehouse, failure_of

DAYS = dg.DailyPartitionsDefinition("2026-05-01", end_date="2026-06-01")
KEY = "2026-05-03"
BY_DAY = {"partitions_def": DAYS, "key_prefix": ["mart"], "metadata": {"partition_expr": "day"}}


def frame(*amounts: int) -> pd.DataFrame:
    return pd.DataFrame([{"day": pd.Timestamp(KEY), "amount": amount} for amount in amounts])


def test_a_failures_metadata_shows_no_password() -> None:
    with pytest.raises(dg.Failure) as failure, as_failure():
        raise BackfillError("what", "host=h password=hunter2", "do") from ValueError(
            "password=hunter2"
        )
    assert "hunter2" not in str(failure.value.metadata)
    assert failure.value.__cause__ is None


def test_a_graph_of_ops_has_read_its_source_when_the_first_of_them_did(
    warehouse: Warehouse,
) -> None:
    @dg.asset(name="t", **BY_DAY)
    def newer() -> pd.DataFrame:
        return frame(10, 20)

    @dg.op(out=dg.Out(io_manager_key="between"))
    def fetch() -> list[int]:
        return [1]

    @dg.op
    def slow(amounts: list[int]) -> pd.DataFrame:
        warehouse.run(
            newer, partition_key=KEY
        )  # somebody else reads and writes while this one computes
        return frame(*amounts)

    @dg.graph_asset(
        name="t", partitions_def=DAYS, key_prefix=["mart"], metadata={"partition_expr": "day"}
    )
    def older():
        return slow(fetch())

    said = failure_of(warehouse_run_graph(warehouse, older))
    assert "Launch this partition again" in said
    assert warehouse.rows("SELECT sum(amount) FROM mart.t") == [(30,)]


def warehouse_run_graph(
    warehouse: Warehouse, asset: dg.AssetsDefinition
) -> dg.ExecuteInProcessResult:
    return dg.materialize(
        [asset],
        instance=warehouse.instance,
        resources={"io_manager": warehouse.io_manager, "between": dg.mem_io_manager},
        partition_key=KEY,
        raise_on_error=False,
    )


def test_a_source_that_is_not_there_is_named_and_no_declaration_blamed(
    warehouse: Warehouse,
) -> None:
    @dg.asset(**BY_DAY)
    def t() -> Select:
        return Select("SELECT CAST(seen_at AS DATE) AS day FROM staging.nope", on="seen_at")

    said = failure_of(warehouse.run(t, partition_key=KEY, ok=False))
    assert "nope" in said
    assert "partition_expr" not in said


def test_an_upstream_that_was_never_loaded_is_to_be_materialized_first(
    warehouse: Warehouse,
) -> None:
    @dg.asset(**BY_DAY)
    def upstream() -> pd.DataFrame:
        return frame(1)

    @dg.asset(**BY_DAY)
    def downstream(upstream: pd.DataFrame) -> pd.DataFrame:
        return upstream

    result = dg.materialize(
        [upstream, downstream],
        selection=[downstream],
        instance=warehouse.instance,
        resources={"io_manager": warehouse.io_manager},
        partition_key=KEY,
        raise_on_error=False,
    )
    assert "Materialize the upstream asset first" in failure_of(result)


def test_a_comment_at_the_end_of_a_query_is_no_part_of_ours(warehouse: Warehouse) -> None:
    warehouse.execute(
        "CREATE TABLE source AS SELECT TIMESTAMPTZ '2026-05-03 10:00:00+00' AS seen_at"
    )

    @dg.asset(**BY_DAY)
    def t() -> Select:
        return Select("SELECT CAST(seen_at AS DATE) AS day FROM source -- one", on="seen_at")

    warehouse.run(t, partition_key=KEY)
    assert warehouse.rows("SELECT count(*) FROM mart.t") == [(1,)]


def test_a_file_that_cannot_be_closed_after_the_last_day_does_not_hide_that_the_days_are_there(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    close = OpenFile.close

    def broken(self: OpenFile) -> None:
        close(self)
        raise BackfillError(
            "the file could not be closed", "No space left on device", "Free some space"
        )

    @dg.asset(backfill_policy=dg.BackfillPolicy.single_run(), **BY_DAY)
    def t(context: dg.AssetExecutionContext) -> pd.DataFrame:
        monkeypatch.setattr(OpenFile, "close", broken)
        return pd.concat([frame(1).assign(day=pd.Timestamp(key)) for key in context.partition_keys])

    said = failure_of(warehouse.run_range("2026-05-03", "2026-05-04", t, ok=False))
    assert "mart.t 2026-05-04 is committed, like every slice of this run" in said
    assert "No space left on device" in said
    records = warehouse.instance.fetch_materializations(dg.AssetKey(["mart", "t"]), limit=5).records
    assert {record.partition_key for record in records} == {"2026-05-03", "2026-05-04"}
    monkeypatch.undo()
    assert warehouse.rows("SELECT count(*) FROM mart.t") == [(2,)]


@pytest.mark.parametrize(
    ("tags", "who"),
    [
        ({"launched_by": "ana"}, "ana"),
        ({"dagster/schedule_name": "nightly"}, "schedule nightly"),
        ({"dagster/sensor_name": "late"}, "sensor late"),
        ({}, getpass.getuser()),
    ],
)
def test_the_audit_says_who_launched_or_what_did(
    warehouse: Warehouse, tags: dict[str, str], who: str
) -> None:
    @dg.asset(**BY_DAY)
    def t() -> pd.DataFrame:
        return frame(1)

    warehouse.run(t, partition_key=KEY, tags=tags)
    assert warehouse.rows("SELECT launched_by FROM backfill.load_audit") == [(who,)]


@pytest.mark.parametrize(("tag", "value"), [("lane", "backfil"), ("strategy", "guess")])
def test_a_lane_or_strategy_that_there_is_not_is_refused(
    warehouse: Warehouse, tag: str, value: str
) -> None:
    @dg.asset(**BY_DAY)
    def t() -> pd.DataFrame:
        return frame(1)

    result = warehouse.run(t, partition_key=KEY, tags={tag: value}, ok=False)
    said = " ".join(str(event.event_specific_data) for event in result.all_events)
    assert f"{value!r}" in said or value in said


def test_a_declaration_survives_its_way_through_metadata_whole() -> None:
    told = Table(
        "mart.t",
        SliceColumn("day", "date", "Asia/Tokyo"),
        unique_key=("id",),
        columns={"day": "DATE", "id": "BIGINT"},
        on_schema_change="add",
        allow_empty=frozenset(),
        max_shrink=0.25,
        shrink_floor=7,
        source_days=30,
        source_mutable=True,
        source_history="cdc",
    )
    metadata = table_metadata(told)
    found = declared_table(
        metadata, name="x", schema="mart", slice_column=told.slice_column, dimensions=()
    )
    assert found == told


# what a newcomer ran into


@pytest.mark.parametrize("returns", ["a frame", "a query"])
def test_a_run_that_forgets_its_partition_replaces_nothing(
    warehouse: Warehouse, returns: str
) -> None:
    warehouse.execute("CREATE TABLE source AS SELECT DATE '2026-05-03' AS day, 1 AS amount")

    @dg.asset(**BY_DAY)
    def t():
        return (
            frame(1)
            if returns == "a frame"
            else Select("SELECT day, amount FROM source", on="day", on_kind="date")
        )

    for key in ("2026-05-03", "2026-05-03"):
        warehouse.run(t, partition_key=key)
    warehouse.execute("INSERT INTO mart.t SELECT DATE '2026-05-04', 5")
    said = failure_of(warehouse.run(t, ok=False))
    assert "it has partitions and the run names none" in said
    assert "Launch a partition" in said
    assert warehouse.rows("SELECT count(*) FROM mart.t") == [(2,)]


def test_a_frame_without_columns_says_so_on_a_new_table_too(warehouse: Warehouse) -> None:
    @dg.asset(**BY_DAY)
    def t() -> pd.DataFrame:
        return pd.DataFrame()

    assert "the frame has no columns" in failure_of(warehouse.run(t, partition_key=KEY, ok=False))


def test_a_function_of_the_slice_on_a_new_table_asks_for_the_kind(warehouse: Warehouse) -> None:
    @dg.asset(**BY_DAY)
    def t() -> PerSlice:
        return PerSlice(lambda slice_: frame(1))

    said = failure_of(warehouse.run(t, partition_key=KEY, ok=False))
    assert "Declare partition_kind" in said


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("uniquekey", "unique_key"),
        ("on_schema_changes", "on_schema_change"),
        ("tabel", "table"),
        ("shcema", "schema"),
        ("budjet", "budget"),
    ],
)
def test_metadata_that_is_nearly_ours_is_not_left_out(
    warehouse: Warehouse, key: str, meant: str
) -> None:
    @dg.asset(
        partitions_def=DAYS,
        key_prefix=["mart"],
        metadata={"partition_expr": "day", key: ["amount"]},
    )
    def t() -> pd.DataFrame:
        return frame(1)

    assert f"nearly '{meant}'" in failure_of(warehouse.run(t, partition_key=KEY, ok=False))


def test_a_misspelt_partition_expr_is_told_as_that_and_not_as_missing(warehouse: Warehouse) -> None:
    @dg.asset(partitions_def=DAYS, key_prefix=["mart"], metadata={"partiton_expr": "day"})
    def t() -> pd.DataFrame:
        return frame(1)

    assert "nearly 'partition_expr'" in failure_of(warehouse.run(t, partition_key=KEY, ok=False))


def test_a_row_of_another_region_is_told_by_its_region(warehouse: Warehouse) -> None:
    both = dg.MultiPartitionsDefinition(
        {"day": DAYS, "region": dg.StaticPartitionsDefinition(["eu", "us"])}
    )

    @dg.asset(
        partitions_def=both,
        key_prefix=["mart"],
        metadata={"partition_expr": {"day": "day", "region": "region"}},
    )
    def t() -> pd.DataFrame:
        return frame(1, 2, 3).assign(region=["eu", "asia", None])

    key = dg.MultiPartitionKey({"day": KEY, "region": "eu"})
    said = failure_of(warehouse.run(t, partition_key=key, ok=False))
    assert "2 of 3 rows do not belong to it" in said
    assert "'asia'" in said
    assert "no value" in said
