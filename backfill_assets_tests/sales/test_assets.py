"""The example's own promise: every confirmed sale on its UTC day, once, whatever the session's zone."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import dagster as dg
import pytest

from backfill_assets.engines import Engine, open_engine
from backfill_assets.io_managers import DeleteInsertIOManager
from backfill_assets.sales.assets import daily_product_sales, fct_sales
from backfill_assets.sales.source import AWKWARD, HOLIDAY, prepare
from backfill_assets.sales.tables import DAILY_PRODUCT_SALES, FCT_SALES


@pytest.fixture(params=["duckdb", "postgres"])
def engine(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Engine:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    monkeypatch.setenv("PGTZ", "Asia/Kolkata")
    url = (
        f"duckdb:///{tmp_path}/w.duckdb"
        if request.param == "duckdb"
        else request.getfixturevalue("postgres_url")
    )
    found = open_engine(url)
    prepare(found)
    request.node.url = url
    return found


def load(request: pytest.FixtureRequest, first: str, last: str) -> None:
    edges = {
        "dagster/asset_partition_range_start": first,
        "dagster/asset_partition_range_end": last,
    }
    manager = DeleteInsertIOManager(url=request.node.url)
    assert dg.materialize(
        [fct_sales, daily_product_sales], resources={"io_manager": manager}, tags=edges
    ).success


def test_every_confirmed_sale_is_on_its_day_once_and_sums_to_the_cent(
    request: pytest.FixtureRequest, engine: Engine
) -> None:
    load(request, "2026-05-09", "2026-05-13")
    load(request, "2026-05-11", "2026-05-12")
    with engine.session() as session:
        facts = session.fetch(
            "SELECT sale_date, count(*), sum(amount) FROM analytics.fct_sales GROUP BY 1 ORDER BY 1"
        )
        source = session.fetch(
            "SELECT CAST(event_at AS DATE), count(*), sum(qty * unit_price) FROM staging.sales_raw"
            " WHERE status = 'confirmed' AND event_at >= TIMESTAMPTZ '2026-05-09 00:00:00+00:00'"
            " AND event_at < TIMESTAMPTZ '2026-05-14 00:00:00+00:00' GROUP BY 1 ORDER BY 1"
        )
        products = session.fetch(
            "SELECT sale_date, sum(amount) FROM analytics.daily_product_sales GROUP BY 1 ORDER BY 1"
        )
    assert len(facts) == 5
    assert facts == source
    assert products == [(day, total) for day, _, total in facts]
    assert all(isinstance(total, Decimal) for _, _, total in facts)


def test_the_awkward_rows_land_on_the_day_they_happened_or_not_at_all(
    request: pytest.FixtureRequest, engine: Engine
) -> None:
    load(request, "2026-05-04", "2026-05-04")
    load(request, "2026-05-09", "2026-05-13")
    with engine.session() as session:
        found = dict(
            session.fetch("SELECT sale_id, sale_date FROM analytics.fct_sales WHERE sale_id < 100")
        )
    by_name = {name: found.get(row[0]) for name, row in AWKWARD.items()}
    assert by_name == {
        "exactly_at_midnight": date(2026, 5, 10),
        "one_microsecond_before_midnight": date(2026, 5, 10),
        "at_the_end_of_the_month": None,  # 31 May was not loaded
        "late_by_three_days": date(2026, 5, 12),
        "late_by_three_weeks": date(2026, 5, 4),
        "cancelled_next_day": None,
        "still_pending": None,
    }


def test_the_holiday_is_rightly_empty_and_its_neighbours_are_not(
    request: pytest.FixtureRequest, engine: Engine
) -> None:
    load(request, "2026-05-24", "2026-05-26")
    with engine.session() as session:
        audited = session.fetch(
            "SELECT partition_key, rows_after FROM backfill.load_audit WHERE table_name = 'analytics.fct_sales' ORDER BY 1"
        )
    assert [key for key, _ in audited] == ["2026-05-24", "2026-05-25", "2026-05-26"]
    assert [rows > 0 for _, rows in audited] == [True, False, True]


def test_the_holiday_launched_alone_makes_two_empty_tables_with_the_declared_columns(
    request: pytest.FixtureRequest, engine: Engine
) -> None:
    """Pandas knows no types for no rows, so this is where a guess would show."""
    load(request, HOLIDAY.isoformat(), HOLIDAY.isoformat())
    with engine.session() as session:
        for table in (FCT_SALES, DAILY_PRODUCT_SALES):
            assert list(session.columns_of(table.qualified) or {}) == list(table.columns or {})
            assert session.fetch(f"SELECT count(*) FROM {table.qualified}") == [(0,)]
