"""Readers moved on Snowflake: a replaced view commits at once there, so that intent, flip and done are three steps."""

from __future__ import annotations

from typing import Any

import pytest

from backfill_assets.errors import BackfillError, Refused
from backfill_assets.strategies.cutover import status
from backfill_assets_tests.interruptions import Broken
from backfill_assets_tests.strategies.cutover.conftest import OLD, Operator, make
from backfill_assets_tests.warehouses import Warehouse

REPLACES = "CREATE OR REPLACE VIEW"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for nobody."""
    monkeypatch.setattr(status, "PATIENCE_SECONDS", 0)


def test_readers_move_there_and_back_and_the_old_table_goes(snowflake: Warehouse) -> None:
    make(snowflake)
    ann = Operator(snowflake)
    tried = ann.cut_over(dry_run=True)
    assert tried.refusals == ()
    assert any("does not undo a replaced view with a transaction" in line for line in tried.plan)
    assert any("policies that are set on the view itself are lost" in line for line in tried.plan)
    assert (ann.cut_over().state, ann.reads) == ("cut_over", {"new"})
    assert (ann.roll_back().state, ann.reads) == ("dual_writing", {"old"})
    ann.cut_over()
    with pytest.raises(Refused, match="it has to be"):
        ann.retire("")
    assert ann.retire().state == "retired"
    assert (snowflake.columns(OLD), ann.reads) == (None, {"new"})
    assert ann.log[-4:] == ["cutting_over", "cut_over", "retiring", "retired"]


def test_the_statement_keeps_what_was_granted(snowflake: Warehouse) -> None:
    make(snowflake)
    plan = Operator(snowflake).cut_over(dry_run=True).plan
    assert plan[0] == (
        'run CREATE OR REPLACE VIEW "ANALYTICS"."ORDERS" COPY GRANTS AS SELECT'
        ' CAST("ORDER_ID" AS BIGINT) AS "ORDER_ID", CAST("ORDER_DATE" AS DATE) AS "ORDER_DATE",'
        ' CAST("AMOUNT" AS NUMBER(10,2)) AS "AMOUNT", CAST("SOURCE" AS VARCHAR) AS "SOURCE"'
        ' FROM "ANALYTICS"."ORDERS_NEW"'
    )


@pytest.mark.parametrize("at", ["intent", "flip"])
def test_a_run_that_ends_between_two_steps_is_settled_by_the_next(
    snowflake: Warehouse, at: str
) -> None:
    make(snowflake)
    ann = Operator(snowflake)
    with snowflake.session() as session:
        # the run is gone right before its flip, or right after it
        real: Any = session.execute

        def dies(sql: str) -> int:
            if not sql.startswith(REPLACES):
                return real(sql)
            if at == "flip":
                real(sql)
            raise Broken

        session.execute = dies  # type: ignore[method-assign]
        with pytest.raises(Broken):
            ann.cut_over(session=session)
    found = ann.status()
    assert (found.state, found.reads) == ("cutting_over", "old" if at == "intent" else "new")
    assert "has begun and not ended" in str(found.unfinished)
    assert (ann.cut_over().state, ann.reads) == ("cut_over", {"new"})
    ends = ["dual_writing", "cutting_over", "cut_over"] if at == "intent" else ["cut_over"]
    assert ann.log == ["cutting_over", *ends]


def test_whoever_flips_so_late_that_another_has_settled_it_does_not_call_it_done(
    snowflake: Warehouse,
) -> None:
    make(snowflake)
    ann, ben = Operator(snowflake), Operator(snowflake)
    with snowflake.session() as slow:
        real: Any = slow.execute
        left = [1]

        def late(sql: str) -> int:
            if sql.startswith(REPLACES) and left:
                left.pop()
                ben.cut_over(run_id="run-2")
                ben.roll_back(run_id="run-3", reason="totals are off")
            return real(sql)

        slow.execute = late  # type: ignore[method-assign]
        ann.cut_over(session=slow)
    # ann flipped after ben's rollback: what readers read is what the log says in the end
    found = ann.status()
    assert (found.state, found.reads, found.unfinished) == ("cut_over", "new", None)
    assert ann.reads == {"new"}


def test_a_flip_that_the_warehouse_refuses_is_given_up(snowflake: Warehouse) -> None:
    make(snowflake)
    ann = Operator(snowflake)
    with snowflake.session() as session:
        real: Any = session.execute
        session.execute = lambda sql: real(  # type: ignore[method-assign]
            "SELECT * FROM there_is_no_such_table" if sql.startswith(REPLACES) else sql
        )
        with pytest.raises(BackfillError, match="not there"):
            ann.cut_over(session=session)
    found = ann.status()
    assert (found.state, found.reads, found.unfinished) == ("dual_writing", "old", None)
    assert ann.reads == {"old"}
