"""What an asset returns is what its partitions hold, however often and in whatever order they are run."""

from datetime import date

import dagster as dg
import pandas as pd
import pyarrow as pa
import pytest

from backfill_assets.io_managers import (
    DeleteInsertIOManager,
    PerSlice,
    Relation,
    Select,
    table_metadata,
)
from backfill_assets.table import SliceColumn, Table
from backfill_assets_tests.io_managers.conftest import Warehouse, failure_of

DAYS = dg.DailyPartitionsDefinition("2026-05-01", end_date="2026-06-01")
ONE_RUN = dg.BackfillPolicy.single_run()


def sales_of(*days: str, amounts: tuple[int, ...] = (1, 2, 3)) -> pd.DataFrame:
    return pd.DataFrame(
        [{"sale_date": pd.Timestamp(day), "amount": amount} for day in days for amount in amounts]
    )


def frame_asset(make, **options) -> dg.AssetsDefinition:
    options = {
        "partitions_def": DAYS,
        "metadata": {"partition_expr": "sale_date"},
        "key_prefix": ["analytics"],
        "backfill_policy": ONE_RUN,
    } | options

    @dg.asset(name="sales", **options)
    def sales(context: dg.AssetExecutionContext) -> pd.DataFrame:
        return make(context)

    return sales


def test_an_url_is_all_that_the_io_manager_needs(warehouse: Warehouse) -> None:
    warehouse.run(frame_asset(lambda c: sales_of(c.partition_key)), partition_key="2026-05-03")
    assert warehouse.rows("SELECT count(*), sum(amount) FROM analytics.sales") == [(3, 6)]


def test_a_day_run_five_times_holds_its_rows_once(warehouse: Warehouse) -> None:
    sales = frame_asset(lambda c: sales_of(c.partition_key))
    for _ in range(5):
        warehouse.run(sales, partition_key="2026-05-03")
    assert warehouse.rows("SELECT count(*), sum(amount) FROM analytics.sales") == [(3, 6)]
    history = warehouse.rows(
        "SELECT rows_before, rows_after, checksum FROM backfill.load_audit ORDER BY committed_at"
    )
    assert [row[:2] for row in history] == [(0, 3), (3, 3), (3, 3), (3, 3), (3, 3)]
    assert len({row[2] for row in history}) == 1


def test_rows_that_vanished_from_the_source_vanish_from_the_day(warehouse: Warehouse) -> None:
    warehouse.run(frame_asset(lambda c: sales_of(c.partition_key)), partition_key="2026-05-03")
    warehouse.run(
        frame_asset(lambda c: sales_of(c.partition_key, amounts=(2,))), partition_key="2026-05-03"
    )
    assert warehouse.rows("SELECT amount FROM analytics.sales") == [(2,)]


def test_a_range_in_one_run_is_a_transaction_a_materialization_and_an_audit_row_for_each_day(
    warehouse: Warehouse,
) -> None:
    sales = frame_asset(lambda c: sales_of(*c.partition_keys))
    result = warehouse.run_range("2026-05-03", "2026-05-06", sales)
    events = result.asset_materializations_for_node("analytics__sales")
    assert [event.partition for event in events] == [
        "2026-05-03",
        "2026-05-04",
        "2026-05-05",
        "2026-05-06",
    ]
    audited = dict(warehouse.rows("SELECT partition_key, audit_id FROM backfill.load_audit"))
    for event in events:
        shown = {key: value.value for key, value in event.metadata.items()}
        assert shown["rows_before"] == 0
        assert shown["rows_after"] == shown["dagster/partition_row_count"] == 3
        assert shown["audit_id"] == audited[event.partition]
        assert shown["seconds"] > 0


def test_one_bad_day_keeps_the_days_before_it_and_a_relaunch_does_the_rest(
    warehouse: Warehouse,
) -> None:
    broken = {"2026-05-12"}

    def day(slice_):
        if slice_.partition in broken:
            raise ValueError("the supplier's file is half written")
        return sales_of(slice_.partition)

    @dg.asset(
        partitions_def=DAYS,
        key_prefix=["analytics"],
        backfill_policy=ONE_RUN,
        metadata=table_metadata(Table("analytics.sales", SliceColumn("sale_date", "timestamp"))),
    )
    def sales() -> PerSlice:
        return PerSlice(day)

    result = warehouse.run_range("2026-05-01", "2026-05-20", sales, ok=False)
    assert "analytics.sales 2026-05-12 failed" in failure_of(result)
    assert "half written" in failure_of(result)
    assert "2026-05-12...2026-05-20" in failure_of(result)
    done = warehouse.instance.get_materialized_partitions(sales.key)
    assert sorted(done) == [f"2026-05-{n:02}" for n in range(1, 12)]
    assert warehouse.rows("SELECT count(DISTINCT sale_date) FROM analytics.sales") == [(11,)]
    before = warehouse.rows("SELECT audit_id FROM backfill.load_audit ORDER BY 1")
    broken.clear()
    warehouse.run_range("2026-05-12", "2026-05-20", sales)
    assert warehouse.rows("SELECT count(*), count(DISTINCT sale_date) FROM analytics.sales") == [
        (60, 20)
    ]
    assert set(before) < set(warehouse.rows("SELECT audit_id FROM backfill.load_audit"))
    assert warehouse.rows("SELECT count(*) FROM backfill.load_audit") == [(20,)]


def test_a_run_that_is_terminated_keeps_and_shows_the_days_it_had_committed(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backfill_assets.io_managers.computing._AHEAD_SLICES", 1)

    def day(slice_):
        if slice_.partition == "2026-05-04":
            raise KeyboardInterrupt
        return sales_of(slice_.partition)

    @dg.asset(
        partitions_def=DAYS,
        key_prefix=["analytics"],
        backfill_policy=ONE_RUN,
        metadata={"partition_expr": "sale_date", "partition_kind": "timestamp"},
    )
    def sales() -> PerSlice:
        return PerSlice(day)

    warehouse.run_range("2026-05-01", "2026-05-10", sales, ok=False)
    done = warehouse.instance.get_materialized_partitions(sales.key)
    assert sorted(done) == ["2026-05-01", "2026-05-02", "2026-05-03"]
    assert warehouse.rows("SELECT count(DISTINCT sale_date) FROM analytics.sales") == [(3,)]


def test_a_stray_row_in_a_frame_of_many_days_stops_the_run_before_the_first_day(
    warehouse: Warehouse,
) -> None:
    sales = frame_asset(lambda c: sales_of(*c.partition_keys, "2026-05-30"))
    result = warehouse.run_range("2026-05-03", "2026-05-06", sales, ok=False)
    assert "3 of 15 rows belong to none of the 4 slices" in failure_of(result)
    assert warehouse.rows(
        "SELECT count(*) FROM information_schema.tables WHERE table_name = 'sales'"
    ) == [(0,)]


def test_a_row_without_a_day_in_a_frame_of_many_days_stops_the_run(warehouse: Warehouse) -> None:
    nowhere = pd.DataFrame({"sale_date": [pd.NaT], "amount": [9]})
    sales = frame_asset(lambda c: pd.concat([sales_of(*c.partition_keys), nowhere]))
    result = warehouse.run_range("2026-05-03", "2026-05-04", sales, ok=False)
    assert "1 of 7 rows" in failure_of(result)
    assert "1 without a value" in failure_of(result)


@pytest.mark.parametrize("stray", [pd.Timestamp("2026-05-04"), pd.NaT], ids=["next_day", "no_day"])
def test_a_row_that_is_not_of_the_partition_is_refused_with_a_count(
    warehouse: Warehouse, stray
) -> None:
    warehouse.run(frame_asset(lambda c: sales_of(c.partition_key)), partition_key="2026-05-03")
    extra = pd.DataFrame({"sale_date": [stray], "amount": [9]})
    bad = frame_asset(lambda c: pd.concat([sales_of(c.partition_key), extra]))
    assert "1 of 4 rows do not belong" in failure_of(
        warehouse.run(bad, partition_key="2026-05-03", ok=False)
    )
    assert warehouse.rows("SELECT count(*), sum(amount) FROM analytics.sales") == [(3, 6)]


def test_a_select_stays_in_the_warehouse_and_a_relation_feeds_it(warehouse: Warehouse) -> None:
    sales = frame_asset(lambda c: sales_of(*c.partition_keys))

    @dg.asset(
        partitions_def=DAYS,
        key_prefix=["analytics"],
        metadata={"partition_expr": "sale_date"},
        backfill_policy=ONE_RUN,
    )
    def totals(sales: Relation) -> Select:
        return Select(
            f"SELECT sale_date, CAST(sum(amount) AS BIGINT) AS total FROM {sales} AS s GROUP BY sale_date"
        )

    warehouse.run(sales, totals, partition_key="2026-05-03")
    warehouse.run_range("2026-05-01", "2026-05-04", sales, totals)
    warehouse.run_range("2026-05-01", "2026-05-04", sales, totals)
    assert warehouse.rows("SELECT count(*), sum(total) FROM analytics.totals") == [(4, 24)]


def test_inputs_come_as_pandas_by_default_and_as_arrow_when_annotated(warehouse: Warehouse) -> None:
    seen = {}
    common = {
        "partitions_def": DAYS,
        "key_prefix": ["analytics"],
        "metadata": {"partition_expr": "sale_date"},
    }
    sales = frame_asset(lambda c: sales_of(*c.partition_keys))

    @dg.asset(**common)
    def as_pandas(sales) -> None:
        seen["pandas"] = sales

    @dg.asset(**common)
    def as_arrow(sales: pa.Table) -> pa.Table:
        seen["arrow"] = sales
        return sales

    warehouse.run_range("2026-05-01", "2026-05-04", sales)
    warehouse.run(sales, as_pandas, as_arrow, partition_key="2026-05-02")
    assert isinstance(seen["pandas"], pd.DataFrame)
    assert list(seen["pandas"]["amount"]) == [1, 2, 3]
    assert seen["arrow"].num_rows == 3
    assert warehouse.rows("SELECT count(*) FROM analytics.as_arrow") == [(3,)]


def test_an_input_takes_only_the_columns_that_it_names(warehouse: Warehouse) -> None:
    sales = frame_asset(lambda c: sales_of(c.partition_key))

    @dg.asset(
        partitions_def=DAYS,
        ins={"sales": dg.AssetIn(key=["analytics", "sales"], metadata={"columns": ["amount"]})},
    )
    def reader(sales: pd.DataFrame) -> None:
        assert list(sales.columns) == ["amount"]

    warehouse.run(sales, reader, partition_key="2026-05-02")


def test_an_unpartitioned_asset_is_replaced_whole(warehouse: Warehouse) -> None:
    frames = iter([pd.DataFrame({"id": [1, 2]}), pd.DataFrame({"id": [3, 2]})])

    @dg.asset(key_prefix=["ref"])
    def countries() -> pd.DataFrame:
        return next(frames)

    warehouse.run(countries)
    warehouse.run(countries)
    assert warehouse.rows("SELECT id FROM ref.countries ORDER BY id") == [(2,), (3,)]


def test_day_and_region_are_cut_together_and_leave_the_other_region_alone(
    warehouse: Warehouse,
) -> None:
    both = dg.MultiPartitionsDefinition(
        {"day": DAYS, "region": dg.StaticPartitionsDefinition(["emea", "o'brien"])}
    )

    @dg.asset(
        partitions_def=both,
        key_prefix=["analytics"],
        metadata={"partition_expr": {"day": "sale_date", "region": "region"}},
    )
    def sales(context: dg.AssetExecutionContext) -> pd.DataFrame:
        keys = context.partition_key.keys_by_dimension
        return sales_of(keys["day"]).assign(region=keys["region"])

    for region in ("emea", "o'brien", "emea", "o'brien"):
        key = dg.MultiPartitionKey({"day": "2026-05-02", "region": region})
        warehouse.run(sales, partition_key=key)
    assert warehouse.rows("SELECT region, count(*) FROM analytics.sales GROUP BY 1 ORDER BY 1") == [
        ("emea", 3),
        ("o'brien", 3),
    ]


def test_static_partitions_are_cut_by_their_value(warehouse: Warehouse) -> None:
    @dg.asset(
        partitions_def=dg.StaticPartitionsDefinition(["emea", "apac"]),
        key_prefix=["analytics"],
        metadata={"partition_expr": "region"},
    )
    def shops(context: dg.AssetExecutionContext) -> pd.DataFrame:
        return pd.DataFrame({"region": [context.partition_key] * 2, "shop": [1, 2]})

    for region in ("emea", "apac", "emea"):
        warehouse.run(shops, partition_key=region)
    assert warehouse.rows("SELECT region, count(*) FROM analytics.shops GROUP BY 1 ORDER BY 1") == [
        ("apac", 2),
        ("emea", 2),
    ]


def test_days_of_new_york_over_instants_lose_and_double_nothing_when_clocks_change(
    warehouse: Warehouse,
) -> None:
    instants = pd.date_range(
        "2024-03-09 05:00", "2024-03-12 04:00", freq="30min", tz="UTC", inclusive="left"
    )
    partitions = dg.DailyPartitionsDefinition(
        "2024-03-01", timezone="America/New_York", end_date="2024-04-01"
    )

    def day(context: dg.AssetExecutionContext) -> pd.DataFrame:
        window = context.partition_time_window
        return pd.DataFrame({"at": instants[(instants >= window.start) & (instants < window.end)]})

    readings = frame_asset(day, partitions_def=partitions, metadata={"partition_expr": "at"})
    for _ in range(2):
        for key in ("2024-03-10", "2024-03-09", "2024-03-11"):
            warehouse.run(readings, partition_key=key)
    counts = warehouse.rows(
        "SELECT partition_key, max(rows_after) FROM backfill.load_audit GROUP BY 1 ORDER BY 1"
    )
    assert counts == [("2024-03-09", 48), ("2024-03-10", 46), ("2024-03-11", 48)]
    assert warehouse.rows('SELECT count(*), count(DISTINCT "at") FROM analytics.sales') == [
        (142, 142)
    ]


def test_a_partitioned_asset_that_declares_no_column_is_refused(warehouse: Warehouse) -> None:
    sales = frame_asset(lambda c: sales_of(c.partition_key), metadata={})
    said = failure_of(warehouse.run(sales, partition_key="2026-05-03", ok=False))
    assert "declares no column" in said
    assert "partition_expr" in said


def test_a_partition_expr_is_a_column_and_never_sql(warehouse: Warehouse) -> None:
    warehouse.run_range(
        "2026-05-01", "2026-05-03", frame_asset(lambda c: sales_of(*c.partition_keys))
    )
    sneaky = frame_asset(
        lambda c: sales_of(c.partition_key), metadata={"partition_expr": "1=1 or sale_date"}
    )
    said = failure_of(warehouse.run(sneaky, partition_key="2026-05-03", ok=False))
    assert "takes a column's name and not SQL" in said
    assert warehouse.rows("SELECT count(*) FROM analytics.sales") == [(9,)]


def test_an_empty_frame_is_refused_until_it_is_declared_or_allowed_with_a_reason(
    warehouse: Warehouse,
) -> None:
    warehouse.run(frame_asset(lambda c: sales_of(c.partition_key)), partition_key="2026-05-03")
    empty = frame_asset(lambda c: sales_of(c.partition_key).iloc[:0])
    assert "no rows came" in failure_of(warehouse.run(empty, partition_key="2026-05-03", ok=False))
    assert warehouse.rows("SELECT count(*) FROM analytics.sales") == [(3,)]
    no_reason = {"allow": "empty"}
    assert "no reason" in failure_of(
        warehouse.run(empty, partition_key="2026-05-03", tags=no_reason, ok=False)
    )
    assert warehouse.rows("SELECT count(*) FROM analytics.sales") == [(3,)]
    warehouse.run(
        empty,
        partition_key="2026-05-03",
        tags={"allow": "empty", "reason": "INC-7: shop was closed"},
    )
    assert warehouse.rows("SELECT count(*) FROM analytics.sales") == [(0,)]
    assert warehouse.rows("SELECT reason FROM backfill.load_audit WHERE rows_after = 0") == [
        ("INC-7: shop was closed",)
    ]


def test_a_declared_holiday_may_be_empty_and_other_days_may_not(warehouse: Warehouse) -> None:
    metadata = {"partition_expr": "sale_date", "allow_empty": ["2026-05-25"]}
    warehouse.run(frame_asset(lambda c: sales_of(c.partition_key)), partition_key="2026-05-24")
    empty = frame_asset(lambda c: sales_of(c.partition_key).iloc[:0], metadata=metadata)
    warehouse.run(empty, partition_key="2026-05-25")
    assert "no rows came" in failure_of(warehouse.run(empty, partition_key="2026-05-26", ok=False))


@pytest.mark.parametrize("allowed", [True, False])
def test_a_frame_without_columns_is_refused(warehouse: Warehouse, allowed: bool) -> None:
    bare = frame_asset(
        lambda c: pd.DataFrame(),
        metadata={"partition_expr": "sale_date", "allow_empty": allowed, "partition_kind": "date"},
    )
    assert "no columns" in failure_of(warehouse.run(bare, partition_key="2026-05-03", ok=False))


def test_column_order_never_matters(warehouse: Warehouse) -> None:
    warehouse.run(frame_asset(lambda c: sales_of(c.partition_key)), partition_key="2026-05-03")
    turned = frame_asset(lambda c: sales_of(c.partition_key)[["amount", "sale_date"]])
    warehouse.run(turned, partition_key="2026-05-04")
    assert (
        warehouse.rows(
            "SELECT sale_date, sum(amount) FROM analytics.sales GROUP BY 1 ORDER BY 1 DESC LIMIT 1"
        )[0][1]
        == 6
    )


@pytest.mark.parametrize(
    ("policy", "columns"),
    [("add", ["sale_date", "amount", "country"]), ("ignore", ["sale_date", "amount"])],
)
def test_a_new_column_follows_the_declared_policy(
    warehouse: Warehouse, policy: str, columns: list[str]
) -> None:
    warehouse.run(frame_asset(lambda c: sales_of(c.partition_key)), partition_key="2026-05-03")
    make = lambda c: sales_of(c.partition_key).assign(country="de")  # noqa: E731
    assert "'country'" in failure_of(
        warehouse.run(frame_asset(make), partition_key="2026-05-04", ok=False)
    )
    metadata = {"partition_expr": "sale_date", "on_schema_change": policy}
    warehouse.run(frame_asset(make, metadata=metadata), partition_key="2026-05-04")
    shape = warehouse.rows(
        "SELECT column_name FROM information_schema.columns WHERE table_name = 'sales'"
    )
    assert [name for (name,) in shape] == columns
    assert warehouse.rows("SELECT count(*) FROM analytics.sales") == [(6,)]


def test_a_value_that_would_be_rounded_is_refused(warehouse: Warehouse) -> None:
    warehouse.run(frame_asset(lambda c: sales_of(c.partition_key)), partition_key="2026-05-03")
    rounded = frame_asset(lambda c: sales_of(c.partition_key, amounts=(1, 1.7)))
    said = failure_of(warehouse.run(rounded, partition_key="2026-05-03", ok=False))
    assert "1 values of column 'amount' would change" in said
    assert "1.7" in said
    whole = frame_asset(lambda c: sales_of(c.partition_key, amounts=(1.0, 2.0)))
    warehouse.run(whole, partition_key="2026-05-03")
    assert warehouse.rows("SELECT amount FROM analytics.sales ORDER BY 1") == [(1,), (2,)]


def test_a_first_day_without_any_text_does_not_spoil_the_days_with_text(
    warehouse: Warehouse,
) -> None:
    notes = {"2026-05-03": None, "2026-05-04": "paid twice"}
    sales = frame_asset(lambda c: sales_of(c.partition_key).assign(note=notes[c.partition_key]))
    warehouse.run(sales, partition_key="2026-05-03")
    warehouse.run(sales, partition_key="2026-05-04")
    warehouse.run(sales, partition_key="2026-05-03")
    assert warehouse.rows(
        "SELECT note, count(*) FROM analytics.sales GROUP BY 1 ORDER BY 1 NULLS FIRST"
    ) == [
        (None, 3),
        ("paid twice", 3),
    ]


def test_an_empty_first_frame_without_types_makes_no_table(warehouse: Warehouse) -> None:
    untyped = frame_asset(
        lambda c: pd.DataFrame({"sale_date": [], "note": []}, dtype=object),
        metadata={
            "partition_expr": "sale_date",
            "partition_kind": "timestamp",
            "allow_empty": True,
        },
    )
    assert "no type" in failure_of(warehouse.run(untyped, partition_key="2026-05-03", ok=False))


def test_a_partition_that_does_not_exist_is_refused_by_name(warehouse: Warehouse) -> None:
    open_ended = dg.DailyPartitionsDefinition("2026-05-01")
    sales = frame_asset(lambda c: sales_of("2030-01-05"), partitions_def=open_ended)
    result = warehouse.run(sales, tags={"dagster/partition": "2030-01-05"}, ok=False)
    assert "2030-01-05" in failure_of(result)
    assert "does not exist" in failure_of(result)


def test_a_missing_source_table_is_one_sentence_and_leaves_the_day(warehouse: Warehouse) -> None:
    @dg.asset(
        partitions_def=DAYS, key_prefix=["analytics"], metadata={"partition_expr": "sale_date"}
    )
    def sales() -> Select:
        return Select("SELECT * FROM staging.nowhere")

    warehouse.run(frame_asset(lambda c: sales_of(c.partition_key)), partition_key="2026-05-03")
    said = failure_of(warehouse.run(sales, partition_key="2026-05-03", ok=False))
    assert "nowhere" in said
    assert "not there" in said
    assert warehouse.rows("SELECT count(*) FROM analytics.sales") == [(3,)]


def test_the_upstream_that_was_never_loaded_is_named(warehouse: Warehouse) -> None:
    @dg.asset(partitions_def=DAYS, ins={"sales": dg.AssetIn(key=["analytics", "sales"])})
    def reader(sales: pd.DataFrame) -> None: ...

    spec = dg.AssetSpec(
        ["analytics", "sales"],
        partitions_def=DAYS,
        metadata={"partition_expr": "sale_date", "partition_kind": "date"},
    )
    result = warehouse.run(reader, spec, partition_key="2026-05-03", ok=False, selection=[reader])
    assert "Materialize the upstream asset first" in failure_of(result)


def test_who_and_why_are_on_the_audit_row(warehouse: Warehouse) -> None:
    tags = {
        "reason": "INC-42 late file",
        "ticket": "INC-42",
        "launched_by": "ana",
        "dagster/backfill": "bkfl1",
    }
    sales = frame_asset(lambda c: sales_of(c.partition_key), code_version="7")
    result = warehouse.run(sales, partition_key="2026-05-03", tags=tags)
    found = warehouse.rows(
        "SELECT reason, ticket, launched_by, backfill_id, lane, code_version, run_id, partition_key, table_name"
        " FROM backfill.load_audit"
    )
    assert found == [
        (
            "INC-42 late file",
            "INC-42",
            "ana",
            "bkfl1",
            "backfill",
            "7",
            result.run_id,
            "2026-05-03",
            "analytics.sales",
        )
    ]


def test_an_attempt_again_reads_its_source_again(warehouse: Warehouse) -> None:
    """Somebody writes the day between two attempts of one step: the second one has read later than that."""
    day = "2026-05-03"

    def make(context: dg.AssetExecutionContext) -> pd.DataFrame:
        if context.retry_number == 0:
            warehouse.run(frame_asset(lambda c: sales_of(day)), partition_key=day)
            raise ConnectionError("the source went away")
        return sales_of(day, amounts=(7,))

    retried = frame_asset(make, retry_policy=dg.RetryPolicy(max_retries=1))
    warehouse.run(retried, partition_key=day)
    assert warehouse.rows("SELECT amount FROM analytics.sales") == [(7,)]


def test_a_slow_run_does_not_overwrite_what_a_later_read_has_written(warehouse: Warehouse) -> None:
    newer = frame_asset(lambda c: sales_of(c.partition_key, amounts=(10, 20, 30)))

    def slow(context: dg.AssetExecutionContext) -> pd.DataFrame:
        stale = sales_of(context.partition_key)
        warehouse.run(
            newer, partition_key="2026-05-03"
        )  # a live load passes by while this one computes
        return stale

    said = failure_of(warehouse.run(frame_asset(slow), partition_key="2026-05-03", ok=False))
    assert "Launch this partition again" in said
    assert warehouse.rows("SELECT sum(amount) FROM analytics.sales") == [(60,)]


@pytest.mark.parametrize("kind", ["frame", "per_slice"])
def test_an_asset_may_read_the_warehouse_file_while_it_computes(
    warehouse: Warehouse, kind: str
) -> None:
    warehouse.execute(
        "CREATE SCHEMA staging", "CREATE TABLE staging.raw AS SELECT DATE '2026-05-03' AS d, 5 AS n"
    )

    def read() -> pd.DataFrame:
        return pd.DataFrame(warehouse.rows("SELECT d, n FROM staging.raw"), columns=["d", "n"])

    @dg.asset(
        partitions_def=DAYS,
        key_prefix=["analytics"],
        metadata={"partition_expr": "d", "partition_kind": "date"},
    )
    def fct():
        return read() if kind == "frame" else PerSlice(lambda slice_: read())

    warehouse.run(fct, partition_key="2026-05-03")
    assert warehouse.rows("SELECT d, n FROM analytics.fct") == [(date(2026, 5, 3), 5)]


def test_metadata_schema_comes_before_configuration_and_configuration_before_the_key_prefix(
    warehouse: Warehouse,
) -> None:
    configured = DeleteInsertIOManager(url=warehouse.url, schema="configured")
    for name, prefix, metadata in (
        ("by_metadata", ["prefix"], {"schema": "by_name"}),
        ("by_configuration", ["prefix"], {}),
    ):

        @dg.asset(name=name, key_prefix=prefix, metadata=metadata)
        def table() -> pd.DataFrame:
            return pd.DataFrame({"id": [1]})

        dg.materialize([table], resources={"io_manager": configured}, instance=warehouse.instance)

    @dg.asset
    def plain() -> pd.DataFrame:
        return pd.DataFrame({"id": [1]})

    warehouse.run(plain)
    places = warehouse.rows(
        "SELECT table_schema, table_name FROM information_schema.tables WHERE table_name NOT LIKE 'load_audit%'"
    )
    assert sorted(places) == [
        ("by_name", "by_metadata"),
        ("configured", "by_configuration"),
        ("public", "plain"),
    ]


def test_none_is_refused_and_deletes_nothing(warehouse: Warehouse) -> None:
    warehouse.run(frame_asset(lambda c: sales_of(c.partition_key)), partition_key="2026-05-03")

    @dg.asset(
        partitions_def=DAYS, key_prefix=["analytics"], metadata={"partition_expr": "sale_date"}
    )
    def sales():
        return None

    assert "returned None" in failure_of(warehouse.run(sales, partition_key="2026-05-03", ok=False))
    assert warehouse.rows("SELECT count(*) FROM analytics.sales") == [(3,)]


def test_a_type_that_cannot_be_stored_is_named(warehouse: Warehouse) -> None:
    @dg.asset(partitions_def=DAYS, metadata={"partition_expr": "d"})
    def wrong():
        return {"d": 1}

    assert "builtins.dict" in failure_of(warehouse.run(wrong, partition_key="2026-05-03", ok=False))


def test_a_context_made_by_hand_writes_too(warehouse: Warehouse) -> None:
    context = dg.build_output_context(asset_key=["ref", "countries"], name="result")
    warehouse.io_manager.handle_output(context, pd.DataFrame({"id": [1, 2]}))
    assert warehouse.rows("SELECT count(*) FROM ref.countries") == [(2,)]


def yesterday(name: str) -> dg.AssetIn:
    mapping = dg.TimeWindowPartitionMapping(
        start_offset=-1, end_offset=-1, allow_nonexistent_upstream_partitions=True
    )
    return dg.AssetIn(key=["analytics", name], partition_mapping=mapping)


def test_the_first_day_finds_nothing_upstream_and_later_days_find_the_day_before(
    warehouse: Warehouse,
) -> None:
    """An asset over its own yesterday: on the first day not even its table is there."""

    @dg.asset(
        partitions_def=DAYS,
        key_prefix=["analytics"],
        ins={"running": yesterday("running")},
        metadata={"partition_expr": "sale_date", "partition_kind": "timestamp"},
    )
    def running(context: dg.AssetExecutionContext, running: pd.DataFrame) -> pd.DataFrame:
        before = 0 if running.empty else int(running["total"].sum())
        return pd.DataFrame(
            {"sale_date": [pd.Timestamp(context.partition_key)], "total": [before + 1]}
        )

    for day in ("2026-05-01", "2026-05-02", "2026-05-03", "2026-05-02"):
        warehouse.run(running, partition_key=day)
    found = warehouse.rows("SELECT total FROM analytics.running ORDER BY sale_date")
    assert found == [(1,), (2,), (3,)]


def test_a_relation_over_no_partition_holds_no_rows(warehouse: Warehouse) -> None:
    @dg.asset(
        partitions_def=DAYS,
        key_prefix=["analytics"],
        ins={"sales": yesterday("sales")},
        metadata={"partition_expr": "n", "partition_kind": "int_yyyymmdd"},
    )
    def counts(context: dg.AssetExecutionContext, sales: Relation) -> Select:
        number = context.partition_key.replace("-", "")
        return Select(f"SELECT {number} AS n, count(*) AS rows_before FROM {sales} AS s")

    sales = frame_asset(lambda c: sales_of(c.partition_key))
    for day in ("2026-05-01", "2026-05-02"):
        warehouse.run(sales, counts, partition_key=day)
    assert warehouse.rows("SELECT * FROM analytics.counts ORDER BY n") == [
        (20260501, 0),
        (20260502, 3),
    ]


@pytest.mark.parametrize(
    "values",
    [
        pd.period_range("2026-05", periods=2, freq="M"),
        pd.interval_range(0, 2),
        pd.Series(["a", 1], dtype=object),
        pd.Series([2**70, 1], dtype=object),
        [1 + 2j, 3j],
    ],
    ids=["months", "intervals", "text_and_number", "a_number_too_large", "complex"],
)
def test_a_column_that_no_warehouse_type_holds_is_refused_and_not_reinterpreted(
    warehouse: Warehouse, values
) -> None:
    odd = frame_asset(lambda c: sales_of(c.partition_key, amounts=(1, 2)).assign(odd=values))
    said = failure_of(warehouse.run(odd, partition_key="2026-05-03", ok=False))
    assert "analytics" in said
    assert "Convert" in said or "Give each column one type" in said


def test_the_hour_that_comes_twice_is_two_partitions_of_instants(warehouse: Warehouse) -> None:
    hours = dg.HourlyPartitionsDefinition(
        "2024-11-03-00:00", end_date="2024-11-04-00:00", timezone="America/New_York"
    )
    instants = pd.date_range(
        "2024-11-03 04:00", "2024-11-04 05:00", freq="15min", tz="UTC", inclusive="left"
    )

    def hour(context: dg.AssetExecutionContext) -> pd.DataFrame:
        window = context.partition_time_window
        inside = instants[(instants >= window.start) & (instants < window.end)]
        return pd.DataFrame(
            {"read_at": inside, "clock": inside.tz_convert("America/New_York").tz_localize(None)}
        )

    readings = frame_asset(hour, partitions_def=hours, metadata={"partition_expr": "read_at"})
    keys = list(hours.get_partition_keys())
    assert keys[1:3] == ["2024-11-03-01:00", "2024-11-03-01:00-0500"]
    for key in (*keys, *reversed(keys)):
        warehouse.run(readings, partition_key=key)
    assert warehouse.rows("SELECT count(*), count(DISTINCT read_at) FROM analytics.sales") == [
        (100, 100)
    ]
    by_clock = frame_asset(hour, partitions_def=hours, metadata={"partition_expr": "clock"})
    said = failure_of(warehouse.run(by_clock, partition_key=keys[1], ok=False))
    assert "shows that hour twice" in said


def test_a_table_that_the_stock_manager_made_is_taken_over_as_it_is(warehouse: Warehouse) -> None:
    from dagster_duckdb_pandas import DuckDBPandasIOManager

    stock = DuckDBPandasIOManager(database=warehouse.url.removeprefix("duckdb:///"))
    sales = frame_asset(
        lambda c: sales_of(c.partition_key).assign(note=["a", None, "b"], share=0.1)
    )
    for day in ("2026-05-03", "2026-05-04"):
        dg.materialize(
            [sales], resources={"io_manager": stock}, instance=warehouse.instance, partition_key=day
        )
    for _ in range(2):
        warehouse.run(sales, partition_key="2026-05-03")
    assert warehouse.rows("SELECT count(*), count(note) FROM analytics.sales") == [(6, 4)]
