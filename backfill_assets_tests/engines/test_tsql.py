"""What only SQL Server, a dedicated pool and a Warehouse of Fabric have: URLs, claims, errors by number, lost connections.

The server is DuckDB behind a T-SQL parser (`tsql_server`); the network is met by Microsoft's own driver.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from backfill_assets.checks.verdicts import verdicts
from backfill_assets.engines import open_engine
from backfill_assets.engines.tsql import TSqlEngine
from backfill_assets.engines.tsql_errors import told, unreachable
from backfill_assets.engines.tsql_with import apart, hoisted
from backfill_assets.errors import (
    Away,
    BackfillError,
    BadRows,
    DeclarationError,
    HiddenRows,
    LimitReached,
    MissingDriver,
    MissingRight,
    MissingTable,
    OutcomeUnknown,
    QuotaExceeded,
    SchemaMismatch,
    SliceBusy,
    Unreachable,
    WriteFailed,
)
from backfill_assets.expectations import NoRows
from backfill_assets.operations.doctor import examine
from backfill_assets.operations.doctor.examine import examined
from backfill_assets.operations.doctor.points import failed
from backfill_assets.slice import Slice
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import UTC, Window
from backfill_assets.writing import AuditTable, Select
from backfill_assets_tests.interruptions import after_statement
from backfill_assets_tests.tsql_server import DDL_INSIDE, LOST, NO_TRANSACTION, driver_error
from backfill_assets_tests.tsql_warehouse import LiveTSqlWarehouse, TSqlWarehouse
from backfill_assets_tests.warehouses import at, until

KINDS = ("sqlserver", "synapse", "fabric")
NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
DAY, NEXT = date(2026, 5, 12), date(2026, 5, 13)
SALES = Table("mart.fct_sales", SliceColumn("day", "date"))
OLD, NEW = ({"day": [DAY] * n, "id": list(range(n)), "note": [f"of {n}"] * n} for n in (2, 3))


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest) -> TSqlWarehouse:
    return request.getfixturevalue(request.param)


@pytest.fixture
def loaded(server: TSqlWarehouse) -> TSqlWarehouse:
    """Two old rows on 12 May and one on the day after."""
    server.write(SALES, "2026-05-12", OLD)
    server.write(SALES, "2026-05-13", {"day": [NEXT], "id": [9], "note": ["neighbour"]})
    server.server.sent.clear()
    return server


def notes(warehouse: TSqlWarehouse) -> list[str]:
    return [note for (note,) in warehouse.rows("SELECT note FROM mart.fct_sales ORDER BY id, note")]


# URLs


def connection_of(url: str) -> str:
    engine = open_engine(url)
    assert isinstance(engine, TSqlEngine)
    assert "s3" not in engine.shown + repr(engine.target)
    return engine.target.connection


def test_a_url_becomes_what_the_driver_is_told_whatever_a_password_holds() -> None:
    url = "sqlserver://ana:s3%7D%3B%40c@db.example:1434/shop?trust_server_certificate=yes"
    assert connection_of(url) == (
        "Server={db.example,1434};Database={shop};Encrypt={yes};TrustServerCertificate={yes};"
        "ConnectRetryCount={0};UID={ana};PWD={s3}};@c};"
    )


def test_a_warehouse_of_fabric_takes_user_and_password_for_a_service_principal() -> None:
    head = "fabric://app:s3cret@x.datawarehouse.fabric.microsoft.com/shop"
    assert "Authentication={ActiveDirectoryServicePrincipal}" in connection_of(head)
    other = connection_of(f"{head}?authentication=ActiveDirectoryPassword")
    assert "Authentication={ActiveDirectoryPassword}" in other
    assert "Authentication" not in connection_of("synapse://app:s3cret@x/shop")
    nobody = connection_of("fabric://x/shop?authentication=ActiveDirectoryMSI")
    assert "UID" not in nobody


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlserver://ana:s3cret@host", "names no host or not one database"),
        ("sqlserver:///shop", "names no host"),
        ("sqlserver://ana:s3cret@host/shop/dbo", "not one database"),
        ("sqlserver://ana:s3@cret@host/shop", "an @ too many"),
        ("sqlserver://ana:s3cret@host:port/shop", "no port"),
        ("sqlserver://ana:s3cret@host/shop?colour=red", "'colour' is not known"),
        ("sqlserver://ana:s3cret@host/shop?lock_wait=soon", "no number of seconds"),
        ("fabric://ana:s3cret@host/shop?bulk_load=magic", "only by copy or insert"),
        ("synapse://ana:s3cret@host/shop?sees_all_rows=maybe", "neither yes nor no"),
    ],
)
def test_a_url_that_cannot_be_used_is_refused_in_a_sentence(url: str, said: str) -> None:
    with pytest.raises(DeclarationError, match=re.escape(said)) as refused:
        open_engine(url)
    assert "s3" not in str(refused.value)


def test_limits_of_the_url_reach_the_server_and_the_driver(sqlserver: TSqlWarehouse) -> None:
    with sqlserver.session(lock_wait=3, statement_timeout=90, login_timeout=7) as session:
        assert session._connection.timeout == 90  # type: ignore[attr-defined]
        assert session._connection.lock_wait == 3  # type: ignore[attr-defined]
    login = sqlserver.server.logins[-1]
    assert (login["timeout"], login["autocommit"], login["ConnectRetryCount"]) == (7, True, "0")


# the network, by Microsoft's own driver


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("host", "said"),
    [
        (
            "127.0.0.1:9",
            "nobody listens at that host and port|refuses connections|in time|Login timeout",
        ),
        ("no-such-host.invalid", "no host of that name is known|in time|Login timeout"),
    ],
)
def test_a_host_that_is_not_there_is_one_sentence_that_may_be_tried_again(
    kind: str, host: str, said: str
) -> None:
    # where tokens are fetched first, a user of the server's own is what gets to the network
    how = "&authentication=SqlPassword" if kind == "fabric" else ""
    engine = open_engine(f"{kind}://ana:s3cret@{host}/shop?login_timeout=2{how}")
    try:
        with pytest.raises(Away, match=said) as away, engine.session():
            pass
    except MissingDriver as error:
        pytest.skip(f"Microsoft's library does not load here: {error.do}")
    assert "s3cret" not in str(away.value)
    assert away.value.retry


def test_a_system_library_that_is_missing_is_said_with_the_line_that_installs_it() -> None:
    from mssql_python.exceptions import OperationalError

    words = "Failed to load the driver. Please read the documentation to install the required dependencies."
    missing = unreachable(OperationalError("Connection operation failed", words), "sqlserver://x/y")
    assert isinstance(missing, MissingDriver)
    assert missing.do.startswith("Run: apt-get install -y libltdl7 ")


# errors: what the server says, by its number

NUMBERED: dict[int, tuple[type[BackfillError], str, str]] = {
    1205: (SliceBusy, "40001", "Transaction (Process ID 52) was deadlocked on lock resources"),
    1204: (SliceBusy, "42000", "The instance of the SQL Server Database Engine cannot obtain a LOCK resource at this time."),
    41302: (SliceBusy, "42000", "The current transaction attempted to update a record that has been updated since."),
    596: (Away, "42000", "Cannot continue the execution because the session is in the kill state."),
    922: (Away, "42000", "Database 'shop' is being recovered. Waiting until recovery is finished."),
    952: (Away, "42000", "Database 'shop' is in transition. Try the statement later."),
    1222: (SliceBusy, "HYT00", "Lock request time out period exceeded."),
    24556: (SliceBusy, "42000", "Snapshot isolation transaction aborted due to update conflict."),
    24706: (SliceBusy, "42000", "Snapshot isolation transaction aborted due to update conflict."),
    3960: (SliceBusy, "42000", "Snapshot isolation transaction aborted due to update conflict."),
    208: (MissingTable, "42S02", "Invalid object name 'mart.Fct_Sales'."),
    207: (MissingTable, "42S22", "Invalid column name 'Day'."),
    229: (MissingRight, "42000", "The DELETE permission was denied on the object 'fct_sales'."),
    262: (MissingRight, "42000", "CREATE TABLE permission denied in database 'shop'."),
    156: (WriteFailed, "42000", "Incorrect syntax near the keyword 'order'."),
    102: (WriteFailed, "42000", "Incorrect syntax near ')'."),
    226: (WriteFailed, "42000", "CREATE TABLE statement not allowed within multi-statement transaction."),
    2628: (SchemaMismatch, "22001", "String or binary data would be truncated in table 't', column 'x'."),
    8115: (SchemaMismatch, "22003", "Arithmetic overflow error converting numeric to data type numeric."),
    245: (SchemaMismatch, "22018", "Conversion failed when converting the varchar value 'x' to data type int."),
    515: (BadRows, "23000", "Cannot insert the value NULL into column 'id'."),
    2627: (BadRows, "23000", "Violation of PRIMARY KEY constraint 'pk'. Cannot insert duplicate key."),
    547: (BadRows, "23000", "The INSERT statement conflicted with the CHECK constraint 'c'."),
    9002: (WriteFailed, "42000", "The transaction log for database 'shop' is full due to 'ACTIVE_TRANSACTION'."),
    40544: (WriteFailed, "42000", "The database has reached its size quota."),
    40501: (QuotaExceeded, "42000", "The service is currently busy. Retry the request after 10 seconds."),
    10928: (QuotaExceeded, "42000", "Resource ID: 1. The request limit for the database is 120."),
    10929: (QuotaExceeded, "42000", "Resource ID: 1. The minimum guarantee is 0."),
    42108: (QuotaExceeded, "42000", "Can not connect to the SQL pool since it is paused. Please resume it."),
    40613: (Away, "HY000", "Database 'shop' on server 'x' is not currently available."),
    40197: (Away, "HY000", "The service has encountered an error processing your request."),
    18456: (Unreachable, "28000", "Login failed for user 'ana'."),
    18488: (Unreachable, "28000", "Login failed for user 'ana'. The password of the account must be changed."),
    4060: (Unreachable, "28000", 'Cannot open database "shop" requested by the login. The login failed.'),
    40615: (Unreachable, "28000", "Cannot open server 'x' requested by the login. Client with IP is not allowed."),
}  # fmt: skip
# whether somebody should wait, try again, or mend something first
THEN = {SliceBusy: "wait", QuotaExceeded: "wait", Away: "retry"}


@pytest.mark.parametrize("number", NUMBERED)
def test_an_error_is_known_by_its_number_and_without_one_by_its_words(number: int) -> None:
    kind, state, words = NUMBERED[number]
    by_words = told(driver_error((state, number, words)))
    # in another language, only the number says what it is
    by_number = told(driver_error(("42000", number, "le serveur dit autre chose")), lambda: number)
    for ours in (by_words, by_number):
        assert type(ours) is kind
        assert ours.then == THEN.get(kind, "stop")
        assert "\n" not in str(ours)
    assert words.split("'")[0].strip() in str(by_words)


def test_the_number_decides_where_the_words_are_somebody_s_own() -> None:
    words = (
        "Conversion failed when converting the varchar value 'deadlock victim' to data type int."
    )
    assert type(told(driver_error(("22018", 245, words)), lambda: 245)) is SchemaMismatch


@pytest.mark.parametrize(
    ("state", "words", "kind"),
    [
        ("HYT00", "Query timeout expired", LimitReached),
        ("HY008", "Operation canceled", LimitReached),
        ("08S01", "TCP Provider: Error code 0x68", Away),
        ("08001", "TCP Provider: Error code 0x2749", Away),
        ("08003", "Connection not open", Away),
    ],
)
def test_a_statement_or_connection_that_ended_has_no_number_and_none_is_asked_for(
    state: str, words: str, kind: type[BackfillError]
) -> None:
    def never() -> int:
        raise AssertionError("there is nobody to ask")

    assert type(told(driver_error((state, 0, words)), never)) is kind


@pytest.mark.parametrize("number", [18456, 4060, 40613, 42108, 40501, 40615])
def test_a_login_that_fails_says_which_of_its_kind_it_is_and_no_password(
    server: TSqlWarehouse, number: int
) -> None:
    kind, state, words = NUMBERED[number]
    server.server.failing["LOGIN"] = (state, number, words)
    with pytest.raises(kind) as refused, server.session():
        pass
    assert type(refused.value) is kind
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("statement", ["DELETE", "INSERT INTO [mart]", "INSERT INTO [backfill]", "COMMIT"])  # fmt: skip
@pytest.mark.parametrize("number", [1205, 9002, 229, 24556])
def test_an_error_inside_the_transaction_leaves_the_old_rows_and_says_what_to_do(
    loaded: TSqlWarehouse, statement: str, number: int
) -> None:
    kind, state, words = NUMBERED[number]
    loaded.server.failing[statement] = (state, number, words)
    with pytest.raises(kind, match="the slice is as it was") as error:
        loaded.write(SALES, "2026-05-12", NEW)
    assert error.value.then == THEN.get(kind, "stop")
    loaded.server.failing.clear()
    assert notes(loaded) == ["of 2", "of 2", "neighbour"]
    assert len(loaded.loads()) == 2
    assert loaded.leftovers() == []


def test_a_bulk_copy_that_fails_leaves_no_stage_and_the_old_rows(loaded: TSqlWarehouse) -> None:
    loaded.server.failing["BULK"] = ("42000", 4815, "Received an invalid column length")
    with pytest.raises(WriteFailed, match="invalid column length"):
        loaded.write(SALES, "2026-05-12", NEW)
    loaded.server.failing.clear()
    assert notes(loaded) == ["of 2", "of 2", "neighbour"]
    assert loaded.leftovers() == []


def test_a_commit_of_what_the_server_has_undone_is_no_success(loaded: TSqlWarehouse) -> None:
    loaded.server.failing["COMMIT"] = NO_TRANSACTION
    with pytest.raises(WriteFailed, match="no corresponding BEGIN TRANSACTION"):
        loaded.write(SALES, "2026-05-12", NEW)
    loaded.server.failing.clear()
    assert notes(loaded) == ["of 2", "of 2", "neighbour"]


# connections that are lost


@pytest.mark.parametrize("done", [False, True], ids=["before_it_is_done", "after_it_was_done"])
def test_a_connection_lost_at_any_statement_leaves_the_old_slice_or_the_new_one_whole(
    loaded: TSqlWarehouse, done: bool
) -> None:
    number, outcomes = 0, set[str]()
    while True:
        number += 1
        loaded.server.sent.clear()
        loaded.server.lost_at = (number, done)
        error: BackfillError | None = None
        try:
            loaded.write(SALES, "2026-05-12", NEW)
        except BackfillError as raised:
            error = raised
        sent = loaded.server.sent[number - 1 : number]
        loaded.server.lost_at = None
        if error is None and not sent:
            break
        outcomes.add(type(error).__name__)
        found, committed = notes(loaded), len(loaded.loads())
        is_new = found == ["of 3", "of 3", "of 3", "neighbour"]
        assert is_new or found == ["of 2", "of 2", "neighbour"], (number, sent)
        assert committed == (3 if is_new else 2), (number, sent)
        # rows that are there may be told as unknown, and rows that are not never as done
        assert (
            isinstance(error, OutcomeUnknown) if is_new and error else error is not None or is_new
        )
        if is_new:
            loaded.write(SALES, "2026-05-12", OLD)
            loaded.execute("DELETE FROM backfill.load_audit WHERE rows_before > 0")
            loaded.execute("DELETE FROM backfill.load_audit WHERE rows_after = 3")
            loaded.write(SALES, "2026-05-12", OLD)
            loaded.execute(
                "DELETE FROM backfill.load_audit WHERE rows_before = 0 AND rows_after = 2"
            )
    assert number > 15
    assert {"Away", "OutcomeUnknown"} <= outcomes


def test_a_connection_lost_at_commit_leaves_it_unknown_and_says_so(loaded: TSqlWarehouse) -> None:
    loaded.server.failing["COMMIT"] = LOST
    with pytest.raises(OutcomeUnknown, match="the connection broke during COMMIT") as unknown:
        loaded.write(SALES, "2026-05-12", NEW)
    assert unknown.value.then == "retry"


# claims


def test_two_writers_of_one_day_leave_it_once_also_where_it_was_empty(
    server: TSqlWarehouse,
) -> None:
    server.write(SALES, "2026-05-13", {"day": [NEXT], "id": [9], "note": ["neighbour"]})
    done: list[Any] = []

    def write() -> None:
        try:
            done.append(server.write(SALES, "2026-05-12", NEW, run_id="second"))
        except BackfillError as error:
            done.append(error)

    second = threading.Thread(target=write)

    def start() -> None:
        second.start()
        if server.url.startswith("fabric"):  # where nobody waits
            second.join(60)
        else:
            until(server.somebody_waits)

    with server.session(who="run first") as session:
        after_statement(session, "DELETE", start)
        server.write(SALES, "2026-05-12", OLD, session=session, run_id="first")
    second.join(60)
    if server.url.startswith("fabric"):
        assert isinstance(done[0], SliceBusy)
        assert done[0].then == "wait"
        assert notes(server) == ["of 2", "of 2", "neighbour"]
    else:
        assert done[0].rows_before == 2
        assert notes(server) == ["of 3", "of 3", "of 3", "neighbour"]


def refusal(warehouse: TSqlWarehouse, **session: Any) -> str:
    """Return what a second writer is told while a first one has the slice."""
    said: list[str] = []

    def second() -> None:
        with (
            pytest.raises(SliceBusy) as busy,
            warehouse.session(who="run second", **session) as other,
        ):
            warehouse.write(SALES, "2026-05-12", NEW, session=other, run_id="second")
        said.append(str(busy.value))

    with warehouse.session(who="run first") as session_of_first:
        after_statement(session_of_first, "DELETE", second)
        warehouse.write(SALES, "2026-05-12", OLD, session=session_of_first, run_id="first")
    return said[0]


def test_who_is_refused_hears_who_holds_the_slice_where_the_server_tells(
    server: TSqlWarehouse,
) -> None:
    who = "run first" if server.url.startswith("sqlserver") else "another writer"
    assert f"is being rewritten by {who}, so nothing was changed" in refusal(server, lock_wait=1)


def test_a_login_that_may_not_see_other_sessions_is_refused_without_a_name(
    sqlserver: TSqlWarehouse,
) -> None:
    sqlserver.server.rights_to_see_state = False
    assert "is being rewritten by another writer" in refusal(sqlserver, lock_wait=1)
    assert notes(sqlserver) == ["of 2", "of 2"]


def test_a_login_that_may_not_see_other_sessions_waits_and_then_writes(
    sqlserver: TSqlWarehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backfill_assets.engines.tsql._TELL_AFTER_SECONDS", 0.1)
    sqlserver.server.rights_to_see_state = False
    sqlserver.write(SALES, "2026-05-12", OLD)
    said, done = list[str](), list[Any]()
    held = threading.Event()

    def write() -> None:
        engine = sqlserver.engine(lock_wait=30)
        with engine.session(who="run second", report=said.append) as session:
            done.append(sqlserver.write(SALES, "2026-05-12", NEW, session=session))
        held.set()

    second = threading.Thread(target=write)

    def start() -> None:
        second.start()
        until(lambda: bool(said))

    with sqlserver.session(who="run first") as session:
        after_statement(session, "DELETE", start)
        sqlserver.write(SALES, "2026-05-12", OLD, session=session)
    second.join(60)
    assert "is being rewritten by another writer: waiting, up to 30 s more." in said[0]
    assert done[0].rows_before == 2


@pytest.mark.parametrize("kind", ["synapse", "fabric"])
def test_a_claim_table_that_lost_its_row_is_no_claim(
    kind: str, request: pytest.FixtureRequest
) -> None:
    warehouse: TSqlWarehouse = request.getfixturevalue(kind)
    warehouse.write(SALES, "2026-05-12", OLD)
    duck = warehouse.server.root
    (name,) = duck.execute(
        "SELECT table_name FROM duckdb_tables() WHERE table_name LIKE 'claim_%'"
    ).fetchall()[0]
    warehouse.execute(f'DELETE FROM backfill."{name}"')
    with pytest.raises(WriteFailed, match="has lost the row that is claimed"):
        warehouse.write(SALES, "2026-05-12", NEW)
    assert notes(warehouse) == ["of 2", "of 2"]


@pytest.mark.parametrize("kind", ["synapse", "fabric"])
def test_a_table_has_one_claim_by_all_of_its_names(
    kind: str, request: pytest.FixtureRequest
) -> None:
    warehouse: TSqlWarehouse = request.getfixturevalue(kind)
    for name in ("t", "dbo.t", "warehouse.dbo.t"):
        warehouse.write(Table(name, SALES.slice_column), "2026-05-12", OLD)
    made = "SELECT count(*) FROM duckdb_tables() WHERE table_name LIKE 'claim_%'"
    assert warehouse.server.root.execute(made).fetchall() == [(1,)]


def test_a_first_claim_makes_its_row_before_the_transaction(synapse: TSqlWarehouse) -> None:
    """A dedicated pool refuses DDL inside one: the server that is played does as well."""
    with synapse.session() as session, session.transaction():
        with pytest.raises(WriteFailed, match=re.escape(DDL_INSIDE[2].partition("{}")[2])):
            session.execute("CREATE TABLE dbo.t (a int)")
        session._doomed = None  # type: ignore[attr-defined]
        session.execute("ROLLBACK")
        session.execute("BEGIN TRANSACTION")
    synapse.write(SALES, "2026-05-12", OLD)
    sent = synapse.server.sent
    claimed = next(n for n, sql in enumerate(sent) if sql.startswith("UPDATE [backfill].[claim_"))
    assert sent[claimed - 1] == "BEGIN TRANSACTION"


def test_a_pool_whose_readers_see_halves_says_so_to_who_writes(synapse: TSqlWarehouse) -> None:
    said: list[str] = []
    for snapshot in (True, False):
        synapse.server.reads_committed_snapshot = snapshot
        with synapse.engine().session(report=said.append):
            pass
    with synapse.engine().session(read_only=True, report=said.append):
        pass
    assert len(said) == 1
    assert "Turn READ_COMMITTED_SNAPSHOT on" in said[0]


# rows


def test_an_empty_day_that_is_declared_so_leaves_no_row(loaded: TSqlWarehouse) -> None:
    nothing = pa.table(
        {"day": pa.array([], pa.date32()), "id": pa.array([], pa.int64()), "note": pa.array([], pa.string())}
    )  # fmt: skip
    closed = Table(SALES.qualified, SALES.slice_column, allow_empty=frozenset({DAY}))
    assert loaded.write(closed, "2026-05-12", nothing).rows_before == 2
    assert notes(loaded) == ["neighbour"]


EDGES: dict[str, tuple[Any, Callable[[datetime], Any], Any]] = {
    "date": (SliceColumn("at", "date"), lambda t: t.date(), pa.date32()),
    "timestamp": (SliceColumn("at", "timestamp"), lambda t: t.replace(tzinfo=None), pa.timestamp("us")),
    "timestamptz": (SliceColumn("at", "timestamptz"), lambda t: t, pa.timestamp("us", "UTC")),
    "int_yyyymmdd": (SliceColumn("at", "int_yyyymmdd"), lambda t: int(f"{t:%Y%m%d}"), pa.int64()),
    "iso_text": (SliceColumn("at", "iso_text"), lambda t: f"{t:%Y-%m-%d}", pa.string()),
}  # fmt: skip


@pytest.mark.parametrize("kind", EDGES)
def test_the_first_moment_of_a_day_is_its_own_and_the_first_of_the_next_one_is_not(
    server: TSqlWarehouse, kind: str
) -> None:
    column, spelled, arrow = EDGES[kind]
    table = Table("mart.edges", column)
    first, end = at("2026-05-12 00:00"), at("2026-05-13 00:00")
    last = end - timedelta(microseconds=1)

    def rows(*moments: datetime, why: str) -> dict[str, Any]:
        values = pa.array([spelled(moment) for moment in moments], arrow)
        return {"at": values, "why": [why] * len(moments)}

    server.write(table, Window.day("2026-05-13"), rows(end, why="the next day's"))
    server.write(table, Window.day("2026-05-11"), rows(first - timedelta(days=1), why="before"))
    server.write(table, Window.day("2026-05-12"), rows(first, last, why="old"))
    server.write(table, Window.day("2026-05-12"), rows(first, last, why="new"))
    whys = [why for (why,) in server.rows("SELECT why FROM mart.edges ORDER BY why")]
    assert whys == ["before", "new", "new", "the next day's"]
    with pytest.raises(BadRows):
        server.write(table, Window.day("2026-05-12"), rows(first, end, why="a stranger's"))


@pytest.mark.parametrize("name", ["order", "a]b", 'a"b', "it's", "mit blank", "naïve", "UPPER", "[x"])  # fmt: skip
def test_a_column_and_a_table_may_have_any_name(server: TSqlWarehouse, name: str) -> None:
    table = Table(name, SliceColumn("day", "date"), schema="mart", unique_key=(name,))
    for count in (2, 3):
        load = server.write(table, "2026-05-12", {"day": [DAY] * count, name: list(range(count))})
    assert (load.rows_before, load.rows_after) == (2, 3)


def test_key_parts_without_a_value_count_as_equal_and_a_key_without_any_is_refused(
    server: TSqlWarehouse,
) -> None:
    keyed = Table("mart.keyed", SliceColumn("day", "date"), unique_key=("a", "b"))
    with pytest.raises(BadRows, match="no value in the unique key"):
        server.write(keyed, "2026-05-12", {"day": [DAY] * 2, "a": ["x", None], "b": ["1", None]})
    with pytest.raises(BadRows, match="come more than once"):
        server.write(keyed, "2026-05-12", {"day": [DAY] * 2, "a": ["x", "x"], "b": [None, None]})
    rows = {"day": [DAY] * 4, "a": ["x", "x1", "x", "x"], "b": ["11", "1", "1", None]}
    assert server.write(keyed, "2026-05-12", rows).rows_after == 4


@pytest.mark.parametrize("way", ["copy", "insert"])
def test_rows_arrive_alike_by_copy_and_by_insert(server: TSqlWarehouse, way: str) -> None:
    rows = {
        "day": [DAY, DAY],
        "price": pa.array([Decimal("-0.01"), None], pa.decimal128(18, 2)),
        "at": pa.array([datetime(2026, 5, 12, 1, 2, 3, 4, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
        "text": ["it's \"so\"\\", None],
        "long": ["x" * 9000, None],
        "truth": [True, None],
        "bytes": [b"\x00\xff", None],
    }  # fmt: skip
    with server.session(bulk_load=way) as session:
        server.write(SALES, "2026-05-12", rows, session=session)
        back = session.fetch_arrow("SELECT * FROM mart.fct_sales ORDER BY price DESC")
    assert any(sql.startswith("BULK") for sql in server.server.sent) == (way == "copy")
    first = back.to_pylist()[0]
    instant = first.pop("at")
    assert instant.replace(tzinfo=UTC) == datetime(2026, 5, 12, 1, 2, 3, 4, tzinfo=UTC)
    assert first == {
        "day": DAY, "price": Decimal("-0.01"), "text": "it's \"so\"\\", "long": "x" * 9000, "truth": True,
        "bytes": b"\x00\xff",
    }  # fmt: skip


def test_a_clock_that_may_be_an_instant_has_to_be_declared_where_days_are_not_utc_s(
    fabric: TSqlWarehouse,
) -> None:
    """A Warehouse keeps both as datetime2, and nothing tells them apart."""
    fabric.execute(
        "CREATE SCHEMA mart",
        'CREATE TABLE mart.src ("at" TIMESTAMP, id BIGINT)',
        "INSERT INTO mart.src VALUES ('2026-05-12 03:59:59', 1), ('2026-05-12 04:00:00', 2)",
    )
    table = Table("mart.t", SliceColumn("at", "timestamptz", "America/New_York"))
    window = Window.day("2026-05-12", "America/New_York")
    with pytest.raises(SchemaMismatch, match="Give on_kind"):
        fabric.write(table, window, Select("SELECT * FROM mart.src", on="at"))
    fabric.write(table, window, Select("SELECT * FROM mart.src", on="at", on_kind="timestamptz"))
    assert fabric.rows("SELECT id FROM mart.t") == [(2,)]


def test_a_session_opened_to_read_writes_nothing(loaded: TSqlWarehouse) -> None:
    with loaded.session(read_only=True) as session:
        with pytest.raises(MissingRight, match="opened to read"):
            session.execute("DELETE FROM mart.fct_sales")
        with pytest.raises(BackfillError, match="opened to read"):
            loaded.write(SALES, "2026-05-12", NEW, session=session)
    assert notes(loaded) == ["of 2", "of 2", "neighbour"]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_float_that_is_no_number_is_refused_before_anything_is_deleted(
    loaded: TSqlWarehouse, number: float
) -> None:
    rows = {**NEW, "id": [1.0, number, 2.0]}
    with pytest.raises(SchemaMismatch, match="NaN or infinity, which this engine has not"):
        loaded.write(SALES, "2026-05-12", rows)
    assert notes(loaded) == ["of 2", "of 2", "neighbour"]
    assert loaded.leftovers() == []


def test_a_limit_of_statements_does_not_cut_the_wait_for_another_writer(
    sqlserver: TSqlWarehouse,
) -> None:
    limits = list[int]()
    with sqlserver.session(lock_wait=30, statement_timeout=2) as session:
        fetch = session.fetch

        def noted(sql: str) -> Any:
            limits.append(session._connection.timeout)  # type: ignore[attr-defined]
            assert ("sp_getapplock" in sql) == (limits[-1] == 0)
            return fetch(sql)

        session.fetch = noted  # type: ignore[method-assign]
        sqlserver.write(SALES, "2026-05-12", OLD, session=session)
    assert limits.count(0) == 1


# what a server's own settings would change


def test_a_server_on_which_every_statement_begins_a_transaction_keeps_what_was_committed(
    sqlserver: TSqlWarehouse,
) -> None:
    """BEGIN would open two there and COMMIT end one: the audit row is read back, and all is gone with the connection."""
    sqlserver.server.implicit_transactions = True
    sqlserver.write(SALES, "2026-05-12", OLD)
    assert notes(sqlserver) == ["of 2", "of 2"]


def test_no_limit_of_statements_cuts_a_commit(loaded: TSqlWarehouse) -> None:
    limits: dict[str, int] = {}
    with loaded.session(statement_timeout=20) as session:
        send = session._send  # type: ignore[attr-defined]

        def noted(sql: str) -> int:
            limits[sql.split()[0]] = session._connection.timeout  # type: ignore[attr-defined]
            return send(sql)

        session._send = noted  # type: ignore[attr-defined]
        loaded.write(SALES, "2026-05-12", NEW, session=session)
    assert (limits["COMMIT"], limits["DELETE"]) == (0, 20)


def test_rows_are_counted_again_after_a_claim_that_failed_in_the_middle_of_its_batch(
    sqlserver: TSqlWarehouse,
) -> None:
    sqlserver.write(SALES, "2026-05-12", OLD)
    with sqlserver.session() as session:
        sqlserver.server.failing["SET NOCOUNT ON"] = ("40001", 1205, "deadlock victim")
        with pytest.raises(SliceBusy):
            sqlserver.write(SALES, "2026-05-12", NEW, session=session)
        sqlserver.server.failing.clear()
        assert sqlserver.write(SALES, "2026-05-12", NEW, session=session).rows_before == 2


@pytest.mark.parametrize(("code", "kind"), [(-1, SliceBusy), (-3, SliceBusy), (-999, WriteFailed)])
def test_a_lock_that_is_not_given_leaves_the_slice_and_is_told_by_its_code(
    sqlserver: TSqlWarehouse, code: int, kind: type[BackfillError]
) -> None:
    sqlserver.write(SALES, "2026-05-12", OLD)
    with sqlserver.session(lock_wait=0) as session:
        fetch = session.fetch

        def answered(sql: str) -> Any:
            return [(code, "bf|1|table")] if "sp_getapplock" in sql else fetch(sql)

        session.fetch = answered  # type: ignore[method-assign]
        with pytest.raises(kind) as refused:
            sqlserver.write(SALES, "2026-05-12", NEW, session=session)
    assert type(refused.value) is kind
    assert ("-999" in str(refused.value)) == (code == -999)
    assert notes(sqlserver) == ["of 2", "of 2"]


# rows that are hidden


def test_a_table_of_which_a_policy_may_hide_rows_is_refused_before_anything_is_staged(
    loaded: TSqlWarehouse,
) -> None:
    loaded.server.policies["fct_sales"] = "tenants"
    with pytest.raises(
        HiddenRows, match=r"the security policy tenants may hide.*sees_all_rows=yes"
    ):
        loaded.write(SALES, "2026-05-12", NEW)
    assert not [sql for sql in loaded.server.sent if sql.startswith(("BULK", "DELETE"))]
    assert notes(loaded) == ["of 2", "of 2", "neighbour"]
    with loaded.session(sees_all_rows="yes") as session:
        assert loaded.write(SALES, "2026-05-12", NEW, session=session).rows_before == 2


def test_the_doctor_finds_a_policy_that_may_hide_rows(loaded: TSqlWarehouse) -> None:
    loaded.server.policies["fct_sales"] = "tenants"
    found = failed(examined({"live": partial(open_engine, loaded.url)}, [SALES], AuditTable()))
    assert any("security policy tenants" in point.why for point in found)


def test_a_login_that_sees_no_policies_is_told_so_once_and_writes(loaded: TSqlWarehouse) -> None:
    """It is shown an empty catalog, which proves nothing; most logins are like that, and refusing all would help nobody."""
    loaded.server.policies["fct_sales"] = "tenants"
    said: list[str] = []
    for sees, options in (
        (False, {}),
        (False, {"sees_all_rows": "yes"}),
        (True, {"sees_all_rows": "yes"}),
    ):
        loaded.server.rights_to_see_policies = sees
        engine = loaded.engine(**options)
        with engine.session(report=said.append) as session:
            for _ in range(2):
                loaded.write(SALES, "2026-05-12", NEW, session=session)
    (told_,) = said
    assert "is not known (it may not see the policies of the database)" in told_
    assert "GRANT VIEW DEFINITION" in told_


def test_a_catalog_without_policies_stops_nobody(loaded: TSqlWarehouse) -> None:
    said: list[str] = []
    with loaded.engine().session(report=said.append) as session:
        loaded.write(SALES, "2026-05-12", OLD, session=session)
    assert said == []
    loaded.server.failing["SELECT o.type"] = ("42S02", 208, "Invalid object name 'p'.")
    with loaded.engine().session(report=said.append) as session:
        loaded.write(SALES, "2026-05-12", NEW, session=session)
    assert "is not known (Invalid object name" in said[0]


def test_a_view_is_not_written_since_its_table_s_writers_would_not_know(
    loaded: TSqlWarehouse,
) -> None:
    duck = loaded.server.root
    duck.execute('CREATE VIEW "warehouse".mart.seen AS SELECT * FROM "warehouse".mart.fct_sales')
    seen = Table("mart.seen", SALES.slice_column)
    with pytest.raises(DeclarationError, match="it is a view.*Name the table beneath it"):
        loaded.write(seen, "2026-05-12", NEW)
    assert notes(loaded) == ["of 2", "of 2", "neighbour"]


# WITH


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("SELECT TOP (0) * FROM (SELECT 1 AS a) AS x", "SELECT TOP (0) * FROM (SELECT 1 AS a) AS x"),
        (
            "SELECT * FROM (WITH a AS (SELECT 1 AS n) SELECT * FROM a) AS x",
            "WITH a AS (SELECT 1 AS n) SELECT * FROM (SELECT * FROM a) AS x",
        ),
        (
            "WITH b AS (WITH a AS (SELECT 1 AS n) SELECT * FROM a) SELECT * FROM b",
            "WITH a AS (SELECT 1 AS n), b AS (SELECT * FROM a) SELECT * FROM b",
        ),
        # what stands further in names what stands around it
        (
            "WITH r AS (SELECT 1 AS n) SELECT * FROM (WITH a AS (SELECT * FROM r) SELECT * FROM a) AS x",
            "WITH r AS (SELECT 1 AS n), a AS (SELECT * FROM r) SELECT * FROM (SELECT * FROM a) AS x",
        ),
        # two of one name would become one: the server says that it takes none of them
        (
            "WITH a AS (SELECT 2 AS n) SELECT * FROM (WITH a AS (SELECT 1 AS n) SELECT * FROM a) AS x",
            "WITH a AS (SELECT 2 AS n) SELECT * FROM (WITH a AS (SELECT 1 AS n) SELECT * FROM a) AS x",
        ),
    ],
)  # fmt: skip
def test_a_with_inside_parentheses_is_lifted_to_where_t_sql_takes_it(sql: str, wanted: str) -> None:
    assert hoisted(sql) == wanted
    assert apart("WITH a AS (SELECT 1 AS n) SELECT * FROM a") == (
        "WITH a AS (SELECT 1 AS n) ",
        "SELECT * FROM a",
    )


RULES = {
    "plain": "SELECT * FROM slice_rows WHERE id < 0",
    "with an alias": "SELECT r.id FROM slice_rows AS r WHERE r.id < 0",
    "by its name": "SELECT slice_rows.id FROM slice_rows WHERE slice_rows.id < 0",
    "with a WITH": "WITH bad AS (SELECT * FROM slice_rows WHERE id < 0) SELECT bad.id FROM bad",
    "with two": (
        "WITH a AS (SELECT * FROM slice_rows), b AS (SELECT * FROM a WHERE id < 0)"
        " SELECT b.id FROM b JOIN slice_rows AS r ON r.id = b.id"
    ),
}


@pytest.mark.parametrize("sql", RULES.values(), ids=RULES)
def test_a_rule_of_ones_own_is_asked_of_all_slices_in_one_statement(
    server: TSqlWarehouse, sql: str
) -> None:
    table = replace(SALES, expects=(NoRows("positive", sql),))
    for day, ids in ((DAY, [1, 2]), (NEXT, [-1, -2])):
        server.write(SALES, str(day), {"day": [day] * 2, "id": ids, "note": ["x"] * 2})
    days = [DAY + timedelta(days=n) for n in range(30)]
    slices = [Slice(table, Window.day(str(day)), partition=str(day)) for day in days]
    server.server.sent.clear()
    with server.session(read_only=True) as session:
        found = list(verdicts(session, table, slices, AuditTable(), NOON, ["positive"]))
    assert {verdict.slice.name: verdict.findings[0].found for verdict in found} == {
        str(day): 2 if day == NEXT else 0 for day in days
    }
    asked = [sql for sql in server.server.sent if "slice_rows" in sql]
    # the second shows some rows of the slice that breaks the rule
    assert len(asked) == 2


# the doctor


def test_the_doctor_finds_nothing_wrong_and_leaves_nothing(
    loaded: TSqlWarehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examine, "_SECOND_SECONDS", 1)
    doors = {"live": partial(open_engine, loaded.url)}
    new = Table("mart.not_there_yet", SliceColumn("day", "date"))
    found = examined(doors, [SALES, new], AuditTable(), ddl=True)
    assert [point.line for point in failed(found)] == []
    whats = {point.what for point in found if point.verdict == "ok"}
    assert {"role", "zone", "stages", "transactions", "claims"} <= whats
    assert notes(loaded) == ["of 2", "of 2", "neighbour"]
    assert loaded.leftovers() == []
    assert loaded.columns("mart.not_there_yet") is None
    if loaded.url.startswith("sqlserver"):
        assert {"limits in force", "statement_timeout", "lock_wait"} <= whats


def test_the_doctor_prints_the_grant_that_is_missing(loaded: TSqlWarehouse) -> None:
    loaded.server.failing["DELETE FROM [mart]"] = (
        "42000",
        229,
        "The DELETE permission was denied.",
    )
    doors = {"live": partial(open_engine, loaded.url)}
    (point,) = failed(examined(doors, [SALES], AuditTable()))
    assert point.do == "GRANT DELETE ON [mart].[fct_sales] TO [loader]"


# a real one


def test_the_tests_of_a_real_server_take_an_empty_database_and_leave_it_empty(
    server: TSqlWarehouse,
) -> None:
    real = LiveTSqlWarehouse.at(server.url)
    real.write(SALES, "2026-05-12", OLD)
    real.execute("CREATE VIEW mart.seen AS SELECT * FROM mart.fct_sales")
    assert not real.somebody_waits()
    assert real.leftovers() == []
    with pytest.raises(AssertionError, match="has to be empty"):
        LiveTSqlWarehouse.at(server.url)
    real.empty()
    LiveTSqlWarehouse.at(server.url)
    schemas = server.server.root.execute("SELECT schema_name FROM duckdb_schemas()").fetchall()
    assert ("mart",) not in schemas


REAL = {kind: f"BACKFILL_TEST_{kind.upper()}_URL" for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_a_real_server_passes_the_doctor(kind: str) -> None:
    """The contract of engines is asked of it as well, as `live_...`, when its URL is given: docs/engines/ says how."""
    url = os.environ.get(REAL[kind])
    if not url:
        pytest.skip(f"no server was given: {REAL[kind]} is not set")
    found = examined({"live": partial(open_engine, url)}, [], AuditTable())
    assert [point.line for point in failed(found)] == []
