"""The sample is the same everywhere, and its awkward rows are where they claim to be."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

from backfill_assets.engines import open_engine
from backfill_assets.sales.source import AWKWARD, HOLIDAY, days, prepare, sales_of


def test_a_day_is_the_same_whenever_it_is_made() -> None:
    assert sales_of(date(2026, 5, 4)) == sales_of(date(2026, 5, 4))
    total = sum(row[0] * row[2] * row[4] for row in sales_of(date(2026, 5, 4)))
    assert (len(sales_of(date(2026, 5, 4))), total) == (2084, 11_677_737_027_235_470)


def test_a_day_holds_about_two_thousand_sales_and_a_holiday_none() -> None:
    counts = {day: len(sales_of(day)) for day in days()}
    assert counts[HOLIDAY] == 0
    assert all(1200 <= count <= 2200 for day, count in counts.items() if day != HOLIDAY)
    assert len(counts) == 122


def test_every_row_lies_in_its_day_and_every_sale_id_is_given_once() -> None:
    ids = [row[0] for day in days() for row in sales_of(day)]
    assert len(set(ids)) == len(ids)
    assert all(row[1].date() == day for day in days() for row in sales_of(day))


def test_the_awkward_rows_are_what_they_are_named() -> None:
    at = {name: event_at for name, (_, event_at, _, _) in AWKWARD.items()}
    loaded = {name: loaded_at for name, (_, _, _, loaded_at) in AWKWARD.items()}
    assert at["exactly_at_midnight"].timestamp() % 86_400 == 0
    before = at["one_microsecond_before_midnight"] + timedelta(microseconds=1)
    assert before.timestamp() % 86_400 == 0
    assert (loaded["late_by_three_days"].date() - at["late_by_three_days"].date()).days == 3
    assert (loaded["late_by_three_weeks"].date() - at["late_by_three_weeks"].date()).days == 21


def test_preparing_again_changes_nothing_and_a_lost_row_comes_back(tmp_path: Path) -> None:
    engine = open_engine(f"duckdb:///{tmp_path}/warehouse.duckdb")
    total = prepare(engine)
    look = "SELECT count(*), sum(sale_id) FROM staging.sales_raw"
    with engine.session() as session:
        first = session.fetch(look)
        session.execute("DELETE FROM staging.sales_raw WHERE sale_id = 1")
    assert prepare(engine) == total == first[0][0]
    with engine.session() as session:
        assert session.fetch(look) == first
