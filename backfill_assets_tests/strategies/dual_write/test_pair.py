"""Both paths of a migration run on the same partition, from one read of the source."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import dagster as dg
import pytest

from backfill_assets.errors import DeclarationError
from backfill_assets.orders import feed, paths
from backfill_assets.orders.tables import FCT_ORDERS_LEGACY, ORDERS_MIGRATION
from backfill_assets.slice import Slice
from backfill_assets.strategies.dual_write import dual_write_assets, report_external_load
from backfill_assets.window import Window
from backfill_assets_tests.io_managers.conftest import Warehouse

DAYS = dg.DailyPartitionsDefinition(start_date="2026-05-01", end_date="2026-05-11")
OLD, NEW = ["analytics", "fct_orders_legacy"], ["analytics", "fct_orders_new"]


class Feed:
    """The shop's feed, which gives an order more each time it is read."""

    def __init__(self) -> None:
        self.reads: list[str] = []

    def __call__(self, slice_: Slice) -> Any:
        import pandas as pd

        self.reads.append(slice_.name)
        rows = feed.read(slice_)
        assert slice_.window is not None
        late = {**feed.orders_of(slice_.window.days()[0])[0], "order_id": -len(self.reads)}
        return pd.concat([rows, pd.DataFrame([late])], ignore_index=True)


def pair(read: Any, **given: Any) -> list[Any]:
    options = {
        "partitions_def": DAYS,
        "read": read,
        "old": paths.legacy_today,
        "new": paths.new,
        "old_key": OLD,
        "new_key": NEW,
        "max_partitions_per_run": 31,
    }
    return dual_write_assets(ORDERS_MIGRATION, **{**options, **given})


def rows(warehouse: Warehouse, table: str) -> list[Any]:
    return warehouse.rows(
        f"SELECT order_date, order_id, amount FROM analytics.{table} ORDER BY 1, 2"
    )


def test_what_arrives_between_the_paths_reaches_both_or_none(warehouse: Warehouse) -> None:
    source = Feed()
    warehouse.run_range("2026-05-01", "2026-05-03", *pair(source))
    assert source.reads == ["2026-05-01", "2026-05-02", "2026-05-03"]
    old = rows(warehouse, "fct_orders_legacy")
    assert old == rows(warehouse, "fct_orders_new")
    assert {id_ for _, id_, _ in old if id_ < 0} == {-1, -2, -3}


def test_both_sides_count_as_read_at_the_same_moment(warehouse: Warehouse) -> None:
    warehouse.run_range("2026-05-01", "2026-05-02", *pair(Feed()))
    found = warehouse.rows("SELECT partition_key, count(*), count(DISTINCT source_read_at) FROM backfill.load_audit GROUP BY 1 ORDER BY 1")  # fmt: skip
    assert found == [("2026-05-01", 2, 1), ("2026-05-02", 2, 1)]


def test_a_path_that_changes_the_frame_in_place_changes_nothing_for_the_other(
    warehouse: Warehouse,
) -> None:
    def careless(slice_: Slice, orders: Any) -> Any:
        made = paths.legacy_today(slice_, orders)
        orders.drop(orders.index, inplace=True)
        return made

    warehouse.run(*pair(feed.read, old=careless), partition_key="2026-05-01")
    assert len(rows(warehouse, "fct_orders_new")) == len(feed.orders_of(date(2026, 5, 1)))


def test_rows_that_are_no_frame_are_not_shared_between_the_paths_either(
    warehouse: Warehouse,
) -> None:
    def careless(slice_: Slice, orders: list[Any]) -> Any:
        for order in orders:
            order["net"] = paths.Decimal(0)
        return paths.legacy_today(slice_, pd.DataFrame(orders))

    import pandas as pd

    both = pair(
        lambda slice_: feed.read(slice_).to_dict("records"),
        old=careless,
        new=lambda slice_, orders: paths.new(slice_, pd.DataFrame(orders)),
    )
    warehouse.run(*both, partition_key="2026-05-01")
    assert warehouse.rows("SELECT sum(amount) > 0 FROM analytics.fct_orders_new") == [(True,)]


def test_a_path_that_fails_leaves_the_other_ones_day_and_says_which(warehouse: Warehouse) -> None:
    def broken(slice_: Slice, orders: Any) -> Any:
        raise ValueError("no such column")

    warehouse.run(*pair(feed.read, new=broken), partition_key="2026-05-01", ok=False)
    assert len(rows(warehouse, "fct_orders_legacy")) == len(feed.orders_of(date(2026, 5, 1)))
    warehouse.run(*pair(feed.read), partition_key="2026-05-01")
    assert rows(warehouse, "fct_orders_legacy") == rows(warehouse, "fct_orders_new")


def test_a_side_that_another_system_writes_is_an_asset_whose_loads_are_reported(
    warehouse: Warehouse,
) -> None:
    assets = pair(feed.read, old=None)
    specs = [one for one in assets if isinstance(one, dg.AssetSpec)]
    assert [spec.key.path for spec in specs] == [OLD]
    warehouse.run(*[one for one in assets if not isinstance(one, dg.AssetSpec)], partition_key="2026-05-01")  # fmt: skip
    assert len(rows(warehouse, "fct_orders_new")) == len(feed.orders_of(date(2026, 5, 1)))
    report_external_load(warehouse.instance, dg.AssetKey(OLD), "2026-05-01", {"rows": 412})
    assert warehouse.instance.get_materialized_partitions(dg.AssetKey(OLD)) == {"2026-05-01"}


@pytest.mark.parametrize("given", [{"old": None, "new": None}, {"old_key": NEW}])
def test_a_pair_of_one_side_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError, match="cannot be declared so"):
        pair(feed.read, **given)


def test_the_three_faults_of_the_old_job_are_those_that_its_version_1_had() -> None:
    day = date(2026, 5, 6)
    slice_ = Slice(FCT_ORDERS_LEGACY, Window.day(day), partition=day.isoformat())
    orders = feed.read(slice_)
    right = {row.order_id: row for row in paths.new(slice_, orders).itertuples()}
    assert len(right) == len(feed.orders_of(day))

    def wrong(fault: str) -> dict[int, Any]:
        made = paths.legacy(slice_, orders, frozenset({fault}))
        return {row.order_id: row for row in made.itertuples()}

    rounded = wrong("rounding")
    assert rounded.keys() == right.keys()
    off = {id_ for id_ in right if rounded[id_].amount != right[id_].amount}
    assert off
    assert {abs(rounded[id_].amount - right[id_].amount) for id_ in off} == {paths.Decimal("0.01")}
    slipped = wrong("zone")
    late = {id_ for id_, row in right.items() if row.ordered_at.hour >= 22}
    assert right.keys() - slipped.keys() == late
    assert {slipped[id_].ordered_at.date() for id_ in slipped.keys() - right.keys()} == {day - timedelta(days=1)}  # fmt: skip
    lost = right.keys() - wrong("nulls").keys()
    assert lost == {id_ for id_, row in right.items() if row.country is None}
    assert lost
