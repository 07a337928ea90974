"""A range is verified from the data itself, writes nothing, and ends with what to backfill."""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.reconstruct import ReconstructableRepository

from backfill_assets.engines import open_engine
from backfill_assets.expectations import RowCount, Source
from backfill_assets.io_managers import DeleteInsertIOManager, Select, table_metadata
from backfill_assets.operations.parts import backfill_operations
from backfill_assets.table import SliceColumn, Table

DAYS = dg.DailyPartitionsDefinition("2026-01-01", end_date="2026-07-01")
SALES = Table(
    "mart.sales",
    SliceColumn("day", "date"),
    unique_key=("id",),
    closed=("sunday",),
    source=Source("raw.sales", on="day"),
    expects=(RowCount(tolerance=0),),
)
REGIONS = dg.MultiPartitionsDefinition(
    {
        "day": dg.DailyPartitionsDefinition("28-03-2026", end_date="03-04-2026", fmt="%d-%m-%Y"),
        "region": dg.StaticPartitionsDefinition(["eu", "us"]),
    }
)


@dg.asset(
    key_prefix=["mart"],
    partitions_def=DAYS,
    metadata=table_metadata(SALES),
    backfill_policy=dg.BackfillPolicy.single_run(),
)
def sales() -> Select:
    return Select("SELECT day, id FROM raw.sales")


@dg.asset(
    key_prefix=["mart"],
    partitions_def=REGIONS,
    metadata={"partition_expr": {"day": "day", "region": "region"}, "partition_kind": "date"},
)
def by_region() -> Select:
    return Select("SELECT day, region, id FROM raw.by_region")


@dg.asset(key_prefix=["mart"])
def whole() -> Select:
    return Select("SELECT 1 AS id")


defs = dg.Definitions.merge(
    dg.Definitions(
        assets=[sales, by_region, whole],
        resources={"io_manager": DeleteInsertIOManager(url=dg.EnvVar("VERIFY_TEST_URL"))},
    ),
    backfill_operations(),
)


def key(day: str, days: int = 0) -> str:
    return str(date.fromisoformat(day) + timedelta(days=days))


class Place:
    """A source of three rows for each day of March 2026 but its Sundays, loaded day by day."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.url = f"duckdb:///{folder}/w.duckdb"
        self.instance = dg.DagsterInstance.ephemeral()
        monkeypatch.setenv("VERIFY_TEST_URL", self.url)
        self.execute(
            "CREATE SCHEMA raw",
            "CREATE TABLE raw.sales AS SELECT CAST(DATE '2026-03-01' + CAST(d AS INTEGER) AS DATE) AS day, d * 10 + n AS id"
            " FROM range(31) AS days(d), range(3) AS ns(n) WHERE isodow(DATE '2026-03-01' + CAST(d AS INTEGER)) <> 7",
        )

    def execute(self, *statements: str) -> None:
        with open_engine(self.url).session() as session:
            for statement in statements:
                session.execute(statement)

    def load(self, first: str, last: str, asset: Any = sales) -> None:
        assert dg.materialize(
            [asset],
            instance=self.instance,
            resources={"io_manager": DeleteInsertIOManager(url=self.url)},
            tags={
                "dagster/asset_partition_range_start": first,
                "dagster/asset_partition_range_end": last,
            },
        ).success

    def verify(self, ok: bool = True, table: str = "mart.sales", **more: Any) -> dict[str, Any]:
        location = ReconstructableRepository.for_file(__file__, "defs")
        result = dg.execute_job(
            location.get_reconstructable_job("verify_range"),
            run_config={"ops": {"verify_range_op": {"config": {"table": table, **more}}}},
            instance=self.instance,
            raise_on_error=False,
        )
        assert result.success is ok
        if ok:
            (made,) = [e for e in result.all_events if e.event_type_value == "STEP_OUTPUT"]
            metadata = made.event_specific_data.metadata
            self.said = str(metadata["summary"].value)
        else:
            (failed,) = result.filter_events(lambda event: event.is_step_failure)
            told = failed.step_failure_data.user_failure_data
            if told is None or "json" not in told.metadata:
                return {"said": failed.step_failure_data.error.message}
            metadata, self.said = told.metadata, str(told.description)
        self.metadata = metadata
        return metadata["json"].value


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


def test_a_good_month_is_right_with_its_sundays_and_writes_nothing(place: Place) -> None:
    place.load("2026-03-01", "2026-03-31")
    look = "SELECT count(*), (SELECT count(*) FROM backfill.load_audit) FROM mart.sales"
    with open_engine(place.url).session(read_only=True) as session:
        before = session.fetch(look)
    found = place.verify(first="2026-03-01", last="2026-03-31")
    assert (found["partitions"], found["rows"], found["failed"]) == (31, 78, {})
    assert "every check passed" in place.said
    with open_engine(place.url).session(read_only=True) as session:
        assert session.fetch(look) == before


def test_what_is_gone_what_was_never_loaded_and_what_is_short_are_told_apart(place: Place) -> None:
    place.load("2026-03-02", "2026-03-10")
    place.load("2026-03-13", "2026-03-20")
    place.execute(
        "DELETE FROM mart.sales WHERE day = DATE '2026-03-04'",
        "DELETE FROM mart.sales WHERE day = DATE '2026-03-17' AND id % 10 = 0",
        "INSERT INTO mart.sales VALUES (DATE '2026-03-23', 1)",
    )
    found = place.verify(ok=False, first="2026-03-02", last="2026-03-23")
    assert found["gone"] == ["2026-03-04"]
    assert found["never_loaded"] == ["2026-03-11", "2026-03-12", "2026-03-21"]
    assert found["unknown_to_dagster"] == ["2026-03-23"]
    short = [w for w in found["wrong"] if w["partition"] == "2026-03-17"]
    assert [(w["check"], w["expected"], w["found"]) for w in short] == [("row_count", "3", "2")]
    assert found["to_backfill"] == [
        "2026-03-04",
        "2026-03-11",
        "2026-03-12",
        "2026-03-17",
        "2026-03-21",
        "2026-03-23",
    ]
    selection = "2026-03-04, [2026-03-11...2026-03-12], 2026-03-17, 2026-03-21, 2026-03-23"
    assert str(place.metadata["to_backfill"].value) == selection
    assert place.instance.get_backfills() == []
    assert selection in place.said


def test_what_a_backfill_can_mend_is_requested_when_asked_for(place: Place) -> None:
    place.load("2026-03-02", "2026-03-06")
    place.execute("DELETE FROM mart.sales WHERE day = DATE '2026-03-04'")
    place.verify(ok=False, first="2026-03-02", last="2026-03-07", launch=True, by="ana")
    (backfill,) = place.instance.get_backfills()
    assert backfill.tags["launched_by"] == "ana"
    assert "missing_partitions 2" in backfill.tags["reason"]
    graph = defs.get_repository_def().asset_graph
    wanted = backfill.get_asset_backfill_data(graph).get_target_partitions_subset(sales.key)
    assert sorted(wanted.get_partition_keys()) == ["2026-03-04", "2026-03-07"]
    assert backfill.backfill_id in place.said


def test_nothing_is_requested_where_everything_is_right(place: Place) -> None:
    place.load("2026-03-02", "2026-03-06")
    place.verify(first="2026-03-02", last="2026-03-06", launch=True)
    assert place.instance.get_backfills() == []


def test_without_a_first_partition_the_range_begins_where_loading_began(place: Place) -> None:
    place.load("2026-03-10", "2026-03-12")
    found = place.verify(last="2026-03-14", ok=False)
    assert (found["partitions"], found["never_loaded"]) == (5, ["2026-03-13", "2026-03-14"])


def test_long_gaps_are_given_as_ranges(place: Place) -> None:
    place.load("2026-03-02", "2026-03-02")
    place.verify(ok=False, first="2026-03-02", last="2026-03-06")
    assert str(place.metadata["to_backfill"].value) == "[2026-03-03...2026-03-06]"


def test_a_range_of_two_dimensions_goes_by_the_order_of_its_days(place: Place) -> None:
    place.execute(
        "CREATE TABLE raw.by_region AS SELECT CAST(DATE '2026-03-28' + CAST(d AS INTEGER) AS DATE) AS day, r AS region, d AS id"
        " FROM range(6) AS days(d), (VALUES ('eu'), ('us')) AS regions(r)"
    )
    for day in ("31-03-2026", "01-04-2026"):
        assert dg.materialize(
            [by_region],
            instance=place.instance,
            resources={"io_manager": DeleteInsertIOManager(url=place.url)},
            partition_key=dg.MultiPartitionKey({"day": day, "region": "eu"}),
        ).success
    found = place.verify(ok=False, table="mart.by_region", first="31-03-2026", last="01-04-2026")
    assert found["partitions"] == 4
    assert found["never_loaded"] == ["31-03-2026|us", "01-04-2026|us"]


def test_a_run_that_is_asked_not_to_fail_succeeds_and_still_says_what_is_wrong(
    place: Place,
) -> None:
    place.load("2026-03-02", "2026-03-02")
    found = place.verify(first="2026-03-02", last="2026-03-03", fail=False)
    assert found["never_loaded"] == ["2026-03-03"]


def test_only_the_checks_that_are_asked_for_are_asked(place: Place) -> None:
    place.load("2026-03-02", "2026-03-03")
    place.execute("DELETE FROM mart.sales WHERE id % 10 = 0")
    found = place.verify(first="2026-03-02", last="2026-03-03", checks=["duplicate_keys"])
    assert found["failed"] == {}


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"table": "mart.nothing"}, "no asset of this location has that key"),
        ({"table": "mart.whole"}, "its asset has no partitions"),
        ({"first": "2026-03-05", "last": "2026-03-02"}, "its first partition comes after its last"),
        ({"first": "2026-02-30"}, "there is no partition '2026-02-30'"),
        ({"last": "tomorrow"}, "there is no partition 'tomorrow'"),
        ({"checks": ["row_counts"]}, "it has no check 'row_counts'"),
    ],
)
def test_what_cannot_be_verified_is_one_sentence(
    place: Place, config: dict[str, Any], sentence: str
) -> None:
    place.load("2026-03-02", "2026-03-03")
    assert sentence in place.verify(ok=False, **config)["said"]
