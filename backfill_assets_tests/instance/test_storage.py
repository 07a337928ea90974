"""Runs and events are kept in SQLite until one variable asks for PostgreSQL."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster._core.storage.runs import SqliteRunStorage
from dagster_postgres import PostgresRunStorage

from backfill_assets.errors import DeclarationError, Unreachable

ROOT = Path(__file__).parents[2]
VARIABLE = "BACKFILL_DAGSTER_PG_URL"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A DAGSTER_HOME that holds the project's own dagster.yaml."""
    (tmp_path / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text())
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)
    return tmp_path


def one_run_of(instance: dg.DagsterInstance) -> dg.DagsterRun:
    """Run something, and return it as the storage remembers it."""

    @dg.asset
    def something() -> None: ...

    result = dg.materialize([something], instance=instance)
    run = instance.get_run_by_id(result.run_id)
    assert run is not None
    assert instance.get_latest_materialization_event(something.key) is not None
    return run


def test_dagster_yaml_works_as_it_stands_and_keeps_runs_in_sqlite(home: Path) -> None:
    with dg.DagsterInstance.from_config(str(home)) as instance:
        assert isinstance(instance.run_storage, SqliteRunStorage)
        assert one_run_of(instance).is_success
    assert (home / "history" / "runs.db").exists()


def test_processes_that_start_together_on_a_new_home_make_its_databases_once(home: Path) -> None:
    """As a webserver and a daemon do; made twice at once, they would ask for a repair for ever after."""
    code = "import dagster; i = dagster.DagsterInstance.get(); i.get_runs(); i.get_asset_keys(); i.dispose()"
    together = [
        subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    said = [process.communicate()[1] for process in together]
    assert [process.returncode for process in together] == [0, 0, 0, 0], said
    with dg.DagsterInstance.from_config(str(home)) as instance:
        assert one_run_of(instance).is_success


def test_one_variable_moves_runs_and_events_to_postgres(
    home: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, postgres_url)
    with dg.DagsterInstance.from_config(str(home)) as instance:
        assert isinstance(instance.run_storage, PostgresRunStorage)
        run = one_run_of(instance)
    with dg.DagsterInstance.from_config(str(home)) as again:
        assert again.get_run_by_id(run.run_id) is not None
    assert not (home / "history").exists()


def test_dagster_yaml_is_loaded_without_a_warning(home: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with dg.DagsterInstance.from_config(str(home)) as instance:
            assert not instance.telemetry_enabled
            assert not instance.nux_enabled


def test_postgres_is_not_imported_until_it_is_asked_for(home: Path) -> None:
    code = (
        "import os, sys, dagster as dg\n"
        "with dg.DagsterInstance.from_config(os.environ['DAGSTER_HOME']) as instance:\n"
        "    instance.get_runs()\n"
        "print(sorted({'dagster_postgres', 'psycopg2'} & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


def test_three_backfill_runs_at_once_leave_room_for_the_daily_run(home: Path) -> None:
    with dg.DagsterInstance.from_config(str(home)) as instance:
        queue = instance.get_concurrency_config().run_queue_config
    assert queue is not None
    limits = {limit["value"]: limit["limit"] for limit in queue.tag_concurrency_limits}
    assert limits == {"backfill": 3, "live": 9}
    assert queue.max_concurrent_runs == 10


def test_limits_stand_where_a_coordinator_may_change_them() -> None:
    """`concurrency.runs` would override what the coordinator says at each tick."""
    assert "concurrency" not in yaml.safe_load((ROOT / "dagster.yaml").read_text())


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("mysql://ana:s3cret@host/db", "mysql:// is not PostgreSQL"),
        ("sqlite:///x", "sqlite:// is not PostgreSQL"),
        ("no url at all", "no ://"),
        ("ana:s3cret@host/db", "no ://"),
        ("postgresql://ana:s3cret@host:port/db", "host and port"),
        ("postgresql://ana:s3cret@[::1/db", "host and port"),
        ("postgresql://ana:an@s3cret@host/db", "written %40"),
    ],
)
def test_a_url_that_cannot_be_used_is_refused_without_its_password(
    home: Path, monkeypatch: pytest.MonkeyPatch, url: str, why: str
) -> None:
    monkeypatch.setenv(VARIABLE, url)
    with (
        pytest.raises(DeclarationError, match=why) as refused,
        dg.DagsterInstance.from_config(str(home)) as instance,
    ):
        instance.get_runs()
    assert "s3cret" not in str(refused.value)
    assert VARIABLE in str(refused.value)
    assert "user:password@host:5432/database" in str(refused.value)


def test_a_server_that_is_away_is_one_sentence_without_the_password(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        VARIABLE, "postgresql://ana:a s3cret/s3cret@127.0.0.1:1/dagster?sslpassword=s3cret"
    )
    with (
        pytest.raises(Unreachable, match="127.0.0.1:1/dagster cannot be opened") as refused,
        dg.DagsterInstance.from_config(str(home)) as instance,
    ):
        instance.get_runs()
    assert "s3cret" not in str(refused.value)


def test_without_a_home_history_stays_in_a_folder_of_the_checkout(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `dagster dev` runs it: an instance without DAGSTER_HOME, from the dagster.yaml where one stands."""
    monkeypatch.delenv("DAGSTER_HOME")
    monkeypatch.chdir(home)
    for _ in range(2):
        with dg.DagsterInstance.from_config(str(home)) as instance:
            runs = len(instance.get_runs())
            one_run_of(instance)
    assert runs == 1
    assert (home / ".dagster" / "history" / "runs.db").exists()
