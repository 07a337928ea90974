"""A run that takes up another one does what is left, and what was done before keeps what is known of it."""

import os

import dagster as dg
import pandas as pd
import pytest
from dagster._core.definitions.reconstruct import ReconstructableRepository

from backfill_assets.io_managers import DeleteInsertIOManager, PerSlice, table_metadata
from backfill_assets.table import SliceColumn, Table
from backfill_assets_tests.io_managers.conftest import Warehouse

DAYS = dg.DailyPartitionsDefinition("2026-03-01", end_date="2026-03-08")
SALES = Table("mart.sales", SliceColumn("day", "date"))
EDGES = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")


@dg.asset(
    key_prefix=["mart"],
    partitions_def=DAYS,
    metadata=table_metadata(SALES),
    backfill_policy=dg.BackfillPolicy.single_run(),
)
def sales():
    def one(slice_) -> pd.DataFrame:
        if os.environ["RESUMING_TEST_FAILS_AT"] == slice_.partition:
            raise RuntimeError("the source is away")
        return pd.DataFrame({"day": [slice_.window.start.date()], "amount": [1]})

    return PerSlice(one)


# a run can be executed again only when its job can be found again
defs = dg.Definitions(
    assets=[sales],
    jobs=[dg.define_asset_job("load", [sales])],
    executor=dg.in_process_executor,
    resources={"io_manager": DeleteInsertIOManager(url=dg.EnvVar("RESUMING_TEST_URL"))},
)


@pytest.fixture
def home(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    monkeypatch.setenv("RESUMING_TEST_URL", warehouse.url)
    return warehouse


def load(
    home: Warehouse,
    monkeypatch: pytest.MonkeyPatch,
    first: str,
    last: str,
    fails_at: str = "",
    resumes: str | None = None,
) -> str:
    """Run the job over a range, or take up a run that failed, and return the run's id."""
    monkeypatch.setenv("RESUMING_TEST_FAILS_AT", fails_at)
    job = ReconstructableRepository.for_file(__file__, "defs").get_reconstructable_job("load")
    again = (
        dg.ReexecutionOptions.from_failure(resumes, home.instance) if resumes is not None else None
    )
    tags = {EDGES[0]: first, EDGES[1]: last}
    tags |= {"dagster/is_resume_retry": "true"} if resumes else {}
    result = dg.execute_job(
        job, home.instance, tags=tags, reexecution_options=again, raise_on_error=False
    )
    assert result.success is not bool(fails_at)
    return result.run_id


def latest(home: Warehouse) -> dict[str, dict[str, object]]:
    """Return the metadata of each partition's newest materialization."""
    found: dict[str, dict[str, object]] = {}
    key = dg.AssetKey(["mart", "sales"])
    for record in home.instance.fetch_materializations(key, limit=100).records:
        event = record.asset_materialization
        assert event is not None
        found.setdefault(
            str(record.partition_key), {name: at.value for name, at in event.metadata.items()}
        )
    return found


def test_days_that_were_done_before_keep_their_counts_and_their_audit_row(
    home: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load(home, monkeypatch, "2026-03-01", "2026-03-04", fails_at="2026-03-03")
    before = latest(home)
    assert sorted(before) == ["2026-03-01", "2026-03-02"]
    second = load(home, monkeypatch, "2026-03-01", "2026-03-04", resumes=first)
    now = latest(home)
    assert [now[day]["written_by_run"] for day in sorted(now)] == [first, first, second, second]
    for day in before:
        assert now[day] == before[day]
    rows = home.rows(
        "SELECT partition_key, audit_id FROM backfill.load_audit WHERE outcome = 'committed'"
    )
    assert {day: told["audit_id"] for day, told in now.items()} == dict(rows)


def test_a_run_that_finds_nothing_left_tells_of_every_day(
    home: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load(home, monkeypatch, "2026-03-01", "2026-03-03", fails_at="2026-03-03")
    load(home, monkeypatch, "2026-03-01", "2026-03-02", resumes=first)
    assert {day: told["written_by_run"] for day, told in latest(home).items()} == {
        "2026-03-01": first,
        "2026-03-02": first,
    }
