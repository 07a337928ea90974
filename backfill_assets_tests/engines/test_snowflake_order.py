"""What is sent to a Snowflake account, and when: on a connection that behaves as the service does and fakesnow does not.

A failed statement leaves the transaction open here, and DDL inside one commits it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from typing import Any
from unittest import mock

import pytest
import snowflake.connector as connector

from backfill_assets.errors import (
    Away,
    BackfillError,
    LimitReached,
    OutcomeUnknown,
    QuotaExceeded,
    SliceBusy,
    WriteFailed,
)
from backfill_assets.table import SliceColumn, Table
from backfill_assets_tests.snowflake_accounts import SnowflakeWarehouse, account_in_this_process
from backfill_assets_tests.warehouses import Warehouse

DAY, NEXT = date(2026, 5, 12), date(2026, 5, 13)
SALES = Table("mart.fct_sales", SliceColumn("day", "date"))
OLD, NEW = ({"day": [DAY] * n, "id": list(range(n))} for n in (2, 3))
_DDL = ("CREATE", "ALTER", "DROP", "TRUNCATE", "COMMENT")


class Service:
    """Notes every statement, and keeps the two habits of the service that fakesnow lacks."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.logins: list[dict[str, Any]] = []
        self.failing: dict[str, Exception] = {}
        self.is_open = False
        self._connect = connector.connect

    def connect(self, **arguments: Any) -> Any:
        self.logins.append(arguments)
        connection = self._connect(**arguments)
        real = connection.cursor

        def cursor() -> Any:
            found = real()
            execute = found.execute

            def sent(sql: str, *given: Any, **named: Any) -> Any:
                if not sql.startswith("DESCRIBE"):
                    self._hear(sql, named.get("_statement_params", {}), execute)
                return execute(sql, *given, **named)

            found.execute = sent
            return found

        connection.cursor = cursor
        return connection

    def _hear(self, sql: str, parameters: dict[str, Any], execute: Any) -> None:
        self.sent.append((sql, parameters))
        word = sql.split(" ", 1)[0]
        for beginning, error in self.failing.items():
            if sql.startswith(beginning):
                raise error  # and the transaction stays open, with what it has done so far
        if word in _DDL and self.is_open:
            execute("COMMIT")
            self.is_open = False
        self.is_open = {"BEGIN": True, "COMMIT": False, "ROLLBACK": False}.get(word, self.is_open)

    @property
    def statements(self) -> list[str]:
        return [sql for sql, _ in self.sent]


@pytest.fixture
def service() -> Iterator[Service]:
    with account_in_this_process():
        service = Service()
        with mock.patch.object(connector, "connect", service.connect):
            yield service


@pytest.fixture
def ours(service: Service) -> Warehouse:
    """Two old rows on 12 May."""
    found = SnowflakeWarehouse("snowflake://ana:s3cret@fake/warehouse?warehouse=WH&role=WRITER")
    found.write(SALES, "2026-05-12", OLD)
    service.sent.clear()
    return found


def error(number: int, state: str, message: str = "said the account") -> Exception:
    return connector.errors.ProgrammingError(msg=message, errno=number, sqlstate=state)


def test_a_slice_takes_these_statements_and_no_others(service: Service, ours: Warehouse) -> None:
    with ours.session() as session:
        ours.write(SALES, "2026-05-12", OLD, session=session)
        service.sent.clear()
        ours.write(SALES, "2026-05-12", NEW, session=session)
    words = [sql.split()[0] for sql in service.statements]
    assert words == [
        "SELECT", "CREATE", "PUT", "COPY", "SELECT", "BEGIN", "UPDATE", "SELECT", "DELETE", "INSERT", "SELECT",
        "SELECT", "INSERT", "COMMIT", "DROP", "SELECT",
    ]  # fmt: skip
    assert "SLICE_CLAIMS" in service.statements[6]
    assert service.statements[8].startswith('DELETE FROM "MART"."FCT_SALES" WHERE "DAY" >= DATE')


def test_no_ddl_is_sent_between_begin_and_commit_also_for_a_first_slice(
    service: Service, ours: Warehouse
) -> None:
    fresh = Table("other.fresh", SliceColumn("day", "date"))
    ours.write(fresh, "2026-05-12", NEW)
    ours.write(SALES, "2026-05-12", {**NEW, "id": [7, 8, 9]})
    inside = False
    for sql in service.statements:
        word = sql.split()[0]
        inside = {"BEGIN": True, "COMMIT": False, "ROLLBACK": False}.get(word, inside)
        assert not (inside and word in (*_DDL, "USE", "PUT", "COPY"))


@pytest.mark.parametrize(
    "statement", ["UPDATE", "DELETE", 'INSERT INTO "MART"', 'INSERT INTO "BACKFILL"', "COMMIT"]
)
def test_after_an_error_rollback_is_said_and_the_old_rows_are_there(
    service: Service, ours: Warehouse, statement: str
) -> None:
    service.failing[statement] = error(100132, "P0000")
    with pytest.raises(BackfillError):
        ours.write(SALES, "2026-05-12", NEW)
    failed = next(n for n, sql in enumerate(service.statements) if sql.startswith(statement))
    assert service.statements[failed + 1] == "ROLLBACK"
    assert not service.is_open
    service.failing.clear()
    assert ours.count("mart.fct_sales") == 2
    assert ours.leftovers() == []


def test_every_statement_is_tagged_with_table_partition_run_and_backfill(
    service: Service, ours: Warehouse
) -> None:
    ours.write(SALES, "2026-05-12", NEW, run_id="r-17", backfill_id="bf-4")
    tags = {
        sql.split()[0]: json.loads(parameters["QUERY_TAG"])
        for sql, parameters in service.sent
        if parameters
    }
    wanted = {
        "table": "WAREHOUSE.MART.FCT_SALES",
        "partition": "2026-05-12",
        "run": "r-17",
        "backfill": "bf-4",
    }
    for word in ("CREATE", "PUT", "UPDATE", "DELETE", "INSERT", "COMMIT"):
        assert wanted.items() <= tags[word].items()


def test_limits_zone_and_role_come_with_the_login_and_cost_no_round_trip(service: Service) -> None:
    limited = SnowflakeWarehouse(
        "snowflake://ana:s3cret@fake/warehouse?warehouse=LANE_WH&role=LANE&lock_wait=30&statement_timeout=90"
    )
    with limited.session(who="run 4f1c"):
        pass
    login = service.logins[-1]
    assert (login["warehouse"], login["role"], login["autocommit"]) == ("LANE_WH", "LANE", True)
    wanted = {
        "LOCK_TIMEOUT": 30,
        "STATEMENT_TIMEOUT_IN_SECONDS": 90,
        "TIMEZONE": "UTC",
        "TRANSACTION_ABORT_ON_ERROR": True,
        "CLIENT_STAGE_ARRAY_BINDING_THRESHOLD": 0,  # no PUT of the connector's own
    }
    assert wanted.items() <= login["session_parameters"].items()
    assert json.loads(login["session_parameters"]["QUERY_TAG"])["who"] == "run 4f1c"
    assert service.sent == []


def test_a_limit_of_statements_does_not_cut_the_wait_for_another_writer(
    service: Service, ours: Warehouse
) -> None:
    """The limit counts while a statement waits, and what it cuts is told as stopped: nobody would wait and try again."""
    hasty = SnowflakeWarehouse(ours.url + "&lock_wait=300&statement_timeout=20")
    hasty.write(SALES, "2026-05-12", NEW)
    login = service.logins[-1]["session_parameters"]
    assert (login["LOCK_TIMEOUT"], login["STATEMENT_TIMEOUT_IN_SECONDS"]) == (16, 20)
    (claimed,) = [p for sql, p in service.sent if sql.startswith("UPDATE")]
    assert claimed["STATEMENT_TIMEOUT_IN_SECONDS"] > claimed["LOCK_TIMEOUT"]
    service.failing["UPDATE"] = error(625, "57014", "Statement has locked table")
    with hasty.session(lock_wait=40) as session:
        session._patience = 40  # type: ignore[attr-defined]
        with pytest.raises(SliceBusy):
            session.execute("UPDATE nothing SET one = 1")
    assert service.sent[-1][1]["STATEMENT_TIMEOUT_IN_SECONDS"] == 100


def test_a_lock_that_the_service_does_not_give_in_time_is_a_busy_slice(
    service: Service, ours: Warehouse
) -> None:
    service.failing["UPDATE"] = error(625, "57014", "Statement has locked table")
    impatient = SnowflakeWarehouse(ours.url + "&lock_wait=1")
    with pytest.raises(SliceBusy, match="so nothing was changed: it still was after 1 s"):
        impatient.write(SALES, "2026-05-12", NEW)
    patience = [p["LOCK_TIMEOUT"] for sql, p in service.sent if sql.startswith("UPDATE")]
    assert set(patience) == {1}
    assert not service.is_open
    assert ours.count("mart.fct_sales") == 2


def lost() -> Exception:
    return connector.errors.OperationalError(msg="Connection reset by peer", errno=250003)


def test_a_connection_lost_inside_the_transaction_may_be_tried_again(
    service: Service, ours: Warehouse
) -> None:
    service.failing['INSERT INTO "MART"'] = lost()
    with pytest.raises(Away) as away:
        ours.write(SALES, "2026-05-12", NEW)
    assert away.value.retry


def test_a_connection_lost_at_commit_leaves_it_unknown_and_says_so(
    service: Service, ours: Warehouse
) -> None:
    service.failing["COMMIT"] = lost()
    with pytest.raises(OutcomeUnknown, match="the connection broke during COMMIT") as unknown:
        ours.write(SALES, "2026-05-12", NEW)
    assert unknown.value.then == "retry"


@pytest.mark.parametrize(
    ("number", "state", "kind"),
    [(630, "57014", LimitReached), (90073, "22000", QuotaExceeded), (1003, "42000", WriteFailed)],
)
def test_what_stops_a_delete_is_told_by_its_number(
    service: Service, ours: Warehouse, number: int, state: str, kind: type[BackfillError]
) -> None:
    service.failing["DELETE"] = error(number, state)
    with pytest.raises(kind, match="the slice is as it was"):
        ours.write(SALES, "2026-05-12", NEW)
    service.failing.clear()
    assert ours.count("mart.fct_sales") == 2


def test_a_claims_table_that_lost_its_rows_is_no_claim(service: Service, ours: Warehouse) -> None:
    (name,) = ours.rows(
        "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'SLICE_CLAIMS%'"
    )[0]
    ours.execute(f'DELETE FROM backfill."{name}"')
    with pytest.raises(WriteFailed, match="has not the rows that it was made with"):
        ours.write(SALES, "2026-05-12", NEW)
    assert ours.count("mart.fct_sales") == 2
