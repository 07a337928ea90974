"""The macros on a Snowflake account: what is in the tables where fakesnow shows it, what is sent in which order beyond."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import snowflake.connector as connector

from backfill_assets.dbt import raw
from backfill_assets.errors import SliceBusy
from backfill_assets.slice import Slice
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import Window
from backfill_assets.writing import Load, Run, Select
from backfill_assets_tests.dbt.conftest import SOURCES, model
from backfill_assets_tests.dbt.projects import Project, copied, sample
from backfill_assets_tests.dbt.snowflake_service import DDL, Sent, Service, account, dbt, tag_of
from backfill_assets_tests.interruptions import after_statement
from backfill_assets_tests.snowflake_accounts import SnowflakeWarehouse
from backfill_assets_tests.warehouses import AUDIT, with_options

FCT = Table("analytics.fct", SliceColumn("day", "date"), unique_key=("id",))
DAY = "{{ day_of('happened') }}"


@pytest.fixture
def played() -> Iterator[tuple[Service, SnowflakeWarehouse]]:
    with account() as found:
        yield found


@pytest.fixture
def service(played: tuple[Service, SnowflakeWarehouse]) -> Service:
    return played[0]


@pytest.fixture
def warehouse_there(played: tuple[Service, SnowflakeWarehouse]) -> SnowflakeWarehouse:
    return played[1]


@pytest.fixture
def project(warehouse_there: SnowflakeWarehouse, tmp_path: Path) -> Project:
    """The macros and one model over `raw.events`: two rows a day from 1 to 4 March, the first at midnight."""
    rows = ", ".join(
        f"({10 * day + n}, '2026-03-0{day + 1} {12 * n:02}:00:00+00:00'::TIMESTAMP_TZ, {day + n}.50, 'note')"
        for day in range(4)
        for n in range(2)
    )
    warehouse_there.execute(
        "CREATE SCHEMA raw",
        "CREATE TABLE raw.events (id BIGINT, happened TIMESTAMP_TZ, amount NUMBER(18,2), note TEXT)",
        f"INSERT INTO raw.events VALUES {rows}",
        "CREATE TABLE raw.changing AS SELECT * FROM raw.events",
    )
    found = copied(warehouse_there, tmp_path)
    found.write("models/sources.yml", SOURCES)
    found.write("models/analytics/fct.sql", model(day=DAY))
    return found


@pytest.fixture
def loaded(project: Project, service: Service) -> Project:
    """1 and 2 March are in the table, and what was sent for that is forgotten."""
    assert dbt(project, "run", start="2026-03-01", end="2026-03-03", reason="first").success
    service.sent.clear()
    return project


def again(project: Project, **variables: Any) -> Any:
    """Write 1 March again, by the run r-17 of the backfill bf-4."""
    told = {"reason": "again", "run_id": "r-17", "backfill_id": "bf-4", **variables}
    return dbt(project, "run", start="2026-03-01", end="2026-03-02", **told)


def of_the_model(service: Service) -> list[Sent]:
    """What the session of the model sent."""
    session = next(one.session for one in service.sent if one.word == "ROLLBACK")
    return [one for one in service.sent if one.session == session]


def error(
    number: int, state: str = "P0000", message: str = "said the account's \\ own"
) -> Exception:
    return connector.errors.ProgrammingError(msg=message, errno=number, sqlstate=state)


def lost() -> Exception:
    return connector.errors.OperationalError(msg="Connection reset by peer", errno=250003)


# rows, as far as fakesnow goes


def test_a_day_is_replaced_audited_and_hashed_as_rewrite_does_it(
    project: Project, warehouse_there: SnowflakeWarehouse
) -> None:
    assert dbt(project, "run", start="2026-03-01", end="2026-03-05", ticket="T-1").success
    assert [row[:3] for row in warehouse_there.loads()] == [
        (f"2026-03-0{n}", 0, 2) for n in range(1, 5)
    ]
    warehouse_there.execute(
        "DELETE FROM raw.events WHERE id = 10",
        "INSERT INTO raw.events VALUES (19, '2026-03-02 23:59:59.999999+00:00'::TIMESTAMP_TZ, 7, 'late')",
        "UPDATE raw.events SET note = 'it''s \\\\ changed' WHERE id = 11",
    )
    said = dbt(project, "run", start="2026-03-02", end="2026-03-03", reason="late; it's \\ so")
    assert said.success, said.words
    found = warehouse_there.rows(
        "SELECT day, id, note FROM analytics.fct WHERE id BETWEEN 2 AND 29 ORDER BY id"
    )
    assert found == [
        (date(2026, 3, 2), 11, "it's \\ changed"),
        (date(2026, 3, 2), 19, "late"),
        (date(2026, 3, 3), 20, "note"),
        (date(2026, 3, 3), 21, "note"),
    ]
    told = warehouse_there.rows(
        "SELECT table_name, lane, reason, dimensions FROM backfill.load_audit WHERE reason IS NOT NULL"
    )
    assert told == [("analytics.fct", "backfill", "late; it's \\ so", "{}")]
    by_dbt = warehouse_there.loads()[-1]
    ours = warehouse_there.write(
        FCT,
        "2026-03-02",
        Select(
            "SELECT CAST(CONVERT_TIMEZONE('UTC', happened) AS DATE) AS day, id, amount, note FROM raw.events",
            on="happened",
        ),
        reason="compare",
    )
    assert (by_dbt[2], by_dbt[3]) == (ours.rows_after, ours.checksum)
    assert warehouse_there.leftovers() == []


def test_the_samples_orders_have_the_country_of_the_snapshot(
    warehouse_there: SnowflakeWarehouse, tmp_path: Path
) -> None:
    """A second run of the snapshot is a MERGE that fakesnow cannot do."""
    project = sample(warehouse_there, tmp_path)
    raw.prepare(warehouse_there.engine())
    assert dbt(project, "build", "--select", "dim_customers").success
    said = dbt(
        project, "build", "--select", "fct_orders", "--target", "backfill",
        start="2026-03-28", end="2026-03-30", reason="June",
    )  # fmt: skip
    assert said.success, said.words
    days = [date(2026, 3, n) for n in (28, 29)]
    confirmed = [row for day in days for row in raw.orders_of(day) if row[5] == "confirmed"]
    orders = warehouse_there.rows("SELECT order_id, country FROM analytics.fct_orders ORDER BY 1")
    assert orders == sorted((row[0], raw.country_at(row[1], row[3])) for row in confirmed)


def test_a_new_column_comes_by_name_and_what_would_be_cut_off_is_refused(
    loaded: Project, warehouse_there: SnowflakeWarehouse
) -> None:
    loaded.write(
        "models/analytics/fct.sql",
        model(", schema_policy='add'", select="'x' AS country, note, amount, id", day=DAY),
    )
    said = again(loaded)
    assert said.success, said.words
    assert warehouse_there.rows("SELECT id, country FROM analytics.fct ORDER BY id") == [
        (0, "x"), (1, "x"), (10, None), (11, None),
    ]  # fmt: skip
    loaded.write(
        "models/analytics/fct.sql",
        model(select="id, amount + 0.001 AS amount, note, 'x' AS country", day=DAY),
    )
    assert "2 values of column 'amount' would change from" in again(loaded).words
    assert warehouse_there.count("analytics.fct") == 4


def test_a_later_look_at_the_source_is_never_overwritten_by_an_earlier_one(
    loaded: Project, warehouse_there: SnowflakeWarehouse, service: Service
) -> None:
    future = datetime(2099, 1, 1, tzinfo=timezone.utc)
    load = Load.of(
        Slice(FCT, Window.day("2026-03-01")), Run("from-the-future"), source_read_at=future, started_at=future,
        committed_at=future, outcome="committed", rows_before=2, rows_after=2, checksum="0",
    )  # fmt: skip
    with warehouse_there.session() as session:
        AUDIT.record(session, load)
    said = again(loaded)
    assert "run from-the wrote it from a source read after this run read its own" in said.words
    assert not any(one.word == "DELETE" for one in service.sent)
    assert warehouse_there.loads("refused")[0][0] == "2026-03-01"


def test_dbt_waits_for_our_writer_and_our_writer_for_dbt(
    loaded: Project, warehouse_there: SnowflakeWarehouse, service: Service
) -> None:
    """One claims table and one row of it, whoever writes; each names the other."""
    rows = Select("SELECT * FROM analytics.fct WHERE day = '2026-03-01'")
    heard: list[str] = []
    with warehouse_there.session(who="run ours") as session:
        after_statement(session, "DELETE", lambda: heard.append(again(loaded, lock_wait=1).words))
        warehouse_there.write(FCT, "2026-03-01", rows, session=session, run_id="ours", reason="x")
    assert "it is being rewritten by run ours, and still was after 1.0 s" in heard[0]
    # where the other one was killed nobody ends its transaction, and the message says how to
    assert "SHOW TRANSACTIONS IN ACCOUNT names its id" in heard[0]
    assert "SELECT SYSTEM$ABORT_TRANSACTION(id) ends it" in heard[0]

    impatient = SnowflakeWarehouse(with_options(warehouse_there.url, lock_wait=0.2))

    def ours() -> None:
        with pytest.raises(SliceBusy) as busy:
            impatient.write(FCT, "2026-03-01", rows, run_id="late", reason="x")
        heard.append(str(busy.value))

    service.before['DELETE FROM "WAREHOUSE"."ANALYTICS"'] = ours
    said = again(loaded)
    assert said.success, said.words
    assert "is being rewritten by run r-17" in heard[1]
    assert warehouse_there.count("analytics.fct") == 4


# statements and their order


def test_a_day_takes_these_statements_in_this_order(loaded: Project, service: Service) -> None:
    said = again(loaded)
    assert said.success, said.words
    sent = of_the_model(service)
    begun = next(n for n, one in enumerate(sent) if one.word == "BEGIN")
    inside = [one.sql for one in sent if one.in_transaction]
    assert [sql.split(None, 1)[0] for sql in inside] == [
        "UPDATE", "SELECT", "DELETE", "INSERT", "SELECT", "INSERT", "COMMIT",
    ]  # fmt: skip
    assert [one.sql for one in sent[begun + 1 :][: len(inside)]] == inside
    update, _, delete, insert, verify, audit, _ = inside
    window = """WHERE "DAY" >= DATE '2026-03-01' AND "DAY" < DATE '2026-03-02'"""
    assert update.startswith('UPDATE "BACKFILL"."SLICE_CLAIMS_')
    assert delete == f'DELETE FROM "WAREHOUSE"."ANALYTICS"."FCT" {window}'
    columns = '"DAY", "ID", "AMOUNT", "NOTE"'
    assert insert.startswith(
        f'INSERT INTO "WAREHOUSE"."ANALYTICS"."FCT" ({columns}) SELECT {columns} FROM "BACKFILL"."BACKFILL_STAGE_'
    )
    assert verify.endswith(f'FROM "WAREHOUSE"."ANALYTICS"."FCT" {window}')
    assert audit.startswith('INSERT INTO "BACKFILL"."LOAD_AUDIT"')
    after = sent[begun + 1 + len(inside) :]
    assert 'FROM "BACKFILL"."LOAD_AUDIT" WHERE "AUDIT_ID" =' in after[0].sql
    assert [one.word for one in after[1:]] == ["DROP", "ALTER"]


@pytest.mark.parametrize("kind", ["date", "timestamptz"])
def test_no_ddl_is_sent_inside_a_transaction_also_for_the_first_day_of_a_table(
    project: Project, service: Service, kind: str
) -> None:
    day = DAY if kind == "date" else "happened"
    project.write("models/analytics/fct.sql", model(f", slice_kind='{kind}'", day=day))
    assert dbt(project, "run", start="2026-03-01", end="2026-03-03").success
    assert sum(one.word == "COMMIT" for one in service.sent) == 2
    beyond = (*DDL, "USE", "SHOW", "DESCRIBE")
    assert [
        one.sql for one in service.sent if one.in_transaction and one.word.upper() in beyond
    ] == []
    removals = [one.sql for one in service.sent if one.word == "DELETE"]
    wanted = {
        "date": """"DAY" >= DATE '2026-03-01' AND "DAY" < DATE '2026-03-02'""",
        "timestamptz": """"DAY" >= '2026-03-01 00:00:00+00:00'::TIMESTAMP_TZ"""
        """ AND "DAY" < '2026-03-02 00:00:00+00:00'::TIMESTAMP_TZ""",
    }[kind]
    assert removals[0].endswith(f"WHERE {wanted}")


@pytest.mark.parametrize(
    "statement",
    ["UPDATE", "SELECT COALESCE(CAST(CURRENT_TRANSACTION()", "DELETE", 'INSERT INTO "WAREHOUSE"',
     "SELECT COALESCE(CAST(count(*)", 'INSERT INTO "BACKFILL"'],
)  # fmt: skip
def test_after_an_error_rollback_is_said_the_old_rows_stay_and_the_session_goes_on(
    loaded: Project, service: Service, warehouse_there: SnowflakeWarehouse, statement: str
) -> None:
    """dbt itself sends nothing then: the next model's DDL would commit what was done before the error."""
    warehouse_there.execute("UPDATE raw.events SET note = 'new'")
    loaded.write("models/zz_after.sql", "{{ config(materialized='table') }} SELECT 1 AS one")
    failing = error(100132)
    service.failing[statement] = failing
    # only within the transaction: the refusal itself is written into the audit afterwards
    service.before["ROLLBACK"] = lambda: service.before.update(
        {"ROLLBACK": lambda: service.failing.clear()}
    )
    said = again(loaded)
    sent = of_the_model(service)
    failed = max(n for n, one in enumerate(sent) if one.in_transaction and one.word != "ROLLBACK")
    assert sent[failed].sql.startswith(statement)
    assert sent[failed + 1].sql == "ROLLBACK"
    assert (
        "stopped a statement of its transaction with error 100132, said the account's \\ own"
        in said.words
    )
    assert all(session.transaction is None for session in service.sessions)
    assert warehouse_there.rows("SELECT DISTINCT note FROM analytics.fct") == [("note",)]
    assert [row[0] for row in warehouse_there.loads("failed")] == ["2026-03-01"]
    assert len(warehouse_there.loads()) == 2
    assert warehouse_there.leftovers() == []
    assert warehouse_there.count("analytics.zz_after") == 1


def test_nothing_follows_a_commit_whose_answer_was_lost_but_the_question_whether_it_was_done(
    loaded: Project, service: Service, warehouse_there: SnowflakeWarehouse
) -> None:
    warehouse_there.execute("UPDATE raw.events SET note = 'new'")
    service.lost["COMMIT"] = lost()
    said = again(loaded)
    assert "Connection reset by peer" in said.words
    assert of_the_model(service)[-1].sql == "COMMIT"
    after = service.sent[[one.sql for one in service.sent].index("COMMIT") + 1 :]
    asked = [one for one in after if one.word.upper() not in ("DESCRIBE", "SHOW")]
    assert [one.word for one in asked] == ["SELECT"]
    assert 'FROM "BACKFILL"."LOAD_AUDIT" WHERE "RUN_ID" = \'r-17\'' in asked[0].sql
    service.lost.clear()
    assert warehouse_there.loads("failed") == []
    assert [row[4] for row in warehouse_there.loads()].count("r-17") == 1
    assert warehouse_there.count("analytics.fct", "note = 'new'") == 2


def test_a_claims_table_that_lost_its_rows_is_no_claim(
    loaded: Project, service: Service, warehouse_there: SnowflakeWarehouse
) -> None:
    claims = (
        "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'SLICE_CLAIMS%'"
    )
    ((name,),) = warehouse_there.rows(claims)
    warehouse_there.execute(f'DELETE FROM backfill."{name}"')
    service.sent.clear()
    assert "has not the rows that it was made with" in again(loaded).words
    assert not any(one.word == "DELETE" for one in service.sent)


def test_a_transaction_that_never_began_is_noticed_before_anything_is_deleted(
    loaded: Project, service: Service, warehouse_there: SnowflakeWarehouse
) -> None:
    """Begun in one session and gone by the claim, as where a pool hands out another session for each statement."""

    def gone() -> None:
        for session in service.sessions:
            session.transaction = None

    service.before["UPDATE"] = gone
    assert "its statements commit one by one" in again(loaded).words
    assert not any(one.word == "DELETE" for one in service.sent)


def test_statements_are_tagged_and_limited_and_the_session_is_as_it_was_afterwards(
    loaded: Project, service: Service
) -> None:
    service.tag = "somebody's own"
    assert again(loaded, lock_wait=30, statement_timeout=90).success
    wanted = {
        "table": "WAREHOUSE.ANALYTICS.FCT",
        "partition": "2026-03-01",
        "run": "r-17",
        "backfill": "bf-4",
    }
    writing = [
        one
        for one in service.sent
        if one.in_transaction or ("BACKFILL_STAGE" in one.sql and one.word == "CREATE")
    ]
    assert len(writing) == 8
    for one in writing:
        assert wanted.items() <= tag_of(one).items()
        limits = {
            "LOCK_TIMEOUT": "30",
            "STATEMENT_TIMEOUT_IN_SECONDS": "90",
            "TIMEZONE": "UTC",
            "TRANSACTION_ABORT_ON_ERROR": "TRUE",
        }
        assert limits.items() <= one.parameters.items()
    session = service.sessions[writing[0].session]
    assert session.parameters == {"QUERY_TAG": "somebody's own"}


# names


@pytest.mark.parametrize(
    ("config", "names", "said"),
    [
        (", alias='FCT'", "id", None),
        (", database='WAREHOUSE', schema='Analytics'", "id", None),
        ("", 'id, 1 AS "lower"', "its column 'lower' is stored in lower case"),
    ],
)  # fmt: skip
def test_a_name_means_what_it_means_in_sql_without_quotes(
    project: Project, warehouse_there: SnowflakeWarehouse, config: str, names: str, said: str | None
) -> None:
    project.write(
        "models/analytics/fct.sql", model(config, select=f"{names}, amount, note", day=DAY)
    )
    done = dbt(project, "run", start="2026-03-01", end="2026-03-02")
    if said is not None:
        assert said in done.words
        return
    assert done.success, done.words
    assert warehouse_there.count("ANALYTICS.FCT") == 2
    assert warehouse_there.rows("SELECT DISTINCT table_name FROM backfill.load_audit") == [
        ("analytics.fct",)
    ]
