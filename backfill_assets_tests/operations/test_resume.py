"""A backfill that stopped in the middle is resumed with exactly what it has left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill
from dagster._time import get_current_timestamp

from backfill_assets_tests.operations import late_location
from backfill_assets_tests.operations.daemon import Daemon, daemon_for
from backfill_assets_tests.warehouses import Warehouse

TWENTY = [f"2026-05-{number:02}" for number in range(1, 21)]
AGAIN = """mutation Again($id: String!) {
  reexecutePartitionBackfill(reexecutionParams: {parentRunId: $id, strategy: FROM_FAILURE}) {
    ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message }
  }
}"""


class Place:
    """A warehouse, and a location over it whose days fail when they are told to."""

    def __init__(self, daemon: Daemon, warehouse: Warehouse, failing: Path) -> None:
        self.daemon, self.warehouse, self._failing = daemon, warehouse, failing

    def fails(self, *days: str) -> None:
        self._failing.write_text(json.dumps(days))

    def resume(self, backfill: str, **more: Any) -> dict[str, Any]:
        return self.daemon.job("resume_backfill", backfill=backfill, by="ana", **more)

    def ended(self, told: dict[str, Any]) -> str:
        """Let the daemon do what was launched, and return the new backfill's id."""
        (new,) = told["launched"]
        assert self.daemon.end(new) == "COMPLETED_SUCCESS"
        return new

    def loads(self, *backfills: str) -> list[tuple[str, str]]:
        """Return table and day of each load of the backfills, in their order."""
        names = ", ".join(f"'{one}'" for one in backfills)
        return [
            (table.removeprefix("mart."), key)
            for table, key in self.warehouse.rows(
                "SELECT table_name, partition_key FROM backfill.load_audit"
                f" WHERE backfill_id IN ({names}) ORDER BY committed_at"
            )
        ]

    def days(self, table: str) -> dict[str, int]:
        found = self.warehouse.rows(f"SELECT day, count(*) FROM mart.{table} GROUP BY 1 ORDER BY 1")
        return dict(found)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with daemon_for(Path(late_location.__file__)) as running:
        yield running


@pytest.fixture
def place(daemon: Daemon, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, tmp_path) -> Place:
    monkeypatch.setenv("LATE_TEST_URL", warehouse.url)
    monkeypatch.setenv("LATE_TEST_FAILING", str(tmp_path / "failing.json"))
    return Place(daemon, warehouse, tmp_path / "failing.json")


@pytest.fixture
def duck(daemon: Daemon, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Place:
    """On one engine, for what has nothing to do with the warehouse."""
    warehouse = Warehouse(f"duckdb:///{tmp_path}/warehouse.duckdb")
    monkeypatch.setenv("LATE_TEST_URL", warehouse.url)
    monkeypatch.setenv("LATE_TEST_FAILING", str(tmp_path / "failing.json"))
    return Place(daemon, warehouse, tmp_path / "failing.json")


def test_day_7_of_20_fails_and_a_resume_does_days_7_to_20(place: Place) -> None:
    place.fails("2026-05-07")
    backfill = place.daemon.backfill({"batched": TWENTY}, reason="new prices", ticket="INC-7")
    assert place.daemon.end(backfill) == "COMPLETED_FAILED"
    assert place.loads(backfill) == [("batched", day) for day in TWENTY[:6]]
    place.fails()
    told = place.resume(backfill)
    assert (told["planned"], told["left"]) == (20, 14)
    new = place.ended(told)
    assert place.loads(new) == [("batched", day) for day in TWENTY[6:]]
    assert place.days("batched") == dict.fromkeys(TWENTY, 2)
    assert place.warehouse.rows(
        f"SELECT DISTINCT reason, ticket, launched_by FROM backfill.load_audit WHERE backfill_id = '{new}'"
    ) == [("new prices", "INC-7", "ana")]
    found = place.daemon.found(new)
    assert (found.title, found.tags["resumes"]) == ("a plan", backfill)


def test_of_two_assets_only_the_failed_days_of_the_failed_one_run_again(place: Place) -> None:
    place.fails("after 2026-05-02", "daily 2026-05-04")
    backfill = place.daemon.backfill({"daily": TWENTY[:4], "after": TWENTY[:4]})
    assert place.daemon.end(backfill) == "COMPLETED_FAILED"
    place.fails()
    told = place.resume(backfill, reason="mended")
    assert [
        (line["asset"], line["partition"], line["what_happened"]) for line in told["lines"]
    ] == [
        ("mart/daily", "2026-05-04", "failed or refused"),
        ("mart/after", "2026-05-02", "failed or refused"),
        ("mart/after", "2026-05-04", told["lines"][2]["what_happened"]),
    ]
    new = place.ended(told)
    assert sorted(place.loads(new)) == [
        ("after", "2026-05-02"),
        ("after", "2026-05-04"),
        ("daily", "2026-05-04"),
    ]
    assert place.days("after") == place.days("daily") == dict.fromkeys(TWENTY[:4], 2)


def test_days_that_were_cancelled_in_the_queue_and_never_launched_are_resumed(
    duck: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a redeploy leaves them: some done, some cancelled in the queue, some not even submitted."""
    launch = duck.daemon.instance.run_launcher.launch_run
    number = 0

    def two_only(context: Any) -> None:
        nonlocal number
        number += 1
        if number <= 2:
            launch(context)

    monkeypatch.setattr(duck.daemon.instance.run_launcher, "launch_run", two_only)
    monkeypatch.setenv("DAGSTER_ASSET_BACKFILL_RUN_CHUNK_SIZE", "2")
    backfill = duck.daemon.backfill({"daily": TWENTY[:6]})
    duck.daemon.tick()
    assert (
        "is still running"
        in duck.daemon.job("resume_backfill", ok=False, backfill=backfill, by="ana")["said"]
    )
    duck.daemon.cancel(backfill)
    assert (
        "is being cancelled"
        in duck.daemon.job("resume_backfill", ok=False, backfill=backfill, by="ana")["said"]
    )
    for run in duck.daemon.runs(backfill):
        if not run.is_finished:
            duck.daemon.instance.report_run_canceled(run)
    assert duck.daemon.end(backfill) == "CANCELED"
    monkeypatch.undo()
    monkeypatch.setenv("LATE_TEST_URL", duck.warehouse.url)
    told = duck.resume(backfill)
    assert {line["what_happened"] for line in told["lines"]} == {"cancelled"}
    new = duck.ended(told)
    assert sorted(duck.loads(backfill, new)) == [("daily", day) for day in TWENTY[:6]]
    assert len(duck.daemon.runs(new)) == 4


def test_the_uis_own_re_execution_after_a_cancel_does_only_what_is_left(
    duck: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dagster_graphql.test.utils import execute_dagster_graphql

    duck.fails("2026-05-04")
    backfill = duck.daemon.backfill({"batched": TWENTY[:6], "daily": TWENTY[:6]})
    duck.daemon.tick()
    duck.daemon.cancel(backfill)
    assert duck.daemon.end(backfill) == "CANCELED"
    done = duck.loads(backfill)
    assert 0 < len(done) < 12
    duck.fails()
    context = duck.daemon.workspace.create_request_context()
    found = execute_dagster_graphql(context, AGAIN, variables={"id": backfill}).data
    again = found["reexecutePartitionBackfill"]["backfillId"]
    assert duck.daemon.end(again) == "COMPLETED_SUCCESS"
    everything = [(table, day) for table in ("batched", "daily") for day in TWENTY[:6]]
    assert sorted(duck.loads(backfill, again)) == everything
    # and what it did is done for a resume of the old one too
    assert duck.resume(backfill)["left"] == 0


def test_a_resume_that_fails_is_resumed_by_either_id(duck: Place) -> None:
    duck.fails("2026-05-02", "2026-05-03")
    backfill = duck.daemon.backfill({"daily": TWENTY[:4]})
    duck.daemon.end(backfill)
    duck.fails("2026-05-03")
    (second,) = duck.resume(backfill)["launched"]
    assert (
        "which resumes it, is still running"
        in duck.daemon.job("resume_backfill", ok=False, backfill=backfill, by="ana")["said"]
    )
    assert duck.daemon.end(second) == "COMPLETED_FAILED"
    duck.fails()
    assert (
        duck.resume(second, dry_run=True)["lines"] == duck.resume(backfill, dry_run=True)["lines"]
    )
    third = duck.ended(duck.resume(backfill))
    assert duck.loads(third) == [("daily", "2026-05-03")]
    told = duck.resume(backfill)
    assert (told["left"], told["launched"]) == (0, [])
    assert "Nothing of backfill" in told["summary"]


def test_a_day_that_another_backfill_loaded_is_not_done_by_this_one(duck: Place) -> None:
    duck.fails("2026-05-02")
    backfill = duck.daemon.backfill({"daily": TWENTY[:3]}, reason="new prices")
    duck.daemon.end(backfill)
    duck.fails()
    assert duck.daemon.end(duck.daemon.backfill({"daily": TWENTY[:3]}, reason="r")) != "FAILED"
    assert [line["partition"] for line in duck.resume(backfill)["lines"]] == ["2026-05-02"]


def test_a_day_that_was_committed_and_not_told_to_dagster_is_not_done_again(
    duck: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt  # between the commit and its report

    monkeypatch.setattr("backfill_assets.io_managers.delete_insert.tell", killed)
    monkeypatch.setattr("backfill_assets.io_managers.output.keep", lambda *_: None)
    backfill = duck.daemon.backfill({"daily": TWENTY[:1]})
    duck.daemon.tick()
    monkeypatch.undo()
    monkeypatch.setenv("LATE_TEST_URL", duck.warehouse.url)
    assert duck.daemon.end(backfill) == "COMPLETED_FAILED"
    assert duck.loads(backfill) == [("daily", "2026-05-01")]
    told = duck.resume(backfill)
    assert (told["planned"], told["left"]) == (1, 0)


def test_of_an_asset_that_writes_elsewhere_dagster_says_what_is_done(duck: Place) -> None:
    duck.fails("elsewhere 2026-05-02")
    backfill = duck.daemon.backfill({"elsewhere": TWENTY[:3]})
    duck.daemon.end(backfill)
    duck.fails()
    told = duck.resume(backfill)
    assert [line["partition"] for line in told["lines"]] == ["2026-05-02"]
    new = duck.ended(told)
    (run,) = duck.daemon.runs(new)
    assert run.tags["dagster/partition"] == "2026-05-02"


def test_what_was_planned_and_is_not_there_any_more_is_named(duck: Place) -> None:
    duck.fails("2026-05-02", "2026-05-05")
    backfill = duck.daemon.backfill({"daily": TWENTY[:6], "other": TWENTY[:2]})
    duck.daemon.end(backfill)
    duck.fails()
    told = duck.daemon.job(
        "resume_backfill", "defs_later", backfill=backfill, by="ana", dry_run=True
    )
    assert told["planned"] == 8
    assert [line["partition"] for line in told["lines"]] == ["2026-05-05"]
    assert told["gone"] == {"mart/daily": TWENTY[:3], "mart/other": TWENTY[:2]}
    assert "mart/daily 2026-05-01, 2026-05-02, 2026-05-03" in told["summary"]


def test_a_day_that_is_another_stretch_of_time_now_is_named(duck: Place) -> None:
    duck.fails("2026-05-02")
    backfill = duck.daemon.backfill({"daily": TWENTY[:2]})
    duck.daemon.end(backfill)
    told = duck.daemon.job("resume_backfill", "defs_in_new_york", backfill=backfill, by="ana")
    assert (told["launched"], told["gone"]) == ([], {"mart/daily": TWENTY[:2]})


def test_a_region_of_a_day_is_resumed_alone(duck: Place) -> None:
    duck.warehouse.execute(
        "CREATE SCHEMA raw",
        "CREATE TABLE raw.regions AS SELECT * FROM (VALUES (1, 'eu'), (2, 'us')) AS r (id, region)"
        " CROSS JOIN (SELECT TIMESTAMPTZ '2026-05-01 12:00:00+00' AS sold_at)"
        " CROSS JOIN (SELECT TIMESTAMPTZ '2026-05-01 12:00:00+00' AS arrived_at)",
    )
    duck.fails("2026-05-01|us")
    keys = ["2026-05-01|eu", "2026-05-01|us"]
    backfill = duck.daemon.backfill({"by_region": keys})
    duck.daemon.end(backfill)
    assert duck.loads(backfill) == [("by_region", "2026-05-01|eu")]
    duck.fails()
    assert duck.loads(duck.ended(duck.resume(backfill))) == [("by_region", "2026-05-01|us")]


def test_a_plan_is_kept_when_new_days_have_come_since(duck: Place) -> None:
    duck.fails("2026-05-02")
    backfill = duck.daemon.backfill({"daily": TWENTY[:3]})
    duck.daemon.end(backfill)
    told = duck.resume(backfill, dry_run=True)
    assert (told["planned"], told["left"], told["launched"]) == (3, 1, [])


def test_a_backfill_that_failed_before_there_was_a_warehouse_has_everything_left(
    duck: Place,
) -> None:
    duck.fails(*TWENTY[:2])
    backfill = duck.daemon.backfill({"daily": TWENTY[:2]})
    duck.daemon.end(backfill)
    duck.fails()
    assert len(duck.loads(duck.ended(duck.resume(backfill)))) == 2


def test_a_backfill_of_a_job_is_resumed_as_one(duck: Place) -> None:
    duck.fails("daily 2026-05-02", "other 2026-05-03")
    backfill = job_backfill(duck.daemon, "pair", TWENTY[:4])
    assert duck.daemon.end(backfill) == "COMPLETED_FAILED"
    duck.fails()
    told = duck.resume(backfill)
    assert [(line["asset"], line["partition"]) for line in told["lines"]] == [
        ("mart/daily", "2026-05-02"),
        ("mart/other", "2026-05-03"),
    ]
    assert len(told["launched"]) == 2
    for new in told["launched"]:
        assert duck.daemon.end(new) == "COMPLETED_SUCCESS"
    assert sorted(duck.loads(*told["launched"])) == [("daily", TWENTY[1]), ("other", TWENTY[2])]
    runs = [run for new in told["launched"] for run in duck.daemon.runs(new)]
    assert {run.job_name for run in runs} == {"pair"}
    assert duck.resume(backfill)["left"] == 0


def test_runs_that_have_not_ended_are_waited_for(duck: Place) -> None:
    duck.fails("2026-05-02")
    backfill = duck.daemon.backfill({"daily": TWENTY[:3]})
    duck.daemon.end(backfill)
    (failed,) = (run for run in duck.daemon.runs(backfill) if not run.is_success)
    queued = {
        "run_id": "00000000-0000-4000-8000-000000000001",
        "status": dg.DagsterRunStatus.QUEUED,
    }
    duck.daemon.instance.run_storage.add_run(failed._replace(**queued))
    said = duck.daemon.job("resume_backfill", ok=False, backfill=backfill, by="ana")["said"]
    duck.daemon.instance.delete_run(queued["run_id"])
    assert "1 of its runs have not ended" in said


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"backfill": "nothing", "by": "ana"}, "there is no backfill with that id"),
        ({"backfill": "", "by": "ana"}, "there is no backfill with that id"),
    ],
)
def test_a_backfill_that_there_is_not_is_one_sentence(
    duck: Place, config: dict[str, str], said: str
) -> None:
    assert said in duck.daemon.job("resume_backfill", ok=False, **config)["said"]


def job_backfill(daemon: Daemon, job: str, days: list[str]) -> str:
    """Request a backfill of a job as the UI does, and return its id."""
    (entry,) = daemon.workspace.create_request_context().get_code_location_entries().values()
    repository = entry.code_location.get_repository("__repository__")
    backfill = PartitionBackfill(
        backfill_id=f"job{job}{len(days)}",
        status=BulkActionStatus.REQUESTED,
        from_failure=False,
        tags={"reason": "by job"},
        backfill_timestamp=get_current_timestamp(),
        partition_set_origin=repository.get_partition_set(
            f"{job}_partition_set"
        ).get_remote_origin(),
        partition_names=days,
    )
    daemon.instance.add_backfill(backfill)
    return backfill.backfill_id
