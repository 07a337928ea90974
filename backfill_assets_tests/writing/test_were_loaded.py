"""Asked of a year at once, the audit says of each slice what it says when asked of that slice alone."""

from backfill_assets.slice import Slice
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import Window
from backfill_assets_tests.warehouses import AUDIT, Warehouse, at

BY_REGION = Table("mart.t", SliceColumn("at"), dimensions=("region",))
HOURLY = Table("mart.h", SliceColumn("at"))
WHOLE = Table("mart.h", allow_empty=True)
DAYS = [f"2026-05-{day:02}" for day in range(1, 8)]


def rows(*moments: str, **more: list) -> dict[str, list]:
    return {"at": [at(moment) for moment in moments], **more}


def both(warehouse: Warehouse, slices: list[Slice]) -> list[bool]:
    with warehouse.session() as session:
        told = AUDIT.were_loaded(session, slices)
        assert told == [AUDIT.was_loaded(session, slice_) for slice_ in slices]
    return told


def test_of_nothing_nothing_was_loaded(warehouse: Warehouse) -> None:
    assert both(warehouse, [Slice(HOURLY, Window.day(day)) for day in DAYS]) == [False] * 7
    with warehouse.session() as session:
        assert AUDIT.were_loaded(session, []) == []


def test_an_hour_loads_its_day_and_a_span_of_days_each_of_them(warehouse: Warehouse) -> None:
    hour = Window(at("2026-05-02 23:00"), at("2026-05-03 00:00"))
    span = Window(at("2026-05-04 00:00"), at("2026-05-06 00:00"))
    warehouse.write(HOURLY, hour, rows("2026-05-02 23:30"))
    warehouse.write(HOURLY, span, rows("2026-05-04 12:00"))
    slices = [Slice(HOURLY, Window.day(day)) for day in DAYS]
    told = both(warehouse, slices)
    assert [day for day, was in zip(DAYS, told, strict=True) if was] == [DAYS[n] for n in (1, 3, 4)]
    assert both(warehouse, list(reversed(slices))) == list(reversed(told))


def test_a_whole_table_is_every_day_and_a_region_only_its_own(warehouse: Warehouse) -> None:
    fixed = {"region": "eu"}
    warehouse.write(BY_REGION, DAYS[0], rows("2026-05-01 12:00", region=["eu"]), fixed=fixed)
    slices = [
        Slice(BY_REGION, Window.day(day), (("region", region),))
        for day in DAYS[:2]
        for region in ("eu", "us")
    ]
    assert both(warehouse, slices) == [True, False, False, False]
    warehouse.write(WHOLE, None, rows("2026-05-01 12:00"))
    assert both(warehouse, [Slice(HOURLY, Window.day(day)) for day in DAYS]) == [True] * 7
    assert both(warehouse, [Slice(WHOLE)]) == [True]
