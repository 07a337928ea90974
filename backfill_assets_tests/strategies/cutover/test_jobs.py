"""The jobs, as a person launches them: everything that stands in the way is told together, and nothing is done by default."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.reconstruct import ReconstructableRepository
from dagster._core.utils import make_new_run_id

from backfill_assets.controls.switch import Scope, Switch
from backfill_assets.errors import DeclarationError
from backfill_assets.io_managers import DeleteInsertIOManager, Select, table_metadata
from backfill_assets.operations.launching import request_backfill
from backfill_assets.strategies.cutover.jobs import cutover_jobs
from backfill_assets.strategies.dual_write import Migration, Side
from backfill_assets.strategies.reconcile.streak import Streak, newest_due
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import Window
from backfill_assets_tests.warehouses import Warehouse, at

# its own names: this file is loaded as a location of its own
OLD = Table("analytics.orders_legacy", SliceColumn("order_date", "date"))
NEW = Table("analytics.orders_new", SliceColumn("order_date", "date"))
ORDERS = Migration(
    "orders",
    old=Side(OLD),
    new=Side(NEW),
    key=("order_id",),
    view="analytics.orders",
    retire_after_days=30,
)
DAYS = dg.DailyPartitionsDefinition("2026-05-01", end_date="2026-05-11")
AUTO = {"by": "ann", "reason": "14 quiet days", "dry_run": False}


@dg.asset(key_prefix=["lake"], partitions_def=DAYS, metadata=table_metadata(OLD))
def legacy_job() -> Select:
    return Select("SELECT 1")


@dg.asset(key_prefix=["analytics"], partitions_def=DAYS, metadata=table_metadata(NEW))
def orders_new() -> Select:
    return Select("SELECT 1")


@dg.asset(key_prefix=["analytics"], partitions_def=DAYS)
def something_else() -> None: ...


def _streak(*_: Any) -> Any:
    why = os.environ.get("CUTOVER_TEST_STREAK") or None
    return Streak(0, 14, why, (), (), Window.day("2026-05-10"))


defs = dg.Definitions(
    assets=[legacy_job, orders_new, something_else],
    jobs=[
        *cutover_jobs([ORDERS, Migration("unseen", Side(OLD), Side(NEW), ("order_id",))], streak=_streak),
        dg.define_asset_job("nightly", [orders_new]),
    ],
    resources={"io_manager": DeleteInsertIOManager(url=dg.EnvVar("CUTOVER_TEST_URL"))},
)  # fmt: skip


class Person:
    """Launches jobs, and reads what they say."""

    def __init__(self, warehouse: Warehouse, instance: dg.DagsterInstance) -> None:
        self.warehouse, self.instance = warehouse, instance
        location = ReconstructableRepository.for_file(__file__, "defs")
        self.location, self.metadata = location, dict[str, Any]()

    def launch(self, job: str, *, ok: bool = True, **config: Any) -> str:
        """Return the status that the job tells, or its refusal."""
        result = dg.execute_job(
            self.location.get_reconstructable_job(job),
            run_config={"ops": {f"{job}_op": {"config": config}}},
            instance=self.instance,
            raise_on_error=False,
        )
        assert result.success is ok, [e.message for e in result.all_events if e.is_failure]
        if not ok:
            (failed,) = result.filter_events(lambda event: event.is_step_failure)
            return failed.step_failure_data.error.message
        (made,) = [e for e in result.all_events if e.event_type_value == "STEP_OUTPUT"]
        self.metadata = {k: v.value for k, v in made.event_specific_data.metadata.items()}
        return str(self.metadata.get("status"))

    def cut_over(self, *, ok: bool = True, **more: Any) -> str:
        return self.launch("cut_over", ok=ok, migration="orders", **{**AUTO, **more})

    @property
    def reads(self) -> set[str]:
        return {source for (source,) in self.warehouse.rows("SELECT source FROM analytics.orders")}

    def run_of(self, *keys: str, job: str = "__ASSET_JOB", status: str = "STARTED") -> None:
        selection = frozenset(dg.AssetKey.from_user_string(key) for key in keys) or None
        self.instance.add_run(
            dg.DagsterRun(
                job_name=job,
                run_id=make_new_run_id(),
                status=dg.DagsterRunStatus(status),
                asset_selection=selection,
            )
        )


@pytest.fixture
def ann(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Iterator[Person]:
    monkeypatch.setenv("CUTOVER_TEST_URL", warehouse.url)
    monkeypatch.delenv("CUTOVER_TEST_STREAK", raising=False)
    day = warehouse.rows("SELECT CAST(CURRENT_DATE - 2 AS VARCHAR)")[0][0]
    columns = "(order_id BIGINT, order_date DATE, source VARCHAR)"
    warehouse.execute(
        "CREATE SCHEMA analytics",
        f"CREATE TABLE analytics.orders_legacy {columns}",
        f"CREATE TABLE analytics.orders_new {columns}",
        f"INSERT INTO analytics.orders_legacy VALUES (1, DATE '{day}', 'old')",
        f"INSERT INTO analytics.orders_new VALUES (1, DATE '{day}', 'new')",
        "CREATE VIEW analytics.orders AS SELECT * FROM analytics.orders_legacy",
    )
    with dg.DagsterInstance.ephemeral() as instance:
        yield Person(warehouse, instance)


def test_the_life_of_a_migration_by_its_jobs(ann: Person) -> None:
    said = ann.launch("cut_over", migration="orders")
    assert said.startswith("orders is dual_writing")
    assert "REPLACE VIEW" in ann.metadata["would_do"]
    assert (ann.metadata["would_be_refused"], ann.reads) == ("none", {"old"})
    assert ann.cut_over().startswith("orders is cut_over")
    assert ann.reads == {"new"}
    ann.launch("migration_status")
    (line,) = (
        ann.metadata["migrations"].records
        if hasattr(ann.metadata["migrations"], "records")
        else ann.metadata["migrations"]
    )
    assert line.data["state"] == "cut_over"
    assert "by ann: 14 quiet days" in line.data["told"]
    ann.launch("roll_back", migration="orders")
    assert ann.reads == {"new"}
    ann.launch("roll_back", migration="orders", **AUTO)
    assert ann.reads == {"old"}
    ann.cut_over()
    refused = ann.launch(
        "retire_legacy", ok=False, migration="orders", drop_table="analytics.orders_legacy", **AUTO
    )
    assert "the old table stays for 30 days" in refused
    assert ann.warehouse.count("analytics.orders_legacy") == 1


def test_everything_against_a_cutover_is_told_together(
    ann: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUTOVER_TEST_STREAK", "6 of 14 quiet days")
    ann.warehouse.execute("DELETE FROM analytics.orders_new")
    Switch(ann.instance).pause(Scope("analytics.orders_new"), "totals are off", "ben")
    graph = defs.get_repository_def().asset_graph
    backfill = request_backfill(ann.instance, graph, {legacy_job.key: ["2026-05-01"]}, {})
    ann.run_of("analytics/orders_new")
    refused = ann.cut_over(ok=False)
    assert "streak: 6 of 14 quiet days" in refused
    assert "fresh: analytics.orders_new has no rows of" in refused
    assert f"no_backfill: backfill {backfill} has not ended" in refused
    assert "no_run: run" in refused
    assert "history: analytics.orders_legacy has" in refused
    assert "not_paused: table analytics.orders_new paused by ben" in refused
    assert ann.reads == {"old"}
    names = ["streak", "fresh", "history", "no_backfill", "no_run", "not_paused"]
    assert ann.cut_over(override=names, reason="the old job stops today").startswith(
        "orders is cut_over"
    )
    ((kept,),) = ann.warehouse.rows(
        "SELECT overridden FROM backfill.migration_moves WHERE state = 'cut_over'"
    )
    assert all(name in kept for name in names)


@pytest.mark.parametrize(
    ("keys", "job", "status", "refused"),
    [
        (("lake/legacy_job",), "__ASSET_JOB", "NOT_STARTED", True),
        ((), "nightly", "STARTED", True),
        (("analytics/something_else",), "__ASSET_JOB", "STARTED", False),
        (("analytics/orders_new",), "__ASSET_JOB", "SUCCESS", False),
        ((), "a_job_of_another_location", "STARTED", False),
    ],
)
def test_a_run_of_either_table_has_to_end_first(
    ann: Person, keys: tuple[str, ...], job: str, status: str, refused: bool
) -> None:
    ann.run_of(*keys, job=job, status=status)
    said = ann.cut_over(ok=not refused)
    assert ("no_run: run" in said) is refused
    assert ann.reads == ({"old"} if refused else {"new"})


def test_a_pause_of_everything_counts_and_one_of_another_table_does_not(ann: Person) -> None:
    switch = Switch(ann.instance)
    switch.pause(Scope("analytics.something_else"), "broken", "ben")
    ann.launch("cut_over", migration="orders")
    assert ann.metadata["would_be_refused"] == "none"
    switch.pause(Scope(), "the warehouse is slow", "ben")
    ann.launch("cut_over", migration="orders")
    assert "backfills paused by ben" in ann.metadata["would_be_refused"]
    assert "something_else" not in ann.metadata["would_be_refused"]


def test_a_name_that_there_is_not_and_a_missing_reason_are_told(ann: Person) -> None:
    assert "there is no migration 'order'" in ann.launch("cut_over", ok=False, migration="order")
    assert "reason is empty" in ann.cut_over(ok=False, reason="")
    assert "declares no view" in ann.launch("cut_over", ok=False, migration="unseen")


def test_two_migrations_of_one_name_make_no_jobs() -> None:
    with pytest.raises(DeclarationError, match="two migrations have one name"):
        cutover_jobs([ORDERS, ORDERS])


@pytest.mark.parametrize(
    ("now", "zone", "hours", "day"),
    [
        ("2026-05-12 00:00", "UTC", 0, "2026-05-11"),
        ("2026-05-12 23:59", "UTC", 24, "2026-05-10"),
        ("2026-05-13 00:00", "UTC", 24, "2026-05-11"),
        ("2026-05-12 03:00", "America/New_York", 0, "2026-05-10"),
        ("2026-05-12 04:00", "America/New_York", 0, "2026-05-11"),
        ("2026-05-12 00:00", "UTC", 0.5, "2026-05-10"),
    ],
)
def test_a_day_is_due_so_many_hours_after_its_end(
    now: str, zone: str, hours: float, day: str
) -> None:
    assert newest_due(zone, at(now), hours).label(zone) == day
    assert isinstance(at(now), datetime)
