"""A week of files read again: lines and Parquet, folders as shards, whole or not at all, also after a kill."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from backfill_assets.errors import Away
from backfill_assets.strategies.replay import Events, FileEvents
from backfill_assets.strategies.replay.scratch import scratch
from backfill_assets_tests.io_managers.conftest import Warehouse, failure_of
from backfill_assets_tests.strategies.replay.conftest import ALL, EVENTS, at, ms, order, orders_from

pytestmark = pytest.mark.only("duckdb", why="what differs is the source, not the warehouse")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "orders"
    made.mkdir()
    return made


def line(number: int, ordered: datetime, amount: str = "1.00", written: datetime | None = None, **more: Any) -> str:  # fmt: skip
    """Return an order as a line that says when it was written down."""
    return json.dumps(order(number, ordered, amount, written=(written or ordered).isoformat(), **more))  # fmt: skip


def days(first: int, last: int) -> list[str]:
    return [line(d * 100 + n, at(d, n * 8), f"{d}.{n:02}") for d in range(first, last + 1) for n in range(3)]  # fmt: skip


def expected(*days: int) -> list[tuple[str, int, str]]:
    return [(f"2026-05-{d:02}", d * 100 + n, f"{d}.{n:02}") for d in days for n in range(3)]


def write(file: Path, lines: list[str]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    body = "".join(f"{each}\n" for each in lines).encode()
    file.write_bytes(gzip.compress(body) if file.suffix == ".gz" else body)
    return file


def refused(warehouse: Warehouse, source: FileEvents, day: int = 3) -> str:
    return failure_of(
        warehouse.run(orders_from(source), partition_key=f"2026-05-{day:02}", ok=False)
    )


def test_lines_zipped_lines_and_parquet_in_folders_are_read_as_one(
    folder: Path, warehouse: Warehouse
) -> None:
    write(folder / "2026-05-01.jsonl", [*days(1, 2), "", "  "])
    write(folder / "2026-05-03.ndjson.gz", days(3, 3))
    (folder / "README.txt").write_text("no events")
    write(folder / "north" / "first.jsonl", days(4, 4))
    found = [json.loads(each) for each in days(4, 5)[3:]]
    columns = {
        "at": pa.array([datetime.fromisoformat(each["written"]) for each in found]),
        "value": pa.array([json.dumps(each) for each in found]),
    }
    pq.write_table(pa.table(columns), folder / "north" / "second.parquet")
    source = FileEvents(folder, at="written", complete_since=at(-1, 0))
    asset = orders_from(source)
    warehouse.run_range("2026-05-01", "2026-05-05", asset)
    warehouse.run_range("2026-05-03", "2026-05-04", asset)
    assert warehouse.rows(ALL) == expected(1, 2, 3, 4, 5)
    ((detail,),) = warehouse.rows("SELECT detail FROM backfill.load_audit WHERE partition_key = '2026-05-05'")  # fmt: skip
    told = json.loads(detail)["source"]
    assert told["source"] == f"the folder {folder}"
    assert told["offsets"] == {".": ["0", "9"], "north": ["0", "6"]}


def test_a_day_before_the_first_line_of_any_folder_is_refused_unless_it_is_declared_whole(
    folder: Path, warehouse: Warehouse
) -> None:
    write(folder / "north" / "all.jsonl", days(1, 5))
    write(folder / "south" / "all.jsonl", [line(901, at(3, 6))])
    said = refused(warehouse, FileEvents(folder, at="written"))
    assert "folder south begins at 2026-05-03T06:00:00+00:00, a gap of 7:00:00" in said
    assert "The first whole one that can be replayed is 2026-05-04" in said
    warehouse.run(orders_from(FileEvents(folder, at="written", complete_since=at(2, 0))), partition_key="2026-05-03")  # fmt: skip
    assert [number for _, number, _ in warehouse.rows(ALL)] == [300, 301, 302, 901]


def test_lines_that_were_written_late_or_do_not_say_when_are_read(
    folder: Path, warehouse: Warehouse
) -> None:
    unsaid = json.dumps(order(902, at(3, 5)))
    in_numbers = json.dumps(order(903, at(3, 6), written=ms(at(3, 6))))
    write(
        folder / "all.jsonl",
        [
            *days(1, 3),
            unsaid,
            in_numbers,
            *days(4, 6),
            line(904, at(3, 7), written=at(4, 0.5)),
            line(905, at(3, 8), written=at(4, 1.5)),
        ],
    )
    source = FileEvents(folder, at="written")
    warehouse.run(orders_from(source), partition_key="2026-05-03")
    on_its_day = [300, 301, 302, 902, 903, 904]
    assert [number for _, number, _ in warehouse.rows(ALL)] == on_its_day
    later = Events(EVENTS.fields, time="ordered_at", key=("order_id",), late=timedelta(hours=2))
    warehouse.run(orders_from(source, later), partition_key="2026-05-03")
    assert [number for _, number, _ in warehouse.rows(ALL)] == [*on_its_day, 905]


def test_without_times_all_lines_are_read_and_completeness_has_to_be_declared(
    folder: Path, warehouse: Warehouse
) -> None:
    write(folder / "all.jsonl", days(1, 5))
    said = refused(warehouse, FileEvents(folder))
    assert "the first event of all.jsonl does not tell when it was written down" in said
    assert "Give at='the field with that time', or complete_since=" in said
    warehouse.run(
        orders_from(FileEvents(folder, complete_since=at(1, 0))), partition_key="2026-05-03"
    )
    assert warehouse.rows(ALL) == expected(3)


def test_a_folder_that_is_missing_or_holds_no_events_is_told(
    folder: Path, warehouse: Warehouse
) -> None:
    assert "there is no such folder" in refused(warehouse, FileEvents(folder / "gone"))
    (folder / "orders.csv").write_text("1,2")
    said = refused(warehouse, FileEvents(folder))
    assert "it holds no file that ends in .jsonl, .ndjson, .jsonl.gz, .ndjson.gz, .parquet" in said


def test_parquet_without_a_value_is_told(folder: Path, warehouse: Warehouse) -> None:
    pq.write_table(pa.table({"body": ["{}"]}), folder / "all.parquet")
    said = refused(warehouse, FileEvents(folder, complete_since=at(1, 0)))
    assert "it has no column value, only body" in said


def test_a_line_that_cannot_be_read_is_named_by_its_place(
    folder: Path, warehouse: Warehouse
) -> None:
    write(folder / "all.jsonl", [*days(1, 2), '{"order_id": 1,', *days(3, 5)])
    assert "folder . offset 6: it is no JSON" in refused(warehouse, FileEvents(folder, at="written", complete_since=at(1, 0)), day=2)  # fmt: skip


def test_a_file_that_was_cut_off_is_told_and_nothing_of_it_is_written(
    folder: Path, warehouse: Warehouse
) -> None:
    whole = write(folder / "all.jsonl.gz", days(1, 5))
    whole.write_bytes(whole.read_bytes()[:-20])
    said = refused(warehouse, FileEvents(folder, at="written"))
    assert "the events in all.jsonl.gz cannot be read: the file is not whole" in said
    whole.unlink()
    (folder / "all.parquet").write_bytes(b"PAR1 and no more")
    said = refused(warehouse, FileEvents(folder, complete_since=at(1, 0)))
    assert "the events in all.parquet cannot be read: the file is not whole" in said


def test_a_file_that_shrinks_or_goes_while_it_is_read_is_told(folder: Path) -> None:
    north = write(folder / "north" / "all.jsonl", days(1, 5))
    south = write(folder / "south" / "all.jsonl", days(6, 7))
    source = FileEvents(folder, at="written")
    with source.open("a-test") as reading:
        list(reading.read(reading.shards[0], at(2, 0), None))
        write(north, days(1, 4))
        with pytest.raises(Away, match=r"all\.jsonl became shorter since the run began"):
            reading.must_be_whole()
    with source.open("a-test") as reading:
        write(north, days(1, 3))
        with pytest.raises(Away, match="3 of the 12 events of north are gone since the run began"):
            list(reading.read(reading.shards[0], at(2, 0), None))
    with source.open("a-test") as reading:
        south.unlink()
        with pytest.raises(Away, match=r"all\.jsonl is gone since the run began"):
            reading.must_be_whole()


def test_lines_that_come_after_the_opening_are_left_for_the_next_time(folder: Path) -> None:
    file = write(folder / "all.jsonl", days(1, 3))
    source = FileEvents(folder, at="written")
    with source.open("a-test") as reading:
        write(file, days(1, 4))
        found = list(reading.read(reading.shards[0], at(1, 0), None))
        reading.must_be_whole()
        assert sum(batch.num_rows for batch in found) == 9
        assert reading.span(reading.shards[0]) == ("0", "9")


def run_range(place: Path, first: str, last: str, *resumes: str, killed_at: str = "") -> int:
    """Fill a range in a process of its own and return how it ended."""
    environment = {
        **os.environ,
        "DAGSTER_HOME": str(place / "home"),
        "EVENTS_FOLDER": str(place / "orders"),
        "SCRATCH_FOLDER": str(place / "scratch"),
        "WAREHOUSE_URL": f"duckdb:///{place}/warehouse.duckdb",
        "KILLED_AT": killed_at,
    }
    location = "backfill_assets_tests.strategies.replay.files_location"
    ended = subprocess.run(
        [sys.executable, "-m", location, first, last, *resumes], env=environment, capture_output=True, timeout=120, check=False
    )  # fmt: skip
    assert ended.returncode in (0, -signal.SIGKILL), ended.stderr.decode()[-3000:]
    return ended.returncode


def test_a_run_that_was_killed_keeps_its_days_and_the_next_one_reads_only_what_is_left(
    folder: Path, tmp_path: Path, warehouse: Warehouse
) -> None:
    write(folder / "all.jsonl", days(1, 8))
    (tmp_path / "home").mkdir()
    ended = run_range(tmp_path, "2026-05-02", "2026-05-07", killed_at="2026-05-05")
    assert ended == -signal.SIGKILL
    assert warehouse.rows(ALL) == expected(2, 3, 4)
    assert len(list((tmp_path / "scratch").glob("backfill-replay-*/events.duckdb"))) == 1
    with dg.DagsterInstance.from_config(str(tmp_path / "home")) as instance:
        (killed,) = instance.get_runs()
        instance.report_run_failed(
            killed, "its process is gone"
        )  # as Dagster's run monitoring does
    assert run_range(tmp_path, "2026-05-02", "2026-05-07", killed.run_id) == 0
    assert warehouse.rows(ALL) == expected(2, 3, 4, 5, 6, 7)
    found = warehouse.rows("SELECT partition_key, detail FROM backfill.load_audit WHERE outcome = 'committed' ORDER BY committed_at")  # fmt: skip
    read = {key: json.loads(detail)["source"]["events_read_by_run"] for key, detail in found}
    assert [key for key, _ in found] == [f"2026-05-{day:02}" for day in range(2, 8)]
    # six days and the hours around them, then three
    assert set(list(read.values())[:3]) == {19}
    assert set(list(read.values())[3:]) == {10}
    assert list((tmp_path / "scratch").iterdir()) == []


def test_the_scratch_of_a_process_that_lives_is_left_alone(tmp_path: Path) -> None:
    bounds = [(at(3, 0), at(4, 0))]
    with scratch(EVENTS, bounds, tmp_path, 64) as first:
        with scratch(EVENTS, bounds, tmp_path, 64):
            assert len(list(tmp_path.glob("backfill-replay-*/events.duckdb"))) == 2
        assert first.fetch("SELECT count(*) FROM events") == [(0,)]
        assert len(list(tmp_path.glob("backfill-replay-*/events.duckdb"))) == 1
    assert list(tmp_path.iterdir()) == []
