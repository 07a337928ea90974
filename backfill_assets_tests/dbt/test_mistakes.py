"""What is wrong with a model is one sentence in the run's failure, and no day of it is touched."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import dagster as dg
import pytest
from dagster_dbt import DbtCliResource

from backfill_assets.dbt.assets import sliced_dbt_assets
from backfill_assets.dbt.place import DBT
from backfill_assets.io_managers import DeleteInsertIOManager
from backfill_assets_tests.dbt.conftest import model
from backfill_assets_tests.dbt.projects import Project
from backfill_assets_tests.warehouses import Warehouse

DAYS = dg.DailyPartitionsDefinition("2026-03-01", end_date="2026-03-11")
TESTED = "models: [{name: fct, columns: [{name: amount, data_tests: [not_null]}]}]"


def manifest_of(project: Project) -> Path:
    """Parse the project as it is now."""
    done = subprocess.run(
        project.command("parse"), env=project.env, capture_output=True, text=True, cwd=project.work
    )
    assert done.returncode == 0, done.stdout
    return project.work / "target" / "manifest.json"


def launched(
    project: Project,
    asset: dg.AssetsDefinition,
    instance: dg.DagsterInstance,
    first: str,
    last: str,
) -> str:
    """Run a range of days and return what its failure says; empty when it did not fail."""
    result = dg.materialize(
        [asset],
        instance=instance,
        raise_on_error=False,
        tags={
            "dagster/asset_partition_range_start": first,
            "dagster/asset_partition_range_end": last,
            "reason": "a test",
        },
        resources={
            "dbt": DbtCliResource(
                project_dir=str(project.folder),
                profiles_dir=str(project.folder),
                dbt_executable=DBT,
            ),
            "io_manager": DeleteInsertIOManager(url=project.warehouse.url),
        },
    )
    failed = [event for event in result.all_events if event.is_step_failure]
    return failed[0].step_failure_data.error.message if failed else ""  # type: ignore[union-attr]


@pytest.mark.only("duckdb", why="dbt's words, which are the same on every engine")
def test_a_model_that_cannot_be_compiled_has_no_slice_column_or_a_day_that_fails_a_test_is_one_sentence(
    project: Project, warehouse: Warehouse
) -> None:
    project.write("models/analytics/fct.sql", model())
    project.write("models/analytics/schema.yml", TESTED)
    manifest = json.loads(manifest_of(project).read_text())
    asset = sliced_dbt_assets(
        "fct", "fct", DAYS, dg.BackfillPolicy.single_run(), project_manifest=manifest
    )
    instance = dg.DagsterInstance.ephemeral()
    assert launched(project, asset, instance, "2026-03-01", "2026-03-02") == ""
    before = warehouse.rows("SELECT * FROM analytics.fct ORDER BY id")

    for broken, words in (
        (model(where="{{ no_such_macro('happened') }}"), "'no_such_macro' is undefined"),
        (model().replace("slice_column='day', ", ""), "the model names no slice_column"),
        (model(where="1 = 1"), "the model never says in_slice()"),
    ):
        project.write("models/analytics/fct.sql", broken)
        said = launched(project, asset, instance, "2026-03-01", "2026-03-03")
        assert "analytics.fct 2026-03-01 failed, partition 1 of 3 in this run" in said
        assert words in said
        assert "\n" not in said.strip().removeprefix("dagster._core.definitions.events.Failure: ")
        assert warehouse.rows("SELECT * FROM analytics.fct ORDER BY id") == before

    project.write("models/analytics/fct.sql", model())
    warehouse.execute("UPDATE raw.events SET amount = NULL WHERE id = 20")
    said = launched(project, asset, instance, "2026-03-01", "2026-03-04")
    assert "analytics.fct 2026-03-03 failed, partition 3 of 4 in this run" in said
    assert "1 rows of the day fail it (not_null_fct_amount)" in said
    assert instance.get_materialized_partitions(dg.AssetKey(["analytics", "fct"])) == {
        "2026-03-01",
        "2026-03-02",
    }


def test_a_resume_with_holes_writes_the_days_that_are_named_and_no_other(
    project: Project, warehouse: Warehouse
) -> None:
    project.write("models/analytics/fct.sql", model())
    window = {"start": "2026-03-01", "end": "2026-03-07"}
    assert project.dbt("run", **window, only_days=["2026-03-02", "2026-03-05"]).code == 0
    assert [row[0] for row in warehouse.loads()] == ["2026-03-02", "2026-03-05"]
    # and each model its own, where they have different days left
    rest = {"analytics.fct": ["2026-03-01", "2026-03-04"], "analytics.another": ["2026-03-06"]}
    said = project.dbt("run", **window, only_days=rest, reason="the rest")
    assert said.code == 0, said.text
    assert [row[0] for row in warehouse.loads()][2:] == ["2026-03-01", "2026-03-04"]
    assert warehouse.rows("SELECT count(*), count(DISTINCT id) FROM analytics.fct") == [(8, 8)]


def test_a_dbt_that_fails_after_the_last_day_fails_its_run_and_says_why_and_the_days_are_kept(
    project: Project, warehouse: Warehouse
) -> None:
    """By a hook after the model, and by a test that asks another table, which only dbt asks, after the commit."""
    project.write(
        "models/analytics/fct.sql", model(", post_hook=after_commit('SELECT no_such_column')")
    )
    asset = sliced_dbt_assets(
        "fct",
        "fct",
        DAYS,
        dg.BackfillPolicy.single_run(),
        project_manifest=json.loads(manifest_of(project).read_text()),
    )
    instance = dg.DagsterInstance.ephemeral()
    said = launched(project, asset, instance, "2026-03-01", "2026-03-02")
    assert "analytics.fct 2026-03-02 is committed, like every slice of this run" in said
    assert "no_such_column" in said
    fct = dg.AssetKey(["analytics", "fct"])
    assert instance.get_materialized_partitions(fct) == {"2026-03-01", "2026-03-02"}

    project.write("models/analytics/fct.sql", model())
    project.write(
        "models/analytics/schema.yml",
        "models: [{name: fct, columns: [{name: id, data_tests: [{relationships: {arguments: {to: ref('few'), field: id}}}]}]}]",
    )
    project.write("models/few.sql", "{{ config(materialized='view') }} SELECT 1 AS id")
    warehouse.execute("CREATE VIEW analytics.few AS SELECT 1 AS id")
    tested = sliced_dbt_assets(
        "fct",
        "fct",
        DAYS,
        dg.BackfillPolicy.single_run(),
        project_manifest=json.loads(manifest_of(project).read_text()),
    )
    said = launched(project, tested, instance, "2026-03-03", "2026-03-04")
    assert "analytics.fct 2026-03-04 is committed, like every slice of this run" in said
    assert "relationships_fct_id__id__ref_few_" in said
    assert "2026-03-04" in instance.get_materialized_partitions(fct)
