"""Which days a run asks dbt for: single ones, and of a calendar with gaps no others."""

from __future__ import annotations

import json
from datetime import date, timedelta
from typing import Any

import pytest

from backfill_assets.dbt.invoking import command_for
from backfill_assets.errors import DeclarationError
from backfill_assets.io_managers import DeleteInsertIOManager
from backfill_assets.slice import Slice
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import Window
from backfill_assets.writing import Run

FACT = Table("analytics.fct", SliceColumn("day", "date", "Europe/Berlin"))
FIRST = date(2026, 3, 28)


def slice_of(first: date, days: int = 1) -> Slice:
    zone = "Europe/Berlin"
    start = Window.day(first, zone).start
    return Slice(
        FACT,
        Window(start, Window.day(first + timedelta(days=days), zone).start),
        partition=str(first),
    )


def told(*slices: Slice) -> dict[str, Any]:
    manager = DeleteInsertIOManager(url="duckdb:///w.duckdb")
    command = command_for(Run("r"), manager, {"analytics.fct": slices}, {})
    return json.loads(command[command.index("--vars") + 1])


def test_days_in_a_row_are_asked_for_as_a_window() -> None:
    found = told(*(slice_of(FIRST + timedelta(days=n)) for n in range(3)))
    assert (found["start"], found["end"]) == ("2026-03-28", "2026-03-31")
    assert "only_days" not in found


def test_days_that_a_calendar_leaves_out_are_not_asked_for() -> None:
    found = told(slice_of(FIRST), slice_of(FIRST + timedelta(days=3)))
    assert (found["start"], found["end"]) == ("2026-03-28", "2026-04-01")
    assert found["only_days"] == {"analytics.fct": ["2026-03-28", "2026-03-31"]}


@pytest.mark.parametrize("days", [2, 7, 31])
def test_a_week_or_a_month_is_refused_since_its_first_day_would_stand_for_all_of_it(
    days: int,
) -> None:
    with pytest.raises(DeclarationError, match="are single days of the model's time_zone"):
        told(slice_of(FIRST, days))
