"""Databricks: what is sent and when, what is left when a writer dies between any two statements, and what is told."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from databricks import sql as connector
from databricks.sql.exc import RequestError, ServerOperationError
from urllib3.exceptions import MaxRetryError

from backfill_assets.engines import databricks_session, open_engine
from backfill_assets.engines.databricks import SPELLING, DatabricksEngine
from backfill_assets.engines.databricks_errors import told
from backfill_assets.errors import (
    Away,
    BackfillError,
    BadRows,
    DeclarationError,
    LimitReached,
    MissingRight,
    MissingTable,
    OutcomeUnknown,
    QuotaExceeded,
    SchemaMismatch,
    ShrunkSlice,
    SliceBusy,
    StaleSource,
    Unreachable,
    Unsettled,
    WriteFailed,
)
from backfill_assets.operations.doctor.examine import examined
from backfill_assets.operations.reports.lines import Judge
from backfill_assets.operations.reports.warehouse import facts_of
from backfill_assets.slice import Slice
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import Window
from backfill_assets.writing import AuditTable, Select
from backfill_assets_tests.databricks_workspace import (
    Connection,
    DatabricksWarehouse,
    Killed,
    lost,
)
from backfill_assets_tests.interruptions import after_statement, once
from backfill_assets_tests.warehouses import Warehouse, at, until
from backfill_assets_tests.writing import test_any_history as any_history

DAY, NEXT = date(2026, 5, 12), date(2026, 5, 13)
SALES = Table("mart.fct_sales", SliceColumn("day", "date"))
OLD, NEW = ({"day": [DAY] * n, "id": list(range(n))} for n in (2, 3))
NEIGHBOUR = {"day": [NEXT], "id": [9]}
PAGE = Path(__file__).parents[2] / "docs" / "engines" / "databricks.md"
REPLACING = "INSERT INTO `mart`.`fct_sales` REPLACE"
INTENT = "INSERT INTO `backfill`.`load_audit_intents`"
DONE = "INSERT INTO `backfill`.`load_audit` "
Act = Callable[[Connection, str], None]


@pytest.fixture
def loaded(databricks: DatabricksWarehouse) -> DatabricksWarehouse:
    """Two old rows on 12 May and a neighbour on 13 May."""
    databricks.write(SALES, "2026-05-12", OLD, run_id="first")
    databricks.write(SALES, "2026-05-13", NEIGHBOUR, run_id="first")
    databricks.workspace.sent.clear()
    return databricks


def ids(warehouse: Warehouse, where: str = "day < DATE '2026-05-13'") -> list[int]:
    return sorted(i for (i,) in warehouse.rows(f"SELECT id FROM mart.fct_sales WHERE {where}"))


def unfinished(warehouse: Warehouse) -> int:
    with warehouse.session() as session:
        return len(AuditTable().unfinished(session, SALES))


def time_passes(warehouse: DatabricksWarehouse) -> None:
    """Let every claim that is held, and every intent, be older than a lease."""
    duck = warehouse.workspace.database.cursor()
    held = duck.execute(
        "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'slice_claims_%'"
    ).fetchall()
    for (name,) in held:
        duck.execute(
            f'UPDATE warehouse.backfill."{name}" SET held_until = held_until - INTERVAL 2 HOURS'
        )
    duck.execute(
        "UPDATE warehouse.backfill.load_audit_intents SET committed_at = committed_at - INTERVAL 2 HOURS"
    )


def on(beginning: str, do: Act) -> Act:
    """Return an action for the first statement that begins so."""
    left = [do]

    def act(connection: Connection, sql: str) -> None:
        if sql.startswith(beginning) and left:
            left.pop()(connection, sql)

    return act


def kills(connection: Connection, _: str) -> None:
    connection.is_dead = True
    raise Killed


def loses(connection: Connection, _: str) -> None:
    raise lost()


# what is sent


def test_a_slice_takes_these_statements_in_this_order(loaded: DatabricksWarehouse) -> None:
    with loaded.session() as session:
        loaded.write(SALES, "2026-05-12", OLD, session=session)
        loaded.workspace.sent.clear()
        loaded.write(SALES, "2026-05-12", NEW, session=session)
    order = [
        "SELECT current_timestamp()",
        "CREATE TABLE `backfill`.`backfill_stage_",
        "DESCRIBE QUERY SELECT * FROM `backfill`.`backfill_stage_",
        "DESCRIBE QUERY SELECT * FROM `mart`.`fct_sales`",
        "SELECT count(*), count(CASE WHEN `day` >= DATE '2026-05-12'",
        "UPDATE `backfill`.`slice_claims_",
        "SELECT `audit_id`",
        "SELECT `run_id`, source_read_at",
        "DESCRIBE HISTORY `mart`.`fct_sales` LIMIT 1",
        "SELECT count(*), CAST(coalesce(sum(",
        "SELECT current_timestamp()",
        INTENT,
        f"{REPLACING} WHERE `day` >= DATE '2026-05-12' AND `day` < DATE '2026-05-13' SELECT `day` AS `day`, `id` AS `id`"
        " FROM `backfill`.`backfill_stage_",
        "SELECT count(*), CAST(coalesce(sum(",
        "SELECT current_timestamp()",
        DONE,
        "SELECT count(*) FROM `backfill`.`load_audit` WHERE audit_id",
        "UPDATE `backfill`.`slice_claims_",
        "DROP TABLE IF EXISTS `backfill`.`backfill_stage_",
    ]
    sent = loaded.workspace.sent
    assert [
        wanted for wanted, sql in zip(order, sent, strict=True) if not sql.startswith(wanted)
    ] == []


@pytest.mark.parametrize("kind", ["a frame", "a query", "keyed"])
def test_a_slice_takes_as_many_statements_as_its_page_says(
    loaded: DatabricksWarehouse, kind: str
) -> None:
    loaded.execute("CREATE TABLE mart.source AS SELECT * FROM mart.fct_sales")
    table = Table(
        "mart.fct_sales", SliceColumn("day", "date"), unique_key=("id",) * (kind == "keyed")
    )
    rows: Any = Select("SELECT * FROM mart.source") if kind == "a query" else OLD
    with loaded.session() as session:
        loaded.workspace.sent.clear()
        loaded.write(table, "2026-05-12", rows, session=session)
        in_a_new_session = len(loaded.workspace.sent)
        loaded.workspace.sent.clear()
        loaded.write(table, "2026-05-12", rows, session=session)
    (said,) = re.findall(r"\*\*Statements for a slice\*\*.*?\n\n", PAGE.read_text(), re.DOTALL)
    number = len(loaded.workspace.sent) - (kind == "keyed")
    assert f"{number} statements" in said
    assert f"adds {in_a_new_session - len(loaded.workspace.sent)} once" in said
    assert "one more" in said


def test_every_statement_says_in_a_comment_what_it_is_for(loaded: DatabricksWarehouse) -> None:
    loaded.workspace.tags.clear()
    loaded.write(SALES, "2026-05-12", NEW, run_id="r-17", backfill_id="bf-4")
    replacing = next(
        tag
        for sql, tag in zip(loaded.workspace.sent, loaded.workspace.tags, strict=True)
        if sql.startswith(REPLACING)
    )
    for wanted in ("warehouse.mart.fct_sales", "2026-05-12", "r-17", "bf-4", "backfill_assets"):
        assert wanted in replacing


def test_settings_and_limits_come_with_the_login_and_cost_no_statement(
    loaded: DatabricksWarehouse,
) -> None:
    with loaded.session(statement_timeout=90):
        pass
    login = loaded.workspace.logins[-1]
    assert login["session_configuration"] == {
        "ANSI_MODE": "true", "TIMEZONE": "UTC", "USE_CACHED_RESULT": "false", "STATEMENT_TIMEOUT": "90",
    }  # fmt: skip
    assert (login["catalog"], login["schema"]) == ("warehouse", "public")
    assert login["enable_telemetry"] is False
    assert loaded.workspace.sent == []


def test_columns_that_the_rows_lack_are_null_in_the_place_that_the_table_has_them(
    databricks: DatabricksWarehouse,
) -> None:
    databricks.execute(
        "CREATE SCHEMA mart", "CREATE TABLE mart.fct_sales (late TEXT, id BIGINT, day DATE, n INT)"
    )
    ignoring = Table("mart.fct_sales", SliceColumn("day", "date"), on_schema_change="ignore")
    databricks.write(ignoring, "2026-05-12", {"day": [DAY], "id": [7]})
    assert databricks.rows("SELECT late, id, day, n FROM mart.fct_sales") == [(None, 7, DAY, None)]


def test_the_whole_table_is_overwritten_in_one_statement(databricks: DatabricksWarehouse) -> None:
    whole = Table("mart.dim")
    for rows in ({"id": [1, 2]}, {"id": [3]}):
        databricks.write(whole, None, rows, allows=frozenset({"shrink"}), reason="a test")
    assert databricks.rows("SELECT id FROM mart.dim") == [(3,)]
    assert (
        sum(s.startswith("INSERT OVERWRITE `mart`.`dim` ") for s in databricks.workspace.sent) == 2
    )


def test_a_row_outside_the_condition_is_refused_by_the_statement_itself(
    loaded: DatabricksWarehouse,
) -> None:
    with pytest.raises(BadRows, match="does not belong to the slice"), loaded.session() as session:
        session.execute(
            f"{REPLACING} WHERE `day` >= DATE '2026-05-12' AND `day` < DATE '2026-05-13'"
            " SELECT DATE '2026-05-13', 1"
        )
    assert ids(loaded) == [0, 1]


def test_there_is_no_transaction_that_does_nothing(loaded: DatabricksWarehouse) -> None:
    with loaded.session() as session:
        with pytest.raises(WriteFailed, match="commits each statement by itself"):
            with session.transaction():
                session.execute("DELETE FROM mart.fct_sales")
    assert len(ids(loaded, "1 = 1")) == 3


def test_a_frame_of_every_type_comes_back_as_it_was(databricks: DatabricksWarehouse) -> None:
    instant = datetime(2026, 5, 12, 1, 2, 3, 456789, tzinfo=timezone.utc)
    data = pa.table(
        {
            "day": pa.array([DAY, DAY, DAY]),
            "whole": pa.array([2**63 - 1, -(2**63), None]),
            "exact": pa.array([Decimal("1234567890123456789.0123456789"), None, Decimal("-0.1")], pa.decimal128(38, 10)),
            "real": pa.array([float("inf"), 1e-300, None]),
            "said": pa.array(["it's a \\ \"quote\"\n", "", None]),
            "raw": pa.array([b"\x00\xff", b"", None]),
            "flag": pa.array([True, False, None]),
            "seen": pa.array([instant, None, instant]),
            "clock": pa.array([instant.replace(tzinfo=None), None, None], pa.timestamp("us")),
        }
    )  # fmt: skip
    databricks.write(SALES, "2026-05-12", data)
    with databricks.session() as session:
        found = session.fetch_arrow("SELECT * FROM mart.fct_sales")
    wanted = sorted(data.to_pylist(), key=repr)
    assert sorted(found.to_pylist(), key=repr) == wanted


def test_a_large_frame_comes_in_several_statements_and_is_counted(
    databricks: DatabricksWarehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databricks_session, "_ROWS_AT_ONCE", 100)
    rows = {"day": [DAY] * 250, "id": list(range(250))}
    databricks.write(SALES, "2026-05-12", rows)
    sent = [
        sql for sql in databricks.workspace.sent if "backfill_stage_" in sql and "VALUES" in sql
    ]
    assert [sql.split(" ")[0] for sql in sent] == ["CREATE", "INSERT", "INSERT"]
    # an INSERT whose answer was lost, and that the connector has sent again
    again = on("INSERT INTO `backfill`.`backfill_stage_", lambda c, sql: c.cursor()._carry_out(sql))
    databricks.workspace.after.append(again)
    with pytest.raises(WriteFailed, match="250 were sent and 350 arrived"):
        databricks.write(SALES, "2026-05-12", rows)
    assert len(ids(databricks)) == 250


# a writer that dies


def died_at(
    monkeypatch: pytest.MonkeyPatch, number: int, after: bool
) -> tuple[DatabricksWarehouse, str]:
    """Return a catalog whose writer of 12 May died at its statement `number`, and that statement; '' at none."""
    warehouse = DatabricksWarehouse.fresh(monkeypatch)
    warehouse.write(SALES, "2026-05-12", OLD, run_id="first")
    warehouse.write(SALES, "2026-05-13", NEIGHBOUR, run_id="first")
    seen: list[str] = []

    def act(connection: Connection, sql: str) -> None:
        seen.append(sql)
        if len(seen) == number:
            kills(connection, sql)

    hooks = warehouse.workspace.after if after else warehouse.workspace.before
    hooks.append(act)
    with contextlib.suppress(Killed):
        warehouse.write(SALES, "2026-05-12", NEW, run_id="dead", reason="why it was done")
    hooks.clear()
    return warehouse, seen[number - 1] if len(seen) >= number else ""


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_whichever_statement_a_writer_dies_at_the_next_start_finds_out_what_became_of_it(
    monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    intended, done = False, False
    for number in range(1, 100):
        warehouse, sql = died_at(monkeypatch, number, after)
        if not sql:
            break
        was_intended = intended or (after and sql.startswith(INTENT))
        was_done = done or (after and sql.startswith(REPLACING))
        confirmed = [load for load in warehouse.loads() if load[-1] == "dead"]
        assert ids(warehouse) == ([0, 1, 2] if was_done else [0, 1]), sql
        time_passes(warehouse)
        # somebody writes another day
        warehouse.write(SALES, "2026-05-13", NEIGHBOUR, run_id="next")
        committed, failed = (
            [load for load in warehouse.loads(outcome) if load[-1] == "dead"]
            for outcome in ("committed", "failed")
        )
        assert len(committed) == was_done, sql
        assert len(failed) == (was_intended and not was_done), sql
        assert not confirmed or committed == confirmed
        if committed:
            assert committed[0][:3] == ("2026-05-12", 2, 3)
        assert unfinished(warehouse) == 0
        assert ids(warehouse) == ([0, 1, 2] if was_done else [0, 1]), sql
        # and the same day again
        assert warehouse.write(SALES, "2026-05-12", OLD, run_id="again").rows_before == (
            3 if was_done else 2
        )
        assert ids(warehouse, "1 = 1") == [0, 1, 9]
        intended, done = (
            was_intended or sql.startswith(INTENT),
            was_done or sql.startswith(REPLACING),
        )
    assert number > 19
    assert done


def test_what_became_of_a_writer_is_told_in_words(
    loaded: DatabricksWarehouse, caplog: pytest.LogCaptureFixture
) -> None:
    loaded.workspace.after.append(on(REPLACING, kills))
    with pytest.raises(Killed):
        loaded.write(SALES, "2026-05-12", NEW, run_id="dead", reason="prices were wrong")
    time_passes(loaded)
    with caplog.at_level(logging.WARNING):
        loaded.write(SALES, "2026-05-12", OLD, run_id="next", reason="again")
    assert (
        "mart.fct_sales 2026-05-12 of run dead: the run ended after it replaced the slice"
        in caplog.text
    )
    (detail, reason) = loaded.rows(
        "SELECT detail, reason FROM backfill.load_audit WHERE run_id = 'dead'"
    )[0]
    assert "the slice holds exactly its rows" in detail
    assert reason == "prices were wrong"


def test_a_load_that_is_found_to_be_done_counts_for_the_order_of_reads(
    loaded: DatabricksWarehouse,
) -> None:
    loaded.workspace.after.append(on(REPLACING, kills))
    with pytest.raises(Killed):
        loaded.write(SALES, "2026-05-12", NEW, run_id="dead")
    time_passes(loaded)
    with pytest.raises(StaleSource, match="run dead wrote it"):
        loaded.write(SALES, "2026-05-12", OLD, run_id="late", source_read_at=at("2026-05-13 00:00"))
    assert ids(loaded) == [0, 1, 2]


def test_nobody_takes_an_intent_for_a_load(loaded: DatabricksWarehouse) -> None:
    before = loaded.loads()
    loaded.workspace.after.append(on(INTENT, kills))
    with pytest.raises(Killed):
        loaded.write(SALES, "2026-05-12", NEW, run_id="dead", backfill_id="bf")
    with loaded.session() as session:
        audit = AuditTable()
        assert audit.spent(session, backfills=["bf"]).rows == 0
        assert audit.written_by(session, ["dead"], SALES) == {}
        assert {load.run_id for load in audit.newest(session, SALES, None)} == {"first"}
    assert loaded.loads() == before


def test_a_slice_that_holds_neither_is_told_and_left_until_somebody_says_so(
    loaded: DatabricksWarehouse,
) -> None:
    loaded.workspace.after.append(on(REPLACING, kills))
    with pytest.raises(Killed):
        loaded.write(SALES, "2026-05-12", NEW, run_id="dead")
    loaded.execute(
        "DELETE FROM mart.fct_sales WHERE id = 2", "UPDATE mart.fct_sales SET id = 77 WHERE id = 1"
    )
    time_passes(loaded)
    with pytest.raises(Unsettled) as unsettled:
        loaded.write(SALES, "2026-05-12", OLD, run_id="next")
    for wanted in (
        "run dead",
        "neither the 2 rows",
        "nor the 3",
        "DESCRIBE HISTORY",
        "allow=unfinished",
    ):
        assert wanted in str(unsettled.value)
    assert unsettled.value.then == "stop"
    assert ids(loaded) == [0, 77]
    loaded.write(
        SALES, "2026-05-12", OLD, run_id="allowed",
        allows=frozenset({"unfinished"}), reason="looked at it",
    )  # fmt: skip
    assert ids(loaded) == [0, 1]
    assert unfinished(loaded) == 0


def test_a_day_is_not_held_up_by_what_nobody_knows_of_another_day(
    loaded: DatabricksWarehouse, caplog: pytest.LogCaptureFixture
) -> None:
    loaded.workspace.after.append(on(REPLACING, kills))
    with pytest.raises(Killed):
        loaded.write(SALES, "2026-05-12", NEW, run_id="dead")
    loaded.execute("DELETE FROM mart.fct_sales WHERE id = 0")
    time_passes(loaded)
    with caplog.at_level(logging.WARNING):
        loaded.write(SALES, "2026-05-13", NEIGHBOUR, run_id="next")
    assert "holds neither the 2 rows" in caplog.text
    assert unfinished(loaded) == 1


def test_a_week_that_died_is_settled_by_the_writer_of_one_of_its_days(
    loaded: DatabricksWarehouse,
) -> None:
    week = Window(at("2026-05-11 00:00"), at("2026-05-18 00:00"))
    loaded.workspace.after.append(on(REPLACING, kills))
    with pytest.raises(Killed):
        loaded.write(SALES, week, {"day": [DAY, NEXT], "id": [5, 6]}, run_id="dead")
    time_passes(loaded)
    assert loaded.write(SALES, "2026-05-13", NEIGHBOUR, run_id="next").rows_before == 1
    assert [load[:3] for load in loaded.loads() if load[-1] == "dead"] == [
        ("2026-05-11..2026-05-17", 3, 2)
    ] or [load[1:3] for load in loaded.loads() if load[-1] == "dead"] == [(3, 2)]
    assert ids(loaded, "1 = 1") == [5, 9]


def test_the_claim_of_a_dead_writer_is_held_until_its_lease_is_over(
    loaded: DatabricksWarehouse,
) -> None:
    loaded.workspace.after.append(on(INTENT, kills))
    with pytest.raises(Killed):
        loaded.write(SALES, "2026-05-12", NEW, run_id="dead")
    impatient = Warehouse(loaded.url + "&lock_wait=0.1")
    with pytest.raises(
        SliceBusy, match=r"rewritten by run dead \(mart.fct_sales 2026-05-12, until \d"
    ):
        impatient.write(SALES, "2026-05-12", OLD, run_id="next")
    impatient.write(SALES, "2026-05-13", NEIGHBOUR, run_id="next")  # another day is free
    time_passes(loaded)
    impatient.write(SALES, "2026-05-12", NEW, run_id="next")
    assert ids(loaded) == [0, 1, 2]


def short_lease(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """A lease of so few seconds as no URL takes."""
    made = DatabricksEngine.__init__

    def short(engine: DatabricksEngine, url: str) -> None:
        made(engine, url)
        engine.options = replace(engine.options, lease_seconds=seconds)

    monkeypatch.setattr(DatabricksEngine, "__init__", short)


def test_a_replacement_that_takes_longer_than_a_lease_keeps_its_claim(
    loaded: DatabricksWarehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    short_lease(loaded, monkeypatch, 3)
    busy: list[str] = []

    def takes_long(connection: Connection, sql: str) -> None:
        time.sleep(5)
        with pytest.raises(SliceBusy) as refused:
            Warehouse(loaded.url + "&lock_wait=0.1").write(SALES, "2026-05-12", OLD, run_id="next")
        busy.append(str(refused.value))

    loaded.workspace.before.append(on(REPLACING, takes_long))
    loaded.write(SALES, "2026-05-12", NEW, run_id="slow")
    assert "rewritten by run slow" in busy[0]
    assert ids(loaded) == [0, 1, 2]
    assert Warehouse(loaded.url + "&lock_wait=0.1").write(SALES, "2026-05-12", OLD).rows_before == 3


def test_a_replacement_that_is_short_opens_no_second_session(loaded: DatabricksWarehouse) -> None:
    opened = len(loaded.workspace.logins)
    with loaded.session() as session:
        loaded.write(SALES, "2026-05-12", NEW, session=session)
    assert len(loaded.workspace.logins) == opened + 1


@pytest.mark.parametrize(
    "rows", [OLD, NEW, {"day": [DAY], "id": [7]}], ids=["old", "same", "other"]
)
def test_a_writer_that_lost_its_claim_neither_says_its_replacement_again_nor_undoes_the_next_ones(
    loaded: DatabricksWarehouse, monkeypatch: pytest.MonkeyPatch, rows: Any
) -> None:
    """It was asleep for longer than its lease, and so was the thread that renews it."""
    monkeypatch.setattr(databricks_session, "kept", lambda *_: contextlib.nullcontext())

    def overtaken(connection: Connection, sql: str) -> None:
        time_passes(loaded)
        loaded.write(SALES, "2026-05-12", rows, run_id="next")
        sleeper._held_since -= 3600  # type: ignore[attr-defined]
        raise ServerOperationError("[DELTA_CONCURRENT_APPEND] a file was added", {})

    loaded.workspace.before.append(on(REPLACING, overtaken))
    with loaded.session() as sleeper, pytest.raises((SliceBusy, OutcomeUnknown)):
        loaded.write(SALES, "2026-05-12", NEW, session=sleeper, run_id="asleep")
    assert ids(loaded) == rows["id"]
    assert [load[-1] for load in loaded.loads()][-1] == "next"


def test_the_stage_of_a_dead_writer_is_dropped_after_a_day(
    loaded: DatabricksWarehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded.workspace.after.append(on(INTENT, kills))
    with pytest.raises(Killed):
        loaded.write(SALES, "2026-05-12", NEW, run_id="dead")
    assert len(loaded.leftovers()) == 1
    loaded.write(SALES, "2026-05-13", NEIGHBOUR)
    assert len(loaded.leftovers()) == 1
    now = time.time()
    monkeypatch.setattr(databricks_session.time, "time", lambda: now + 90_000)
    loaded.write(SALES, "2026-05-13", NEIGHBOUR)
    assert loaded.leftovers() == []


@pytest.mark.parametrize("settled", [False, True])
def test_the_report_of_a_backfill_shows_what_a_dead_writer_left_unfinished(
    loaded: DatabricksWarehouse, settled: bool
) -> None:
    loaded.workspace.before.append(on(REPLACING, kills))
    with pytest.raises(Killed):
        loaded.write(SALES, "2026-05-12", NEW, run_id="dead", backfill_id="bf")
    if settled:
        time_passes(loaded)
        loaded.write(SALES, "2026-05-12", NEW, run_id="next")
    slices = [Slice(SALES, Window.day(day)) for day in ("2026-05-12", "2026-05-13")]
    with loaded.session(read_only=True) as session:
        found, _ = facts_of(session, AuditTable(), SALES, slices, None, "bf", {"dead"})
        others, _ = facts_of(session, AuditTable(), SALES, slices, None, "another", set())
    verdict = Judge("fct_sales", {}, has_ended=True, was_cancelled=False).verdict(
        "2026-05-12", found[0], None
    )
    wanted = (
        "ended before it replaced the slice" if settled else "its writer ended while it replaced"
    )
    assert verdict[0] == "failed"
    assert wanted in verdict[1]
    assert found[1].attempt is None
    assert others[0].attempt is None


# an outcome that nobody knows


@pytest.mark.parametrize("took_effect", [False, True])
def test_a_connection_that_breaks_under_the_replacement_leaves_the_slice_whole_and_the_next_start_knows(
    loaded: DatabricksWarehouse, took_effect: bool
) -> None:
    hooks = loaded.workspace.after if took_effect else loaded.workspace.before
    hooks.append(on(REPLACING, loses))
    with pytest.raises(OutcomeUnknown) as unknown:
        loaded.write(SALES, "2026-05-12", NEW, run_id="lost")
    assert unknown.value.then == "retry"
    assert "is not known, though it is whole, old or new" in str(unknown.value)
    assert ids(loaded) == ([0, 1, 2] if took_effect else [0, 1])
    assert unfinished(loaded) == 1
    # the claim was given back, so that the retry need not wait for a lease
    load = Warehouse(loaded.url + "&lock_wait=0.1").write(SALES, "2026-05-12", NEW, run_id="retry")
    assert load.rows_before == (3 if took_effect else 2)
    assert ids(loaded) == [0, 1, 2]
    assert unfinished(loaded) == 0
    assert len(loaded.loads("committed" if took_effect else "failed")) >= 1


@pytest.mark.parametrize("beginning", [DONE, "SELECT count(*) FROM `backfill`.`load_audit`"])
@pytest.mark.parametrize("took_effect", [False, True])
def test_a_connection_that_breaks_after_the_replacement_never_loses_or_doubles_its_audit_row(
    loaded: DatabricksWarehouse, beginning: str, took_effect: bool
) -> None:
    hooks = loaded.workspace.after if took_effect else loaded.workspace.before
    hooks.append(on(beginning, loses))
    with pytest.raises(OutcomeUnknown):
        loaded.write(SALES, "2026-05-12", NEW, run_id="lost")
    loaded.write(SALES, "2026-05-12", OLD, run_id="retry")
    assert [load[-1] for load in loaded.loads()][-2:] == ["lost", "retry"]
    assert unfinished(loaded) == 0


@pytest.mark.parametrize("beginning", [INTENT, REPLACING, DONE, "UPDATE `backfill`.`slice_claims_"])
def test_a_statement_that_the_connector_sends_again_after_a_lost_answer_does_no_harm(
    loaded: DatabricksWarehouse, beginning: str
) -> None:
    loaded.workspace.after.append(on(beginning, lambda c, sql: c.cursor()._carry_out(sql)))
    loaded.write(SALES, "2026-05-12", NEW, run_id="twice")
    assert ids(loaded) == [0, 1, 2]
    assert unfinished(loaded) == 0
    assert Warehouse(loaded.url + "&lock_wait=0.1").write(SALES, "2026-05-12", OLD).rows_before == 3


def test_an_intent_that_is_young_is_left_to_its_statement_which_may_still_run(
    loaded: DatabricksWarehouse,
) -> None:
    loaded.workspace.before.append(on(REPLACING, loses))
    with pytest.raises(OutcomeUnknown):
        loaded.write(SALES, "2026-05-12", NEW, run_id="lost")
    shrinking = Table("mart.fct_sales", SliceColumn("day", "date"), max_shrink=0.1, shrink_floor=1)
    with pytest.raises(ShrunkSlice):
        loaded.write(shrinking, "2026-05-12", {"day": [DAY], "id": [1]}, run_id="refused")
    assert unfinished(loaded) == 1  # the warehouse may still carry it out
    loaded.write(SALES, "2026-05-12", NEW, run_id="next")
    assert unfinished(loaded) == 0
    assert [load[-1] for load in loaded.loads("failed")] == ["lost"]


def test_a_run_that_is_stopped_while_it_replaces_puts_the_old_rows_back(
    loaded: DatabricksWarehouse,
) -> None:
    def stop(connection: Connection, _: str) -> None:
        raise KeyboardInterrupt

    loaded.workspace.after.append(on(REPLACING, stop))
    with pytest.raises(KeyboardInterrupt):
        loaded.write(SALES, "2026-05-12", NEW, run_id="stopped")
    assert ids(loaded) == [0, 1]
    assert ids(loaded, "1 = 1") == [0, 1, 9]
    back = [sql for sql in loaded.workspace.sent if "VERSION AS OF" in sql]
    assert len(back) == 1
    assert back[0].startswith(REPLACING)
    Warehouse(loaded.url + "&lock_wait=0.1").write(SALES, "2026-05-12", NEW, run_id="next")


def test_rows_of_somebody_else_are_not_put_away_by_a_replacement_that_failed(
    loaded: DatabricksWarehouse,
) -> None:
    def foreign(connection: Connection, _: str) -> None:
        connection.duck.execute("INSERT INTO mart.fct_sales VALUES (DATE '2026-05-12', 55)")
        raise ServerOperationError("[INTERNAL_ERROR] no more memory SQLSTATE: XX000")

    loaded.workspace.before.append(on(REPLACING, foreign))
    with pytest.raises(WriteFailed):
        loaded.write(SALES, "2026-05-12", NEW, run_id="failed")
    assert ids(loaded) == [0, 1, 55]


def test_a_load_whose_audit_row_is_there_is_not_put_back_whatever_comes_after(
    loaded: DatabricksWarehouse,
) -> None:
    def stop(connection: Connection, _: str) -> None:
        raise KeyboardInterrupt

    loaded.workspace.after.append(on(DONE, stop))
    with pytest.raises(KeyboardInterrupt):
        loaded.write(SALES, "2026-05-12", NEW, run_id="told")
    assert ids(loaded) == [0, 1, 2]
    assert loaded.loads()[-1][1:] == (2, 3, loaded.loads()[-1][3], "told")
    assert loaded.leftovers() == []


@pytest.mark.parametrize("error", ["broken", "interrupt", "warehouse"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_failure_at_every_call_in_turn_leaves_a_session_that_goes_on(
    databricks: DatabricksWarehouse, moment: str, error: str
) -> None:
    any_history.test_a_failure_at_every_statement_in_turn_leaves_a_session_that_goes_on(
        databricks, moment, error
    )


def test_any_history_ends_in_the_checksum_of_one_clean_run(databricks: DatabricksWarehouse) -> None:
    any_history.test_any_history_ends_in_the_checksum_of_one_clean_run(warehouse=databricks)


# two writers


def test_a_conflict_that_delta_reports_is_tried_again_and_changes_nothing_until_then(
    loaded: DatabricksWarehouse,
) -> None:
    def conflicts(connection: Connection, _: str) -> None:
        raise ServerOperationError(
            "[DELTA_CONCURRENT_APPEND.WHOLE_TABLE_READ] Transaction conflict detected. SQLSTATE: 2D521"
        )

    for _ in range(3):
        loaded.workspace.before.append(on(REPLACING, conflicts))
    loaded.write(SALES, "2026-05-12", NEW)
    assert ids(loaded) == [0, 1, 2]
    assert len(loaded.waits) == 3


def test_a_conflict_that_lasts_is_a_busy_slice(loaded: DatabricksWarehouse) -> None:
    def conflicts(connection: Connection, sql: str) -> None:
        if sql.startswith(REPLACING):
            raise ServerOperationError("[DELTA_CONCURRENT_DELETE_READ] conflict SQLSTATE: 2D521")

    loaded.workspace.before.append(conflicts)
    with pytest.raises(SliceBusy, match="the slice is as it was") as busy:
        Warehouse(loaded.url + "&lock_wait=0.2").write(SALES, "2026-05-12", NEW)
    assert busy.value.then == "wait"
    assert ids(loaded) == [0, 1]
    assert unfinished(loaded) == 0


def test_of_two_that_take_one_claim_at_the_same_moment_one_gets_it(
    databricks: DatabricksWarehouse,
) -> None:
    """Their UPDATEs meet in the table of claims; whoever loses there has nothing, and asks again."""
    databricks.write(SALES, "2026-05-12", OLD)
    start, inside, most = threading.Barrier(6), [0], [0]

    def hold() -> None:
        from backfill_assets.engines import Claim

        with databricks.session() as session:
            start.wait()
            with session.hold(Claim("`mart`.`fct_sales`", (DAY,), "the slice", "a run")):  # type: ignore[attr-defined]
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0.02)
                inside[0] -= 1

    with ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(hold) for _ in range(6)]:
            done.result(60)
    assert most == [1]


def test_who_gets_only_some_days_of_a_claim_gives_them_back_while_he_waits(
    loaded: DatabricksWarehouse,
) -> None:
    week = Window(at("2026-05-11 00:00"), at("2026-05-18 00:00"))
    second: list[Any] = []

    def write_week() -> None:
        second.append(loaded.write(SALES, week, {"day": [DAY], "id": [1]}, run_id="week"))

    writer = threading.Thread(target=write_week)

    def start() -> None:
        writer.start()
        until(loaded.somebody_waits)
        # 14 May is in the week that waits, and free
        loaded.write(
            SALES,
            "2026-05-14",
            {"day": [date(2026, 5, 14)], "id": [4]},
            run_id="third",
            source_read_at=at("2026-05-15 00:00"),
        )

    with loaded.session() as session:
        after_statement(session, INTENT.replace("`", '"'), once(start))
        loaded.write(SALES, "2026-05-12", NEW, session=session, run_id="first")
    writer.join(60)
    assert second[0].rows_before == 5
    assert ids(loaded, "1 = 1") == [1]


def test_a_replacement_does_not_begin_when_the_claim_may_end_before_it(
    loaded: DatabricksWarehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, later = time.monotonic, [0.0]
    monkeypatch.setattr(databricks_session.time, "monotonic", lambda: real() + later[0])
    loaded.workspace.after.append(on(INTENT, lambda *_: later.__setitem__(0, 1000.0)))
    with pytest.raises(SliceBusy, match="of the 1800 s that it is claimed for"):
        loaded.write(SALES, "2026-05-12", NEW)
    assert ids(loaded) == [0, 1]
    assert not any(sql.startswith(REPLACING) for sql in loaded.workspace.sent)


def test_a_claims_table_that_lost_rows_is_told(loaded: DatabricksWarehouse) -> None:
    duck = loaded.workspace.database.cursor()
    (name,) = duck.execute(
        "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'slice_claims_%'"
    ).fetchall()[0]
    duck.execute(f'DELETE FROM warehouse.backfill."{name}"')
    with pytest.raises(WriteFailed, match="has not the rows that it was made with"):
        loaded.write(SALES, "2026-05-12", NEW)


# what errors mean


def server(words: str) -> Exception:
    return ServerOperationError(words)


def request(code: int | None, words: str = "") -> Exception:
    return RequestError(
        "Error during request to server", {"http-code": code, "error-message": words}
    )


ERRORS: list[tuple[Exception, type[BackfillError], str]] = [
    (request(401), Unreachable, "stop"),
    (request(403, "Invalid access token."), Unreachable, "stop"),
    (request(404, "endpoint was deleted"), Unreachable, "stop"),
    (request(429), QuotaExceeded, "wait"),
    (request(503, "TEMPORARILY_UNAVAILABLE: the warehouse is starting"), Away, "retry"),
    (request(None), Away, "retry"),
    (MaxRetryError(mock.Mock(), "/sql", ConnectionRefusedError("refused")), Away, "retry"),
    (ConnectionResetError("reset by peer"), Away, "retry"),
    (server("[INVALID_HANDLE.SESSION_NOT_FOUND] Session not found"), Away, "retry"),
    (server("[QUERY_EXECUTION_TIMEOUT_EXCEEDED] Query timed out SQLSTATE: 57KD0"), LimitReached, "stop"),
    (server("Query has been timed out due to inactivity."), LimitReached, "stop"),
    (server("[OPERATION_CANCELED] Operation has been canceled. SQLSTATE: HY008"), LimitReached, "stop"),
    (server("[DELTA_CONCURRENT_APPEND.ROW_LEVEL_CHANGES] conflict SQLSTATE: 2D521"), SliceBusy, "wait"),
    (server("com.databricks.sql.transaction.tahoe.ConcurrentAppendException: Files were added"), SliceBusy, "wait"),
    (server("[DELTA_CONCURRENT_DELETE_READ] conflict SQLSTATE: 2D521"), SliceBusy, "wait"),
    (server("[DELTA_METADATA_CHANGED] conflict SQLSTATE: 2D521"), SliceBusy, "wait"),
    (server("[QUOTA_EXCEEDED_EXCEPTION] too many tables"), QuotaExceeded, "wait"),
    (server("[TABLE_OR_VIEW_NOT_FOUND] The table `Orders` cannot be found. SQLSTATE: 42P01"), MissingTable, "stop"),
    (server("[UNRESOLVED_COLUMN.WITH_SUGGESTION] `IDD`, did you mean `id`? SQLSTATE: 42703"), MissingTable, "stop"),
    (server("[INSUFFICIENT_PERMISSIONS] User does not have MODIFY on Table SQLSTATE: 42501"), MissingRight, "stop"),
    (server("[PARSE_SYNTAX_ERROR] Syntax error at or near 'order'. SQLSTATE: 42601"), WriteFailed, "stop"),
    (server("[CAST_INVALID_INPUT] The value 'x' cannot be cast. SQLSTATE: 22018"), SchemaMismatch, "stop"),
    (server("[DELTA_NOT_NULL_CONSTRAINT_VIOLATED] NOT NULL. SQLSTATE: 23502"), BadRows, "stop"),
    (server("[DELTA_REPLACE_WHERE_MISMATCH] does not conform. SQLSTATE: 44000"), BadRows, "stop"),
    (server("[SOMETHING_NEW] nobody knows this one"), WriteFailed, "stop"),
]  # fmt: skip


SAID = [f"{number}-{kind.__name__}" for number, (_, kind, _) in enumerate(ERRORS)]


@pytest.mark.parametrize(("error", "kind", "then"), ERRORS, ids=SAID)
def test_an_error_is_one_sentence_that_says_whether_to_stop_wait_or_retry(
    error: Exception, kind: type[BackfillError], then: str
) -> None:
    ours = told(error)
    assert type(ours) is kind
    assert ours.then == then
    assert "\n" not in str(ours)
    assert ours.do


@pytest.mark.parametrize(("error", "kind", "then"), ERRORS, ids=SAID)
def test_whatever_the_replacement_fails_of_the_slice_is_as_it_was(
    loaded: DatabricksWarehouse, error: Exception, kind: type[BackfillError], then: str
) -> None:
    def fail(connection: Connection, sql: str) -> None:
        if sql.startswith(REPLACING):
            raise error

    loaded.workspace.before.append(fail)
    with pytest.raises(BackfillError) as raised:
        Warehouse(loaded.url + "&lock_wait=0.05").write(SALES, "2026-05-12", NEW, run_id="failed")
    lost_sight = issubclass(kind, Unreachable)
    assert type(raised.value) is (OutcomeUnknown if lost_sight else kind)
    assert ids(loaded) == [0, 1]
    assert unfinished(loaded) == lost_sight
    loaded.workspace.before.clear()
    Warehouse(loaded.url + "&lock_wait=0.1").write(SALES, "2026-05-12", NEW, run_id="next")
    assert ids(loaded) == [0, 1, 2]
    assert unfinished(loaded) == 0


# how it is reached


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("databricks://token:dapi1@/c/s?http_path=/w", "names no workspace"),
        ("databricks://token:dapi1@host?http_path=/w", "does not name a catalog"),
        ("databricks://token:dapi1@host/c/s/t?http_path=/w", "does not name a catalog"),
        ("databricks://token:dapi1@host/c/s", "names no SQL warehouse"),
        ("databricks://dapi1@host/c/s?http_path=/w", "stand neither the word token"),
        ("databricks://token:dapi1@host/c?http_path=/w&colour=red", "'colour' is not known"),
        ("databricks://token:dapi1@host/c?http_path=/w&lock_wait=soon", "no number of seconds"),
        ("databricks://token:dapi1@host/c?http_path=/w&claim_lease=5", "claim_lease=5 s is shorter"),
        ("databricks://token:dapi1@host/c?http_path=/w&warehouse_size=tiny", "no warehouse size 'tiny'"),
    ],
)  # fmt: skip
def test_a_url_that_cannot_be_used_is_refused_and_shows_no_token(url: str, said: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        open_engine(url)
    assert said in str(refused.value)
    assert "dapi1" not in str(refused.value)


def test_two_warehouses_of_one_workspace_are_two_doors_of_one_catalog() -> None:
    first, second = (
        open_engine(f"databricks://token:dapi{n}@Host/c/s?http_path=/sql/1.0/warehouses/{n}") for n in (1, 2)
    )  # fmt: skip
    assert (first.place, first.address) == (second.place, second.address) == ("c", "host")
    assert first.shown == "databricks://Host/c/s?http_path=/sql/1.0/warehouses/1"


def test_credentials_come_from_the_url_the_environment_or_the_sdk(
    loaded: DatabricksWarehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = loaded.url.replace("token:dapi123@", "")
    monkeypatch.setenv("DATABRICKS_TOKEN", "dapi-env")
    with open_engine(bare).session():
        assert loaded.workspace.logins[-1]["access_token"] == "dapi-env"
    configs: list[dict[str, str]] = []

    class Config:
        def __init__(self, **given: str) -> None:
            configs.append(given)

        def authenticate(self) -> dict[str, str]:
            return {"Authorization": "Bearer x"}

    core = mock.Mock(Config=Config)
    monkeypatch.setitem(__import__("sys").modules, "databricks.sdk", mock.Mock(core=core))
    monkeypatch.setitem(__import__("sys").modules, "databricks.sdk.core", core)
    with open_engine(bare.replace("//fake", "//principal:s3cret@fake")).session():
        login = loaded.workspace.logins[-1]
    assert configs[-1] == {
        "host": "https://fake", "client_id": "principal", "client_secret": "s3cret", "auth_type": "oauth-m2m",
    }  # fmt: skip
    assert login["credentials_provider"]()() == {"Authorization": "Bearer x"}
    with open_engine(bare + "&profile=prod").session():
        assert configs[-1] == {"host": "https://fake", "profile": "prod"}
    monkeypatch.delenv("DATABRICKS_TOKEN")
    with open_engine(bare).session():
        assert configs[-1] == {"host": "https://fake"}


def test_a_login_that_is_refused_is_one_sentence_without_the_token(
    databricks: DatabricksWarehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**arguments: Any) -> None:
        raise RequestError("Invalid access token: token=dapi123", {"http-code": 403})

    monkeypatch.setattr(connector, "connect", refuse)
    with pytest.raises(Unreachable) as refused, databricks.session():
        pass
    assert "Renew the token" in str(refused.value)
    assert "dapi123" not in str(refused.value)
    assert refused.value.then == "stop"


def test_a_port_where_nobody_listens_is_one_sentence_and_soon() -> None:
    began = time.monotonic()
    engine = open_engine(
        "databricks://token:dapi123@127.0.0.1:9/c/s?http_path=/sql/1.0/warehouses/w"
    )
    with pytest.raises(Away, match="cannot be reached") as away, engine.session():
        pass
    assert time.monotonic() - began < 10
    assert "dapi123" not in str(away.value)


def test_the_connector_itself_gives_up_on_a_port_where_nobody_listens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(databricks_session, "_reach", lambda host, port: None)
    monkeypatch.setattr(databricks_session, "_ATTEMPTS", 2)
    began = time.monotonic()
    engine = open_engine(
        "databricks://token:dapi123@127.0.0.1:9/c/s?http_path=/sql/1.0/warehouses/w&connect_wait=3"
    )
    with pytest.raises(Away, match="Check host, network and proxy"), engine.session():
        pass
    assert time.monotonic() - began < 60


def test_a_load_has_the_dbus_of_its_seconds_where_the_size_is_given(
    databricks: DatabricksWarehouse,
) -> None:
    sized = Warehouse(databricks.url + "&warehouse_size=x-small")
    load = sized.write(SALES, "2026-05-12", OLD)
    assert load.cost == pytest.approx(load.seconds * 6 / 3600, abs=1e-5)
    assert databricks.write(SALES, "2026-05-12", OLD).cost is None


def test_a_reader_writes_nothing_and_claims_nothing(loaded: DatabricksWarehouse) -> None:
    with loaded.session(read_only=True) as session:
        with pytest.raises(MissingRight, match="opened to read"):
            session.execute("DELETE FROM mart.fct_sales")
        with pytest.raises(BackfillError, match="opened to read"):
            loaded.write(SALES, "2026-05-12", NEW, session=session)
    assert len(ids(loaded, "1 = 1")) == 3


def test_names_that_delta_does_not_take_are_refused_before_anything_is_sent(
    databricks: DatabricksWarehouse,
) -> None:
    with pytest.raises(DeclarationError, match="takes no name with any of"):
        databricks.write(Table("mart.fct sales", SliceColumn("day", "date")), "2026-05-12", OLD)
    assert SPELLING.replace.startswith("INSERT INTO {table} REPLACE WHERE")


def points(warehouse: DatabricksWarehouse) -> dict[str, str]:
    engine = open_engine(warehouse.url)
    found = examined({"live": lambda: engine}, [SALES], AuditTable())
    return {point.what: point.verdict for point in found}


def test_the_doctor_tries_replacement_claims_and_rights_and_changes_nothing(
    loaded: DatabricksWarehouse,
) -> None:
    before = loaded.loads()
    found = points(loaded)
    assert {"replacement", "claims", "stages", "zone", "DELETE on mart.fct_sales"} <= set(found)
    assert {what for what, state in found.items() if state == "fails"} == set()
    assert ids(loaded, "1 = 1") == [0, 1, 9]
    assert loaded.loads() == before
    assert loaded.leftovers() == []


def test_the_doctor_finds_a_warehouse_that_takes_rows_outside_the_condition(
    loaded: DatabricksWarehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "backfill_assets_tests.databricks_workspace.Cursor._replace",
        lambda cursor, sql: cursor._give([(1,)], "num_affected_rows"),
    )
    assert points(loaded)["replacement"] == "fails"


@pytest.mark.skipif(
    bool(os.environ.get("BACKFILL_TEST_DATABRICKS_URL")), reason="the contract is asked of it"
)
def test_the_contract_on_a_real_workspace() -> None:
    pytest.skip(
        "BACKFILL_TEST_DATABRICKS_URL names no catalog of a real workspace; docs/engines/databricks.md has the command"
    )
