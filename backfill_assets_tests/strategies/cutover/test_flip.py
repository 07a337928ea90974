"""Moving readers to the new table and back, and dropping the old one."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backfill_assets.errors import DeclarationError, Refused
from backfill_assets.strategies.cutover.cutting import named
from backfill_assets_tests.strategies.cutover.conftest import (
    NEW,
    OLD,
    ORDERS,
    SAID,
    VIEW,
    Operator,
    make,
)
from backfill_assets_tests.warehouses import Warehouse


def too_short() -> str:
    return "6 of 14 quiet days"


def a_pause() -> str:
    return "paused by ben"


def fine() -> None:
    return None


def test_readers_move_to_the_new_table_and_back(warehouse: Warehouse) -> None:
    make(warehouse)
    ann = Operator(warehouse)
    before = warehouse.columns(VIEW)
    assert (ann.status().state, ann.reads) == ("dual_writing", {"old"})
    done = ann.cut_over(fine)
    assert (done.state, done.reads, done.by, done.reason) == (
        "cut_over",
        "new",
        "ann",
        "14 quiet days",
    )
    assert ann.reads == {"new"}
    assert warehouse.columns(VIEW) == before  # the types and the order that readers know
    back = ann.roll_back(by="ben", reason="totals are off")
    assert (back.state, back.reads, back.by, back.unfinished) == (
        "dual_writing",
        "old",
        "ben",
        None,
    )
    assert ann.reads == {"old"}
    assert ann.log == ["cutting_over", "cut_over", "rolling_back", "dual_writing"]
    assert ann.cut_over().state == "cut_over"  # and once more


def test_a_dry_run_changes_nothing_and_says_what_it_would_do(warehouse: Warehouse) -> None:
    make(warehouse)
    ann = Operator(warehouse)
    tried = ann.cut_over(dry_run=True, by="", reason="")
    assert (tried.state, tried.refusals) == ("dual_writing", ())
    assert "REPLACE VIEW" in tried.plan[0]
    assert "amount is" in tried.plan[-1]  # readers go on to see it with two places
    assert (ann.reads, ann.log) == ({"old"}, [])
    ann.cut_over()
    assert ann.roll_back(dry_run=True).plan
    assert ann.retire(dry_run=True).refusals == ()
    assert (ann.reads, ann.log) == ({"new"}, ["cutting_over", "cut_over"])


def test_all_refusals_are_told_together(warehouse: Warehouse) -> None:
    make(warehouse)
    ann = Operator(warehouse)
    guards = (named("streak", too_short), fine, named("paused", a_pause))
    tried = ann.cut_over(*guards, dry_run=True)
    assert tried.refusals == ("streak: 6 of 14 quiet days", "paused: paused by ben")
    with pytest.raises(Refused, match=r"streak: 6 of 14 quiet days; paused: paused by ben"):
        ann.cut_over(*guards)
    assert (ann.reads, ann.log) == ({"old"}, [])


def test_an_override_passes_the_guards_it_names_with_a_reason_that_is_kept(
    warehouse: Warehouse,
) -> None:
    make(warehouse)
    ann = Operator(warehouse)
    streak, pause = named("streak", too_short), named("paused", a_pause)
    with pytest.raises(DeclarationError, match="reason is empty to pass streak"):
        ann.cut_over(streak, override=("streak",), reason=" ", dry_run=True)
    with pytest.raises(DeclarationError, match="no guard 'steak'"):
        ann.cut_over(streak, override=("steak",))
    with pytest.raises(Refused, match="paused"):
        ann.cut_over(streak, pause, override=("streak",))
    assert ann.log == []
    done = ann.cut_over(
        streak, pause, override=("streak", "paused"), reason="the old job stops today"
    )
    assert done.state == "cut_over"
    assert done.overridden == "streak: 6 of 14 quiet days; paused: paused by ben"
    assert done.reason == "the old job stops today"


@pytest.mark.parametrize("missing", ["by", "reason"])
def test_nobody_moves_readers_without_saying_who_and_why(
    warehouse: Warehouse, missing: str
) -> None:
    make(warehouse)
    ann = Operator(warehouse)
    for move in (ann.cut_over, ann.roll_back, ann.retire):
        with pytest.raises(DeclarationError, match=f"{missing} is empty"):
            move(**{missing: ""})
    assert (ann.reads, ann.log) == ({"old"}, [])


def test_what_is_done_already_is_not_done_again(warehouse: Warehouse) -> None:
    make(warehouse)
    ann = Operator(warehouse)
    ann.roll_back()
    assert ann.log == []
    ann.cut_over()
    ann.cut_over()
    assert ann.log == ["cutting_over", "cut_over"]
    assert ann.told[-1].startswith("Nothing is left to do: orders is cut_over")


def test_the_old_table_goes_when_its_time_has_come_and_it_is_named(warehouse: Warehouse) -> None:
    make(warehouse)
    ann = Operator(warehouse)
    ann.cut_over()
    early = Operator(warehouse, replace(ORDERS, retire_after_days=30))
    with pytest.raises(Refused, match="the old table stays for 30 days"):
        early.retire()
    for name in ("", NEW, "orders_legacy", f"{OLD} "):
        with pytest.raises(Refused, match=f"it has to be '{OLD}'"):
            ann.retire(name)
    assert warehouse.count(OLD) == 2
    assert ann.retire().state == "retired"
    assert warehouse.columns(OLD) is None
    assert ann.reads == {"new"}
    assert ann.retire().state == "retired"
    assert ann.log[-2:] == ["retiring", "retired"]
    with pytest.raises(Refused, match=f"there is no table {OLD}"):
        ann.roll_back()
    with pytest.raises(Refused, match="orders is retired"):
        ann.roll_back()


def test_the_old_table_stays_while_readers_read_it(warehouse: Warehouse) -> None:
    make(warehouse)
    ann = Operator(warehouse)
    with pytest.raises(
        Refused, match="orders is dual_writing.*the view does not read the new table"
    ):
        ann.retire()
    ann.cut_over()
    warehouse.execute(
        f"CREATE VIEW analytics.forgotten AS SELECT amount FROM {OLD} WHERE amount > 0"
    )
    with pytest.raises(Refused, match=f"analytics.forgotten reads {OLD}"):
        ann.retire()
    assert (warehouse.count(OLD), ann.status().state) == (2, "cut_over")


def test_a_rollback_is_refused_once_the_old_table_is_gone(warehouse: Warehouse) -> None:
    make(warehouse)
    ann = Operator(warehouse)
    ann.cut_over()
    warehouse.execute(f"DROP TABLE {OLD}")
    with pytest.raises(Refused, match=f"there is no table {OLD}"):
        ann.roll_back()
    assert (ann.reads, ann.status().state) == ({"new"}, "cut_over")


def test_readers_beside_the_writer_see_wholly_old_or_wholly_new_rows(duckdb: Warehouse) -> None:
    make(duckdb)
    ann, over = Operator(duckdb), threading.Event()
    seen, errors = set[tuple[object, ...]](), list[str]()

    def read(cursor: Any) -> None:
        cursor.execute(f'USE "{Path(duckdb.url.removeprefix("duckdb:///")).stem}"')
        while not over.is_set():
            try:
                seen.add(tuple(cursor.execute(SAID).fetchall()))
            except Exception as error:
                errors.append(str(error))

    with duckdb.session() as session:
        # a file is one process's at a time; within it, a second connection is a reader like any other
        readers = [
            threading.Thread(target=read, args=(session._open_connection.cursor(),), daemon=True)  # type: ignore[attr-defined]
            for _ in range(2)
        ]
        for reader in readers:
            reader.start()
        for _ in range(5):
            ann.cut_over(session=session)
            ann.roll_back(session=session)
        over.set()
        for reader in readers:
            reader.join(30)
    assert errors == []
    assert seen == {((1, "old"), (2, "old")), ((1, "new"), (2, "new"))}
