"""What dagster-snowflake's pandas manager is configured with makes ours, and each partition is one slice."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pandas as pd
import pytest
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill

from backfill_assets.engines.snowflake import SnowflakeSession
from backfill_assets.errors import DeclarationError
from backfill_assets.io_managers.snowflake import SnowflakeDeleteInsertIOManager
from backfill_assets.operations.doctor.job import DoctorConfig, points_of
from backfill_assets.operations.parts import backfill_operations
from backfill_assets.settings import settings
from backfill_assets_tests.snowflake_accounts import SnowflakeWarehouse, account_in_this_process

FIELDS = {
    "account": "fake",
    "user": "ana",
    "password": "s3cret",
    "database": "warehouse",
    "warehouse": "LIVE_WH",
    "role": "LIVE",
}


@pytest.fixture
def ours() -> Iterator[SnowflakeWarehouse]:
    with account_in_this_process():
        yield SnowflakeWarehouse("snowflake://ana:s3cret@fake/warehouse")


@dg.asset(
    key_prefix="mart",
    partitions_def=dg.DailyPartitionsDefinition("2026-05-01"),
    metadata={"partition_expr": "day"},
)
def sales(context) -> pd.DataFrame:  # type: ignore[no-untyped-def]
    day = pd.Timestamp(context.partition_key).date()
    return pd.DataFrame({"day": [day, day], "amount": [1.5, 2.5]})


def test_a_partition_that_is_materialized_twice_is_there_once(ours: SnowflakeWarehouse) -> None:
    manager = SnowflakeDeleteInsertIOManager(**FIELDS, schema="mart")
    for day in ("2026-05-03", "2026-05-04", "2026-05-03"):
        assert dg.materialize([sales], resources={"io_manager": manager}, partition_key=day).success
    assert ours.rows("SELECT count(*), sum(amount) FROM mart.sales") == [(4, 8.0)]


def test_backfills_use_a_warehouse_and_a_role_of_their_own(ours: SnowflakeWarehouse) -> None:
    manager = SnowflakeDeleteInsertIOManager(
        **FIELDS, lane_warehouse="BACKFILL_WH", lane_role="BACKFILLER"
    )
    used = [
        (engine.options.arguments["warehouse"], engine.options.arguments["role"])  # type: ignore[attr-defined]
        for engine in (manager.engine_of("live"), manager.engine_of("backfill"))
    ]
    assert used == [("LIVE_WH", "LIVE"), ("BACKFILL_WH", "BACKFILLER")]


def test_times_stored_as_text_are_refused_in_a_sentence() -> None:
    manager = SnowflakeDeleteInsertIOManager(**FIELDS, store_timestamps_as_strings=True)
    with pytest.raises(DeclarationError, match="declare columns that hold text as iso_text"):
        manager.engine_of("live")


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    monkeypatch.setenv("BACKFILL_REPORTS", str(tmp_path))
    settings.cache_clear()
    with dg.DagsterInstance.ephemeral() as ephemeral:
        yield ephemeral
    settings.cache_clear()


def location(manager: SnowflakeDeleteInsertIOManager) -> dg.RepositoryDefinition:
    defs = dg.Definitions(assets=[sales], resources={"io_manager": manager})
    return dg.Definitions.merge(defs, backfill_operations()).get_repository_def()


def test_the_doctor_looks_through_both_doors_and_leaves_nothing_but_claims_of_tables(
    ours: SnowflakeWarehouse,
) -> None:
    manager = SnowflakeDeleteInsertIOManager(**FIELDS, schema="mart", lane_role="BACKFILLER")
    resources = {"io_manager": manager}
    assert dg.materialize([sales], resources=resources, partition_key="2026-05-03").success
    before = ours.rows("SELECT count(*) FROM information_schema.tables")
    points = points_of(location(manager), manager, "io_manager", DoctorConfig())
    verdicts = {f"{point.lane}: {point.what}": point.verdict for point in points}
    for lane in ("live", "backfill"):
        for what in ("connection", "claims", "DELETE on mart.sales", "transactions"):
            assert verdicts[f"{lane}: {what}"] == "ok", points
    assert verdicts["live and backfill: one warehouse"] == "ok"
    assert ours.rows("SELECT count(*) FROM information_schema.tables") == before


def test_the_doctor_shows_the_grant_for_a_right_that_is_missing(
    ours: SnowflakeWarehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    from snowflake.connector.errors import ProgrammingError

    manager = SnowflakeDeleteInsertIOManager(**FIELDS, schema="mart")
    resources = {"io_manager": manager}
    assert dg.materialize([sales], resources=resources, partition_key="2026-05-03").success
    run = SnowflakeSession._run  # pyright: ignore[reportPrivateUsage]

    def denied(self: SnowflakeSession, sql: str) -> object:
        if sql == "SELECT CURRENT_ROLE()":
            return run(self, "SELECT 'LIVE'")  # here everybody has the same one
        if sql.startswith("DELETE") and "SALES" in sql:
            raise ProgrammingError(
                msg="SQL access control error: Insufficient privileges to operate on table 'SALES'.",
                errno=3001,
                sqlstate="42501",
            )
        return run(self, sql)

    monkeypatch.setattr(SnowflakeSession, "_run", denied)
    points = points_of(location(manager), manager, "io_manager", DoctorConfig())
    (wrong,) = [point for point in points if point.verdict == "fails"]
    assert (wrong.what, wrong.do) == (
        "DELETE on mart.sales",
        'GRANT USAGE ON SCHEMA "MART" TO ROLE "LIVE"; GRANT DELETE ON TABLE "MART"."SALES" TO ROLE "LIVE"',
    )


def test_the_report_of_a_backfill_is_written_by_its_sensor(
    ours: SnowflakeWarehouse, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    manager = SnowflakeDeleteInsertIOManager(**FIELDS, schema="mart")
    repository, name = location(manager), uuid.uuid4().hex[:8]
    instance.add_backfill(
        PartitionBackfill.from_asset_partitions(
            backfill_id=name,
            asset_graph=repository.asset_graph,
            partition_names=["2026-05-03"],
            asset_selection=[sales.key],
            backfill_timestamp=time.time(),
            tags={},
            dynamic_partitions_store=instance,
            all_partitions=False,
            title=None,
            description=None,
            run_config=None,
        )
    )
    dg.materialize(
        [sales],
        partition_key="2026-05-03",
        instance=instance,
        resources={"io_manager": manager},
        tags={"dagster/backfill": name},
    )
    found = instance.get_backfill(name)
    assert found is not None
    instance.update_backfill(
        found.with_status(BulkActionStatus.COMPLETED_SUCCESS).with_end_timestamp(time.time())
    )
    books = "snowflake.account_usage.query_attribution_history"
    ours.execute(
        "CREATE DATABASE snowflake",
        "CREATE SCHEMA snowflake.account_usage",
        f"CREATE TABLE {books} (query_tag VARCHAR, credits_attributed_compute DOUBLE)",
        f"""INSERT INTO {books} VALUES ('{{"backfill": "{name}"}}', 0.25), ('{{"backfill": "{name}"}}', 0.5)""",
        f"""INSERT INTO {books} VALUES ('by hand', 3), ('{{"backfill": "another"}}', 7)""",
    )
    context = dg.build_sensor_context(
        instance=instance, repository_def=repository, resources={"io_manager": manager}
    )
    said = repository.get_sensor_def("backfill_reports").evaluate_tick(context).skip_message
    assert str(said).startswith(f"Backfill {name}: The one partition is done."), said
    told = (tmp_path / f"{name}.md").read_text()
    assert "| 2026-05-03 |" in told
    assert "- cost by the warehouse's own books: 0.75" in told
