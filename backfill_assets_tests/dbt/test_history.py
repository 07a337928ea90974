"""The sample's own models: dimensions as they were, and a source that is changed in place."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

from backfill_assets.dbt import raw
from backfill_assets_tests.dbt.projects import Project
from backfill_assets_tests.warehouses import Warehouse

JUNE = datetime(2026, 6, 1, tzinfo=timezone.utc)


def test_march_orders_of_a_customer_who_moved_in_april_keep_the_march_country_in_a_june_backfill(
    sample_project: Project, warehouse: Warehouse
) -> None:
    raw.prepare(warehouse.engine())
    assert sample_project.dbt("build", "--select", "dim_customers").code == 0
    raw.set_customers(warehouse.engine(), JUNE)
    assert sample_project.dbt("build", "--select", "dim_customers").code == 0
    said = sample_project.dbt(
        "build",
        "--select",
        "fct_orders",
        "--target",
        "backfill",
        start="2026-03-28",
        end="2026-05-03",
        reason="June",
    )
    assert said.code == 0, said.text
    orders = warehouse.rows("SELECT customer_id, ordered_at, country FROM analytics.fct_orders")
    days = [date(2026, 3, 28) + timedelta(days=n) for n in range(36)]
    confirmed = [row for day in days for row in raw.orders_of(day) if row[5] == "confirmed"]
    assert len(orders) == len(confirmed)
    wanted = {(row[1], row[3]): raw.country_at(row[1], row[3]) for row in confirmed}
    assert {(customer, at): country for customer, at, country in orders} == wanted
    # the same orders, joined with today's customers
    naive = warehouse.rows(
        "SELECT count(*) FROM analytics.fct_orders f JOIN raw.customers c ON c.customer_id = f.customer_id AND c.country <> f.country"
    )[0][0]
    moved_since = sum(
        1 for row in confirmed if raw.country_at(row[1], row[3]) != raw.country_at(row[1], JUNE)
    )
    assert naive == moved_since > 100
    # nothing is lost or doubled by the join
    assert warehouse.rows(
        "SELECT count(*) - count(DISTINCT order_id) FROM analytics.fct_orders"
    ) == [(0,)]


def test_a_source_changed_in_place_gives_no_old_day_but_its_nightly_copies_do(
    sample_project: Project, warehouse: Warehouse
) -> None:
    raw.prepare(warehouse.engine())
    today = datetime.now(timezone.utc).date()
    yesterday, tomorrow = today - timedelta(days=1), today + timedelta(days=1)
    # two nights, as the schedule would have run them; in the second one the customers have moved
    first = sample_project.dbt(
        "build",
        "--select",
        "customers_nightly",
        "--target",
        "live",
        start=str(yesterday),
        end=str(today),
    )
    assert first.code == 0, first.text
    raw.set_customers(warehouse.engine(), JUNE)
    second = sample_project.dbt(
        "build",
        "--select",
        "customers_nightly",
        "--target",
        "live",
        start=str(today),
        end=str(tomorrow),
    )
    assert second.code == 0, second.text
    night = "SELECT customer_id, country FROM analytics.customers_nightly WHERE snapshot_date = DATE '{}' ORDER BY 1"
    march = datetime(2026, 3, 1, tzinfo=timezone.utc)
    assert warehouse.rows(night.format(yesterday)) == [
        (c, raw.country_at(c, march)) for c in range(1, raw.CUSTOMERS + 1)
    ]
    assert warehouse.rows(night.format(today)) == [
        (c, raw.country_at(c, JUNE)) for c in range(1, raw.CUSTOMERS + 1)
    ]
    # writing last night again would put today's customers there
    refused = sample_project.dbt(
        "build",
        "--select",
        "customers_nightly",
        "--target",
        "backfill",
        start=str(yesterday),
        end=str(today),
        reason="again",
    )
    assert refused.code == 1
    assert (
        f"analytics.customers_nightly {yesterday} was left as it was: its source raw.customers is changed in place"
        in refused.words
    )
    assert warehouse.rows(night.format(yesterday)) == [
        (c, raw.country_at(c, march)) for c in range(1, raw.CUSTOMERS + 1)
    ]
