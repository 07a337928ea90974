"""What only PostgreSQL has: its settings, its rights, its errors, its types."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime
from datetime import time as wall_clock
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

import psycopg
import pyarrow as pa
import pytest

from backfill_assets.engines import open_engine
from backfill_assets.engines.postgres_errors import told
from backfill_assets.errors import (
    Away,
    BackfillError,
    BadRows,
    DeclarationError,
    MissingDriver,
    MissingRight,
    MissingTable,
    SchemaMismatch,
    SliceBusy,
    Unreachable,
    WriteFailed,
)
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import UTC
from backfill_assets.writing import AuditTable
from backfill_assets_tests.interruptions import after_call, after_statement, before_call
from backfill_assets_tests.warehouses import Warehouse, at

DAY = date(2026, 5, 12)
T = Table("mart.t", SliceColumn("day", "date"))


def database_of(warehouse: Warehouse) -> str:
    return warehouse.url.split("?")[0].rsplit("/", 1)[1]


def one(**columns: Any) -> dict[str, Any]:
    return {"day": [DAY], **{n: v if isinstance(v, pa.Array) else [v] for n, v in columns.items()}}


# settings

HOSTILE = {
    "TimeZone": "Asia/Kolkata",
    "DateStyle": "SQL, DMY",
    "IntervalStyle": "sql_standard",
    "extra_float_digits": "-10",
    "bytea_output": "escape",
    "standard_conforming_strings": "off",
    "default_transaction_isolation": "serializable",
    "statement_timeout": "60s",
    "lock_timeout": "1ms",
}


@pytest.mark.parametrize("whose", ["DATABASE", "ROLE"])
def test_defaults_of_a_role_or_a_database_change_nothing(postgres: Warehouse, whose: str) -> None:
    name = database_of(postgres) if whose == "DATABASE" else "postgres"
    rows = one(
        x=0.1 + 0.2,
        text="a\\b'c",
        b=pa.array([b"\x00\\"], pa.binary()),
        instant=datetime(2026, 5, 12, 0, 0, 0, 1, tzinfo=UTC),
    )
    before = postgres.write(T, "2026-05-12", rows)
    try:
        for setting, value in HOSTILE.items():
            postgres.execute(f"ALTER {whose} {name} SET {setting} = '{value}'")
        sliced = Table("mart.i", SliceColumn("at", "timestamptz"))
        for _ in range(2):
            after = postgres.write(T, "2026-05-12", rows, reason="back\\slash 'quoted'")
            postgres.write(
                sliced, "2026-05-12", {"at": [at("2026-05-12 00:00"), at("2026-05-12 23:59")]}
            )
        with postgres.session() as session:
            back = session.fetch_arrow("SELECT x, text, b, instant FROM mart.t").to_pylist()
            counted = session.fetch("SELECT count(*) FROM mart.i")
    finally:
        postgres.execute(f"ALTER {whose} {name} RESET ALL")
    assert after.checksum == before.checksum
    assert postgres.count("backfill.load_audit", "reason = $$back\\slash 'quoted'$$") == 2
    assert counted == [(2,)]
    assert back == [
        {
            "x": 0.1 + 0.2,
            "text": "a\\b'c",
            "b": b"\x00\\",
            "instant": datetime(2026, 5, 12, 0, 0, 0, 1, tzinfo=UTC),
        }
    ]


def test_a_search_path_decides_where_a_bare_name_is(postgres: Warehouse) -> None:
    postgres.execute("CREATE SCHEMA elsewhere", "CREATE TABLE elsewhere.t (day date, id bigint)")
    postgres.execute(f"ALTER DATABASE {database_of(postgres)} SET search_path = elsewhere, public")
    postgres.write(Table("t", SliceColumn("day", "date")), "2026-05-12", one(id=1))
    assert postgres.count("elsewhere.t") == 1


def test_options_of_libpq_pass_through_and_ours_do_not_reach_it(postgres: Warehouse) -> None:
    other = Warehouse(
        postgres.url
        + "&options=-c%20work_mem%3D7MB&lock_wait=3&statement_timeout=4&sslmode=disable&connect_timeout=5"
    )
    with other.session() as session:
        shown = [
            session.fetch(f"SHOW {name}")[0][0]
            for name in ("work_mem", "lock_timeout", "statement_timeout", "TimeZone")
        ]
    assert shown == ["7MB", "3s", "4s", "UTC"]


@pytest.mark.parametrize(
    "option", ["lock_wait=soon", "lock_wait=-1", "statement_timeout=inf", "lock_wait="]
)
def test_an_option_that_is_no_number_of_seconds_is_refused(option: str) -> None:
    with pytest.raises(DeclarationError, match="is no number of seconds"):
        open_engine(f"postgresql://u@h/d?{option}")


def test_a_limit_of_0_seconds_is_none(postgres: Warehouse) -> None:
    with Warehouse(postgres.url + "&statement_timeout=0").session() as session:
        assert session.fetch("SELECT 1 FROM pg_sleep(0.1)") == [(1,)]


def test_the_limit_of_a_statement_holds_outside_and_inside_a_transaction_but_not_for_the_claim(
    postgres: Warehouse,
) -> None:
    limited = Warehouse(postgres.url + "&statement_timeout=0.2&lock_wait=30")
    postgres.write(T, "2026-05-12", one(id=1))
    with limited.session() as session, pytest.raises(WriteFailed, match="Raise statement_timeout"):
        session.fetch("SELECT pg_sleep(20)")
    with limited.session() as session:
        slow = lambda: session.fetch("SELECT pg_sleep(20)")  # noqa: E731
        after_statement(session, "DELETE", slow)
        with pytest.raises(WriteFailed, match="Raise statement_timeout"):
            limited.write(T, "2026-05-12", one(id=2), session=session)
    with postgres.session() as first:
        second = threading.Thread(
            target=lambda: limited.write(T, "2026-05-12", one(id=2), run_id="second")
        )

        def wait_beyond_the_limit() -> None:
            second.start()
            first.fetch("SELECT pg_sleep(0.6)")

        after_statement(first, "DELETE", wait_beyond_the_limit)
        postgres.write(T, "2026-05-12", one(id=1), session=first, run_id="first")
        second.join(60)
    assert [load[-1] for load in postgres.loads()] == ["a-run", "first", "second"]


def test_a_session_is_called_by_its_run_within_the_length_of_a_name(postgres: Warehouse) -> None:
    for who, name in (
        ("run 4f1c", "backfill_assets run 4f1c"),
        ("", "backfill_assets"),
        ("x" * 90, "backfill_assets " + "x" * 47),
    ):
        with postgres.session(who=who) as session:
            assert session.fetch("SHOW application_name") == [(name,)]


def test_a_session_opened_to_read_writes_nothing(postgres: Warehouse) -> None:
    postgres.write(T, "2026-05-12", one(id=1))
    with postgres.session(read_only=True) as session:
        assert session.fetch_arrow("SELECT id FROM mart.t")["id"].to_pylist() == [1]
        with pytest.raises(MissingRight, match="takes no writes"):
            session.execute("DELETE FROM mart.t")


# no connection


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://u:s3cret@127.0.0.1:1/d?connect_timeout=3", "refused"),
        ("postgresql://u:s3cret@no-such-host.invalid/d?connect_timeout=3", "cannot be reached"),
        ("postgresql://u:s3cret@/d?host=/nowhere", "cannot be reached"),
        ("postgresql://u@127.0.0.1:1/d?password=s3cret&connect_timeout=3", "refused"),
    ],
)
def test_an_unreachable_server_is_one_sentence_without_the_password(url: str, said: str) -> None:
    with pytest.raises(Unreachable, match=said) as error, open_engine(url).session():
        pass
    assert "s3cret" not in str(error.value)
    assert "\n" not in str(error.value)
    assert "Check host, port, database, user and password" in str(error.value)


def test_an_unknown_database_or_role_is_one_sentence(postgres: Warehouse) -> None:
    for url in (
        postgres.url.replace(database_of(postgres), "nowhere"),
        postgres.url.replace("//postgres:", "//nobody:s3cret"),
    ):
        with (
            pytest.raises(Unreachable, match="does not exist") as error,
            open_engine(url).session(),
        ):
            pass
        assert "s3cret" not in str(error.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:s3/cret@host/d",
        "postgresql://u:s3cret@host/d?no_such_option=1",
        "postgresql://u:s3cret@host:s3cret/d",
    ],
)
def test_a_url_that_libpq_cannot_read_shows_no_piece_of_a_password(url: str) -> None:
    with (
        pytest.raises(DeclarationError, match="percent-encoded") as error,
        open_engine(url).session(),
    ):
        pass
    assert "s3" not in str(error.value)


@pytest.mark.parametrize("password", ["p%40ss%2Fw", "a[b", "a#b", "a:b", "", "%F0%9F%98%80"])
@pytest.mark.parametrize("hosts", ["h", "h:5432", "[::1]:5432", "h1:1,h2:2", ""])
def test_a_url_that_libpq_can_read_is_taken(password: str, hosts: str) -> None:
    engine: Any = open_engine(f"postgresql://u:{password}@{hosts}/d?lock_wait=5&sslmode=prefer")
    parts = psycopg.conninfo.conninfo_to_dict(engine.conninfo)
    assert (parts["user"], parts["dbname"], parts["sslmode"]) == ("u", "d", "prefer")
    assert password == "" or unquote(password) not in engine.shown


def test_a_password_is_never_shown() -> None:
    for url in (
        "postgresql://u:s3cret@h/d",
        "postgresql://h/d?user=u&password=s3cret",
        "postgresql://h/d?sslpassword=s3cret",
    ):
        assert "s3cret" not in open_engine(url).shown


def test_a_missing_driver_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with (
        pytest.raises(MissingDriver, match=r"pip install 'psycopg\[binary\]'"),
        open_engine("postgresql://h/d").session(),
    ):
        pass


def kill_backend(warehouse: Warehouse, session: Any) -> None:
    """End the server's side of `session`, as a restart or an administrator would."""
    pid = session._connection.info.backend_pid
    with psycopg.connect(warehouse.url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))


def test_a_connection_lost_at_any_statement_leaves_the_old_slice_or_the_new(
    postgres: Warehouse,
) -> None:
    postgres.write(T, "2026-05-12", one(id=1))
    with postgres.session() as session:
        calls = before_call(session, 0, lambda: None)
        postgres.write(T, "2026-05-12", one(id=1), session=session)
    known = len(postgres.loads())
    for number in range(1, len(calls)):
        with postgres.session() as session:
            before_call(session, number, lambda session=session: kill_backend(postgres, session))
            with pytest.raises((Unreachable, WriteFailed)):
                postgres.write(T, "2026-05-12", one(id=2), session=session)
        assert postgres.count("mart.t") == 1
        assert postgres.leftovers() == []
        known += postgres.rows("SELECT id FROM mart.t") == [(2,)]
        assert len(postgres.loads()) == known
        postgres.write(T, "2026-05-12", one(id=1))
        known += 1


def test_a_commit_whose_answer_is_lost_says_that_the_outcome_is_not_known(
    postgres: Warehouse,
) -> None:
    postgres.write(T, "2026-05-12", one(id=1))
    with postgres.session() as session:
        calls = before_call(session, 0, lambda: None)
        postgres.write(T, "2026-05-12", one(id=1), session=session)
    commit = calls.index("_run COMMIT") + 1
    with postgres.session() as session:
        before_call(session, commit, lambda: kill_backend(postgres, session))
        with pytest.raises(
            WriteFailed, match=r"is not known, though it is whole.*Launch this partition again"
        ):
            postgres.write(T, "2026-05-12", one(id=2), session=session)


def test_a_commit_that_rolls_back_is_a_failure_even_if_no_error_came_through_us(
    postgres: Warehouse,
) -> None:
    postgres.write(T, "2026-05-12", one(id=1))
    with postgres.session() as session:
        connection: Any = vars(session)["_connection"]
        with pytest.raises(WriteFailed, match="COMMIT rolled it back"), session.transaction():
            session.execute("DELETE FROM mart.t")
            with contextlib.suppress(psycopg.Error):
                connection.execute("SELECT nothing")
    assert postgres.count("mart.t") == 1


# what dies with a connection


def test_a_stage_is_gone_with_the_connection_that_made_it(postgres: Warehouse) -> None:
    with pytest.raises(Unreachable), postgres.session() as session:
        session.stage_arrow("backfill_stage_1", pa.table({"a": [1]}))
        session.stage_select("backfill_stage_2", "SELECT 1 AS a")
        assert len(postgres.leftovers()) == 2
        kill_backend(postgres, session)
        session.fetch("SELECT 1")
    assert postgres.leftovers() == []


def test_a_write_leaves_no_stage_in_the_session_that_goes_on(postgres: Warehouse) -> None:
    with postgres.session() as session:
        postgres.write(T, "2026-05-12", one(id=1), session=session)
        with pytest.raises(BadRows):
            postgres.write(T, "2026-05-13", one(id=1), session=session)
        assert postgres.leftovers() == []


# rights


@pytest.fixture
def clerk(postgres: Warehouse) -> Iterator[Warehouse]:
    """A role that may delete from, insert into and read the data and the audit table, and nothing else."""
    postgres.write(T, "2026-05-12", one(id=1))
    postgres.execute(
        "CREATE ROLE clerk LOGIN",
        f"REVOKE ALL ON DATABASE {database_of(postgres)} FROM PUBLIC",
        "REVOKE ALL ON SCHEMA public FROM PUBLIC",
        f"GRANT CONNECT, TEMPORARY ON DATABASE {database_of(postgres)} TO clerk",
        "GRANT USAGE ON SCHEMA mart, backfill TO clerk",
        "GRANT SELECT, INSERT, DELETE ON mart.t, backfill.load_audit TO clerk",
    )
    yield Warehouse(postgres.url.replace("//postgres:", "//clerk:"))
    postgres.execute("DROP OWNED BY clerk CASCADE", "DROP ROLE clerk")


def test_delete_insert_and_select_are_all_the_rights_that_a_slice_needs(
    clerk: Warehouse, postgres: Warehouse
) -> None:
    assert clerk.write(T, "2026-05-12", one(id=2), run_id="clerk").rows_before == 1
    assert postgres.rows("SELECT id FROM mart.t") == [(2,)]
    assert postgres.loads()[-1][-1] == "clerk"


def test_the_second_writer_is_named_to_a_role_that_sees_little_of_others(
    clerk: Warehouse, postgres: Warehouse
) -> None:
    said: list[str] = []

    def second() -> None:
        with pytest.raises(SliceBusy) as busy:
            Warehouse(clerk.url + "&lock_wait=0.1").write(T, "2026-05-12", one(id=3))
        said.append(str(busy.value))

    with postgres.session() as session:
        after_statement(session, "DELETE", second)
        postgres.write(T, "2026-05-12", one(id=1), session=session, run_id="4f1c")
    assert "mart.t 2026-05-12 is being rewritten by run 4f1c, so nothing was changed" in said[0]


@pytest.mark.parametrize("right", ["SELECT", "INSERT", "DELETE"])
def test_a_right_that_is_missing_is_one_sentence_and_changes_nothing(
    clerk: Warehouse, postgres: Warehouse, right: str
) -> None:
    postgres.execute(f"REVOKE {right} ON mart.t FROM clerk")
    with pytest.raises(MissingRight, match="permission denied for table t"):
        clerk.write(T, "2026-05-12", one(id=2))
    assert postgres.rows("SELECT id FROM mart.t") == [(1,)]
    assert len(postgres.loads()) == 1


def test_a_role_without_temporary_tables_is_told_which_right_it_lacks(
    clerk: Warehouse, postgres: Warehouse
) -> None:
    postgres.execute(f"REVOKE TEMPORARY ON DATABASE {database_of(postgres)} FROM clerk")
    with pytest.raises(MissingRight, match="on the database TEMPORARY"):
        clerk.write(T, "2026-05-12", one(id=2))


def test_a_table_that_a_role_may_not_make_comes_with_the_statement_that_makes_it(
    clerk: Warehouse, postgres: Warehouse
) -> None:
    for name in ("mart.new", "nowhere.new"):
        table = Table(name, SliceColumn("day", "date"))
        with pytest.raises(
            MissingRight, match="Let somebody with the right run once: CREATE SCHEMA IF NOT EXISTS"
        ) as error:
            clerk.write(table, "2026-05-12", one(id=2))
        postgres.execute(*str(error.value).split("run once: ")[1].rstrip(".").split("; "))
        schema = name.split(".")[0]
        postgres.execute(
            f"GRANT USAGE ON SCHEMA {schema} TO clerk",
            f"GRANT SELECT, INSERT, DELETE ON {name} TO clerk",
        )
        assert clerk.write(table, "2026-05-12", one(id=2)).rows_after == 1


def test_a_role_may_make_tables_in_a_schema_without_the_right_to_make_schemas(
    clerk: Warehouse, postgres: Warehouse
) -> None:
    postgres.execute("GRANT CREATE ON SCHEMA mart TO clerk")
    assert (
        clerk.write(
            Table("mart.new", SliceColumn("day", "date")), "2026-05-12", one(id=2)
        ).rows_after
        == 1
    )


def test_an_audit_table_that_is_not_there_comes_with_the_statement_that_makes_it(
    clerk: Warehouse, postgres: Warehouse
) -> None:
    postgres.execute("DROP TABLE backfill.load_audit")
    with pytest.raises(
        MissingRight, match=r"the audit table backfill\.load_audit is not there and cannot be made"
    ) as error:
        clerk.write(T, "2026-05-12", one(id=2))
    with postgres.session() as session:
        for statement in AuditTable().definition(session.spelling):
            assert statement in str(error.value)
            session.define(statement)
    postgres.execute("GRANT SELECT, INSERT ON backfill.load_audit TO clerk")
    assert clerk.write(T, "2026-05-12", one(id=2)).rows_after == 1


# errors of the server


def test_a_new_column_does_not_make_readers_wait_behind_a_reader(
    postgres: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backfill_assets.engines.postgres._DDL_PATIENCE_SECONDS", 0.05)
    postgres.write(T, "2026-05-12", one(id=1))
    adding = replace(T, on_schema_change="add")
    writer = threading.Thread(
        target=lambda: postgres.write(adding, "2026-05-12", one(id=1, more=2))
    )
    with psycopg.connect(postgres.url) as reader:
        reader.execute("SELECT * FROM mart.t")
        writer.start()
        for _ in range(20):
            assert Warehouse(postgres.url + "&statement_timeout=20").count("mart.t") == 1
            time.sleep(0.02)
        assert "more" not in (postgres.columns("mart.t") or {})
    writer.join(60)
    assert postgres.rows("SELECT id, more FROM mart.t") == [(1, 2)]


def test_the_audit_is_asked_through_its_indexes(postgres: Warehouse) -> None:
    postgres.write(T, "2026-05-12", one(id=1))
    postgres.execute(
        "INSERT INTO backfill.load_audit (audit_id, table_name, outcome, dimensions, source_read_at)"
        " SELECT 'x' || n, 'mart.t', 'committed', '{}', now() - n * INTERVAL '1 hour' FROM generate_series(1, 20000) AS n",
        "ANALYZE backfill.load_audit",
    )
    with postgres.session() as session:
        calls = before_call(session, 0, lambda: None)
        postgres.write(T, "2026-05-12", one(id=1), session=session)
        asked = [
            call.removeprefix("fetch ")
            for call in calls
            if call.startswith("fetch") and "load_audit" in call
        ]
        asked = [sql for sql in asked if "pg_attribute" not in sql]
        plans = ["\n".join(line for (line,) in session.fetch(f"EXPLAIN {sql}")) for sql in asked]
    assert len(plans) == 2
    assert all("Index" in plan and "Seq Scan" not in plan for plan in plans), plans


def test_making_what_a_twin_has_just_made_is_no_error(postgres: Warehouse) -> None:
    with postgres.session() as session:
        for statement in (
            "CREATE SCHEMA s", "CREATE TABLE s.t (a int)", "ALTER TABLE s.t ADD COLUMN b int", "CREATE TYPE s.e AS ENUM ('x')",
        ):  # fmt: skip
            session.define(statement)
            session.define(statement)
        with pytest.raises(BackfillError):
            session.define("CREATE TABLE s.u (a nothing)")


STATEMENTS = {
    "SELECT * FROM nowhere": MissingTable,
    "SELECT nothing FROM pg_class": MissingTable,
    "SELECT * FROM nowhere.t": MissingTable,
    "SELECT CAST('x' AS integer)": SchemaMismatch,
    "SELECT CAST(70000 AS smallint)": SchemaMismatch,
    "SELECT 1/0": SchemaMismatch,
    "SELEKT 1": WriteFailed,
    "SELECT chr(0)": WriteFailed,
}


@pytest.mark.parametrize("sql", STATEMENTS)
def test_an_error_of_the_server_is_one_sentence_of_the_family(
    postgres: Warehouse, sql: str
) -> None:
    with postgres.session() as session, pytest.raises(STATEMENTS[sql]) as error:
        session.fetch(sql)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("state", "kind", "said"),
    [
        ("40001", SliceBusy, "another session holds"),
        ("40P01", SliceBusy, "another session holds"),
        ("55P03", SliceBusy, "another session holds"),
        ("53100", WriteFailed, "disk is full"),
        ("53300", Away, "cannot be reached"),
        ("57P01", Away, "cannot be reached"),
        ("25006", MissingRight, "takes no writes"),
        ("23503", BadRows, "break a constraint"),
        ("XX000", WriteFailed, "refused a statement"),
    ],
)
def test_errors_that_a_test_cannot_bring_about_are_told_apart_by_their_state(
    state: str, kind: Any, said: str
) -> None:
    error = told(psycopg.errors.lookup(state)("boom"))
    assert type(error) is kind
    assert said in str(error)


def test_a_table_that_somebody_else_has_locked_is_waited_for_and_then_told(
    postgres: Warehouse,
) -> None:
    postgres.write(T, "2026-05-12", one(id=1))
    with psycopg.connect(postgres.url) as other:
        other.execute("LOCK TABLE mart.t IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(SliceBusy):
            Warehouse(postgres.url + "&lock_wait=0.1").write(T, "2026-05-12", one(id=2))


# types


def test_texts_with_nul_are_refused_in_one_sentence(postgres: Warehouse) -> None:
    with pytest.raises(SchemaMismatch, match="Remove NUL characters"):
        postgres.write(T, "2026-05-12", one(text="a\x00b"))
    assert postgres.leftovers() == []


@pytest.mark.parametrize(
    "values",
    [
        pa.array([[1, 2]]),
        pa.array([{"a": 1}]),
        pa.array([5], pa.duration("us")),
        pa.array([1], pa.timestamp("ns")),
        pa.array([1], pa.time64("ns")),
    ],
    ids=lambda v: str(v.type),
)
def test_a_type_without_a_column_here_is_refused_by_name(
    postgres: Warehouse, values: pa.Array
) -> None:
    with pytest.raises(SchemaMismatch, match="column 'x' (holds|of type)"):
        postgres.write(T, "2026-05-12", one(x=values))
    assert postgres.columns("mart.t") is None


def test_json_uuid_and_enum_columns_take_texts_and_check_them(postgres: Warehouse) -> None:
    postgres.execute(
        "CREATE SCHEMA mart",
        "CREATE TYPE mood AS ENUM ('fine', 'bad')",
        "CREATE TABLE mart.t (day date, j json, jb jsonb, u uuid, m mood, a integer[])",
    )
    good = {
        "j": '{"b": 1,  "a": 2}',
        "jb": '{"b":1,"a":2}',
        "u": "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
        "m": "fine",
        "a": "{1,2}",
    }
    loads = [postgres.write(T, "2026-05-12", one(**good)) for _ in range(2)]
    assert loads[0].checksum == loads[1].checksum
    assert json.loads(postgres.rows("SELECT jb::text FROM mart.t")[0][0]) == {"a": 2, "b": 1}
    for name, bad in {"j": "{", "jb": "nope", "u": "123", "m": "meh", "a": "1"}.items():
        with pytest.raises(SchemaMismatch, match=f"values of column '{name}' do not fit"):
            postgres.write(T, "2026-05-12", one(**{**good, name: bad}))
    assert postgres.count("mart.t") == 1


def test_bytes_are_not_made_of_texts(postgres: Warehouse) -> None:
    postgres.execute("CREATE SCHEMA mart", "CREATE TABLE mart.t (day date, x bytea)")
    with pytest.raises(SchemaMismatch, match="reinterpreted"):
        postgres.write(T, "2026-05-12", one(x="\\x41"))


def test_arrow_types_of_all_kinds_are_staged_as_they_are(postgres: Warehouse) -> None:
    columns = {
        "small": (pa.array([7], pa.int16()), "smallint"),
        "unsigned": (pa.array([2**64 - 1], pa.uint64()), "numeric(20,0)"),
        "wide": (pa.array([Decimal("1.10")], pa.decimal256(60, 2)), "numeric(60,2)"),
        "narrow": (pa.array([Decimal("1.10")], pa.decimal128(5, 2)), "numeric(5,2)"),
        "day": (pa.array([DAY], pa.date64()), "date"),
        "clock": (pa.array([wall_clock(23, 59, 59, 999999)]), "time without time zone"),
        "instant": (
            pa.array([datetime(1800, 1, 1, tzinfo=UTC)], pa.timestamp("ms", tz="America/New_York")),
            "timestamp with time zone",
        ),
        "long": (pa.array(["x"], pa.large_string()), "text"),
        "view": (pa.array(["x"], pa.string_view()), "text"),
        "fixed": (pa.array([b"\x01\x02"], pa.binary(2)), "bytea"),
        "word": (pa.array(["x"]).dictionary_encode(), "text"),
        "nothing": (pa.array([None], pa.null()), "text"),
        "id": (pa.array([b"0123456789abcdef"], pa.binary(16)).cast(pa.uuid()), "uuid"),
    }
    with postgres.session() as session:
        stage = session.stage_arrow(
            "stage", pa.table({name: array for name, (array, _) in columns.items()})
        )
        assert session.columns_of(stage) == {name: kind for name, (_, kind) in columns.items()}
        row = dict(zip(columns, session.fetch(f"SELECT * FROM {stage}")[0], strict=True))
    assert row["instant"] == datetime(1800, 1, 1, tzinfo=UTC)
    assert row["unsigned"] == 2**64 - 1
    assert row["fixed"] == b"\x01\x02"
    assert str(row["id"]) == "30313233-3435-3637-3839-616263646566"
    assert (row["clock"], row["nothing"]) == (wall_clock(23, 59, 59, 999999), None)


def test_many_rows_go_through_in_pieces(postgres: Warehouse) -> None:
    count = 12_345
    data = pa.table({"n": list(range(count)), "text": [f"row {n}\n" for n in range(count)]})
    with postgres.session() as session:
        stage = session.stage_arrow("stage", data)
        assert session.fetch_arrow(f"SELECT * FROM {stage} ORDER BY n").equals(data)


def test_numbers_come_back_in_a_decimal_that_loses_nothing(postgres: Warehouse) -> None:
    def back(sql: str) -> Any:
        with postgres.session() as session:
            return session.fetch_arrow(f"SELECT x FROM (VALUES {sql}) AS v (x)")["x"]

    assert back("(1.10::numeric(18,2)), (NULL)").type == pa.decimal128(38, 2)
    mixed = back("(1.5), (0.000001), (12345678901234567890), (NULL)")
    assert (mixed.type, mixed.to_pylist()[1]) == (pa.decimal128(38, 6), Decimal("0.000001"))
    assert back("(1e40), (0.5)").type == pa.decimal256(76, 1)
    assert back("(1e100), (0.5)").to_pylist() == ["1" + "0" * 100, "0.5"]
    assert back("('NaN'::numeric), (1.5)").to_pylist() == ["NaN", "1.5"]
    assert back("('NaN'::numeric(18,2)), (1.5)").to_pylist() == ["NaN", "1.5"]


def test_results_come_back_typed_with_null_apart_from_nothing(postgres: Warehouse) -> None:
    with postgres.session() as session:
        table = session.fetch_arrow(
            "SELECT 1::smallint AS a, 2::integer AS b, 3::bigint AS c, true AS d, 1.5::real AS e, DATE '2026-05-12' AS f,"
            " TIMESTAMP '2026-05-12 00:00:00.000001' AS g, TIMESTAMPTZ '2026-05-12 00:00+05:30' AS h, '\\x00ff'::bytea AS i,"
            " '{\"a\": null}'::jsonb AS j, gen_random_uuid() AS k, ''::text AS l, NULL::text AS m, TIME '23:59' AS n, 'a,\"b'::text AS o"
        )
        assert [str(t) for t in table.schema.types] == [
            "int16", "int32", "int64", "bool", "float", "date32[day]", "timestamp[us]", "timestamp[us, tz=UTC]",
            "binary", "string", "string", "string", "string", "time64[us]", "string",
        ]  # fmt: skip
        row = table.to_pylist()[0]
        assert row["h"] == datetime(2026, 5, 11, 18, 30, tzinfo=UTC)
        assert (row["i"], row["j"], row["l"], row["m"], row["o"]) == (
            b"\x00\xff",
            '{"a": null}',
            "",
            None,
            'a,"b',
        )
        twins = session.fetch_arrow("SELECT 1 AS a, 2 AS a -- the same\n")
        assert twins.column_names == ["a", "a"]
        assert [c.to_pylist() for c in twins.columns] == [[1], [2]]
        nothing = session.fetch_arrow("SELECT NULL::text AS a FROM generate_series(1, 3)")
        assert nothing["a"].to_pylist() == [None] * 3
        endless = session.fetch_arrow("SELECT 'infinity'::timestamp AS a, 7 AS b")
        assert endless.to_pylist() == [{"a": "infinity", "b": 7}]


def test_the_columns_of_a_table_a_query_and_nothing(postgres: Warehouse) -> None:
    postgres.execute(
        'CREATE SCHEMA "S"',
        'CREATE TABLE "S"."T.x" (a numeric(18,2), "B" varchar(3), gone int, c timestamp(3))',
    )
    postgres.execute('ALTER TABLE "S"."T.x" DROP COLUMN gone')
    wanted = {
        "a": "numeric(18,2)",
        "B": "character varying(3)",
        "c": "timestamp(3) without time zone",
    }
    assert postgres.columns('"S"."T.x"') == wanted
    assert postgres.columns('(SELECT * FROM "S"."T.x") AS q') == wanted
    assert postgres.columns('"S"."nowhere"') is None
    assert postgres.columns("(SELECT * FROM nowhere) AS q") is None


def test_the_clock_is_the_server_s_and_aware(postgres: Warehouse) -> None:
    with postgres.session() as session:
        first, second = session.clock(), session.clock()
    assert first < second
    assert first.utcoffset() == second.utcoffset() == at("2026-01-01 00:00").utcoffset()


def test_few_round_trips_make_a_slice(postgres: Warehouse) -> None:
    """A statement more for every slice is noticed here; where the network is slow, it is felt."""
    with postgres.session() as session:
        postgres.write(T, "2026-05-12", one(id=1), session=session)
        calls = after_call(session, 0, lambda: None)
        postgres.write(T, "2026-05-12", one(id=1), session=session)
    assert len([call for call in calls if call.startswith("_run")]) <= 17
