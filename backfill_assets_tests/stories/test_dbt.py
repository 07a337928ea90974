"""The country story: a customer moves in April, and a June backfill of 90 days gives March orders the March country.

With the real webserver, daemon, queue and dbt, paused and resumed in the middle as a person would.
"""

from __future__ import annotations

import io
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from backfill_assets.dbt import raw
from backfill_assets.demo.dbt_demo import FIRST, LAST, days_between, report, without_country
from backfill_assets.demo.place import ROOT, Place, prepared
from backfill_assets.demo.servers import servers
from backfill_assets_tests.stories.running import GOING, Story, launched
from backfill_assets_tests.warehouses import Warehouse, with_options

pytestmark = pytest.mark.slow
DAYS = days_between(FIRST, LAST)
_CHECKS = """query Checks($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) { ... on AssetNode {
  assetChecksOrError { ... on AssetChecks { checks { name
    partitionStatuses { ... on AssetCheckTimePartitionStatuses { ranges { startKey endKey status } } }
} } } } } }"""
# nothing of these is the backfill's business
_OTHERS = (
    "SELECT * FROM raw.orders ORDER BY order_id",
    "SELECT * FROM raw.customers ORDER BY customer_id",
    "SELECT customer_id, country, updated_at, dbt_valid_from, dbt_valid_to FROM analytics.dim_customers ORDER BY 1, 3",
)
_MARCH = """SELECT customer_id, ordered_at, country FROM analytics.fct_orders
  WHERE order_date < DATE '2026-04-01'"""


@pytest.fixture
def place(warehouse: Warehouse, tmp_path: Path) -> Place:
    """The demo's folder over a warehouse of either kind, with a door of the backfill lane's own where it can have one."""
    settings = {"BACKFILL_WAREHOUSE_URL": warehouse.url, "BACKFILL_HOLD_SECONDS": "1"}
    lane = with_options(warehouse.url, lock_wait=300)
    if warehouse.is_postgres:
        warehouse.execute(
            "DO $$ BEGIN CREATE ROLE lane SUPERUSER LOGIN; EXCEPTION WHEN duplicate_object THEN END $$"
        )
        lane = warehouse.url.replace("//postgres:", "//lane:").replace("//postgres@", "//lane@")
        assert lane != warehouse.url
    return Place(
        prepared(tmp_path).folder,
        workspace=ROOT / "workspace_dbt.yaml",
        settings={**settings, "BACKFILL_LANE_WAREHOUSE_URL": lane},
        daemon=Path(__file__).with_name("quick_daemon.py"),
        at=warehouse.url,
    )


@pytest.fixture
def console() -> Console:
    return Console(file=io.StringIO(), width=200)


def checks_of(story: Story) -> dict[str, dict[str, str]]:
    """Return the status of each day of each check, as the UI shows it."""
    found: dict[str, dict[str, str]] = {}
    node = story.dagster.ask(_CHECKS, key={"path": ["analytics", "fct_orders"]})["assetNodeOrError"]
    for check in node["assetChecksOrError"]["checks"]:
        for part in (check["partitionStatuses"] or {}).get("ranges", []):
            first, last = DAYS.index(part["startKey"]), DAYS.index(part["endKey"])
            for one in DAYS[first : last + 1]:
                found.setdefault(check["name"], {})[one] = part["status"]
    return found


def test_a_country_column_of_90_days_is_filled_in_june_with_the_countries_of_each_moment(
    place: Place, console: Console, warehouse: Warehouse
) -> None:
    before = without_country(place, console, DAYS)
    others = [warehouse.rows(sql) for sql in _OTHERS]
    with servers(place) as running:
        story = Story(place, running, "backfill_assets_dbt")
        backfill = story.dagster.launch(
            [["analytics", "fct_orders"]], DAYS, "Country for every order", {"reason": "June"}
        )
        launched(story, backfill)
        most, roles = 0, set[str]()

        def look() -> bool:
            nonlocal most
            counts = story.counts(backfill=backfill)
            most = max(most, sum(counts[status] for status in GOING))
            if warehouse.is_postgres:
                sql = "SELECT usename FROM pg_stat_activity WHERE application_name = 'dbt'"
                roles.update(row[0] for row in warehouse.rows(sql))
            return counts["STARTED"] > 0

        story.until(look, "a run to start")
        time.sleep(4)  # dbt reads its project, and is among its days
        reason = {"reason": "the moves are looked at again", "by": "ana"}
        assert story.do("pause_backfills", backfill=backfill, **reason) == "SUCCESS"
        story.until(lambda: not story.counts(backfill=backfill)["STARTED"], "the pause to hold")
        held = [run for run in story.runs(backfill=backfill) if "held" in story.tags_of(run)]
        done = set(_loads(warehouse, backfill))
        time.sleep(3)
        assert set(_loads(warehouse, backfill)) == done
        assert story.do("resume_backfills", backfill=backfill, **reason) == "SUCCESS"

        def ended() -> bool:
            look()
            return story.dagster.status(backfill)[0] not in ("REQUESTED", "STARTED")

        story.until(ended, f"{backfill} to end", 400)
        assert story.dagster.status(backfill)[0] == "COMPLETED_SUCCESS"
        assert held or done == set(DAYS)
        assert 1 <= most <= 3
        assert (
            story.do("verify_range", table="analytics.fct_orders", first=DAYS[0], last=DAYS[-1])
            == "SUCCESS"
        )
        shown = checks_of(story)
    for name in ("row_count", "duplicate_keys", "unique_fct_orders_order_id", "schema"):
        assert shown[name] == dict.fromkeys(DAYS, "SUCCEEDED"), name
    if warehouse.is_postgres:
        assert roles == {"lane"}

    # counts, sums and countries of each day, no day twice, and beside the column no value changed
    assert report(place, console, backfill, DAYS, before), console.file.getvalue()  # type: ignore[attr-defined]
    assert sorted(_loads(warehouse, backfill)) == DAYS
    assert [warehouse.rows(sql) for sql in _OTHERS] == others
    assert {
        row[0]
        for row in warehouse.rows(
            "SELECT DISTINCT lane FROM backfill.load_audit WHERE reason = 'June'"
        )
    } == {"backfill"}
    _march_orders_have_the_march_country(warehouse)


def _march_orders_have_the_march_country(warehouse: Warehouse) -> None:
    march, june = (datetime(2026, month, 1, tzinfo=timezone.utc) for month in (3, 6))
    orders = warehouse.rows(_MARCH)
    moved = [(customer, country) for customer, _, country in orders if customer in raw.moves()]
    assert all(country == raw.country_at(customer, march) for customer, country in moved)
    # what a join with today's customers would say of the same orders
    wrong = sum(raw.country_at(c, march) != raw.country_at(c, june) for c, _, _ in orders)
    naive: Any = warehouse.rows(
        f"SELECT count(*) FROM ({_MARCH}) AS f JOIN raw.customers AS today"
        " ON today.customer_id = f.customer_id WHERE today.country <> f.country"
    )
    assert naive == [(wrong,)]
    assert wrong > len(orders) / 10


def _loads(warehouse: Warehouse, backfill: str) -> list[str]:
    found = warehouse.rows(
        f"SELECT partition_key FROM backfill.load_audit WHERE backfill_id = '{backfill}' AND outcome = 'committed'"
    )
    return [row[0] for row in found]
