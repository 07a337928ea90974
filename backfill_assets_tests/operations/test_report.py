"""A report says what a backfill did to each partition, what it did not, and what to do now; it believes nobody's word."""

import json
import re
import time
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta, timezone
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationPlanned,
)
from dagster._core.definitions.reconstruct import ReconstructableRepository
from dagster._core.events import DagsterEvent, DagsterEventType
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill
from dagster._core.storage.dagster_run import DagsterRunStatus

from backfill_assets.io_managers import DeleteInsertIOManager, PerSlice, Select, table_metadata
from backfill_assets.operations.parts import backfill_operations
from backfill_assets.operations.reports.plot import as_svg, as_text
from backfill_assets.operations.reports.publishing import ASSET, folder_of
from backfill_assets.operations.reports.values import Line
from backfill_assets.operations.reports.warehouse import facts_of
from backfill_assets.settings import settings
from backfill_assets.slice import Slice
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import Window
from backfill_assets.writing import AuditTable, Load
from backfill_assets_tests.warehouses import Warehouse

DAYS = dg.DailyPartitionsDefinition("2026-01-01", end_date="2026-07-01")
SALES = Table(
    "mart.sales",
    SliceColumn("day", "date"),
    allow_empty=frozenset({"2026-03-02"}),  # type: ignore[arg-type]
    source={"sql": "raw.sales", "on": "sold_at", "ingested_at": "came_at"},  # type: ignore[arg-type]
)
AWKWARD = 'a"b|<script>x'
TAGS = {"reason": "prices | were\n<b>wrong</b>"}


def sales_of(rule: str) -> dg.AssetsDefinition:
    @dg.asset(
        name="sales",
        key_prefix=["mart"],
        partitions_def=DAYS,
        metadata=table_metadata(SALES),
        code_version=rule,
    )
    def sales() -> Select:
        return Select(
            f"SELECT CAST(sold_at AT TIME ZONE 'UTC' AS DATE) AS day, id, {rule} AS rule FROM raw.sales",
            on="sold_at",
        )

    return sales


SALES_1, SALES_2 = sales_of("1"), sales_of("2")


@dg.asset(
    name="by_day",
    key_prefix=["mart"],
    partitions_def=DAYS,
    metadata={"partition_expr": "day", "partition_kind": "date", "table": AWKWARD},
    backfill_policy=dg.BackfillPolicy.single_run(),
)
def by_day() -> PerSlice:
    """A range in one run; 3 March has no rows at first, and 4 March cannot be computed."""

    def rows(slice_: Any) -> Select:
        if slice_.partition == "2026-03-04":
            raise ValueError("no | rate\nfor <script>alert(1)</script>, see https://u:hidden@host")
        return Select(
            "SELECT CAST(sold_at AT TIME ZONE 'UTC' AS DATE) AS day, id FROM raw.sales",
            on="sold_at",
        )

    return PerSlice(rows)


@dg.asset(key_prefix=["mart"])
def whole() -> Select:
    """A table without partitions."""
    return Select("SELECT id FROM raw.sales")


@dg.asset_check(asset=SALES_1, partitions_def=DAYS)
def not_too_many(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
    """Passes on the 1st, warns on the 3rd, fails on the 4th."""
    day = context.op_execution_context.partition_key
    warns = day == "2026-03-03"
    return dg.AssetCheckResult(
        passed=day == "2026-03-01",
        severity=dg.AssetCheckSeverity.WARN if warns else dg.AssetCheckSeverity.ERROR,
        description="too | many",
    )


MANAGER = DeleteInsertIOManager(url=dg.EnvVar("REPORT_TEST_URL"))
defs = dg.Definitions.merge(
    dg.Definitions(
        assets=[SALES_1, by_day, whole],
        asset_checks=[not_too_many],
        resources={"io_manager": MANAGER},
    ),
    backfill_operations(),
)


class Place:
    """A warehouse with five days of source rows, and a location over it that backfills are run in."""

    def __init__(self, warehouse: Warehouse, folder: Path) -> None:
        self.warehouse, self.folder = warehouse, folder
        self.instance = dg.DagsterInstance.ephemeral()
        warehouse.execute(
            "CREATE SCHEMA raw",
            "CREATE TABLE raw.sales (sold_at TIMESTAMPTZ, id BIGINT, came_at TIMESTAMPTZ)",
            *(self.sold(f"2026-03-0{day}", *range(day * 10, day * 11)) for day in (1, 3, 4, 5)),
        )

    @staticmethod
    def sold(day: str, *ids: int, came: str = "2026-03-06 00:00:00+00") -> str:
        rows = ", ".join(f"('{day} 12:00:00+00', {number}, {came!r})" for number in ids)
        return f"INSERT INTO raw.sales VALUES {rows}"

    def backfill(
        self, name: str, assets: Sequence[dg.AssetsDefinition], days: Sequence[str]
    ) -> None:
        """Put a backfill into the instance, as the UI does before any run."""
        graph = defs.get_repository_def().asset_graph
        self.instance.add_backfill(
            PartitionBackfill.from_asset_partitions(
                asset_graph=graph,
                backfill_id=name,
                tags=TAGS,
                backfill_timestamp=time.time(),
                asset_selection=[asset.key for asset in assets],
                partition_names=list(days),
                dynamic_partitions_store=self.instance,
                all_partitions=False,
                title="March <again>",
                description=None,
                run_config=None,
            )
        )

    def run(
        self,
        asset: dg.AssetsDefinition,
        day: str | None,
        backfill: str = "",
        checks: Sequence[Any] = (),
    ) -> dg.ExecuteInProcessResult:
        more = {"dagster/backfill": backfill} if backfill else {}
        return dg.materialize(
            [asset, *checks],
            partition_key=day,
            instance=self.instance,
            resources={"io_manager": MANAGER},
            tags={**TAGS, **more},
            raise_on_error=False,
        )

    def run_range(
        self, asset: dg.AssetsDefinition, first: str, last: str, backfill: str
    ) -> dg.ExecuteInProcessResult:
        edges = {
            "dagster/asset_partition_range_start": first,
            "dagster/asset_partition_range_end": last,
        }
        return dg.materialize(
            [asset],
            instance=self.instance,
            resources={"io_manager": MANAGER},
            tags={**TAGS, **edges, "dagster/backfill": backfill},
            raise_on_error=False,
        )

    def end(self, name: str, status: BulkActionStatus = BulkActionStatus.COMPLETED_SUCCESS) -> None:
        found = self.instance.get_backfill(name)
        assert found is not None
        self.instance.update_backfill(found.with_status(status).with_end_timestamp(time.time()))

    def report(self, name: str, ok: bool = True) -> str:
        """Run the job, and return the Markdown file, or what the job says."""
        location = ReconstructableRepository.for_file(__file__, "defs")
        result = dg.execute_job(
            location.get_reconstructable_job("report_backfill"),
            run_config={"ops": {"report_backfill_op": {"config": {"backfill": name}}}},
            instance=self.instance,
            raise_on_error=False,
        )
        if not result.success:
            (failed,) = result.filter_events(lambda event: event.is_step_failure)
            assert not ok, failed.step_failure_data.error.to_string()
            return failed.step_failure_data.error.message
        assert ok
        return (self.folder / f"{name}.md").read_text()

    def tick(self, cursor: str | None = None) -> tuple[str, str]:
        """Evaluate the sensor as the daemon does, and return what it says and its new cursor."""
        repository = defs.get_repository_def()
        context = dg.build_sensor_context(
            instance=self.instance,
            cursor=cursor,
            repository_def=repository,
            resources={"io_manager": MANAGER},
        )
        found = repository.get_sensor_def("backfill_reports").evaluate_tick(context)
        return str(found.skip_message), str(found.cursor)

    def shown(self) -> dict[str, Any]:
        """Return the metadata of the newest event on the asset's page."""
        (record,) = self.instance.fetch_materializations(ASSET, limit=1).records
        assert record.asset_materialization is not None
        return {
            k: v.value for k, v in record.asset_materialization.metadata.items() if k != "table"
        }


@pytest.fixture
def place(warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setenv("REPORT_TEST_URL", warehouse.url)
    monkeypatch.setenv("BACKFILL_REPORTS", str(tmp_path / "reports"))
    settings.cache_clear()
    yield Place(warehouse, tmp_path / "reports")
    settings.cache_clear()


def rows_of(markdown: str, table: str = "mart.sales") -> dict[str, dict[str, str]]:
    """Return the cells of a table's partitions; each line has to have a cell for each title."""
    part = markdown.split(f"## {table}\n")[1].split("\n## ")[0]
    grid = [line for line in part.splitlines() if line.startswith("| ")]
    cells = [[c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]] for line in grid]
    titles = cells[0]
    assert all(len(line) == len(titles) for line in cells)
    return {line[0]: dict(zip(titles, line, strict=True)) for line in cells[1:]}


def test_each_partition_tells_rows_before_after_and_in_the_source(place: Place) -> None:
    place.run(SALES_1, "2026-03-01")
    place.warehouse.execute(place.sold("2026-03-01", 11, 12, came="2099-01-01 00:00:00+00"))
    place.backfill("again", [SALES_1], ["2026-03-01", "2026-03-03"])
    for day in ("2026-03-01", "2026-03-03"):
        assert place.run(SALES_1, day, "again").success
    place.end("again")
    told = place.report("again")
    first, third = (rows_of(told)[day] for day in ("2026-03-01", "2026-03-03"))
    assert [first[n] for n in ("before", "after", "difference", "source")] == ["1", "3", "+2", "3"]
    assert (first["explained"], first["outcome"]) == ("late rows: 2", "done")
    assert [third[n] for n in ("before", "after", "difference", "source")] == ["0", "3", "+3", "3"]
    assert third["explained"] == "first load"
    total = rows_of(told)["total"]
    assert [total[n] for n in ("before", "after", "difference", "source")] == ["1", "6", "+5", "6"]
    assert "🟢 **All 2 partitions are done.**" in told
    assert "Nothing is left to do." in told


def test_the_baseline_is_what_the_first_load_of_the_backfill_found(place: Place) -> None:
    place.run(SALES_1, "2026-03-01")
    place.backfill("twice", [SALES_1], ["2026-03-01"])
    place.warehouse.execute(place.sold("2026-03-01", 11))
    place.run(SALES_1, "2026-03-01", "twice")
    place.warehouse.execute(place.sold("2026-03-01", 12, 13))
    place.run(SALES_1, "2026-03-01", "twice")
    place.end("twice")
    line = rows_of(place.report("twice"))["2026-03-01"]
    assert (line["before"], line["after"]) == ("1", "4")


def test_a_changed_rule_and_an_unchanged_slice_are_told(place: Place) -> None:
    for day in ("2026-03-01", "2026-03-03"):
        place.run(SALES_1, day)
    place.backfill("rule", [SALES_1], ["2026-03-01", "2026-03-03"])
    place.run(SALES_1, "2026-03-01", "rule")
    place.run(SALES_2, "2026-03-03", "rule")
    place.end("rule")
    lines = rows_of(place.report("rule"))
    assert lines["2026-03-01"]["explained"] == "unchanged"
    assert lines["2026-03-03"]["explained"] == "changed rule"


def test_a_day_that_is_rightly_empty_is_green_and_says_so(place: Place) -> None:
    place.backfill("empty", [SALES_1], ["2026-03-01", "2026-03-02"])
    for day in ("2026-03-01", "2026-03-02"):
        assert place.run(SALES_1, day, "empty").success
    place.end("empty")
    told = place.report("empty")
    assert rows_of(told)["2026-03-02"]["explained"] == "first load, rightly empty"
    assert "🟢 **All 2 partitions are done; 1 of them rightly empty.**" in told


def test_a_failed_run_is_red_whatever_dagster_says_and_the_resume_is_ready_made(
    place: Place,
) -> None:
    place.backfill("red", [SALES_1], ["2026-03-03", "2026-03-06"])
    assert place.run(SALES_1, "2026-03-03", "red").success
    assert not place.run(SALES_1, "2026-03-06", "red").success  # no rows, and that is not declared
    place.end("red", BulkActionStatus.COMPLETED_SUCCESS)
    told = place.report("red")
    assert (
        "🔴 **Dagster says COMPLETED_SUCCESS, and yet 1 run failed, 1 partition was refused."
        in told
    )
    line = rows_of(told)["2026-03-06"]
    assert line["outcome"] == "refused"
    assert "empty" in line["why"] or "no rows" in line["why"].lower()
    assert "- mart.sales 2026-03-06: " in told.split("## Refused")[1].split("##")[0]
    config = re.search(r"-j resume_backfill --config-json '(.*)'", told)
    assert config is not None
    assert json.loads(config[1]) == {
        "ops": {"resume_backfill_op": {"config": {"backfill": "red", "by": "..."}}}
    }
    assert "From failure" in told
    shown = place.shown()
    assert (shown["level"], shown["wrong_partitions"], shown["refused"]) == ("red", 1, 1)


def test_a_range_run_that_stops_tells_done_failed_and_not_reached_apart(place: Place) -> None:
    place.warehouse.execute(place.sold("2026-03-02", 20))
    days = [f"2026-03-0{day}" for day in range(1, 6)]
    place.backfill("range", [by_day], days)
    assert not place.run_range(by_day, days[0], days[-1], "range").success
    place.end("range", BulkActionStatus.COMPLETED_FAILED)
    told = place.report("range")
    name = 'mart.a"b\\|&lt;script&gt;x'
    lines = rows_of(told, name)
    assert [lines[day]["outcome"] for day in days] == [*["done"] * 3, "failed", "not reached"]
    assert "no \\| rate for &lt;script&gt;" in lines["2026-03-04"]["why"]
    assert lines["2026-03-05"]["why"] == "its run stopped at 2026-03-04"
    assert "hidden" not in told


def test_a_run_of_one_table_says_nothing_of_the_other(place: Place) -> None:
    place.backfill("both", [SALES_1, by_day], ["2026-03-03", "2026-03-04"])
    for day in ("2026-03-03", "2026-03-04"):
        place.run(SALES_1, day, "both")
    place.run_range(by_day, "2026-03-03", "2026-03-04", "both")
    place.end("both", BulkActionStatus.COMPLETED_FAILED)
    told = place.report("both")
    assert [line["outcome"] for line in rows_of(told).values()][:2] == ["done", "done"]
    assert "Of 4 partitions 3 are done." in told
    assert "1 run failed, 1 partition failed." in told


def test_what_an_earlier_run_committed_is_shown_as_left_alone(place: Place) -> None:
    place.run(SALES_1, "2026-03-01")
    place.backfill("rest", [SALES_1], ["2026-03-01", "2026-03-03"])
    place.run(SALES_1, "2026-03-03", "rest")
    # a run that found its day committed already and had nothing to do
    run = dg.DagsterRun(
        "mart",
        asset_selection=frozenset({SALES_1.key}),
        tags={"dagster/backfill": "rest", "dagster/partition": "2026-03-01"},
        status=DagsterRunStatus.SUCCESS,
    )
    place.instance.add_run(run)
    place.end("rest")
    told = place.report("rest")
    line = rows_of(told)["2026-03-01"]
    assert (line["outcome"], line["before"], line["after"]) == ("skipped", "1", "1")
    assert "left alone" in line["why"]
    assert "🟢 **Of 2 partitions 1 is done, 1 was left alone.**" in told
    assert "## Left alone" in told


def test_a_cancelled_backfill_lists_what_was_never_begun(place: Place) -> None:
    place.backfill("cut", [SALES_1], ["2026-03-01", "2026-03-03", "2026-03-04"])
    place.run(SALES_1, "2026-03-01", "cut")
    place.end("cut", BulkActionStatus.CANCELED)
    told = place.report("cut")
    assert [line["outcome"] for line in rows_of(told).values()][:3] == [
        "done",
        "cancelled",
        "cancelled",
    ]
    assert "- mart.sales 2026-03-03 to 2026-03-04 (2): the backfill was cancelled" in told


def test_a_backfill_under_way_gets_an_interim_report_that_says_so(place: Place) -> None:
    place.backfill("going", [SALES_1], ["2026-03-01", "2026-03-03"])
    place.run(SALES_1, "2026-03-01", "going")
    told = place.report("going")
    assert "🟡 **Still running, so this is an interim report: 1 of 2 partitions are done" in told
    assert rows_of(told)["2026-03-03"]["outcome"] == "waiting"


def test_a_backfill_that_dagster_calls_completed_goes_on_while_its_runs_do(place: Place) -> None:
    """`dagster job backfill` writes its record as completed before its runs have begun."""
    place.backfill("early", [SALES_1], ["2026-03-01"])
    run = dg.DagsterRun(
        "mart",
        asset_selection=frozenset({SALES_1.key}),
        tags={"dagster/backfill": "early", "dagster/partition": "2026-03-01"},
        status=DagsterRunStatus.NOT_STARTED,
    )
    place.instance.add_run(run)
    place.end("early", BulkActionStatus.COMPLETED)
    assert place.tick()[0] == "No backfill has ended."
    assert "interim" in place.report("early")


def test_checks_of_each_partition_are_shown_and_a_failed_one_is_red(place: Place) -> None:
    days = ["2026-03-01", "2026-03-03", "2026-03-04", "2026-03-05"]
    place.backfill("checked", [SALES_1], days)
    for day in days[:2]:
        place.run(SALES_1, day, "checked", checks=[not_too_many])
    for day in days[2:]:
        place.run(SALES_1, day, "checked")
    place.end("checked")
    told = place.report("checked")
    assert "🟡 **All 4 partitions are done. 1 check warns.**" in told
    place.run(SALES_1, days[2], "checked", checks=[not_too_many])
    told = place.report("checked")
    lines = rows_of(told)
    assert [lines[day]["checks"] for day in days] == [
        "1 passed",
        "not_too_many warned: too \\| many",
        "not_too_many failed: too \\| many",
        "-",
    ]
    assert "🔴 **Dagster says COMPLETED_SUCCESS, and yet 1 check failed." in told


def test_what_was_checked_is_not_forgotten_when_another_run_waits_to_check_it_again(
    place: Place,
) -> None:
    day = "2026-03-01"
    place.backfill("checked", [SALES_1], [day])
    place.run(SALES_1, day, "checked", checks=[not_too_many])
    place.end("checked")
    assert rows_of(place.report("checked"))[day]["checks"] == "1 passed"
    waits = dg.DagsterRun(job_name="another", status=DagsterRunStatus.NOT_STARTED)
    place.instance.add_run(waits)
    subset: Any = SALES_1.partitions_def.subset_with_partition_keys([day])  # type: ignore[union-attr]
    planned = AssetCheckEvaluationPlanned(
        asset_key=SALES_1.key,
        check_name="not_too_many",
        partitions_subset=subset.to_serializable_subset(),
    )
    place.instance.report_dagster_event(
        DagsterEvent(
            DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED.value,
            "another",
            event_specific_data=planned,
        ),
        waits.run_id,
    )
    assert rows_of(place.report("checked"))[day]["checks"] == "1 passed"


class Page(HTMLParser):
    """Reads a page strictly enough to see text that became markup."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [str(v) for k, v in attrs if k in ("src", "href", "xlink:href")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_names_and_reasons_stay_text_in_the_html_which_needs_nothing_beside_it(
    place: Place,
) -> None:
    days = [f"2026-03-0{day}" for day in range(1, 6)]
    place.warehouse.execute(place.sold("2026-03-02", 20))
    place.backfill("html", [by_day], days)
    place.run_range(by_day, days[0], days[-1], "html")
    place.end("html", BulkActionStatus.COMPLETED_FAILED)
    place.report("html")
    text = (place.folder / "html.html").read_text()
    page = Page(text)
    assert "script" not in page.tags
    assert {"b", "svg", "table"} <= set(page.tags)
    assert page.addresses == []
    assert "url(" not in text
    assert "@import" not in text
    assert AWKWARD in page.text
    assert "<script>alert(1)</script>" in page.text
    assert "prices | were" in page.text
    assert page.tags.count("tr") == len(days) + 2
    assert "hidden" not in text


def test_a_backfill_that_there_is_not_is_one_sentence(place: Place) -> None:
    said = place.report("nothing", ok=False)
    assert "backfill 'nothing' cannot be reported: there is no backfill with that id." in said
    assert not place.folder.exists()


def test_the_sensor_writes_what_has_ended_once_and_remembers_it_in_its_cursor(
    place: Place,
) -> None:
    assert place.tick()[0] == "No backfill has ended."
    place.backfill("one", [SALES_1], ["2026-03-01"])
    said, cursor = place.tick()
    assert said == "No backfill has ended."
    place.run(SALES_1, "2026-03-01", "one")
    place.end("one")
    said, cursor = place.tick(cursor)
    assert said.startswith("Backfill one: The one partition is done. Written to ")
    written = (place.folder / "one.md").stat().st_mtime_ns
    assert place.tick(cursor)[0] == "No backfill has ended."
    assert (place.folder / "one.md").stat().st_mtime_ns == written
    assert place.shown()["markdown"] == str(place.folder / "one.md")


def test_a_report_that_cannot_be_written_is_told_and_does_not_block_the_others(
    place: Place,
) -> None:
    for name in ("bad", "good"):
        place.backfill(name, [SALES_1], ["2026-03-01"])
        place.run(SALES_1, "2026-03-01", name)
        place.end(name)
    (place.folder / "bad.md").mkdir(parents=True)
    said, cursor = place.tick()
    assert "The report of backfill bad could not be written, and is tried again" in said
    assert (place.folder / "good.md").is_file()
    assert place.tick(cursor)[0] == "No backfill has ended."  # not before some time has passed
    assert [file.name for file in place.folder.iterdir() if file.name.startswith(".")] == []
    (place.folder / "bad.md").rmdir()
    due = json.loads(cursor)
    due["due"]["bad"][1] = 0
    assert "Backfill bad: " in place.tick(json.dumps(due))[0]


def test_a_table_that_was_never_made_is_reported_too(place: Place) -> None:
    place.warehouse.execute("DROP TABLE raw.sales")
    place.backfill("none", [SALES_1], ["2026-03-01"])
    assert not place.run(SALES_1, "2026-03-01", "none").success
    place.end("none", BulkActionStatus.COMPLETED_FAILED)
    told = place.report("none")
    line = rows_of(told)["2026-03-01"]
    assert (line["outcome"], line["before"], line["source"]) == ("failed", "-", "-")
    assert "The source's rows could not be counted: " in told


def test_what_the_asset_page_shows_is_bounded_and_has_a_plot(place: Place) -> None:
    place.backfill("page", [SALES_1], ["2026-03-01"])
    place.run(SALES_1, "2026-03-01", "page")
    place.end("page")
    place.report("page")
    shown = place.shown()
    assert "2026-03-01" in shown["rows_plot"]
    assert (shown["done"], shown["wrong_partitions"], shown["rows_after"]) == (1, 0, 1)
    assert shown["summary"] == "🟢 **The one partition is done.**"


def test_what_the_audit_says_was_refused_is_told_in_its_own_words(place: Place) -> None:
    place.backfill("told", [SALES_1], ["2026-03-01", "2026-03-03", "2026-03-04"])
    place.run(SALES_1, "2026-03-01", "told")
    for day, outcome in (("2026-03-03", "refused"), ("2026-03-04", "failed")):
        start = datetime.fromisoformat(f"{day}T00:00:00+00:00")
        attempt = Load(
            audit_id=day,
            table_name="mart.sales",
            partition_key=day,
            window_start=start,
            window_end=start + timedelta(days=1),
            dimensions="{}",
            outcome=outcome,
            strategy="recompute",
            lane="backfill",
            rows_before=0,
            rows_after=0,
            checksum="",
            reason=None,
            ticket=None,
            launched_by=None,
            run_id="a-run",
            backfill_id="told",
            code_version=None,
            source_read_at=start,
            started_at=start,
            committed_at=start,
            seconds=1.0,
            detail=json.dumps({"why": f"it was {outcome} | on purpose"}),
        )
        with place.warehouse.session() as session, session.transaction():
            AuditTable().record(session, attempt)
    place.end("told", BulkActionStatus.COMPLETED_FAILED)
    lines = rows_of(place.report("told"))
    assert (lines["2026-03-03"]["outcome"], lines["2026-03-03"]["why"]) == (
        "refused",
        "it was refused \\| on purpose",
    )
    assert (lines["2026-03-04"]["outcome"], lines["2026-03-04"]["before"]) == ("failed", "-")


def test_ten_years_take_a_handful_of_statements_and_a_picture_of_groups(place: Place) -> None:
    select = Select("SELECT CAST(sold_at AS DATE) AS day, id FROM raw.sales", on="sold_at")
    place.run(SALES_1, "2026-03-01")
    first = date(2017, 1, 1)
    slices = [Slice(SALES, Window.day(first + timedelta(days=n))) for n in range(3650)]
    with place.warehouse.session(read_only=True) as session:
        asked: list[str] = []
        fetch = session.fetch
        session.fetch = lambda sql: (asked.append(sql), fetch(sql))[1]  # type: ignore[method-assign]
        facts, notes = facts_of(session, AuditTable(), SALES, slices, select, "none", set())
    assert (len(facts), notes) == (3650, [])
    assert len(asked) <= 8
    lines = [Line(slice_.name, "done", before=1, after=2) for slice_ in slices]
    assert "\n".join(as_svg(lines)).count("<g>") <= 100
    assert len(list(as_text(lines))) <= 100


def test_a_table_without_partitions_is_one_line(place: Place) -> None:
    place.backfill("all", [SALES_1, whole], ["2026-03-01"])
    place.run(SALES_1, "2026-03-01", "all")
    assert place.run(whole, None, "all").success
    place.end("all")
    lines = rows_of(place.report("all"), "mart.whole")
    assert lines["(whole table)"]["after"] == lines["(whole table)"]["source"] == "13"


def test_a_backfill_of_a_job_is_reported_by_its_partition_names(place: Place) -> None:
    place.backfill("job", [SALES_1], ["2026-03-01"])
    found = place.instance.get_backfill("job")
    assert found is not None
    names = ["2026-03-01", "2026-03-03"]
    place.instance.update_backfill(
        found._replace(asset_backfill_data=None, asset_selection=None, partition_names=names)
    )
    place.run(SALES_1, "2026-03-01", "job")
    place.end("job", BulkActionStatus.COMPLETED)
    told = place.report("job")
    assert [rows_of(told)[day]["outcome"] for day in names] == ["done", "not reached"]
    assert "🔴 **Dagster says COMPLETED, and yet 1 partition was not reached." in told
    (record,) = place.instance.get_run_records(dg.RunsFilter(tags={"dagster/backfill": "job"}))
    place.instance.update_backfill(
        place.instance.get_backfill("job").with_end_timestamp(record.start_time - 60)  # type: ignore[union-attr]
    )
    ended = datetime.fromtimestamp(record.end_time or 0, timezone.utc)
    assert f"- ended: {ended:%Y-%m-%d %H:%M:%S}" in place.report("job")


def test_a_plan_that_dagster_cannot_read_any_more_is_guessed_from_the_runs(place: Place) -> None:
    place.backfill("old", [SALES_1], ["2026-03-01"])
    found = place.instance.get_backfill("old")
    assert found is not None
    place.instance.update_backfill(
        found._replace(asset_backfill_data=None, serialized_asset_backfill_data="{}")
    )
    place.run(SALES_1, "2026-03-03", "old")
    place.end("old")
    told = place.report("old")
    assert rows_of(told)["2026-03-03"]["outcome"] == "done"
    assert "Dagster no longer tells the plan" in told


def test_a_run_that_the_queue_refused_has_refused_each_of_its_days(place: Place) -> None:
    place.backfill("queue", [SALES_1], ["2026-03-03", "2026-03-04"])
    run = dg.DagsterRun(
        "mart",
        asset_selection=frozenset({SALES_1.key}),
        tags={
            "dagster/backfill": "queue",
            "dagster/asset_partition_range_start": "2026-03-03",
            "dagster/asset_partition_range_end": "2026-03-04",
        },
    )
    place.instance.add_run(run)
    place.instance.report_run_failed(run, message="Refused: no reason is given")
    place.end("queue", BulkActionStatus.COMPLETED_FAILED)
    lines = rows_of(place.report("queue"))
    for day in ("2026-03-03", "2026-03-04"):
        assert (lines[day]["outcome"], lines[day]["why"]) == (
            "refused",
            "Refused: no reason is given",
        )


def test_without_a_setting_reports_lie_beside_what_keeps_the_instance(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BACKFILL_REPORTS")
    settings.cache_clear()
    monkeypatch.chdir(tmp_path)
    assert folder_of(place.instance) == tmp_path / ".backfill_reports"
    home = tmp_path / "home"
    home.mkdir()
    with dg.DagsterInstance.local_temp(str(home)) as lasting:
        assert folder_of(lasting) == home / "storage" / "reports"


def test_an_id_is_a_name_and_leads_nowhere_else(place: Place, tmp_path: Path) -> None:
    place.backfill("../../out", [SALES_1], ["2026-03-01"])
    place.end("../../out")
    assert "Written to" in place.tick()[0]
    assert {file.name for file in place.folder.iterdir()} == {"______out.md", "______out.html"}
