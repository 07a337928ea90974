"""Faults that a strict reader found: rows lost or overwritten, passwords shown, and sentences that led astray."""

from __future__ import annotations

import threading
import time
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from urllib.parse import urlsplit

import duckdb
import pyarrow as pa
import pytest

from backfill_assets.engines import open_engine
from backfill_assets.errors import (
    Away,
    BackfillError,
    DeclarationError,
    MissingTable,
    SchemaMismatch,
    ShrunkSlice,
    StaleSource,
    Unreachable,
    WarehouseBusy,
    WriteFailed,
)
from backfill_assets.table import SliceColumn, Table
from backfill_assets.writing import Select
from backfill_assets_tests.warehouses import Warehouse

DAY = date(2026, 5, 12)
KEY = "2026-05-12"


def table(name: str = "sales", **options: object) -> Table:
    return Table(name, SliceColumn("day", "date"), **options)


def rows(count: int, **more: object) -> dict[str, object]:
    return {"day": [DAY] * count, "id": list(range(count)), **more}


# a source compared by the wrong clock


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT CAST(ts AS DATE) AS day, id FROM source",
        "SELECT CAST(s.ts AS DATE) AS day, s.id FROM source AS s JOIN source AS o ON o.id = s.id",
        "WITH w AS (SELECT * FROM source) SELECT CAST(ts AS DATE) AS day, id FROM w",
        "SELECT day, count(*) AS id FROM (SELECT CAST(ts AS DATE) AS day FROM source WHERE {window}) AS x GROUP BY day",
    ],
)
def test_a_source_column_of_another_kind_than_declared_is_refused_and_no_row_lost(
    warehouse: Warehouse, sql: str
) -> None:
    warehouse.execute(
        "CREATE TABLE source (ts TIMESTAMP, id BIGINT)",
        "INSERT INTO source VALUES (TIMESTAMP '2026-05-12 01:00:00', 1), (TIMESTAMP '2026-05-12 12:00:00', 2)",
    )
    local = Table("sales", SliceColumn("day", "date", "America/New_York"))
    on = "s.ts" if " AS s " in sql else "ts"
    with pytest.raises(
        SchemaMismatch,
        match=r"declared to hold timestamptz and holds (?i:timestamp|datetime).*Give on_kind",
    ):
        warehouse.write(local, KEY, Select(sql, on=on, on_kind="timestamptz"))
    warehouse.write(local, KEY, Select(sql, on=on))  # and undeclared it is found out
    assert warehouse.rows("SELECT count(*), max(id) FROM sales") in ([(2, 2)], [(1, 2)])


def test_a_source_of_numbers_or_text_has_to_be_declared(warehouse: Warehouse) -> None:
    warehouse.execute(
        "CREATE TABLE source (n BIGINT, id BIGINT)", "INSERT INTO source VALUES (20260512, 1)"
    )
    sql = "SELECT CAST('2026-05-12' AS DATE) AS day, id FROM source"
    with pytest.raises(SchemaMismatch, match="is declared to hold a time and holds"):
        warehouse.write(table(), KEY, Select(sql, on="n"))
    assert (
        warehouse.write(table(), KEY, Select(sql, on="n", on_kind="int_yyyymmdd")).rows_after == 1
    )


# one table by two names


def test_a_table_is_the_same_by_its_full_and_its_short_name(warehouse: Warehouse) -> None:
    spelling = warehouse.engine().spelling
    schema = spelling.default_schema
    now = datetime.now(timezone.utc)
    warehouse.write(table(), KEY, rows(2), source_read_at=now)
    for other in (
        f"{schema}.sales",
        *(() if warehouse.tells_case_apart else ("SALES", f"{schema.title()}.Sales")),
    ):
        # a name in mixed case is one of its own on Snowflake, beside which nothing is made unasked
        is_another = spelling.folds_upper and other == f"{schema.title()}.Sales"
        with pytest.raises(DeclarationError if is_another else StaleSource):
            warehouse.write(table(other), KEY, rows(1), source_read_at=now - timedelta(hours=1))
    assert warehouse.count("sales") == 2


def test_a_whole_table_is_not_overwritten_by_what_was_read_before_one_of_its_regions(
    warehouse: Warehouse,
) -> None:
    now = datetime.now(timezone.utc)
    regions = table(dimensions=("region",))
    one = {**rows(2), "region": ["eu", "eu"]}
    warehouse.write(regions, KEY, one, fixed={"region": "eu"}, source_read_at=now)
    with pytest.raises(StaleSource):
        warehouse.write(table(), KEY, one, source_read_at=now - timedelta(hours=1))
    other = {**rows(2), "region": ["us", "us"]}
    warehouse.write(
        regions, KEY, other, fixed={"region": "us"}, source_read_at=now - timedelta(hours=1)
    )
    assert warehouse.count("sales") == 4


# shrinking to nothing


def test_an_empty_day_may_be_right_and_still_not_empty_a_full_one(warehouse: Warehouse) -> None:
    anything = table(allow_empty=True)
    nothing = pa.table({"day": pa.array([], pa.date32()), "id": pa.array([], pa.int64())})
    warehouse.write(anything, KEY, rows(150))
    with pytest.raises(ShrunkSlice, match="150 rows and only 0 came"):
        warehouse.write(anything, KEY, nothing)
    assert warehouse.count("sales") == 150
    for allowing in ({"allows": frozenset({"shrink"})}, {"allows": frozenset({"empty"})}):
        assert warehouse.write(anything, KEY, nothing, reason="closed", **allowing).rows_after == 0
        warehouse.write(anything, KEY, rows(150))
    named = table(allow_empty=frozenset({DAY}))
    assert warehouse.write(named, KEY, nothing).rows_before == 150


# columns


def test_a_new_column_waits_for_the_first_day_that_gives_it_a_type(warehouse: Warehouse) -> None:
    adding = table(on_schema_change="add")
    warehouse.write(adding, KEY, rows(2))
    warehouse.write(adding, KEY, rows(2, extra=pa.array([None, None], pa.null())))
    assert "extra" not in (warehouse.columns("sales") or {})
    warehouse.write(adding, KEY, rows(2, extra=[1, 2]))
    assert warehouse.rows("SELECT sum(extra) FROM sales") == [(3,)]


def test_a_declared_column_that_the_table_lacks_is_told(warehouse: Warehouse) -> None:
    warehouse.write(table(), KEY, rows(2))
    wider = {"day": "DATE", "id": "BIGINT", "country": "TEXT"}
    with pytest.raises(SchemaMismatch, match="is declared with 'country' and has no such column"):
        warehouse.write(table(columns=wider), KEY, rows(2))


# secrets


def chain(error: BaseException) -> str:
    """Return the words of an error and of everything that Python would show with it."""
    shown, words = error, ""
    while shown is not None:
        words += str(shown)
        shown = shown.__cause__ or (None if shown.__suppress_context__ else shown.__context__)
    return words


@pytest.mark.parametrize("password", ["s3cr%etpw", "s3cr%zz"])
def test_a_url_that_the_driver_cannot_read_shows_no_piece_of_its_password_in_the_whole_chain(
    password: str,
) -> None:
    with (
        pytest.raises(BackfillError) as refused,
        open_engine(f"postgresql://u:{password}@localhost/db").session(),
    ):
        pass
    assert "s3cr" not in chain(refused.value)


def test_every_part_of_an_error_is_shown_without_secrets() -> None:
    error = BackfillError(
        "password=hunter2 was tried", "host=h password=hunter2", "Drop password=hunter2"
    )
    assert "hunter2" not in f"{error} {error.what} {error.why} {error.do}"


def test_what_duckdb_quotes_of_a_statement_shows_no_password(tmp_path: Path) -> None:
    with open_engine(f"duckdb:///{tmp_path}/w.duckdb").session() as session:
        with pytest.raises(BackfillError) as refused:
            session.fetch("SELECT * FROM postgres_scan('host=h password=hunter2', nothing")
    assert "hunter2" not in chain(refused.value)


# what passes, and what does not


def test_a_server_that_is_away_may_be_tried_again_and_a_wrong_password_may_not(
    postgres: Warehouse,
) -> None:
    with pytest.raises(Away) as away, open_engine("postgresql://ana@127.0.0.1:9/db").session():
        pass
    assert away.value.retry
    url = urlsplit(postgres.url)._replace(path="/no_such_database").geturl()
    with pytest.raises(Unreachable) as refused, open_engine(url).session():
        pass
    assert not refused.value.retry


# the file


@pytest.mark.parametrize("folder", ["workspaces", "blocks", "No space left on device"])
def test_a_path_is_not_taken_for_a_reason(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir()
    file = tmp_path / folder / "w.duckdb"
    file.write_text("these are not the bytes of a database" * 100)
    began = time.monotonic()
    with (
        pytest.raises(Unreachable) as refused,
        open_engine(f"duckdb:///{file}?lock_wait=30").session(),
    ):
        pass
    assert "disk is full" not in str(refused.value)
    assert time.monotonic() - began < 20


def test_a_file_named_like_its_schema_is_written_and_read(tmp_path: Path) -> None:
    warehouse = Warehouse(f"duckdb:///{tmp_path}/analytics.duckdb")
    for _ in range(2):
        warehouse.write(table("analytics.sales"), KEY, rows(2))
    assert warehouse.count("analytics.sales") == 2
    with duckdb.connect(str(tmp_path / "analytics.duckdb")) as plain:
        found = plain.execute(
            "SELECT table_schema FROM information_schema.tables WHERE table_name = 'sales'"
        )
        assert found.fetchall() == [("analytics",)]


def test_a_program_that_takes_no_turns_is_waited_for_as_long_as_said_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import subprocess
    import sys

    monkeypatch.setattr("backfill_assets.engines.duckdb._TELL_SECONDS", 0.5)
    file = tmp_path / "w.duckdb"
    holds = f"import duckdb, sys; c = duckdb.connect({str(file)!r}); print('held', flush=True); sys.stdin.read()"
    other = subprocess.Popen(
        [sys.executable, "-c", holds], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    other.stdout.readline()
    said: list[str] = []
    began = time.monotonic()
    with (
        pytest.raises(WarehouseBusy),
        open_engine(f"duckdb:///{file}?lock_wait=2").session(report=said.append),
    ):
        pass
    assert time.monotonic() - began < 4
    assert any("another program holds it" in line for line in said)
    other.communicate("")


def test_who_held_the_file_before_is_not_named_as_who_holds_it(tmp_path: Path) -> None:
    from filelock import FileLock

    file = tmp_path / "w.duckdb"
    with open_engine(f"duckdb:///{file}").session(who="run AAAA"):
        pass
    with FileLock(f"{file}.lock"), pytest.raises(WarehouseBusy) as busy:
        with open_engine(f"duckdb:///{file}?lock_wait=0.2").session():
            pass
    assert "AAAA" not in str(busy.value)
    assert "held by another process" in str(busy.value)


def test_a_query_over_what_is_not_there_names_it(warehouse: Warehouse) -> None:
    with pytest.raises(MissingTable, match="(?i)nowhere"):
        warehouse.write(table(), KEY, Select("SELECT * FROM nowhere -- not made yet", on="ts"))


def test_settings_of_a_file_that_this_process_has_open_itself_stay_its_own(tmp_path: Path) -> None:
    file = tmp_path / "w.duckdb"
    with duckdb.connect(str(file)) as mine:
        before = mine.execute(
            "SELECT current_setting('checkpoint_threshold'), current_setting('threads')"
        ).fetchall()
        Warehouse(f"duckdb:///{file}?threads=1").write(table(), KEY, rows(2))
        after = mine.execute(
            "SELECT current_setting('checkpoint_threshold'), current_setting('threads')"
        ).fetchall()
        assert after == before
        assert mine.execute("SELECT count(*) FROM sales").fetchall() == [(2,)]


def test_a_file_that_this_process_has_open_with_other_settings_is_one_sentence(
    tmp_path: Path,
) -> None:
    file = tmp_path / "w.duckdb"
    with (
        duckdb.connect(str(file), config={"threads": 2}),
        pytest.raises(Unreachable, match="this very process has it open"),
    ):
        with open_engine(f"duckdb:///{file}").session():
            pass


def test_a_statement_that_takes_too_long_is_stopped_and_the_slice_as_it_was(tmp_path: Path) -> None:
    warehouse = Warehouse(f"duckdb:///{tmp_path}/w.duckdb")
    warehouse.write(table(), KEY, rows(2))
    slow = "SELECT DATE '2026-05-12' AS day, count(*) AS id FROM range(100000000) AS a, range(100000) AS b"
    began = time.monotonic()
    with pytest.raises(WriteFailed, match=r"it took longer than the 0\.3 s of statement_timeout"):
        Warehouse(f"{warehouse.url}?statement_timeout=0.3").write(table(), KEY, Select(slow))
    assert time.monotonic() - began < 20
    assert warehouse.count("sales") == 2
    assert (
        Warehouse(f"{warehouse.url}?statement_timeout=30").write(table(), KEY, rows(3)).rows_before
        == 2
    )


def test_a_cancel_by_somebody_ends_the_wait_for_a_claim(postgres: Warehouse) -> None:
    postgres.write(table(), KEY, rows(1))
    raised: list[BaseException] = []

    def second() -> None:
        try:
            postgres.write(table(), KEY, rows(2), run_id="second")
        except BackfillError as error:
            raised.append(error)

    with postgres.session() as session:
        with session.transaction():
            from backfill_assets.slice import Slice
            from backfill_assets.window import Window
            from backfill_assets.writing.claims import claim_of

            session.claim(claim_of(session.spelling, Slice(table(), Window.day(KEY)), "first"))
            waiting = threading.Thread(target=second)
            waiting.start()
            until = time.monotonic() + 20
            sql = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name LIKE '%second%' AND wait_event_type = 'Lock'"
            while not postgres.rows(sql) and time.monotonic() < until:
                time.sleep(0.1)
            waiting.join(10)
            assert not waiting.is_alive()
    assert "stopped" in str(raised[0])
