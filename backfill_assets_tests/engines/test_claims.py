"""One writer a slice: whoever comes second waits and is told for whom, and nothing is ever doubled."""

from __future__ import annotations

import contextlib
import re
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import date, timedelta
from typing import Any

import pytest

from backfill_assets.engines import Claim, open_engine
from backfill_assets.engines.postgres import SPELLING
from backfill_assets.engines.postgres_claims import claiming
from backfill_assets.errors import SliceBusy, StaleSource, WarehouseBusy
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import Window
from backfill_assets_tests.interruptions import after_statement, once
from backfill_assets_tests.warehouses import Warehouse, at, until

DAY = date(2026, 5, 12)
SALES = Table("mart.fct_sales", SliceColumn("day", "date"), on_schema_change="fail")
FIRST_DAYS = [DAY + timedelta(days=n) for n in range(5)]


def rows(day: date = DAY, count: int = 50) -> dict[str, list[Any]]:
    return {"day": [day] * count, "id": list(range(count))}


def while_writing(
    warehouse: Warehouse, window: Any, act: Any, data: Any = None, table: Table = SALES
) -> None:
    """Call `act` while run `first` is in the middle of replacing `window`, which it has claimed."""
    with warehouse.session(who="run first") as session:
        after_statement(session, warehouse.removal, once(act))
        warehouse.write(table, window, data or rows(), session=session, run_id="first")


def refusal(warehouse: Warehouse, window: Any, table: Table = SALES, data: Any = None) -> str:
    """Return the sentence that a second writer gets when it waits for a moment only."""
    impatient = Warehouse(warehouse.url + ("&" if "?" in warehouse.url else "?") + "lock_wait=0.2")
    with pytest.raises((SliceBusy, WarehouseBusy)) as busy:
        impatient.write(table, window, data or rows(), run_id="second")
    assert busy.value.retry
    return str(busy.value)


def test_an_engine_with_other_limits_is_the_same_warehouse_and_gives_up_when_they_say(
    warehouse: Warehouse,
) -> None:
    engine = open_engine(warehouse.url)
    hurried = engine.limited(lock_wait=0.2)
    assert (hurried.place, hurried.address, hurried.shown) == (
        engine.place,
        engine.address,
        engine.shown,
    )

    def second() -> None:
        with (
            pytest.raises((SliceBusy, WarehouseBusy), match=r"0\.2 s"),
            hurried.session(who="run second") as session,
        ):
            warehouse.write(SALES, "2026-05-12", rows(), session=session)

    while_writing(warehouse, "2026-05-12", second)
    assert warehouse.count("mart.fct_sales") == 50
    warehouse.write(SALES, "2026-05-12", rows())  # the first one waits as it always did


def started_and_waiting(warehouse: Warehouse, writer: threading.Thread) -> None:
    writer.start()
    until(warehouse.somebody_waits)


def settled(*writes: Future[None]) -> None:
    """Every write is done, or was overtaken by one that read later; nothing else went wrong."""
    errors = [write.exception() for write in writes]
    assert all(error is None or isinstance(error, StaleSource) for error in errors), errors
    assert None in errors


@pytest.mark.parametrize("loaded", [False, True], ids=["empty", "full"])
def test_the_second_writer_of_a_slice_is_refused_with_the_name_of_the_first(
    warehouse: Warehouse, loaded: bool
) -> None:
    if loaded:
        warehouse.write(SALES, "2026-05-12", rows())
    said: list[str] = []
    while_writing(warehouse, "2026-05-12", lambda: said.append(refusal(warehouse, "2026-05-12")))
    assert "run first" in said[0]
    assert "so nothing was changed" in said[0]
    assert warehouse.count("mart.fct_sales") == 50
    assert [load[-1] for load in warehouse.loads()][-1] == "first"


def test_the_second_writer_waits_for_the_first_and_then_writes(warehouse: Warehouse) -> None:
    second: list[Any] = []
    writer = threading.Thread(
        target=lambda: second.append(warehouse.write(SALES, "2026-05-12", rows(), run_id="second"))
    )
    while_writing(warehouse, "2026-05-12", lambda: started_and_waiting(warehouse, writer))
    writer.join(60)
    assert second[0].rows_before == 50
    assert warehouse.count("mart.fct_sales") == 50


def test_five_writers_on_a_fresh_warehouse_make_one_table_and_five_days(
    warehouse: Warehouse,
) -> None:
    """Two of them bring the same day."""
    days = [*FIRST_DAYS[:4], FIRST_DAYS[0]]
    start = threading.Barrier(5)

    def write(number: int) -> None:
        start.wait()
        warehouse.write(SALES, str(days[number]), rows(days[number]), run_id=f"writer-{number}")

    with ThreadPoolExecutor(5) as pool:
        settled(*[pool.submit(write, n) for n in range(5)])
    counts = warehouse.rows("SELECT day, count(*) FROM mart.fct_sales GROUP BY day ORDER BY day")
    assert counts == [(day, 50) for day in FIRST_DAYS[:4]]
    assert warehouse.leftovers() == []


def test_two_backfills_that_overlap_leave_each_day_once(warehouse: Warehouse) -> None:
    def backfill(days: list[date]) -> None:
        for day in days:
            with contextlib.suppress(StaleSource):
                warehouse.write(SALES, str(day), rows(day))

    with ThreadPoolExecutor(2) as pool:
        settled(pool.submit(backfill, FIRST_DAYS[:4]), pool.submit(backfill, FIRST_DAYS[:1:-1]))
    counts = warehouse.rows("SELECT day, count(*) FROM mart.fct_sales GROUP BY day ORDER BY day")
    assert counts == [(day, 50) for day in FIRST_DAYS]


# only PostgreSQL has two writers in one database at a time


@pytest.fixture
def loaded(postgres: Warehouse) -> Warehouse:
    postgres.write(SALES, "2026-05-12", rows())
    return postgres


def test_writers_of_different_days_do_not_wait_for_each_other(loaded: Warehouse) -> None:
    tomorrow = DAY + timedelta(days=1)
    while_writing(loaded, "2026-05-12", lambda: loaded.write(SALES, str(tomorrow), rows(tomorrow)))
    assert loaded.count("mart.fct_sales") == 100


def test_writers_of_the_same_day_of_different_tables_do_not_wait_for_each_other(
    loaded: Warehouse,
) -> None:
    other = Table("mart.fct_other", SliceColumn("day", "date"))
    while_writing(loaded, "2026-05-12", lambda: loaded.write(other, "2026-05-12", rows()))
    assert loaded.count("mart.fct_other") == 50


OVERLAPPING = {
    "a_month": Window(at("2026-05-01 00:00"), at("2026-06-01 00:00")),
    "two_days": Window(at("2026-05-11 00:00"), at("2026-05-13 00:00")),
    "the_whole_table": None,
    "two_years": Window(at("2025-01-01 00:00"), at("2027-01-01 00:00")),
}


@pytest.mark.parametrize("window", OVERLAPPING.values(), ids=OVERLAPPING)
@pytest.mark.parametrize("first", ["day", "other"])
def test_windows_that_share_a_day_wait_for_each_other(
    loaded: Warehouse, window: Any, first: str
) -> None:
    windows = ["2026-05-12", window] if first == "day" else [window, "2026-05-12"]
    said: list[str] = []
    while_writing(loaded, windows[0], lambda: said.append(refusal(loaded, windows[1])))
    assert "is being rewritten by run first" in said[0]


def test_two_names_of_one_table_are_one_claim(postgres: Warehouse) -> None:
    short, long = (Table(name, SliceColumn("day", "date")) for name in ("fct", "public.fct"))
    postgres.write(short, "2026-05-12", rows())
    said: list[str] = []
    while_writing(
        postgres,
        "2026-05-12",
        lambda: said.append(refusal(postgres, "2026-05-12", long)),
        table=short,
    )
    assert (
        "public.fct 2026-05-12 is being rewritten by run first, so nothing was changed" in said[0]
    )


def test_a_new_york_day_and_the_utc_days_it_touches_wait_for_each_other(
    postgres: Warehouse,
) -> None:
    instants = Table("t", SliceColumn("at", "timestamptz", "America/New_York"))
    noon = {"at": [at("2026-05-12 16:00")]}
    postgres.write(instants, "2026-05-12", noon)
    in_utc, next_noon = Table("t", SliceColumn("at")), {"at": [at("2026-05-13 16:00")]}
    said: list[str] = []

    def second() -> None:
        said.append(refusal(postgres, "2026-05-13", in_utc, next_noon))

    while_writing(postgres, "2026-05-12", second, noon, instants)
    assert "run first" in said[0]


def test_a_claim_ends_with_its_transaction_even_when_that_fails(loaded: Warehouse) -> None:
    def fail() -> None:
        raise RuntimeError("bug")

    with loaded.session() as session:
        after_statement(session, "DELETE", fail)
        with pytest.raises(RuntimeError):
            loaded.write(SALES, "2026-05-12", rows(), session=session)
        assert (
            Warehouse(loaded.url + "&lock_wait=1").write(SALES, "2026-05-12", rows()).rows_before
            == 50
        )


def test_a_claim_held_by_a_stranger_names_its_application(loaded: Warehouse) -> None:
    import psycopg

    with loaded.session() as session:
        calls: list[str] = []
        run = session._run  # type: ignore[attr-defined]
        session._run = lambda sql: (calls.append(sql), run(sql))[1]  # type: ignore[attr-defined]
        loaded.write(SALES, "2026-05-12", rows(), session=session)
    claim = next(sql for sql in calls if "pg_advisory_xact_lock" in sql)
    lock = next(part for part in claim.split(";") if part.strip().startswith("SELECT"))
    with psycopg.connect(loaded.url, application_name="psql") as stranger:
        stranger.execute(lock.encode())
        said, process = refusal(loaded, "2026-05-12"), stranger.info.backend_pid
    assert f"is being rewritten by psql (process {process})" in said


def test_a_long_wait_is_told_once(loaded: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backfill_assets.engines.postgres._TELL_AFTER_SECONDS", 0.1)
    reports: list[str] = []

    def wait() -> None:
        with (
            loaded.engine(lock_wait=0.4).session(report=reports.append) as second,
            pytest.raises(SliceBusy),
        ):
            loaded.write(SALES, "2026-05-12", rows(), session=second)

    while_writing(loaded, "2026-05-12", wait)
    assert reports == [
        "mart.fct_sales 2026-05-12 is being rewritten by run first: waiting, up to 0 s more."
    ]


def test_a_wait_that_was_told_ends_when_the_first_writer_does(
    loaded: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backfill_assets.engines.postgres._TELL_AFTER_SECONDS", 0.05)
    told, done = threading.Event(), []

    def second() -> None:
        with loaded.engine().session(report=lambda _: told.set()) as session:
            done.append(loaded.write(SALES, "2026-05-12", rows(), session=session))

    writer = threading.Thread(target=second)

    def start() -> None:
        writer.start()
        assert told.wait(30)

    while_writing(loaded, "2026-05-12", start)
    writer.join(60)
    assert [load.rows_before for load in done] == [50]


def test_days_are_claimed_in_their_order_whatever_order_they_come_in() -> None:
    days = (FIRST_DAYS[2], FIRST_DAYS[0], FIRST_DAYS[1])
    sql = claiming(SPELLING, Claim('"t"', days, "t", "a run"), 1000, "DEFAULT")
    assert re.findall(r"\d{4}-\d{2}-\d{2}", sql) == [str(day) for day in FIRST_DAYS[:3]]


def test_writers_of_many_days_in_any_order_do_not_deadlock(loaded: Warehouse) -> None:
    def write(offset: int) -> None:
        first = at("2026-05-01 00:00") + timedelta(days=offset)
        loaded.write(SALES, Window(first, first + timedelta(days=20)), rows(), run_id=f"w{offset}")

    with ThreadPoolExecutor(4) as pool:
        settled(*[pool.submit(write, offset) for offset in (9, 0, 5, 7, 2, 8, 1, 6)])
    assert loaded.count("mart.fct_sales") == 50


def test_the_data_is_still_right_when_the_default_isolation_is_another(loaded: Warehouse) -> None:
    name = loaded.url.split("?")[0].rsplit("/", 1)[1]
    for level in ("serializable", "repeatable read"):
        loaded.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = '{level}'")
        writer = threading.Thread(
            target=lambda: loaded.write(SALES, "2026-05-12", rows(), run_id="second")
        )
        while_writing(loaded, "2026-05-12", lambda w=writer: started_and_waiting(loaded, w))
        writer.join(60)
        assert loaded.count("mart.fct_sales") == 50
        assert loaded.loads()[-1][-1] == "second"
