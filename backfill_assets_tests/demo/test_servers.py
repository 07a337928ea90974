"""The processes behind a demo: one instance, made by one process, watched while they run."""

from __future__ import annotations

import signal
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from backfill_assets.demo import __main__, servers
from backfill_assets.demo.graphql import Dagster
from backfill_assets.demo.place import prepared
from backfill_assets.errors import BackfillError

HEADS = "SELECT count(*) FROM alembic_version"


def databases(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.db"))


def heads(database: Path) -> int:
    connection = sqlite3.connect(database)
    try:
        return connection.execute(HEADS).fetchone()[0]
    finally:
        connection.close()


def test_dagsters_databases_are_there_before_two_processes_could_make_them_at_once(
    tmp_path: Path,
) -> None:
    """Made by webserver and daemon together, one of them got two heads in about one start of ten."""
    place = prepared(tmp_path)
    servers._make_storage(place)
    found = {database.relative_to(place.dagster_home).name for database in databases(tmp_path)}
    assert {"runs.db", "index.db", "schedules.db"} <= found
    assert {heads(database) for database in databases(tmp_path)} == {1}


def test_a_home_whose_databases_are_broken_is_told_with_what_to_remove(tmp_path: Path) -> None:
    place = prepared(tmp_path)
    servers._make_storage(place)
    broken = next(database for database in databases(tmp_path) if database.name == "schedules.db")
    with sqlite3.connect(broken) as connection:
        connection.execute("INSERT INTO alembic_version VALUES ('another_head')")
    connection.close()
    with (
        pytest.raises(BackfillError, match="more than one head.*Remove that folder"),
        servers.servers(place),
    ):
        pass


def test_a_second_demo_in_one_folder_is_refused_while_the_first_runs(tmp_path: Path) -> None:
    place = prepared(tmp_path)
    with (
        FileLock(place.folder / "running.lock"),
        pytest.raises(BackfillError, match="another one runs there"),
        servers.servers(place),
    ):
        pass


@pytest.mark.slow
def test_a_port_that_somebody_took_in_the_meantime_is_left_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = servers.free_port()
    with socket.socket() as somebody:
        somebody.bind(("127.0.0.1", 0))
        somebody.listen()
        taken = somebody.getsockname()[1]
        offered = iter([taken, free])
        monkeypatch.setattr(servers, "free_port", lambda: next(offered))
        with servers.servers(prepared(tmp_path)) as running:
            assert running.url == f"http://127.0.0.1:{free}"
        with (
            pytest.raises(BackfillError, match="address already in use"),
            servers.servers(prepared(tmp_path), port=taken),
        ):
            pass


def test_a_second_ctrl_c_while_a_server_is_stopped_ends_its_children_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stubborn = (
        "import signal, subprocess, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "subprocess.Popen(['sleep', '60']); print('up', flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", stubborn], stdout=subprocess.PIPE, start_new_session=True
    ) as server:
        assert server.stdout is not None
        server.stdout.readline()
        answers = iter([KeyboardInterrupt()])
        really_wait = server.wait

        def wait(timeout: float | None = None) -> int:
            for answer in answers:
                raise answer
            return really_wait(timeout)

        monkeypatch.setattr(server, "wait", wait)
        with pytest.raises(KeyboardInterrupt):
            servers._stop(server)
        # its output ends when the last process that holds it has ended
        assert server.stdout.read() == b""
    assert server.returncode == -signal.SIGKILL


def test_a_process_that_died_is_named_with_the_end_of_its_log(tmp_path: Path) -> None:
    place = prepared(tmp_path)
    place.log("daemon").write_text("one line\nDISK FULL\n")
    with subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"]) as daemon:
        daemon.wait()
        running = servers.Running("http://127.0.0.1:1", place, {"daemon": daemon})
        with pytest.raises(BackfillError, match=r"daemon ended with status 3.*DISK FULL"):
            running.must_be_alive()


def test_a_location_that_cannot_be_loaded_is_told_at_once_with_its_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def answer(self: Dagster, query: str, **variables: Any) -> dict[str, Any]:
        why = {"__typename": "PythonError", "message": "NameError: name 'dgg' is not defined"}
        entry = {"name": "backfill_assets", "loadStatus": "LOADED", "locationOrLoadError": why}
        return {"workspaceOrError": {"locationEntries": [entry]}}

    monkeypatch.setattr(Dagster, "ask", answer)
    with pytest.raises(BackfillError, match="could not load backfill_assets: NameError"):
        Dagster("http://127.0.0.1:1").is_ready()


def test_a_webserver_that_gives_no_answer_is_not_ready_and_its_silence_is_a_sentence() -> None:
    nobody = Dagster(f"http://127.0.0.1:{servers.free_port()}")
    assert not nobody.is_ready()
    with pytest.raises(BackfillError, match="gave no answer"):
        nobody.status("abc")


def test_variables_of_ones_own_warehouse_and_instance_do_not_lead_the_demo_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKFILL_WAREHOUSE_URL", "postgresql://ana:s3cret@production/db")
    monkeypatch.setenv("BACKFILL_DAGSTER_PG_URL", "postgresql://ana:s3cret@production/dagster")
    monkeypatch.setenv("BACKFILL_AUDIT_SCHEMA", "elsewhere")
    monkeypatch.setenv("DAGSTER_HOME", "/production")
    place = prepared(tmp_path)
    ours = {k: v for k, v in place.environment.items() if k.startswith(("BACKFILL_", "DAGSTER_"))}
    assert ours["BACKFILL_WAREHOUSE_URL"] == f"duckdb:///{tmp_path}/warehouse.duckdb"
    assert ours["DAGSTER_HOME"] == str(tmp_path / "dagster_home")
    assert ours["BACKFILL_EVENTS"] == str(tmp_path / "events")
    assert {name for name in ours if name.startswith("BACKFILL_")} == {
        "BACKFILL_WAREHOUSE_URL",
        "BACKFILL_EVENTS",
    }


@pytest.mark.parametrize(
    "days",
    [("2026-05-03", "2026-05-01"), ("2026-02-28", "2026-03-01"), ("2026-06-30", "2026-07-01")],
)
def test_days_that_the_sample_does_not_have_are_refused_before_anything_starts(
    days: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["sales", "--home", str(tmp_path), "--first", days[0], "--last", days[1]]
    with pytest.raises(SystemExit):
        __main__.main(arguments)
    assert "2026-03-01 to 2026-06-30" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
