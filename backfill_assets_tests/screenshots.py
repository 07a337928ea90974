"""Takes the pictures of docs/ from the UI on the demo's data, as a person would come by them."""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from backfill_assets.demo.place import prepared
from backfill_assets.demo.servers import servers

IMAGES = Path(__file__).parents[1] / "docs" / "images"
CHROMIUM = "/usr/bin/chromium"
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


def main(home: Path) -> None:
    place = prepared(home)
    if not place.warehouse.exists():
        sys.exit("There is no demo data yet. Run: make demo")
    IMAGES.mkdir(exist_ok=True)
    with servers(place) as running, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        _asset(page, running.url)
        _partition(page, running.url)
        _launch(page, running.url)
        browser.close()


def _asset(page: Page, url: str) -> None:
    page.goto(f"{url}{SALES}?view=overview")
    page.get_by_text("Confirmed sales by the UTC day").first.wait_for()
    _take(page, "asset")


def _partition(page: Page, url: str) -> None:
    page.goto(f"{url}{SALES}?view=partitions&partition=2026-05-12")
    page.get_by_text("rows_after").first.wait_for()
    _take(page, "partition")


def _launch(page: Page, url: str) -> None:
    page.goto(f"{url}{SALES}?view=partitions")
    page.get_by_role("button", name="Materialize").first.click()
    page.get_by_text("Partition selection").first.wait_for()
    page.get_by_text("Show all partitions").click()
    dialog = page.get_by_role("dialog")
    days = dialog.get_by_role("textbox").first
    days.fill("[2026-05-10...2026-05-16]")
    days.press("Enter")
    dialog.get_by_text("Tags", exact=True).click()
    page.wait_for_timeout(500)
    dialog.get_by_role("button", name="tag").first.click()
    names = page.get_by_placeholder("Tag Key").last
    names.fill("reason")
    page.get_by_placeholder("Tag Value").last.fill("INC-42 late file")
    _take(page, "reason")
    page.get_by_role("button", name="Apply").click()
    _take(page, "launch")


def _take(page: Page, name: str) -> None:
    page.wait_for_timeout(2500)  # charts draw themselves in
    page.screenshot(path=IMAGES / f"{name}.png")
    print(f"docs/images/{name}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else ".demo"))
