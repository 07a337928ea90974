"""What docs/engines/ promises is so: its table of URLs, its lines to install, its script of rights, its counts."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from backfill_assets.engines import ENGINES, open_engine
from backfill_assets.errors import MissingDriver, MissingRight
from backfill_assets.operations.doctor import examine
from backfill_assets.operations.doctor.examine import examined
from backfill_assets.operations.doctor.points import failed
from backfill_assets.table import SliceColumn, Table
from backfill_assets.writing import AuditTable, Select
from backfill_assets_tests.warehouses import Warehouse

PAGES = Path(__file__).parents[2] / "docs" / "engines"
DAY = date(2026, 5, 12)
DRIVERS = (
    "duckdb",
    "psycopg",
    "psycopg2",
    "snowflake.connector",
    "google.cloud.bigquery",
    "databricks.sql",
    "mssql_python",
    "pyodbc",
)


def rows_of_the_table() -> dict[str, tuple[str, str]]:
    """Return URL and line to install of each scheme in the table of the first page."""
    found: dict[str, tuple[str, str]] = {}
    for line in (PAGES / "README.md").read_text().splitlines():
        install = re.search(r"pip install '[^']+'", line)
        for scheme, rest in re.findall(r"`(\w+)://([^` ]*)`?", line) if install else ():
            url = f"{scheme}://{rest}" if rest else f"{scheme}://user@host/database"
            found.setdefault(scheme, (url, install.group() if install else ""))
    return found


TABLE = rows_of_the_table()


@pytest.mark.parametrize("scheme", sorted(ENGINES))
def test_a_driver_that_is_missing_is_said_with_the_line_of_the_table(
    scheme: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    url, line = TABLE[scheme]
    for name in (*DRIVERS, "snowflake", "databricks", "google.cloud"):
        monkeypatch.setitem(sys.modules, name, None)
    engine = open_engine(url)
    with pytest.raises(MissingDriver) as missing, engine.session():
        pass
    assert missing.value.do == f"Run: {line}"


def test_neither_the_package_nor_an_engine_imports_a_driver(tmp_path: Path) -> None:
    urls = [url for scheme, (url, _) in TABLE.items() if scheme in ENGINES]
    code = (
        "import sys, pkgutil, backfill_assets.engines as engines, backfill_assets.definitions\n"
        "from importlib import import_module\n"
        "for module in pkgutil.iter_modules(engines.__path__): import_module(f'backfill_assets.engines.{module.name}')\n"
        f"for url in {urls!r}: engines.open_engine(url)\n"
        f"print([name for name in {DRIVERS!r} if name in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert found.stdout.strip() == "[]"


# PostgreSQL's script of rights

SALES = Table("analytics.fct_sales", SliceColumn("day", "date"))
ROWS = {"day": [DAY], "id": [1]}


def script() -> str:
    (found,) = re.findall(r"```sql\n(.*?)```", (PAGES / "postgresql.md").read_text(), re.DOTALL)
    return found


@pytest.fixture
def lanes(postgres: Warehouse) -> Iterator[tuple[Warehouse, Warehouse]]:
    """Both lanes' roles of the page, in a warehouse whose tables are somebody else's."""
    postgres.execute(
        "REVOKE ALL ON DATABASE warehouse FROM PUBLIC",
        "CREATE SCHEMA staging",
        "CREATE SCHEMA analytics",
        "CREATE TABLE staging.sales (day date, id bigint)",
        "CREATE TABLE analytics.fct_sales (day date, id bigint)",
    )
    with postgres.session() as session:
        AuditTable().ensure(session)
    with psycopg.connect(postgres.url, autocommit=True) as owner:
        owner.execute(script().encode())
    yield (
        Warehouse(postgres.url.replace("//postgres:", "//loader_live:")),
        Warehouse(
            postgres.url.replace("//postgres:", "//loader_backfill:")
            + "&statement_timeout=1800&lock_wait=300"
        ),
    )
    for role in ("loader_live", "loader_backfill", "slice_writers"):
        postgres.execute(f"DROP OWNED BY {role} CASCADE", f"DROP ROLE {role}")


def test_the_script_of_the_page_lets_both_lanes_write_slices_and_nothing_else(
    lanes: tuple[Warehouse, Warehouse], postgres: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_SECOND_SECONDS", "_LIMIT_SECONDS"):
        monkeypatch.setattr(examine, name, 0.1)
    live, backfill = lanes
    doors = {"live": partial(open_engine, live.url), "backfill": partial(open_engine, backfill.url)}
    found = examined(doors, [SALES], AuditTable())
    assert [point.line for point in failed(found)] == []
    postgres.execute("CREATE TABLE analytics.made_later (day date, id bigint)")
    for number, lane in enumerate(lanes):
        assert lane.write(SALES, "2026-05-12", ROWS).rows_before == number
        lane.write(
            SALES,
            "2026-05-13",
            Select("SELECT * FROM staging.sales"),
            allows=frozenset({"empty"}),
            reason="no sales",
        )
        lane.write(Table("analytics.made_later", SliceColumn("day", "date")), "2026-05-12", ROWS)
        for forbidden in (
            "TRUNCATE analytics.fct_sales",
            "UPDATE analytics.fct_sales SET id = 2",
            "ALTER TABLE analytics.fct_sales ADD COLUMN more bigint",
            "CREATE TABLE analytics.new (day date)",
            "DELETE FROM backfill.load_audit",
            "INSERT INTO staging.sales VALUES (NULL, 1)",
        ):
            with pytest.raises(MissingRight):
                lane.execute(forbidden)
    assert postgres.count("analytics.fct_sales") == 1


def test_each_lane_has_the_limits_of_its_own_url(lanes: tuple[Warehouse, Warehouse]) -> None:
    shown = (
        "SELECT current_user, current_setting('statement_timeout'), current_setting('lock_timeout')"
    )
    assert [lane.rows(shown)[0] for lane in lanes] == [
        ("loader_live", "0", "10min"),
        ("loader_backfill", "30min", "5min"),
    ]


# how many statements make a slice


def counted(warehouse: Warehouse, table: Table, rows: Any) -> int:
    """Return how many times the database is asked for a slice of a table that is there, in a session that has begun."""
    with warehouse.session() as session:
        warehouse.write(table, "2026-05-12", rows, session=session)
        connection: Any = vars(session).get("_connection")
        asked: list[str] = []
        if connection is not None:

            class Counting(psycopg.Cursor[Any]):
                def execute(self, query: Any, *given: Any, **more: Any) -> Any:
                    asked.append(str(query))
                    return super().execute(query, *given, **more)

                def copy(self, statement: Any, *given: Any, **more: Any) -> Any:
                    asked.append(str(statement))
                    return super().copy(statement, *given, **more)

            connection.cursor_factory = Counting
        else:
            guarded: Any = session._guarded
            session._guarded = lambda run: (asked.append("asked"), guarded(run))[1]
        warehouse.write(table, "2026-05-12", rows, session=session)
        return len(asked)


@pytest.mark.only("duckdb", "postgres", why="the pages of the others tell their own")
def test_a_slice_takes_as_many_statements_as_its_page_says(warehouse: Warehouse) -> None:
    table = Table("mart.t", SliceColumn("day", "date"))
    keyed = Table("mart.t", SliceColumn("day", "date"), unique_key=("id",))
    page = (PAGES / ("postgresql.md" if warehouse.is_postgres else "duckdb.md")).read_text()
    (said,) = re.findall(r"\*\*Statements for a slice\*\*.*?\n\n", page, re.DOTALL)
    warehouse.write(table, "2026-05-12", ROWS)
    warehouse.execute("CREATE TABLE mart.source AS SELECT * FROM mart.t")
    frame = counted(warehouse, table, ROWS)
    select = counted(warehouse, table, Select("SELECT * FROM mart.source"))
    assert counted(warehouse, keyed, ROWS) == frame + 1
    for number in re.findall(r"\b1\d\b", said):
        assert int(number) in (frame, select), (frame, select)
    assert str(frame) in said, (frame, select)
    assert str(select) in said, (frame, select)
