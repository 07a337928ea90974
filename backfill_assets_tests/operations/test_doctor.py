"""The doctor finds what would fail, prints the statement that mends it, and changes nothing."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.reconstruct import ReconstructableRepository

from backfill_assets.engines import Claim, open_engine
from backfill_assets.engines.duckdb import DuckDBSession
from backfill_assets.engines.postgres import PostgresSession
from backfill_assets.expectations import Source
from backfill_assets.io_managers import DeleteInsertIOManager, Select
from backfill_assets.operations.doctor import examine
from backfill_assets.operations.doctor.__main__ import main
from backfill_assets.operations.doctor.examine import examined
from backfill_assets.operations.doctor.points import Point, failed
from backfill_assets.operations.parts import backfill_operations
from backfill_assets.table import SliceColumn, Table
from backfill_assets.writing import AuditTable
from backfill_assets_tests.warehouses import Warehouse

T = Table("mart.t", SliceColumn("day", "date"))
ROWS = {"day": [date(2026, 5, 12)], "id": [1]}


@dg.asset(
    key_prefix=["mart"],
    partitions_def=dg.DailyPartitionsDefinition("2026-05-01"),
    metadata={"partition_expr": "day"},
)
def t() -> Select:
    return Select("SELECT DATE '2026-05-12' AS day, 1 AS id")


defs = dg.Definitions.merge(
    dg.Definitions(
        assets=[t],
        resources={"io_manager": DeleteInsertIOManager(url=dg.EnvVar("DOCTOR_TEST_URL"))},
    ),
    backfill_operations(),
)


def looked(
    live: Warehouse, backfill: Warehouse | None = None, *, ddl: bool = False, table: Table = T
) -> list[Point]:
    lanes = {"live": live} | ({"backfill": backfill} if backfill else {})
    doors = {lane: partial(open_engine, warehouse.url) for lane, warehouse in lanes.items()}
    return examined(doors, [table], AuditTable(), ddl=ddl)


def wrong(found: list[Point]) -> list[str]:
    return [f"{point.lane}: {point.what}" for point in failed(found)]


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits longer for a claim than it has to, nor a second for a limit."""
    monkeypatch.setattr(examine, "PATIENCE_SECONDS", 1)
    monkeypatch.setattr(examine, "_SECOND_SECONDS", 0.1)
    monkeypatch.setattr(examine, "_LIMIT_SECONDS", 0.1)


@pytest.fixture
def clerk(postgres: Warehouse) -> Iterator[Warehouse]:
    """A role with the rights that a slice needs, and no others."""
    postgres.write(T, "2026-05-12", ROWS)
    postgres.execute(
        'CREATE ROLE "Clerk" LOGIN',
        "REVOKE ALL ON DATABASE warehouse FROM PUBLIC",
        'GRANT CONNECT, TEMPORARY ON DATABASE warehouse TO "Clerk"',
        'GRANT USAGE ON SCHEMA mart, backfill TO "Clerk"',
        'GRANT SELECT, INSERT, DELETE ON mart.t TO "Clerk"',
        'GRANT SELECT, INSERT ON backfill.load_audit TO "Clerk"',
    )
    yield Warehouse(postgres.url.replace("//postgres:", "//Clerk:"))
    postgres.execute('DROP OWNED BY "Clerk" CASCADE', 'DROP ROLE "Clerk"')


# what is well


def test_a_warehouse_where_all_is_well_has_no_point_that_fails(warehouse: Warehouse) -> None:
    warehouse.write(T, "2026-05-12", ROWS)
    found = looked(warehouse, ddl=True)
    assert wrong(found) == []
    whats = {point.what for point in found if point.verdict == "ok"}
    assert {"connection", "clock", "zone", "stages", "transactions", "claims", "lock_wait"} <= whats
    assert {
        "statement_timeout",
        "SELECT on mart.t",
        "DELETE on mart.t",
        "INSERT on mart.t",
    } <= whats


def test_the_least_rights_are_enough(clerk: Warehouse) -> None:
    assert wrong(looked(clerk)) == []


def test_no_row_changes_and_nothing_is_left_behind(warehouse: Warehouse) -> None:
    warehouse.write(T, "2026-05-12", ROWS)
    before = warehouse.rows("SELECT table_schema, table_name FROM information_schema.tables")
    looked(warehouse, ddl=True, table=Table("nowhere.new"))
    assert warehouse.leftovers() == []
    assert (
        warehouse.rows("SELECT table_schema, table_name FROM information_schema.tables") == before
    )
    assert warehouse.rows("SELECT * FROM mart.t") == [(date(2026, 5, 12), 1)]
    assert len(warehouse.loads()) == 1


def test_a_doctor_that_dies_in_the_middle_leaves_nothing(
    postgres: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.write(T, "2026-05-12", ROWS)
    real = PostgresSession.execute

    def dying(session: PostgresSession, sql: str) -> int:
        done = real(session, sql)
        if sql.startswith(("DELETE FROM", "INSERT INTO", "CREATE TABLE")):
            real(session, "SELECT pg_terminate_backend(pg_backend_pid())")
        return done

    monkeypatch.setattr(PostgresSession, "execute", dying)
    assert wrong(looked(postgres, ddl=True, table=Table("mart.new"))) != []
    assert wrong(looked(postgres)) != []
    monkeypatch.undo()
    assert postgres.leftovers() == []
    assert postgres.count("mart.t") == 1
    assert postgres.count("pg_tables", "tablename LIKE 'backfill_doctor%'") == 0


def test_a_file_that_is_not_there_is_not_made(duckdb: Warehouse) -> None:
    assert [point.verdict for point in looked(duckdb)] == ["note"]
    assert not Path(duckdb.url.removeprefix("duckdb:///")).exists()


# rights

LACKING = {
    "REVOKE SELECT ON mart.t": "SELECT on mart.t",
    "REVOKE DELETE ON mart.t": "DELETE on mart.t",
    "REVOKE INSERT ON mart.t": "INSERT on mart.t",
    "REVOKE USAGE ON SCHEMA mart": "mart.t",
    "REVOKE SELECT ON backfill.load_audit": "SELECT on the audit table backfill.load_audit",
    "REVOKE INSERT ON backfill.load_audit": "INSERT on the audit table backfill.load_audit",
    "REVOKE USAGE ON SCHEMA backfill": "the audit table backfill.load_audit",
    "REVOKE TEMPORARY ON DATABASE warehouse": "stages",
}


@pytest.mark.parametrize("revoked", LACKING)
def test_the_grant_that_is_printed_mends_what_is_lacking(
    clerk: Warehouse, postgres: Warehouse, revoked: str
) -> None:
    postgres.execute(f'{revoked} FROM "Clerk"')
    (point,) = failed(looked(clerk))
    assert point.what == LACKING[revoked]
    assert point.line.startswith("✗ live: ")
    assert "permission denied" in point.why
    assert point.do.startswith("GRANT ")
    postgres.execute(*point.do.split("; "))
    assert wrong(looked(clerk)) == []
    assert clerk.write(T, "2026-05-12", ROWS).rows_before == 1


@pytest.mark.parametrize("name", ["mart.new", "elsewhere.new"])
def test_the_right_to_make_tables_is_tried_only_when_it_is_asked_for(
    clerk: Warehouse, postgres: Warehouse, name: str
) -> None:
    new = Table(name, SliceColumn("day", "date"))
    assert wrong(looked(clerk, table=new)) == []
    (point,) = failed(looked(clerk, table=new, ddl=True))
    assert point.what == f"making {name}"
    postgres.execute(*point.do.split("; "))
    assert wrong(looked(clerk, table=new, ddl=True)) == []
    assert clerk.write(new, "2026-05-12", ROWS).rows_after == 1


@pytest.mark.parametrize("sql", ["raw.sales", "SELECT day FROM raw.sales"])
def test_the_declared_source_is_read_too(clerk: Warehouse, postgres: Warehouse, sql: str) -> None:
    table = replace(T, source=Source(sql, on="day"))
    found = looked(clerk, table=table)
    assert wrong(found) == []
    assert [point.verdict for point in found if "source" in point.what] == ["note"]
    postgres.execute("CREATE SCHEMA raw", "CREATE TABLE raw.sales (day date)")
    (point,) = failed(looked(clerk, table=table))
    assert "permission denied for schema raw" in point.why
    grant = 'GRANT USAGE ON SCHEMA "raw" TO "Clerk"; GRANT SELECT ON "raw"."sales" TO "Clerk"'
    assert (point.do == grant) is (sql == "raw.sales")
    postgres.execute(*grant.split("; "))
    assert wrong(looked(clerk, table=table)) == []


def test_rows_that_a_policy_may_hide_are_told_and_no_grant_of_tables_is_printed_for_it(
    clerk: Warehouse, postgres: Warehouse
) -> None:
    postgres.execute("ALTER TABLE mart.t ENABLE ROW LEVEL SECURITY")
    points = failed(looked(clerk))
    assert [point.what for point in points] == ["DELETE on mart.t", "INSERT on mart.t"]
    assert all("BYPASSRLS" in point.do for point in points)


def test_a_table_that_computes_columns_can_be_inserted_into(postgres: Warehouse) -> None:
    postgres.execute(
        "CREATE SCHEMA mart",
        "CREATE TABLE mart.t (day date NOT NULL, id bigint PRIMARY KEY,"
        " twice bigint GENERATED ALWAYS AS (id * 2) STORED)",
    )
    assert wrong(looked(postgres)) == []


def test_a_view_in_the_place_of_a_table_is_found(postgres: Warehouse) -> None:
    postgres.execute("CREATE SCHEMA mart", "CREATE VIEW mart.t AS SELECT CURRENT_DATE AS day")
    assert wrong(looked(postgres)) == ["live: DELETE on mart.t", "live: INSERT on mart.t"]


# lanes


def test_each_lane_is_looked_at_through_its_own_door(clerk: Warehouse, postgres: Warehouse) -> None:
    postgres.execute('REVOKE DELETE ON mart.t FROM "Clerk"')
    found = looked(postgres, clerk)
    assert wrong(found) == ["backfill: DELETE on mart.t"]
    assert [p.why for p in found if p.what == "role"] == ["postgres", "Clerk"]
    assert [p.verdict for p in found if p.what == "one warehouse"] == ["ok"]


def test_lanes_that_lead_to_two_warehouses_are_told(postgres: Warehouse) -> None:
    other = Warehouse(postgres.url.replace("/warehouse?", "/postgres?"))
    assert wrong(looked(postgres, other)) == ["live and backfill: one warehouse"]


def test_a_lane_s_limits_are_its_own(postgres: Warehouse) -> None:
    lane = Warehouse(postgres.url + "&statement_timeout=60&lock_wait=5")
    limits = [p.why for p in looked(postgres, lane) if p.what == "limits in force"]
    assert limits == ["lock wait 10min, statement 0", "lock wait 5s, statement 1min"]


# no connection


def only_point(url: str) -> Point:
    (point,) = looked(Warehouse(url))
    assert (point.what, point.verdict) == ("connection", "fails")
    return point


def test_a_closed_port_is_one_point() -> None:
    point = only_point("postgresql://ana:s3cret@127.0.0.1:1/db?connect_timeout=3")
    assert "refused" in point.why
    assert "Check host, port" in point.do
    assert "s3cret" not in point.line


def test_a_missing_driver_is_one_point_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert only_point("postgresql://ana@127.0.0.1:1/db").do.startswith("Run: pip install '")


def test_a_url_of_no_warehouse_is_one_point() -> None:
    assert "begins with none of" in only_point("oracle://ana:s3cret@host/db").why


def test_a_wrong_password_is_one_point(postgres: Warehouse) -> None:
    postgres.execute("CREATE ROLE careful LOGIN PASSWORD 'right'")
    rules = Path(postgres.rows("SHOW hba_file")[0][0])
    before = rules.read_text()
    try:
        rules.write_text(f"local all careful scram-sha-256\n{before}")
        postgres.execute("SELECT pg_reload_conf()")
        url = postgres.url.replace("//postgres:", "//careful:s3cret")
        until = time.monotonic() + 20
        while failed(looked(Warehouse(url))) == [] and time.monotonic() < until:
            time.sleep(0.05)
        point = only_point(url)
        assert "password authentication failed" in point.why
        assert "s3cret" not in point.line
        assert "connection" not in wrong(looked(Warehouse(url.replace("s3cret", "right"))))
    finally:
        rules.write_text(before)
        postgres.execute("SELECT pg_reload_conf()", "DROP ROLE careful")


@contextlib.contextmanager
def nobody() -> Iterator[None]:
    """Be a user whom the rights of files bind, which root is not."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_file_that_may_only_be_read_is_told() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "warehouse.duckdb"
        Warehouse(f"duckdb:///{file}").write(T, "2026-05-12", ROWS)
        for path in (file, *file.parent.glob("*.lock"), *file.parent.glob("*.queue")):
            path.chmod(0o777)
        file.chmod(0o444)
        Path(folder).chmod(0o755)
        with nobody():
            points = failed(looked(Warehouse(f"duckdb:///{file}")))
        assert [point.what for point in points] == ["connection"]
        assert "Permission denied" in points[0].why
        assert Warehouse(f"duckdb:///{file}").count("mart.t") == 1


# what a warehouse only says it does


def test_a_transaction_that_does_not_roll_back_is_found(
    postgres: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextlib.contextmanager
    def none_at_all(_: PostgresSession) -> Iterator[None]:
        yield

    monkeypatch.setattr(PostgresSession, "transaction", none_at_all)
    monkeypatch.setattr(PostgresSession, "claim", lambda *_: None)
    assert {"live: transactions", "live: claims"} <= set(wrong(looked(postgres)))


def test_claims_that_keep_nobody_out_are_found(
    postgres: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PostgresSession, "claim", lambda *_: None)
    assert wrong(looked(postgres)) == ["live: claims"]


@pytest.mark.parametrize(("ahead", "verdict"), [(0, "ok"), (30, "note"), (3600, "fails")])
def test_a_clock_that_is_wrong_is_told_by_how_much(
    postgres: Warehouse, monkeypatch: pytest.MonkeyPatch, ahead: int, verdict: str
) -> None:
    real = PostgresSession.clock
    monkeypatch.setattr(
        PostgresSession, "clock", lambda session: real(session) + timedelta(seconds=ahead)
    )
    (point,) = [point for point in looked(postgres) if point.what == "clock"]
    assert point.verdict == verdict
    assert ahead == 0 or f"{ahead}.0 s ahead" in point.why


def test_a_limit_that_does_not_hold_is_found(
    duckdb: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    duckdb.write(T, "2026-05-12", ROWS)
    real = DuckDBSession.fetch
    monkeypatch.setattr(
        DuckDBSession,
        "fetch",
        lambda session, sql: [(1,)] if "range(" in sql else real(session, sql),
    )
    assert wrong(looked(duckdb)) == ["live: statement_timeout"]


def test_a_table_that_is_being_written_is_a_note_and_waited_for_only_so_long(
    postgres: Warehouse,
) -> None:
    postgres.write(T, "2026-05-12", ROWS)
    with postgres.session() as session, session.transaction():
        session.claim(Claim('"mart"."t"', None, "mart.t", "4f1c"))
        found = looked(postgres)
    assert wrong(found) == []
    (note, _) = [point for point in found if point.verdict == "note"]
    assert (note.what, note.do) == ("DELETE on mart.t", "Ask again later")


# the job and the command


def run_job(config: dict[str, Any]) -> tuple[bool, dict[str, Any]]:
    location = ReconstructableRepository.for_file(__file__, "defs")
    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.execute_job(
            location.get_reconstructable_job("doctor"),
            run_config={"ops": {"doctor_op": {"config": config}}},
            instance=instance,
        )
        if result.success:
            (made,) = [e for e in result.all_events if e.event_type_value == "STEP_OUTPUT"]
            return True, dict(made.step_output_data.metadata)
        (broken,) = result.filter_events(lambda event: event.is_step_failure)
        return False, dict(broken.step_failure_data.user_failure_data.metadata)


def test_the_job_fails_where_a_point_does_and_shows_the_grant(
    clerk: Warehouse, postgres: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCTOR_TEST_URL", clerk.url)
    assert run_job({"tables": ["mart.t"], "ddl": True})[0]
    postgres.execute('REVOKE DELETE ON mart.t FROM "Clerk"')
    success, metadata = run_job({})
    assert not success
    assert 'GRANT DELETE ON "mart"."t" TO "Clerk"' in metadata["mend"].value
    assert "| ✗ | live | DELETE on mart.t | permission denied" in metadata["points"].value
    assert run_job({"fail": False})[0]
    success, metadata = run_job({"tables": ["mart.nowhere"]})
    assert not success
    assert "no asset of this location" in metadata["points"].value


def test_the_job_knows_the_partition_column_that_a_table_may_ask_for(
    bigquery: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    bigquery.write(Table("mart.t"), None, {"id": [1]})
    monkeypatch.setenv("DOCTOR_TEST_URL", bigquery.url)
    success, metadata = run_job({})
    assert not success
    assert re.search(r"✗ \| live \| DELETE on mart.t \| .*day", metadata["points"].value)


def command(url: str, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "backfill_assets.operations.doctor", *arguments],
        env={**os.environ, "BACKFILL_WAREHOUSE_URL": url, "DAGSTER_HOME": ""},
        capture_output=True,
        text=True,
    )
    assert done.stderr == "" or "Warning" in done.stderr
    return done.returncode, done.stdout


def test_the_command_prints_a_line_for_each_point_and_ends_with_what_it_found(
    duckdb: Warehouse,
) -> None:
    duckdb.write(T, "2026-05-12", ROWS)
    code, said = command(duckdb.url, "--ddl")
    assert code == 0, said
    assert "✓ live: making analytics.fct_sales: the role may" in said
    assert re.search(r"\n0 of \d+ points would fail. No row was changed.\n$", said), said
    code, said = command("oracle://ana:s3cret@host/db")
    assert (code, said[:1]) == (2, "✗")
    assert "s3cret" not in said


def test_the_command_ends_with_1_where_a_point_fails_in_a_location_of_one_s_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = "postgresql://ana:s3cret@127.0.0.1:1/db?connect_timeout=3"
    monkeypatch.setenv("DOCTOR_TEST_URL", url)
    assert main(["-m", __name__, "mart.t"]) == 1
    said = capsys.readouterr().out
    assert re.search("^✗ live: connection: .*refused", said, re.MULTILINE)
    assert "s3cret" not in said
