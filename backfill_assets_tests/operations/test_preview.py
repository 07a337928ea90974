"""A preview says what a backfill would do to each partition, and does nothing itself."""

import json
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import dagster as dg
import pandas as pd
import pytest
from dagster._core.definitions.reconstruct import ReconstructableRepository

from backfill_assets.controls.switch import Scope, Switch
from backfill_assets.engines import open_engine
from backfill_assets.expectations import RowCount, Source, Totals
from backfill_assets.io_managers import Controls, DeleteInsertIOManager, Select, table_metadata
from backfill_assets.operations.parts import backfill_operations
from backfill_assets.operations.previewing import Asked, preview
from backfill_assets.slice import Slice
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import Window
from backfill_assets.writing import AuditTable, Load, Run

DAYS = dg.DailyPartitionsDefinition("2026-01-01", end_date="2026-07-01")
SALES = Table("mart.sales", SliceColumn("day", "date"), unique_key=("id",))
SALES_BY_HOUR = Table("mart.sales", SliceColumn("at"))


@dg.asset(key_prefix=["mart"], partitions_def=DAYS, metadata=table_metadata(SALES))
def sales() -> Select:
    return Select("SELECT CAST(sold_at AS DATE) AS day, id FROM raw.sales", on="sold_at")


@dg.asset(
    key_prefix=["mart"],
    partitions_def=DAYS,
    metadata={"partition_expr": "day", "partition_kind": "date"},
)
def by_pandas() -> pd.DataFrame:
    raise AssertionError("a preview computes nothing")


def by_query(name: str, partitions: dg.PartitionsDefinition, sql: str, **metadata: object):
    @dg.asset(name=name, key_prefix=["mart"], partitions_def=partitions, metadata=metadata)
    def query() -> Select:
        return Select(sql)

    return query


RECENT = dg.DailyPartitionsDefinition("2026-01-01")
GUARDED = Table(
    "mart.guarded",
    SliceColumn("day", "date"),
    unique_key=("id",),
    source=Source("raw.guarded", on="day"),
    expects=(RowCount(), Totals("amount")),
)
DAY_FIRST = dg.MultiPartitionsDefinition(
    {
        "day": dg.DailyPartitionsDefinition("28-04-2026", end_date="05-05-2026", fmt="%d-%m-%Y"),
        "region": dg.StaticPartitionsDefinition(["eu", "us"]),
    }
)
OTHERS = [
    by_query("recent", RECENT, "SELECT DATE '2026-01-01' AS day", partition_expr="day"),
    by_query(
        "guarded",
        DAYS,
        "SELECT day, id, amount FROM raw.guarded WHERE amount <> 7",
        **table_metadata(GUARDED),
    ),
    by_query(
        "day_first",
        DAY_FIRST,
        "SELECT DATE '2026-04-30' AS day, 'eu' AS region",
        partition_expr={"day": "day", "region": "region"},
        partition_kind="date",
    ),
    by_query(
        "dynamic",
        dg.DynamicPartitionsDefinition(name="customers"),
        "SELECT 'ana' AS customer",
        partition_expr="customer",
    ),
]


# a job finds its location's assets only when it is executed as a location's
defs = dg.Definitions.merge(
    dg.Definitions(
        assets=[sales, by_pandas, *OTHERS],
        resources={
            "io_manager": DeleteInsertIOManager(
                url=dg.EnvVar("PREVIEW_TEST_URL"), controls=Controls(require_reason="backfill")
            )
        },
    ),
    backfill_operations(),
)


class Place:
    """A warehouse with two days of source rows, and a location over it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.url = f"duckdb:///{folder}/w.duckdb"
        self.instance = dg.DagsterInstance.ephemeral()
        monkeypatch.setenv("PREVIEW_TEST_URL", self.url)
        self.manager = DeleteInsertIOManager(
            url=self.url, controls=Controls(require_reason="backfill")
        )
        self.execute(
            "CREATE SCHEMA raw",
            "CREATE TABLE raw.sales (sold_at TIMESTAMPTZ, id BIGINT)",
            "INSERT INTO raw.sales VALUES ('2026-03-01 00:00:00+00', 1), ('2026-03-01 23:59:59.999999+00', 2),"
            " ('2026-03-03 12:00:00+00', 3)",
        )

    def execute(self, *statements: str) -> None:
        with open_engine(self.url).session() as session:
            for statement in statements:
                session.execute(statement)

    def rows(self, sql: str) -> list[tuple]:
        with open_engine(self.url).session(read_only=True) as session:
            return session.fetch(sql)

    def load(self, day: str, **tags: str) -> None:
        resources = {"io_manager": self.manager}
        assert dg.materialize(
            [sales], partition_key=day, instance=self.instance, resources=resources, tags=tags
        ).success

    def preview(
        self, first: str, last: str, ok: bool = True, table: str = "mart.sales", **more: str
    ) -> dict:
        config = {"table": table, "first": first, "last": last, **more}
        location = ReconstructableRepository.for_file(__file__, "defs")
        result = dg.execute_job(
            location.get_reconstructable_job("preview_backfill"),
            run_config={"ops": {"preview_backfill_op": {"config": config}}},
            instance=self.instance,
            raise_on_error=False,
        )
        assert result.success is ok
        if not ok:
            (failed,) = result.filter_events(lambda event: event.is_step_failure)
            return {"said": failed.step_failure_data.error.message}
        (made,) = [e for e in result.all_events if e.event_type_value == "STEP_OUTPUT"]
        self.metadata = made.event_specific_data.metadata
        return self.metadata["json"].value


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


def lines(found: dict) -> dict[str, dict]:
    return {line["partition"]: line for line in found["lines"]}


def test_each_partition_of_an_inclusive_range_is_told(place: Place) -> None:
    place.load("2026-03-01", reason="prices", launched_by="ana")
    found = lines(place.preview("2026-03-01", "2026-03-03"))
    assert list(found) == ["2026-03-01", "2026-03-02", "2026-03-03"]
    first = found["2026-03-01"]
    assert (first["rows"], first["source_rows"], first["by"], first["why"]) == (
        2,
        2,
        "ana",
        "prices",
    )
    assert first["verdict"].startswith("refused: no reason is given, and it was loaded before")
    assert (found["2026-03-02"]["rows"], found["2026-03-02"]["source_rows"]) == (0, 0)
    assert found["2026-03-03"]["verdict"] == "first load"
    assert (found["2026-03-03"]["rows"], found["2026-03-03"]["source_rows"]) == (0, 1)


def test_a_reason_turns_a_refusal_into_a_rewrite_and_a_pause_a_rewrite_into_a_refusal(
    place: Place,
) -> None:
    place.load("2026-03-01")
    found = lines(place.preview("2026-03-01", "2026-03-01", reason="new prices"))
    assert found["2026-03-01"]["verdict"] == "rewrite"
    Switch(place.instance).pause(Scope(table="mart.sales"), "the source is wrong", "ana")
    found = lines(place.preview("2026-03-01", "2026-03-01", reason="new prices"))
    assert "table mart.sales paused by ana" in found["2026-03-01"]["verdict"]


def test_a_preview_writes_nothing(place: Place, tmp_path: Path) -> None:
    place.load("2026-03-01")
    before = (tmp_path / "w.duckdb").read_bytes()
    place.preview("2026-01-01", "2026-06-30")
    assert (tmp_path / "w.duckdb").read_bytes() == before
    assert not list(tmp_path.glob("*.wal"))


def test_duplicates_and_gaps_that_are_there_already_are_told(place: Place) -> None:
    for day in ("2026-03-01", "2026-03-03"):
        place.load(day)
    place.execute("INSERT INTO mart.sales SELECT * FROM mart.sales WHERE id = 3")
    found = place.preview("2026-02-27", "2026-03-05", reason="r")
    assert lines(found)["2026-03-03"]["duplicates"] == 1
    assert lines(found)["2026-03-01"]["duplicates"] == 0
    assert found["gaps"] == ["2026-03-02"]
    assert found["seconds"] > 0


def test_a_day_without_rows_by_rule_is_no_gap(place: Place) -> None:
    place.load("2026-03-01")
    place.execute("INSERT INTO mart.sales VALUES ('2026-03-06', 6), ('2026-03-10', 10)")
    sundays = replace(SALES, closed=("sunday",))
    slices = [
        Slice(sundays, Window.day(date(2026, 3, n)), partition=f"2026-03-{n:02}")
        for n in range(6, 11)
    ]
    with open_engine(place.url).session(read_only=True) as session:
        found = preview(session, sundays, slices, None, Asked(), {}, AuditTable())
    assert found.gaps == ["2026-03-07", "2026-03-09"]


def test_a_table_that_is_not_there_yet_is_all_first_loads(place: Place) -> None:
    found = place.preview("2026-03-01", "2026-03-03")
    assert {line["would_be"] for line in found["lines"]} == {"first load"}
    assert lines(found)["2026-03-03"]["verdict"] == "first load"
    assert found["seconds"] is None


def test_an_asset_that_is_no_query_is_not_computed_and_its_source_not_known(place: Place) -> None:
    found = place.preview("2026-03-01", "2026-03-01", table="mart/by_pandas")
    assert found["lines"][0]["source_rows"] is None


@pytest.mark.parametrize(
    ("first", "last", "table", "said"),
    [
        ("2026-03-03", "2026-03-01", "mart.sales", "its first partition comes after its last"),
        ("2026-03-01", "2031-03-01", "mart.sales", "there is no partition '2031-03-01'"),
        ("", "2026-03-01", "mart.sales", "there is no partition ''"),
        ("2026-03-01", "2026-03-01", "mart.nothing", "no asset of this location has that key"),
    ],
)
def test_a_range_that_cannot_be_is_one_sentence(
    place: Place, first: str, last: str, table: str, said: str
) -> None:
    assert said in place.preview(first, last, ok=False, table=table)["said"]


def test_the_run_shows_a_table_a_plot_and_json(place: Place) -> None:
    place.load("2026-03-01")
    place.preview("2026-03-01", "2026-03-03", reason="r")
    shown = place.metadata
    assert shown["partitions"].value == 3
    assert [record.data["rows"] for record in shown["table"].records] == ["2", "0", "0"]
    assert "2026-03-01" in shown["rows_plot"].value
    assert "both included: 3 partitions" in shown["summary"].value
    assert json.loads(json.dumps(shown["json"].value))["table"] == "mart.sales"


def test_ten_years_take_a_handful_of_statements(place: Place) -> None:
    place.load("2026-03-01")
    first = date(2017, 1, 1)
    slices = [Slice(SALES, Window.day(first + timedelta(days=n))) for n in range(3650)]
    select = Select("SELECT CAST(sold_at AS DATE) AS day, id FROM raw.sales", on="sold_at")
    with open_engine(place.url).session(read_only=True) as session:
        asked: list[str] = []
        fetch = session.fetch
        session.fetch = lambda sql: (asked.append(sql), fetch(sql))[1]  # type: ignore[method-assign]
        found = preview(session, SALES, slices, select, Asked(), {}, AuditTable())
    assert len(asked) <= 8
    assert sum(line.rows for line in found.lines) == 2
    assert sum(line.source_rows or 0 for line in found.lines) == 3
    assert len(found.lines) == 3650


# what a run would say


def test_days_that_only_lack_a_reason_or_wait_for_a_pause_count_as_rewrites_with_their_seconds(
    place: Place,
) -> None:
    place.load("2026-03-01")
    place.load("2026-03-03")
    bare = place.preview("2026-03-01", "2026-03-01")
    assert bare["seconds"] > 0
    assert place.metadata["rewrites"].value == 1
    assert place.metadata["refusals"].value == 1
    Switch(place.instance).pause(Scope(), "the source is wrong", "ana")
    paused = place.preview("2026-03-01", "2026-03-01", reason="new prices")
    assert lines(paused)["2026-03-01"]["verdict"].startswith("held: backfills paused by ana")
    assert paused["seconds"] == bare["seconds"]
    assert (place.metadata["held"].value, place.metadata["refusals"].value) == (1, 0)


def test_yesterday_is_looked_at_as_a_backfill_would_find_it(place: Place) -> None:
    yesterday = (datetime.now(timezone.utc) - timedelta(days=1)).date().isoformat()
    Switch(place.instance).pause(Scope(), "the source is wrong", "ana")
    found = place.preview(yesterday, yesterday, table="mart.recent")
    assert "backfills paused by ana" in found["lines"][0]["verdict"]


def test_a_day_that_a_shorter_window_has_loaded_needs_its_reason(place: Place) -> None:
    hour = Slice(
        SALES_BY_HOUR,
        Window(
            datetime(2026, 3, 1, 5, tzinfo=timezone.utc),
            datetime(2026, 3, 1, 6, tzinfo=timezone.utc),
        ),
    )
    with open_engine(place.url).session() as session:
        session.execute("CREATE SCHEMA mart")
        session.execute("CREATE TABLE mart.sales (day DATE, id BIGINT)")
        AuditTable().ensure(session)
        now = session.clock()
        load = Load.of(
            hour,
            Run("an-hourly-run"),
            source_read_at=now,
            started_at=now,
            committed_at=now,
            outcome="committed",
            rows_before=0,
            rows_after=1,
            checksum="",
        )
        AuditTable().record(session, load)
    found = place.preview("2026-03-01", "2026-03-01")
    assert "it was loaded before" in found["lines"][0]["verdict"]


def test_what_the_run_would_refuse_by_counts_is_told_before(place: Place) -> None:
    place.execute(
        "CREATE TABLE raw.guarded (day DATE, id BIGINT, amount BIGINT)",
        "INSERT INTO raw.guarded SELECT DATE '2026-03-01', n, 1 FROM range(10) t(n)",
        "INSERT INTO raw.guarded VALUES ('2026-03-02', 1, 1), ('2026-03-02', 1, 1)",
        "INSERT INTO raw.guarded SELECT DATE '2026-03-03', n, 1 FROM range(3) t(n)",
        "INSERT INTO raw.guarded VALUES ('2026-03-04', 1, 7), ('2026-03-04', 2, 1)",
        "CREATE SCHEMA mart",
        "CREATE TABLE mart.guarded (day DATE, id BIGINT, amount BIGINT)",
        "INSERT INTO mart.guarded SELECT DATE '2026-03-03', n, 1 FROM range(200) t(n)",
    )
    found = place.preview("2026-03-01", "2026-03-05", table="mart.guarded")
    verdicts = {day: line["verdict"] for day, line in lines(found).items()}
    assert verdicts["2026-03-01"] == "first load"
    assert "1 of its rows repeat a value of the unique key (id)" in verdicts["2026-03-02"]
    assert "it holds 200 rows and only 3 came" in verdicts["2026-03-03"]
    assert "row_count: rows 1, and the source has 2" in verdicts["2026-03-04"]
    assert "totals: amount 1, and the source has 8" in verdicts["2026-03-04"]
    assert "no rows came for it" in verdicts["2026-03-05"]


def test_days_that_are_written_day_first_come_in_the_order_of_the_calendar(place: Place) -> None:
    found = place.preview("30-04-2026", "02-05-2026", table="mart.day_first")
    assert [line["partition"] for line in found["lines"]] == [
        f"{day}|{region}"
        for day in ("30-04-2026", "01-05-2026", "02-05-2026")
        for region in ("eu", "us")
    ]
    said = place.preview("02-05-2026", "30-04-2026", ok=False, table="mart.day_first")["said"]
    assert "its first partition comes after its last" in said


def test_partitions_that_only_the_instance_knows_can_be_previewed(place: Place) -> None:
    place.instance.add_dynamic_partitions("customers", ["ana", "bob"])
    found = place.preview("ana", "bob", table="mart.dynamic")
    assert {line["partition"]: line["source_rows"] for line in found["lines"]} == {
        "ana": 1,
        "bob": 0,
    }
    said = place.preview("ana", "eve", ok=False, table="mart.dynamic")["said"]
    assert "there is no partition 'eve'" in said


def test_a_preview_of_no_name_is_one_sentence(place: Place) -> None:
    said = place.preview("2026-03-01", "2026-03-01", ok=False, table=" ")["said"]
    assert "cannot be previewed: no name is given" in said
