"""What we lean on in Dagster and DuckDB without a documented promise: fails when they change their minds."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import duckdb
import pytest


def test_duckdb_refuses_a_file_that_this_process_has_open_in_another_instance(
    tmp_path: Path,
) -> None:
    """Attaching twice would be two writers in one file; the refusal is what `OpenFile` looks for."""
    file = tmp_path / "w.duckdb"
    with (
        duckdb.connect(str(file)),
        pytest.raises(duckdb.BinderException, match="Unique file handle conflict"),
    ):
        duckdb.connect(":memory:").execute(f"ATTACH '{file}' AS w")


def test_duckdb_lets_go_of_a_file_when_it_is_detached(tmp_path: Path) -> None:
    file = tmp_path / "w.duckdb"
    memory = duckdb.connect(":memory:")
    memory.execute(f"ATTACH '{file}' AS w")
    memory.execute("CREATE TABLE w.t AS SELECT 1 AS a")
    memory.execute("DETACH w")
    assert not Path(f"{file}.wal").exists()
    with duckdb.connect(str(file)) as own:
        assert own.execute("SELECT a FROM t").fetchall() == [(1,)]


def test_duckdb_tells_how_many_rows_a_delete_and_an_insert_touched() -> None:
    connection = duckdb.connect(":memory:")
    connection.execute("CREATE TABLE t AS SELECT * FROM range(5) AS r(a)")
    result = connection.execute("DELETE FROM t WHERE a > 2")
    assert (result.description[0][0], result.fetchone()) == ("Count", (2,))


def test_dagster_records_a_materialization_logged_before_an_io_manager_fails() -> None:
    class Failing(dg.IOManager):
        def handle_output(self, context: dg.OutputContext, obj: object) -> None:
            context.log_event(dg.AssetMaterialization(context.asset_key, partition="2026-05-01"))
            raise ValueError("later")

        def load_input(self, context: dg.InputContext) -> None: ...

    @dg.asset(partitions_def=dg.DailyPartitionsDefinition("2026-05-01"))
    def something() -> int:
        return 1

    instance = dg.DagsterInstance.ephemeral()
    dg.materialize(
        [something],
        resources={"io_manager": Failing()},
        instance=instance,
        partition_key="2026-05-02",
        raise_on_error=False,
    )
    assert instance.get_materialized_partitions(something.key) == {"2026-05-01"}


def test_dagster_tells_when_a_step_started() -> None:
    seen = []

    @dg.asset
    def something(context) -> None:
        step = context.op_execution_context._step_execution_context
        seen.append(step.instance.get_run_step_stats(step.run_id, [step.step.key])[0].start_time)

    assert dg.materialize([something]).success
    assert seen[0]


def test_dagster_keeps_the_plan_of_a_backfill_when_its_partitions_have_moved_on() -> None:
    """A resume reads what was planned from what is stored, whatever the asset's partitions are by then."""
    from dagster._core.definitions.assets.graph.asset_graph_subset import AssetGraphSubset
    from dagster._serdes import deserialize_value, serialize_value

    planned = dg.DailyPartitionsDefinition("2026-05-01", end_offset=3)
    key, days = dg.AssetKey("a"), ["2026-05-01", "2026-05-02", "2030-01-01"]
    subset = planned.empty_subset().with_partition_keys(days[:2])
    ahead = planned.get_partition_subset_in_time_window(
        planned.time_window_for_partition_key(days[2])
    )
    stored = serialize_value(AssetGraphSubset({key: subset | ahead}))
    found = deserialize_value(stored, AssetGraphSubset).get_partitions_subset(key)
    assert list(found.get_partition_keys()) == days
