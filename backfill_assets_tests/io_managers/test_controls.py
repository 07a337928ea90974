"""The controls in the runs that they are asked in: what is refused or held leaves the table as it was."""

import threading
import time
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import dagster as dg
import pandas as pd
import pytest
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill

from backfill_assets.controls.budget import Budget, raise_budget
from backfill_assets.controls.switch import Scope, Switch
from backfill_assets.controls.tables import table_tags
from backfill_assets.engines import open_engine
from backfill_assets.engines.transactions import Transactions
from backfill_assets.errors import DeclarationError
from backfill_assets.io_managers import (
    Controls,
    DeleteInsertIOManager,
    PerSlice,
    Select,
    table_metadata,
)
from backfill_assets.operations.jobs import scope_in
from backfill_assets.settings import settings
from backfill_assets.table import SliceColumn, Table
from backfill_assets_tests.io_managers.conftest import Warehouse, failure_of

DAYS = dg.DailyPartitionsDefinition("2026-01-01", end_offset=1)
OLD, TODAY = "2026-03-03", date.today().isoformat()
SALES = Table("mart.sales", SliceColumn("day", "date"))
ONE_RUN = dg.BackfillPolicy.single_run()


def frame(*days: str, amounts: tuple[int, ...] = (1, 2)) -> pd.DataFrame:
    return pd.DataFrame(
        [{"day": pd.Timestamp(d).date(), "amount": a} for d in days for a in amounts]
    )


def sales(
    make=lambda c: frame(*c.partition_keys), table: Table = SALES, **more: object
) -> dg.AssetsDefinition:
    metadata = {**table_metadata(table), **more}

    @dg.asset(key_prefix=["mart"], partitions_def=DAYS, metadata=metadata, backfill_policy=ONE_RUN)
    def sales(context: dg.AssetExecutionContext):
        return make(context)

    return sales


def by_slice(make) -> dg.AssetsDefinition:
    return sales(lambda _: PerSlice(make))


@pytest.fixture
def strict(warehouse: Warehouse) -> Warehouse:
    """An IO manager that demands what the location's does, and waits for nothing."""
    controls = Controls(require_reason="backfill", hold_seconds=0)
    warehouse.io_manager = DeleteInsertIOManager(url=warehouse.url, controls=controls)
    return warehouse


def audit(warehouse: Warehouse, names: str) -> list[tuple]:
    return warehouse.rows(f"SELECT {names} FROM backfill.load_audit ORDER BY committed_at")


# reason


def test_a_first_load_needs_no_reason_and_the_second_of_an_old_day_does(strict: Warehouse) -> None:
    strict.run(sales(), partition_key=OLD)
    said = failure_of(
        strict.run(sales(lambda c: frame(OLD, amounts=(9,))), partition_key=OLD, ok=False)
    )
    assert (
        f"mart.sales {OLD} was left as it was: no reason is given, and it was loaded before" in said
    )
    assert "Add the tag 'reason'" in said
    assert strict.rows("SELECT sum(amount) FROM mart.sales") == [(3,)]
    strict.run(
        sales(lambda c: frame(OLD, amounts=(8, 9))),
        partition_key=OLD,
        tags={"reason": "new prices"},
    )
    assert audit(strict, "lane, reason") == [("backfill", None), ("backfill", "new prices")]


def test_a_live_day_is_loaded_again_without_a_word(strict: Warehouse) -> None:
    for _ in range(2):
        strict.run(sales(), partition_key=TODAY)
    assert audit(strict, "lane, reason") == [("live", None)] * 2


def test_a_reason_may_be_demanded_always(warehouse: Warehouse) -> None:
    controls = Controls(require_reason="always")
    warehouse.io_manager = DeleteInsertIOManager(url=warehouse.url, controls=controls)
    said = failure_of(warehouse.run(sales(), partition_key=TODAY, ok=False))
    assert "every run needs one here" in said


def test_a_reason_in_the_configuration_counts(strict: Warehouse) -> None:
    @dg.asset(
        key_prefix=["mart"],
        partitions_def=DAYS,
        metadata=table_metadata(SALES),
        config_schema={"reason": dg.Field(str, is_required=False)},
    )
    def sales(context: dg.AssetExecutionContext) -> pd.DataFrame:
        return frame(context.partition_key)

    strict.run(sales, partition_key=OLD)
    config = {"ops": {"mart__sales": {"config": {"reason": "typed in the launchpad"}}}}
    strict.run(sales, partition_key=OLD, run_config=config)
    assert audit(strict, "reason") == [(None,), ("typed in the launchpad",)]


# pause


def test_a_paused_backfill_does_not_even_compute_and_a_live_run_goes_on(strict: Warehouse) -> None:
    computed: list[str] = []

    def make(context: dg.AssetExecutionContext) -> pd.DataFrame:
        computed.append(context.partition_key)
        return frame(context.partition_key)

    Switch(strict.instance).pause(Scope(), "the source is wrong", "ana")
    result = strict.run(sales(make), partition_key=OLD, ok=False)
    said = " ".join(
        str(event.message) + str(event.event_specific_data) for event in result.all_events
    )
    assert "backfills paused by ana since" in said
    assert "the source is wrong" in said
    strict.run(sales(make), partition_key=TODAY)
    assert computed == [TODAY]


def test_a_pause_of_another_table_or_backfill_holds_nothing(strict: Warehouse) -> None:
    Switch(strict.instance).pause(Scope(table="mart.other"), "why", "ana")
    Switch(strict.instance).pause(Scope(backfill="other"), "why", "ana")
    strict.run(sales(), partition_key=OLD)
    Switch(strict.instance).pause(Scope(table="mart.sales"), "why", "ana")
    strict.run(sales(), partition_key="2026-03-04", ok=False)
    assert strict.rows("SELECT DISTINCT day FROM mart.sales") == [(date(2026, 3, 3),)]


def test_a_pause_of_a_table_stops_its_asset_of_another_name_before_it_computes(
    strict: Warehouse,
) -> None:
    computed: list[str] = []

    @dg.asset(key_prefix=["other"], partitions_def=DAYS, metadata=table_metadata(SALES))
    def name(context: dg.AssetExecutionContext) -> pd.DataFrame:
        computed.append(context.partition_key)
        return frame(context.partition_key)

    repository = dg.Definitions(assets=[name]).get_repository_def()
    scope = scope_in(repository, Scope(table="mart.sales"))
    Switch(strict.instance).pause(scope, "the source is wrong", "ana")
    queued = table_tags(["other/name", "mart.sales"])  # as the coordinator stamps it
    strict.run(name, partition_key=OLD, ok=False, tags=queued)
    assert computed == []


@pytest.mark.parametrize("returns", ["a frame", "a function of the slice"])
def test_a_batched_run_stops_before_its_next_slice_and_what_is_done_stays(
    strict: Warehouse, returns: str
) -> None:
    def throw(day: str) -> None:
        if day == "2026-03-02":
            Switch(strict.instance).pause(Scope(), "enough", "ana")
            time.sleep(1.1)  # a run asks once a second

    def by_day(slice_) -> pd.DataFrame:
        throw(str(slice_.partition))
        return frame(str(slice_.partition))

    def all_days(context: dg.AssetExecutionContext) -> pd.DataFrame:
        throw("2026-03-02")
        return frame(*context.partition_keys)

    asset = by_slice(by_day) if returns == "a function of the slice" else sales(all_days)
    said = failure_of(strict.run_range("2026-03-01", "2026-03-05", asset, ok=False))
    assert "backfills paused by ana since" in said
    assert "'Re-execute from failure' on a backfill's page does just that" in said
    done = [row[0] for row in audit(strict, "partition_key")]
    # a frame is all days at once; a function was about to finish its second one
    assert done == ["2026-03-01"] + (["2026-03-02"] if returns != "a frame" else [])
    records = strict.instance.fetch_materializations(
        dg.AssetKey(["mart", "sales"]), limit=9
    ).records
    assert sorted(str(record.partition_key) for record in records) == done


def test_a_run_goes_on_by_itself_when_the_pause_ends_and_gives_the_file_back_meanwhile(
    warehouse: Warehouse,
) -> None:
    controls = Controls(hold_seconds=60)
    warehouse.io_manager = DeleteInsertIOManager(
        url=f"{warehouse.url}?lock_wait=5", controls=controls
    )
    others: list[tuple] = []

    def make(context: dg.AssetExecutionContext) -> pd.DataFrame:
        Switch(warehouse.instance).pause(Scope(), "a moment", "ana")
        time.sleep(1.1)
        return frame(*context.partition_keys)

    def resume() -> None:
        time.sleep(3)
        others.extend(warehouse.rows("SELECT count(*) FROM mart.sales"))
        Switch(warehouse.instance).resume(Scope(), "go on", "ana")

    helper = threading.Thread(target=resume)
    helper.start()
    warehouse.run_range("2026-03-01", "2026-03-03", sales(make))
    helper.join()
    assert others == [(2,)]
    assert audit(warehouse, "partition_key") == [("2026-03-01",), ("2026-03-02",), ("2026-03-03",)]


def test_days_that_were_computed_before_a_pause_are_written_at_once_and_no_other_is_computed(
    warehouse: Warehouse,
) -> None:
    warehouse.io_manager = DeleteInsertIOManager(
        url=warehouse.url, controls=Controls(hold_seconds=4)
    )
    computed: list[str] = []
    written_while_paused: list[tuple] = []

    def look() -> None:
        time.sleep(2.5)
        written_while_paused.extend(audit(warehouse, "partition_key"))

    helper = threading.Thread(target=look)

    def by_day(slice_) -> pd.DataFrame:
        computed.append(str(slice_.partition))
        if slice_.partition == "2026-03-03":
            Switch(warehouse.instance).pause(Scope(), "enough", "ana")
            helper.start()
        return frame(str(slice_.partition))

    warehouse.run_range("2026-03-01", "2026-03-05", by_slice(by_day), ok=False)
    helper.join()
    assert computed == ["2026-03-01", "2026-03-02", "2026-03-03"]
    assert written_while_paused == [(day,) for day in computed]


def test_a_query_that_has_not_run_yet_is_stopped_by_a_pause(strict: Warehouse) -> None:
    def query(_: dg.AssetExecutionContext) -> Select:
        Switch(strict.instance).pause(Scope(), "enough", "ana")
        return Select(f"SELECT DATE '{OLD}' AS day, 1 AS amount")

    said = failure_of(strict.run(sales(query), partition_key=OLD, ok=False))
    assert "backfills paused by ana since" in said


class Occupied:
    """The warehouse in other hands from now on, until `done` has been called and a moment has passed."""

    def __init__(self, warehouse: Warehouse, done: Callable[[], None]) -> None:
        opened = threading.Event()

        def hold() -> None:
            with open_engine(warehouse.url).session():
                opened.set()
                time.sleep(1)
                done()
                time.sleep(1)

        self.thread = threading.Thread(target=hold)
        self.thread.start()
        opened.wait()


def test_a_pause_that_comes_while_the_run_waits_for_the_warehouse_stops_it(
    strict: Warehouse,
) -> None:
    def query(_: dg.AssetExecutionContext) -> Select:
        switch = Switch(strict.instance)
        Occupied(strict, lambda: switch.pause(Scope(), "enough", "ana") and None)
        return Select(f"SELECT DATE '{OLD}' AS day, 1 AS amount")

    said = failure_of(strict.run(sales(query), partition_key=OLD, ok=False))
    assert "backfills paused by ana since" in said


def test_a_deadline_that_passes_while_the_run_waits_for_the_warehouse_is_kept(
    strict: Warehouse,
) -> None:
    soon = datetime.now(timezone.utc) + timedelta(seconds=60)

    def make(context: dg.AssetExecutionContext) -> pd.DataFrame:
        budget = Budget(deadline=datetime.now(timezone.utc))
        Occupied(strict, lambda: raise_budget(strict.instance, "b1", budget, "ana", "sooner"))
        return frame(*context.partition_keys)

    tags = {"dagster/backfill": "b1", "budget/deadline": soon.isoformat()}
    said = failure_of(strict.run(sales(make), partition_key=OLD, tags=tags, ok=False))
    assert "has passed" in said


# nothing is computed in vain


def refused_unseen(warehouse: Warehouse, said: str, table: Table = SALES, **tags: str) -> None:
    """Run three days whose first would be refused, and see that none is computed."""
    computed: list[str] = []

    def by_day(slice_) -> pd.DataFrame:
        computed.append(str(slice_.partition))
        return frame(str(slice_.partition))

    asset = sales(lambda _: PerSlice(by_day), table=table)
    found = failure_of(warehouse.run_range("2026-03-01", "2026-03-03", asset, tags=tags, ok=False))
    assert said in found
    assert computed == []


def test_a_day_beyond_what_the_source_keeps_is_not_computed(strict: Warehouse) -> None:
    refused_unseen(strict, "its source keeps its rows for 30 days", kept(30))


def test_a_day_that_needs_a_reason_is_not_computed_without_one(strict: Warehouse) -> None:
    strict.run(sales(), partition_key="2026-03-01")
    refused_unseen(strict, "no reason is given, and it was loaded before")


def test_a_day_for_which_no_budget_is_left_is_not_computed(strict: Warehouse) -> None:
    tags = {"dagster/backfill": "b1", "budget/rows": "2"}
    strict.run(sales(), partition_key=OLD, tags=tags)
    refused_unseen(strict, "2 of 2 rows are spent", **tags)


def test_days_before_the_first_that_is_refused_are_written(strict: Warehouse) -> None:
    strict.run(sales(), partition_key="2026-03-03")
    computed: list[str] = []

    def by_day(slice_) -> pd.DataFrame:
        computed.append(str(slice_.partition))
        return frame(str(slice_.partition))

    failure_of(strict.run_range("2026-03-01", "2026-03-05", by_slice(by_day), ok=False))
    assert computed == ["2026-03-01", "2026-03-02"]
    assert sorted(audit(strict, "partition_key")) == [(f"2026-03-0{n}",) for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("tags", "said"),
    [
        ({"budget/rows": "many"}, "the budget rows=many cannot be used"),
        ({"budget/deadline": "2026-12-24T00:00"}, "it has no time zone"),
        ({"strategy": "guess"}, "there is no such strategy"),
        ({"allow": "everything", "reason": "r"}, "no guard has that name"),
        ({"allow": "shrink"}, "it gives no reason"),
    ],
)
def test_a_tag_that_cannot_be_right_is_refused_before_a_frame_is_made(
    strict: Warehouse, tags: dict[str, str], said: str
) -> None:
    made: list[str] = []

    def make(context: dg.AssetExecutionContext) -> pd.DataFrame:
        made.append(context.partition_key)
        return frame(context.partition_key)

    result = strict.run(sales(make), partition_key=OLD, tags=tags, ok=False)
    told = " ".join(str(e.message) + str(e.event_specific_data) for e in result.all_events)
    assert said in told
    assert made == []


# budget


def test_a_backfill_that_has_used_up_its_rows_is_stopped_before_the_next_slice(
    strict: Warehouse,
) -> None:
    tags = {"dagster/backfill": "b1", "budget/rows": "4"}
    said = failure_of(
        strict.run_range("2026-03-01", "2026-03-05", by_slice(_slice), tags=tags, ok=False)
    )
    assert "the budget of backfill b1 is used up: 4 of 4 rows are spent" in said
    assert "Raise it with the job raise_budget for backfill b1" in said
    assert audit(strict, "partition_key") == [("2026-03-01",), ("2026-03-02",)]
    raise_budget(strict.instance, "b1", Budget(rows=7), "ana", "worth it")
    strict.run_range("2026-03-03", "2026-03-05", by_slice(_slice), tags=tags, ok=False)
    assert len(audit(strict, "partition_key")) == 4
    other = {**tags, "dagster/backfill": "b2"}
    strict.run_range("2026-03-05", "2026-03-05", by_slice(_slice), tags=other)


def test_no_statement_of_a_slice_may_cost_more_than_what_is_left_of_the_budget(
    strict: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Engines that can cap a statement are told; what DuckDB and PostgreSQL cost nobody tells."""
    told: list[float | None] = []
    monkeypatch.setattr(Transactions, "may_cost", lambda _, most: told.append(most))
    tags = {"dagster/backfill": "b1", "budget/cost": "500"}
    strict.run_range("2026-03-01", "2026-03-02", by_slice(_slice), tags=tags)
    assert set(told) == {500.0}
    told.clear()
    strict.run_range("2026-03-03", "2026-03-03", by_slice(_slice), tags={"dagster/backfill": "b2"})
    assert told == []


def _slice(slice_) -> pd.DataFrame:
    return frame(str(slice_.partition))


@pytest.mark.parametrize("returns", ["a frame", "a function of the slice"])
def test_a_budget_stops_a_run_whose_slices_take_no_time(strict: Warehouse, returns: str) -> None:
    """31 days of 100 rows are written in less than a second, and 100 rows are what may be written."""

    def hundred(day: str) -> pd.DataFrame:
        return frame(day, amounts=tuple(range(100)))

    asset = (
        by_slice(lambda slice_: hundred(str(slice_.partition)))
        if returns == "a function of the slice"
        else sales(lambda c: frame(*c.partition_keys, amounts=tuple(range(100))))
    )
    tags = {"dagster/backfill": "b1", "budget/rows": "100"}
    said = failure_of(strict.run_range("2026-03-01", "2026-03-31", asset, tags=tags, ok=False))
    assert "100 of 100 rows are spent" in said
    assert strict.rows("SELECT count(*) FROM mart.sales") == [(100,)]


def test_a_range_that_is_executed_again_has_no_second_budget(strict: Warehouse) -> None:
    """Neither by its run, nor as a backfill that executes another again; a raise of any of them counts for all."""
    capped = {"budget/rows": "2"}
    asset = by_slice(_slice)
    first = strict.run_range("2026-03-01", "2026-03-03", asset, tags=capped, ok=False)
    again = {**capped, "dagster/root_run_id": first.run_id, "dagster/parent_run_id": first.run_id}
    said = failure_of(strict.run_range("2026-03-02", "2026-03-03", asset, tags=again, ok=False))
    assert f"the budget of run {first.run_id[:8]} is used up: 2 of 2 rows" in said
    b1, b2 = ("b1", {}), ("b2", {"dagster/root_backfill_id": "b1"})
    for name, tags in (b1, b2):
        strict.instance.add_backfill(backfill(name, **tags))
    told = {**capped, "dagster/backfill": "b1"}
    strict.run_range("2026-03-04", "2026-03-06", asset, tags=told, ok=False)
    told |= {"dagster/backfill": "b2", "dagster/root_backfill_id": "b1"}
    said = failure_of(strict.run_range("2026-03-05", "2026-03-06", asset, tags=told, ok=False))
    assert "the budget of backfill b1 is used up: 2 of 2 rows" in said
    raise_budget(strict.instance, "b2", Budget(rows=4), "ana", "worth it")
    strict.run_range("2026-03-05", "2026-03-06", asset, tags=told, ok=False)
    assert audit(strict, "partition_key") == [("2026-03-01",), ("2026-03-04",), ("2026-03-05",)]


def backfill(name: str, **tags: str) -> PartitionBackfill:
    return PartitionBackfill(
        backfill_id=name,
        status=BulkActionStatus.REQUESTED,
        from_failure=False,
        tags=tags,
        backfill_timestamp=time.time(),
        asset_selection=[dg.AssetKey(["mart", "sales"])],
    )


def test_a_pause_of_a_backfill_stops_what_executes_it_again(strict: Warehouse) -> None:
    Switch(strict.instance).pause(Scope(backfill="b1"), "the source is wrong", "ana")
    tags = {"dagster/backfill": "b2", "dagster/root_backfill_id": "b1"}
    strict.run(sales(), partition_key=OLD, tags=tags, ok=False)
    strict.run(sales(), partition_key=OLD, tags={"dagster/backfill": "b3"})


def test_a_table_may_have_a_budget_of_its_own(strict: Warehouse) -> None:
    capped = sales(lambda _: PerSlice(_slice), budget={"rows": 2})
    said = failure_of(
        strict.run_range(
            "2026-03-01", "2026-03-03", capped, tags={"dagster/backfill": "b1"}, ok=False
        )
    )
    assert "2 of 2 rows are spent on mart.sales" in said
    assert "Raise the table's budget where it is declared" in said
    assert "raise_budget" not in said
    assert audit(strict, "partition_key") == [("2026-03-01",)]


def test_after_the_deadline_no_slice_is_begun_and_a_live_run_has_none(strict: Warehouse) -> None:
    tags = {"budget/deadline": "2026-01-01T00:00Z"}
    said = failure_of(strict.run(sales(), partition_key=OLD, tags=tags, ok=False))
    assert "the deadline 2026-01-01T00:00+00:00 has passed" in said
    strict.run(sales(), partition_key=TODAY, tags=tags)


# retention


def kept(days: int | None, **options: object) -> Table:
    return Table("mart.sales", SliceColumn("day", "date"), source_days=days, **options)


def test_a_day_that_the_source_no_longer_keeps_is_refused_until_the_run_says_why(
    strict: Warehouse,
) -> None:
    asset = sales(table=kept(30))
    strict.run(asset, partition_key=(date.today() - timedelta(days=20)).isoformat())
    said = failure_of(strict.run(asset, partition_key=OLD, ok=False))
    assert "its source keeps its rows for 30 days, and the window ended" in said
    strict.run(
        asset, partition_key=OLD, tags={"allow": "retention", "reason": "the archive was restored"}
    )


def test_a_source_that_is_changed_in_place_needs_its_history(strict: Warehouse) -> None:
    said = failure_of(
        strict.run(sales(table=kept(None, source_mutable=True)), partition_key=OLD, ok=False)
    )
    assert "is changed in place and trusted for 0 days" in said
    strict.run(
        sales(table=kept(None, source_mutable=True, source_history="snapshot")), partition_key=OLD
    )


def test_todays_load_of_a_source_that_is_changed_in_place_needs_no_history(
    strict: Warehouse,
) -> None:
    asset = sales(table=kept(None, source_mutable=True))
    for day in (TODAY, (date.today() - timedelta(days=1)).isoformat()):
        strict.run(asset, partition_key=day)
    assert audit(strict, "lane") == [("live",)] * 2


# lanes


def test_each_lane_reaches_the_warehouse_through_its_own_door(tmp_path: Path) -> None:
    url = f"duckdb:///{tmp_path}/w.duckdb"
    manager = DeleteInsertIOManager(
        url=f"{url}?memory_limit=300MB", lane_url=f"{url}?memory_limit=200MB"
    )
    limits = {}
    for lane in ("live", "backfill"):
        with manager.engine_of(lane).session() as session:
            limits[lane] = session.fetch("SELECT current_setting('memory_limit')")[0][0]
    assert limits == {"live": "286.1 MiB", "backfill": "190.7 MiB"}
    instance = dg.DagsterInstance.ephemeral()
    for key in (OLD, TODAY):
        dg.materialize(
            [sales()], partition_key=key, resources={"io_manager": manager}, instance=instance
        )
    with open_engine(url).session() as session:
        assert session.fetch("SELECT lane FROM backfill.load_audit ORDER BY committed_at") == [
            ("backfill",),
            ("live",),
        ]


def test_a_second_door_of_another_file_is_refused_and_a_link_to_the_same_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two files have two audits and two claims: nothing would keep a backfill from overwriting a newer load."""
    url, other = f"duckdb:///{tmp_path}/w.duckdb", f"duckdb:///{tmp_path}/other.duckdb"
    instance = dg.DagsterInstance.ephemeral()
    manager = DeleteInsertIOManager(url=url, lane_url=other)
    result = dg.materialize(
        [sales()],
        partition_key=OLD,
        resources={"io_manager": manager},
        instance=instance,
        raise_on_error=False,
    )
    assert "a slice would have two writers" in failure_of(result)
    assert not (tmp_path / "other.duckdb").exists()
    monkeypatch.setenv("BACKFILL_WAREHOUSE_URL", url)
    monkeypatch.setenv("BACKFILL_LANE_WAREHOUSE_URL", other)
    settings.cache_clear()
    with pytest.raises(DeclarationError, match="a slice would have two writers"):
        DeleteInsertIOManager.from_settings()
    settings.cache_clear()
    (tmp_path / "linked").symlink_to(tmp_path)
    DeleteInsertIOManager(url=url, lane_url=f"duckdb:///{tmp_path}/linked/w.duckdb").engine_of(
        "backfill"
    )


def test_a_second_door_of_postgres_is_one_database_of_one_server(
    postgres_url: str, postgres_server: str
) -> None:
    def door(url: str) -> None:
        DeleteInsertIOManager(url=postgres_url, lane_url=url).engine_of("backfill")

    door(f"{postgres_url}&statement_timeout=5")
    door(f"{postgres_url}&port=5432")  # another address, which leads to the same server
    with pytest.raises(DeclarationError, match="one leads to warehouse, the other to postgres"):
        door(postgres_server)
    with pytest.raises(DeclarationError, match="of different kinds"):
        door("duckdb:///w.duckdb")
    with open_engine(postgres_url).session() as session:
        session.execute("CREATE ROLE without_rights LOGIN")
        session.execute("REVOKE EXECUTE ON FUNCTION pg_control_system FROM PUBLIC")
    try:
        with pytest.raises(DeclarationError, match="the server does not tell which it is"):
            door(f"{postgres_url}&port=5432&user=without_rights")
    finally:
        with open_engine(postgres_url).session() as session:
            session.execute("GRANT EXECUTE ON FUNCTION pg_control_system TO PUBLIC")
            session.execute("DROP ROLE without_rights")


def test_without_a_second_door_the_run_says_so_once_and_works(
    strict: Warehouse, capfd: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backfill_assets.io_managers.controlled._said", set())
    for _ in range(2):
        strict.run_range("2026-03-01", "2026-03-03", sales(), tags={"reason": "twice"})
    assert capfd.readouterr().err.count("Backfills use the warehouse target of the live lane") == 1


def test_a_live_year_is_not_held_because_its_key_is_named_after_a_day_long_ago(
    strict: Warehouse,
) -> None:
    """The coordinator has asked the partitions and stamped the run; the name alone would tell another lane."""
    years = dg.TimeWindowPartitionsDefinition(
        start="2024-01-01", fmt="%Y-%m-%d", cron_schedule="0 0 1 1 *", end_offset=1
    )
    keys = years.get_partition_keys()

    @dg.asset(key_prefix=["mart"], partitions_def=years, metadata=table_metadata(SALES))
    def yearly(context: dg.AssetExecutionContext) -> pd.DataFrame:
        return frame(context.partition_key)

    Switch(strict.instance).pause(Scope(), "the source is wrong", "ana")
    stamped = {"lane": "live", "lane_why": "it is about the newest partitions, or about none"}
    strict.run(yearly, partition_key=keys[-1], tags=stamped)
    strict.run(yearly, partition_key=keys[0], ok=False)
    assert audit(strict, "partition_key, lane") == [(keys[-1], "live")]


def test_a_run_reads_through_the_door_that_it_writes_through(tmp_path: Path) -> None:
    """Keys that are written day first tell nobody by their names that they are old."""
    url = f"duckdb:///{tmp_path}/w.duckdb"
    manager = DeleteInsertIOManager(
        url=f"{url}?memory_limit=300MB", lane_url=f"{url}?memory_limit=200MB"
    )
    with open_engine(url).session() as session:
        session.execute("CREATE SCHEMA mart")
        session.execute(
            "CREATE VIEW mart.source AS SELECT DATE '2026-03-03' AS day,"
            " current_setting('memory_limit') AS door"
        )
    days = dg.DailyPartitionsDefinition("01-03-2026", fmt="%d-%m-%Y")
    metadata = table_metadata(Table("mart.doors", SliceColumn("day", "date")))
    source = dg.AssetSpec(
        ["mart", "source"],
        partitions_def=days,
        metadata={"partition_expr": "day", "partition_kind": "date"},
    )

    @dg.asset(key_prefix=["mart"], partitions_def=days, metadata=metadata)
    def doors(source: pd.DataFrame) -> pd.DataFrame:
        return source

    dg.materialize(
        [doors, source],
        partition_key="03-03-2026",
        resources={"io_manager": manager},
        instance=dg.DagsterInstance.ephemeral(),
    )
    with open_engine(url).session() as session:
        assert session.fetch("SELECT door FROM mart.doors") == [("190.7 MiB",)]
        assert session.fetch("SELECT lane FROM backfill.load_audit") == [("backfill",)]


# metadata that is not what it is meant to be


@pytest.mark.parametrize("budget", [5, "x", [1], {1: 2}, {"rows": True}])
def test_a_budget_that_caps_nothing_is_a_sentence(strict: Warehouse, budget: object) -> None:
    said = failure_of(strict.run(sales(budget=budget), partition_key=OLD, ok=False))
    assert said.startswith("dagster._core.definitions.events.Failure: the budget")


def test_a_source_that_is_kept_for_a_million_days_refuses_no_day(strict: Warehouse) -> None:
    strict.run(sales(source_days=1_000_000), partition_key=OLD)
