"""A person backfills a week from the asset's page, watches it end, and reads each day's check results: in chromium.

With STORY_IMAGES set to a folder (`make screenshots`), the pictures of docs/ are taken on the way.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backfill_assets.demo.place import Place, prepared
from backfill_assets.demo.servers import Running, servers
from backfill_assets.engines import open_engine
from backfill_assets.sales.source import prepare

pytestmark = pytest.mark.slow

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SALES = "/assets/analytics/fct_sales"
WEEK = "[2026-05-10...2026-05-16]"
# a sale that a shop reported with a negative price by mistake, and that is to be shown as it came
THE_DAY, THE_SALE = "2026-05-12", 739748_0007
_BACKFILLS = (
    "query { partitionBackfillsOrError(limit: 1) { ... on PartitionBackfills { results { id } } } }"
)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = prepared(tmp_path / "home")
    engine = open_engine(place.url)
    prepare(engine)
    with engine.session() as session:
        assert (
            session.execute(
                f"UPDATE staging.sales_raw SET unit_price = -unit_price, status = 'confirmed' WHERE sale_id = {THE_SALE}"
            )
            == 1
        )
    return place


@pytest.fixture
def page(place: Place) -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no chromium is installed; on Debian: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(90_000)
        yield page
        browser.close()


def test_a_week_is_backfilled_from_the_asset_page_and_each_day_shows_its_checks(
    place: Place, page: Any
) -> None:
    with servers(place) as running:
        _launch(page, running.url)
        backfill = _watch(page, running)
        runs = running.dagster.status(backfill)[1]
        assert set(runs.values()) == {"SUCCESS"}
        with open_engine(place.url).session(read_only=True) as session:
            loads = session.fetch(
                "SELECT count(*), min(reason), min(partition_key), max(partition_key), min(lane) FROM backfill.load_audit"
                f" WHERE backfill_id = '{backfill}' AND outcome = 'committed'"
            )
        assert loads == [(7, "INC-42 late file", "2026-05-10", "2026-05-16", "backfill")]
        assert _check(page, running.url, "row_count") == {"Passed": 7, "Failed": 0}
        assert _check(page, running.url, "no_negative_amounts") == {"Passed": 6, "Failed": 1}
        page.get_by_placeholder("Filter by partition…").fill(THE_DAY)
        page.get_by_text(THE_DAY, exact=True).first.click()
        told = page.get_by_text(re.compile("1 rows break the rule .*INC-42 late file")).first
        told.wait_for()
        _take(page, "checks")
        page.get_by_text(str(THE_SALE)).first.wait_for()
        _look(page, running.url)


def _launch(page: Any, url: str) -> None:
    page.goto(f"{url}{SALES}?view=partitions")
    page.get_by_role("button", name="Materialize").first.click()
    page.get_by_text("Partition selection").first.wait_for()
    page.get_by_text("Show all partitions").click()
    dialog = page.get_by_role("dialog")
    days = dialog.get_by_role("textbox").first
    days.fill(WEEK)
    days.press("Enter")
    dialog.get_by_text("Tags", exact=True).click()
    dialog.get_by_role("button", name="Add tags").click()
    _tag(page, "reason", "INC-42 late file")
    page.get_by_role("button", name="Add custom tag").click()
    _tag(page, "allow", "rule:no_negative_amounts")
    _take(page, "reason")
    page.get_by_role("button", name="Apply").click()
    _take(page, "launch")
    page.get_by_role("button", name="Launch backfill").click()
    page.get_by_text("Partition selection").first.wait_for(state="hidden")


def _tag(page: Any, name: str, value: str) -> None:
    page.get_by_placeholder("Tag Key").last.fill(name)
    page.get_by_placeholder("Tag Value").last.fill(value)


def _watch(page: Any, running: Running) -> str:
    """Wait on the backfill's own page until it says that it is over, and return its id."""
    (found,) = running.dagster.ask(_BACKFILLS)["partitionBackfillsOrError"]["results"]
    page.goto(f"{running.url}/runs/b/{found['id']}")
    page.get_by_text("100% completed").wait_for(timeout=240_000)
    page.get_by_text("In progress", exact=True).nth(1).wait_for(state="hidden", timeout=120_000)
    _take(page, "backfill")
    return found["id"]


def _check(page: Any, url: str, name: str) -> dict[str, int]:
    """Open a check of the asset, and return how many partitions its page counts as passed and failed."""
    page.goto(f"{url}{SALES}?view=checks&checkDetail={name}")
    page.get_by_text("Automation history").wait_for()
    page.get_by_role("tab", name="Partitions").last.click()
    page.get_by_text(re.compile(r"Passed \([1-9]")).wait_for()
    said = page.inner_text("body")
    counts = re.findall(r"(?<!Execution )\b(Passed|Failed)\s*\((\d+)\)", said)
    return {status: int(count) for status, count in counts}


def _look(page: Any, url: str) -> None:
    """Look at what else the docs show."""
    page.goto(f"{url}{SALES}?view=partitions&partition={THE_DAY}")
    page.get_by_text("rows_after").first.wait_for()
    assert "no_negative_amounts: 1 rows break the rule" in page.inner_text("body")
    _take(page, "partition")
    page.goto(f"{url}{SALES}?view=overview")
    page.get_by_text("Confirmed sales by the UTC day").first.wait_for()
    _take(page, "asset")


def _take(page: Any, name: str) -> None:
    folder = os.environ.get("STORY_IMAGES")
    if folder:
        page.wait_for_timeout(2500)  # charts draw themselves in
        page.screenshot(path=Path(folder) / f"{name}.png")
