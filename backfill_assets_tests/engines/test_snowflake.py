"""What only Snowflake has: its URL, its ways to log in, its names, its numbers of errors, and its server over HTTP."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from backfill_assets.engines import open_engine
from backfill_assets.engines.snowflake import SPELLING, SnowflakeEngine, SnowflakeSession
from backfill_assets.engines.snowflake_cost import attributed, estimated
from backfill_assets.engines.snowflake_errors import told, unreachable
from backfill_assets.engines.snowflake_types import writable
from backfill_assets.engines.snowflake_url import options_of
from backfill_assets.engines.sql import quoted
from backfill_assets.engines.sql import told as told_name
from backfill_assets.errors import (
    Away,
    BackfillError,
    BadRows,
    DeclarationError,
    LimitReached,
    MissingRight,
    MissingTable,
    QuotaExceeded,
    SchemaMismatch,
    SliceBusy,
    Unreachable,
    WriteFailed,
)
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import UTC
from backfill_assets_tests.interruptions import after_statement
from backfill_assets_tests.snowflake_accounts import SnowflakeWarehouse
from backfill_assets_tests.warehouses import Warehouse, until, with_options

DAY = date(2026, 5, 12)
T = Table("mart.t", SliceColumn("day", "date"))
SALES = Table("mart.fct_sales", SliceColumn("day", "date"))

# URLs and ways to log in


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("private_key_path=/k.p8&private_key_password=s3cret", {"private_key_file": "/k.p8", "private_key_file_pwd": "s3cret"}),
        ("authenticator=externalbrowser", {"authenticator": "externalbrowser"}),
        ("authenticator=oauth&token=s3cret", {"authenticator": "oauth", "token": "s3cret"}),
        ("passcode=s3cret", {"passcode": "s3cret"}),
        ("host=127.0.0.1&port=8085&protocol=http", {"host": "127.0.0.1", "port": 8085, "protocol": "http"}),
        ("warehouse=WH&role=R", {"warehouse": "WH", "role": "R"}),
    ],
)  # fmt: skip
def test_a_url_says_how_to_log_in_and_shows_no_secret(query: str, wanted: dict[str, Any]) -> None:
    engine = open_engine(f"snowflake://ana@org-acc/warehouse/mart?{query}")
    assert isinstance(engine, SnowflakeEngine)
    arguments = engine.options.arguments
    assert wanted.items() <= arguments.items()
    assert (arguments["user"], arguments["account"]) == ("ana", "org-acc")
    assert (arguments["database"], arguments["schema"]) == ("warehouse", "mart")
    assert "s3cret" not in engine.shown + repr(engine.options)


def test_a_password_may_hold_anything_when_it_is_percent_encoded() -> None:
    assert options_of("snowflake://ana:a%2Fb%40c@acc/db").arguments["password"] == "a/b@c"


def test_a_connection_file_needs_no_account_in_the_url() -> None:
    options = options_of("snowflake:///?connection_name=prod&lock_wait=5")
    assert options.arguments == {"connection_name": "prod"}
    assert (options.wait_seconds, options.place, options.address) == (5.0, "", "prod")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("snowflake://ana:s3cret@acc", "names no database"),
        ("snowflake:///", "names no account and no database"),
        ("snowflake://ana:s3cret@acc/db?colour=red", "'colour' is not known"),
        ("snowflake://ana:s3cret@acc/db?lock_wait=soon", "no number of seconds"),
        ("snowflake://ana:s3cret@acc/db?warehouse_size=huge", "no warehouse size"),
        ("snowflake://ana:s3cret@acc/db?bulk_load=magic", "only by copy or insert"),
        ("snowflake://ana:s3@cret@acc/db", "an @ or a / too many"),
    ],
)
def test_a_url_that_cannot_be_used_is_refused_in_a_sentence(url: str, said: str) -> None:
    with pytest.raises(DeclarationError, match=said) as refused:
        open_engine(url)
    assert "s3cret" not in str(refused.value)


def test_a_dagster_resource_is_an_engine_with_its_own_way_to_log_in(snowflake: Warehouse) -> None:
    from dagster_snowflake import SnowflakeResource

    resource = SnowflakeResource(
        account="acc", user="ana", password="s3cret", database="warehouse", warehouse="WH"
    )
    engine = SnowflakeEngine.of(resource, lock_wait="7")
    assert (engine.place, engine.options.wait_seconds) == ("WAREHOUSE", 7.0)
    assert "s3cret" not in engine.shown
    with engine.session() as session:
        assert session.fetch("SELECT 1 AS one") == [(1,)]


# names


@pytest.mark.parametrize(
    ("name", "sql"),
    [("fct_sales", '"FCT_SALES"'), ("FCT_SALES", '"FCT_SALES"'), ("createdAt", '"createdAt"'), ("order", '"ORDER"'),
     ("a b", '"a b"'), ("5_stars", '"5_stars"'), ("naïve", '"naïve"')],
)  # fmt: skip
def test_a_plain_lower_case_name_is_the_one_that_sql_without_quotes_means(
    name: str, sql: str
) -> None:
    assert quoted(SPELLING, name) == sql
    assert told_name(SPELLING, sql[1:-1]) == (name.lower() if sql[1:-1] == name.upper() else name)


def test_a_column_that_no_name_of_ours_reaches_is_refused_with_what_to_do(
    snowflake: Warehouse,
) -> None:
    snowflake.execute("CREATE SCHEMA mart", 'CREATE TABLE mart.t ("day" DATE)')
    with pytest.raises(
        SchemaMismatch, match="column 'day' is stored in lower case.* RENAME COLUMN \"day\" TO DAY"
    ):
        snowflake.write(T, "2026-05-12", {"day": [DAY]})


@pytest.mark.parametrize("stored", ['mart."t"', '"mart"."t"', '"Mart".t'])
def test_a_table_that_the_declared_name_does_not_reach_is_refused_and_not_made_a_second_time(
    snowflake: Warehouse, monkeypatch: pytest.MonkeyPatch, stored: str
) -> None:
    """DuckDB takes all of them for one table, so the catalog's answer is played."""
    names = [name.strip('"') if '"' in name else name.upper() for name in stored.split(".")]
    said = catalog_says(monkeypatch, [tuple(names)])
    with pytest.raises(
        DeclarationError, match="there is a table .* and the declared name means"
    ) as refused:
        snowflake.write(T, "2026-05-12", {"day": [DAY]})
    assert 'ALTER TABLE "' in refused.value.do
    assert refused.value.do.endswith('RENAME TO "MART"."T"')
    assert said


def test_two_tables_that_may_be_meant_are_told_once_and_the_declared_one_is_written(
    snowflake: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog_says(monkeypatch, [("MART", "t"), ("MART", "T")])
    reported: list[str] = []
    with open_engine(snowflake.url).session(report=reported.append) as session:
        for _ in range(2):
            snowflake.write(T, "2026-05-12", {"day": [DAY]}, session=session)
    assert reported == [
        'mart.t 2026-05-12 is written to "MART"."T", and there is a table "MART"."t" too.'
    ]


def catalog_says(monkeypatch: pytest.MonkeyPatch, tables: list[tuple[str, ...]]) -> list[str]:
    """Let the catalog tell these (schema, table) of any table that is asked for; return what it is asked."""
    fetch, asked = SnowflakeSession.fetch, list[str]()

    def told_(session: SnowflakeSession, sql: str) -> list[tuple[Any, ...]]:
        if not sql.startswith("SELECT table_schema, table_name"):
            return fetch(session, sql)
        asked.append(sql)
        return list(tables)

    monkeypatch.setattr(SnowflakeSession, "fetch", told_)
    return asked


# errors


@pytest.mark.parametrize(
    ("number", "state", "message", "kind"),
    [
        (625, "57014", "has locked table", SliceBusy),
        (630, "57014", "Statement reached its statement or warehouse timeout", LimitReached),
        (604, "57014", "SQL execution canceled", LimitReached),
        (606, "57P03", "No active warehouse selected in the current session", Unreachable),
        (90073, "22000", "Warehouse 'WH' cannot be resumed because resource monitor 'M' has exceeded its quota", QuotaExceeded),
        (390144, "08001", "JWT token is invalid", Unreachable),
        (390318, "08001", "OAuth access token expired", Unreachable),
        (390100, "08001", "Incorrect username or password was specified", Unreachable),
        (390114, "08001", "Authentication token has expired. The user must authenticate again.", Unreachable),
        (390112, "08001", "Your session has expired", Away),
        (250001, "08001", "Could not connect to Snowflake backend", Away),
        (250001, "08001", "Failed to connect to DB. Verify the account name is correct: nobody.snowflakecomputing.com:443", Unreachable),
        (250003, None, "Failed to execute request", Away),
        (251006, "08001", "Password is empty", Unreachable),
        (251008, None, "Failed to load private key", Unreachable),
        (251011, None, "Connection timeout", Away),
        (252010, None, "Failed to download a chunk", Away),
        (253003, None, "Failed to upload a file to the stage", Away),
        (2003, "42S02", "Object 'T' does not exist or not authorized", MissingTable),
        (904, "42000", "invalid identifier '\"id\"'", MissingTable),
        (1003, "42000", "syntax error line 1 at position 7 unexpected 'order'", WriteFailed),
        (3001, "42501", "Insufficient privileges to operate on table 'T'", MissingRight),
        (100038, "22018", "Numeric value 'x' is not recognized", SchemaMismatch),
        (603, "XX000", "SQL execution internal error: Processing aborted due to error 300010:391167117; incident 5388518.", Away),
        (300002, "XX000", "Internal error", Away),
        (100072, "22000", "NULL result in a non-nullable column", BadRows),
    ],
)  # fmt: skip
def test_an_error_of_the_account_is_one_sentence_with_what_to_do(
    number: int, state: Any, message: str, kind: type[BackfillError]
) -> None:
    from snowflake.connector.errors import DatabaseError

    ours = told(DatabaseError(msg=f"{message}\npassword=s3cret", errno=number, sqlstate=state))
    assert type(ours) is kind
    assert message.split("\n")[0].split("'")[0].strip() in str(ours)
    assert "s3cret" not in str(ours)
    assert "\n" not in str(ours)


def test_an_account_that_cannot_be_reached_is_shown_without_its_password() -> None:
    url = "snowflake://ana:s3cret@fake/db?host=127.0.0.1&port=9&protocol=http&login_timeout=2&network_timeout=2"
    with pytest.raises(Unreachable) as away, open_engine(url).session():
        pass
    assert "s3cret" not in str(away.value)
    assert "cannot be reached" in str(away.value)
    assert isinstance(unreachable(OSError("no route"), "x"), Away)


# cost


def test_credits_follow_from_the_size_of_the_warehouse_and_the_seconds(
    snowflake: Warehouse,
) -> None:
    assert (estimated("XSMALL", 3600), estimated("2x-large", 900), estimated(None, 5)) == (
        1,
        8,
        None,
    )
    sized = SnowflakeWarehouse(with_options(snowflake.url, warehouse_size="LARGE"))
    load = sized.write(T, "2026-05-12", {"day": [DAY]})
    assert load.cost == pytest.approx(8 * load.seconds / 3600, abs=1e-5)
    with snowflake.session() as session:
        assert attributed(session, "bf-1") is None  # this account has no such view


# bulk load


@pytest.mark.parametrize("way", ["copy", "insert"])
def test_rows_arrive_alike_by_copy_and_by_insert(snowflake: Warehouse, way: str) -> None:
    other = SnowflakeWarehouse(with_options(snowflake.url, bulk_load=way))
    rows = {
        "day": [DAY, DAY],
        "price": pa.array([Decimal("-0.01"), None], pa.decimal128(18, 2)),
        "at": pa.array([datetime(2026, 5, 12, 1, 2, 3, 4, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
        "text": ["it's \"so\"\\", None],
        "truth": [True, None],
    }  # fmt: skip
    other.write(T, "2026-05-12", rows)
    with other.session() as session:
        back = session.fetch_arrow("SELECT * FROM mart.t ORDER BY price")
    assert back.to_pylist()[0] == {
        "day": DAY, "price": Decimal("-0.01"), "at": datetime(2026, 5, 12, 1, 2, 3, 4, tzinfo=UTC),
        "text": "it's \"so\"\\", "truth": True,
    }  # fmt: skip
    assert str(back.schema.field("price").type) == "decimal128(38, 2)"


@pytest.mark.parametrize("kind", [pa.decimal128(38, 38), pa.decimal128(5, -2)], ids=str)
def test_a_decimal_is_staged_with_no_more_places_than_a_column_may_have(
    snowflake: Warehouse, kind: Any
) -> None:
    value = Decimal(2500) if kind.scale < 0 else Decimal("0.25")
    rows = pa.table({"price": pa.array([value, None], kind)})
    (field,) = writable(rows).schema
    assert 0 <= field.type.scale <= 37
    with snowflake.session() as session:
        staged = session.stage_arrow("backfill_stage_prices", rows)
        assert session.fetch(f"SELECT sum(price), count(*) FROM {staged}") == [(value, 2)]
        session.drop_stage("backfill_stage_prices")


def test_a_decimal_of_more_places_than_a_column_may_have_is_refused_and_not_rounded() -> None:
    with pytest.raises(SchemaMismatch, match="price"):
        writable(pa.table({"price": pa.array([Decimal("1E-38")], pa.decimal128(38, 38))}))


def test_what_a_killed_writer_left_is_dropped_after_a_day_and_not_before(
    snowflake: Warehouse,
) -> None:
    snowflake.write(T, "2026-05-12", {"day": [DAY]})
    for name, at in (("old", "2026-01-01"), ("new", datetime.now(UTC).isoformat())):
        comment = (
            f'{{"who": "run x", "at": "{at}T00:00:00+00:00"}}'
            if name == "old"
            else f'{{"at": "{at}"}}'
        )
        snowflake.execute(
            f"CREATE TRANSIENT TABLE backfill.backfill_stage_{name} (a NUMBER) COMMENT = '{comment}'"
        )
    snowflake.write(T, "2026-05-12", {"day": [DAY]})
    assert [stage.split(".")[1] for stage in snowflake.leftovers()] == ["BACKFILL_STAGE_NEW"]


# whole tables and days, by two connections at once


def test_a_whole_table_and_a_day_of_it_wait_for_each_other_and_two_days_do_not(
    snowflake: Warehouse,
) -> None:
    snowflake.write(T, "2026-05-12", {"day": [DAY]})
    impatient = SnowflakeWarehouse(with_options(snowflake.url, lock_wait=0.2))
    said: list[str] = []

    def others() -> None:
        with pytest.raises(SliceBusy) as busy:
            impatient.write(T, None, {"day": [DAY]}, run_id="whole")
        said.append(str(busy.value))
        impatient.write(T, "2026-05-13", {"day": [date(2026, 5, 13)]}, run_id="tomorrow")

    with snowflake.session() as session:
        after_statement(session, "DELETE", others)
        snowflake.write(T, "2026-05-12", {"day": [DAY]}, session=session, run_id="first")
    assert "is being rewritten by run first" in said[0]
    assert snowflake.count("mart.t") == 2


# the same over HTTP


@pytest.fixture(scope="session")
def snowflake_server() -> Iterator[int]:
    """The port of a server in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "backfill_assets_tests.snowflake_server", str(port)]
    )

    def answers() -> bool:
        assert server.poll() is None
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        until(answers, 60)
        yield port
    finally:
        server.terminate()
        server.wait(30)


@pytest.fixture
def served(snowflake_server: int) -> Warehouse:
    found = SnowflakeWarehouse(
        f"snowflake://ana:s3cret@fakesnow/warehouse?host=127.0.0.1&port={snowflake_server}&protocol=http"
        "&network_timeout=10&login_timeout=10"
    )
    if found.columns("mart.fct_sales") is not None:
        for made in ("mart.fct_sales", "backfill.load_audit"):
            found.execute(f"DROP TABLE IF EXISTS {made}")
    return found


def test_a_slice_is_replaced_and_read_back_over_http(served: Warehouse) -> None:
    rows = {
        "day": [DAY] * 2,
        "price": pa.array([Decimal("1.10"), Decimal("2.25")], pa.decimal128(18, 2)),
    }
    loads = [served.write(SALES, "2026-05-12", rows) for _ in range(2)]
    assert [load.rows_before for load in loads] == [0, 2]
    assert loads[0].checksum == loads[1].checksum
    with served.session() as session:
        back = session.fetch_arrow("SELECT * FROM mart.fct_sales ORDER BY price")
    assert back.to_pylist() == [
        {"day": DAY, "price": Decimal("1.10")},
        {"day": DAY, "price": Decimal("2.25")},
    ]
    assert served.leftovers() == []


def test_a_refused_slice_leaves_the_old_rows_over_http(served: Warehouse) -> None:
    served.write(SALES, "2026-05-12", {"day": [DAY], "id": [1]})
    with pytest.raises(BadRows):
        served.write(SALES, "2026-05-12", {"day": [DAY, None], "id": [2, 3]})
    with served.session() as session, pytest.raises(BackfillError), session.transaction():
        session.execute("DELETE FROM mart.fct_sales")
        session.execute("INSERT INTO mart.nowhere VALUES (1)")
    assert served.rows("SELECT id FROM mart.fct_sales") == [(1,)]


def test_two_writers_of_one_day_over_http_leave_it_once(served: Warehouse) -> None:
    served.write(SALES, "2026-05-12", {"day": [DAY], "id": [0]})
    done: list[Any] = []
    second = threading.Thread(
        target=lambda: done.append(
            served.write(SALES, "2026-05-12", {"day": [DAY] * 5, "id": [2] * 5}, run_id="two")
        )
    )

    def start() -> None:
        second.start()
        second.join(2)
        assert second.is_alive(), "the second one did not wait"

    with served.session() as session:
        after_statement(session, "DELETE", start)
        served.write(
            SALES, "2026-05-12", {"day": [DAY] * 3, "id": [1] * 3}, session=session, run_id="one"
        )
    second.join(60)
    assert [load.rows_before for load in done] == [3]
    assert served.rows("SELECT count(*), max(id) FROM mart.fct_sales") == [(5, 2)]


_WRITER = """
import sys
from datetime import date
from backfill_assets_tests.snowflake_accounts import SnowflakeWarehouse
from backfill_assets_tests.engines.test_snowflake import SALES
for day in range(1, 4):
    at = date(2026, 5, day)
    SnowflakeWarehouse(sys.argv[1]).write(SALES, str(at), {"day": [at] * 4, "id": [day] * 4}, run_id=sys.argv[2])
"""


def test_two_processes_that_write_the_same_days_over_http_leave_each_once(
    served: Warehouse,
) -> None:
    served.write(SALES, "2026-05-12", {"day": [DAY], "id": [0]})
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, served.url, name], stderr=subprocess.PIPE, text=True
        )
        for name in ("a", "b")
    ]
    errors = [writer.communicate(timeout=120)[1] for writer in writers]
    assert any(writer.returncode == 0 for writer in writers), errors
    assert all(
        w.returncode == 0 or "StaleSource" in e for w, e in zip(writers, errors, strict=True)
    ), errors
    counts = served.rows("SELECT day, count(*) FROM mart.fct_sales GROUP BY day ORDER BY day")
    assert counts == [*((date(2026, 5, day), 4) for day in (1, 2, 3)), (DAY, 1)]
