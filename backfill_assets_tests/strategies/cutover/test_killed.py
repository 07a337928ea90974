"""kill -9 between any two writes of a move: readers read one table wholly, the status is true, and again is the same."""

from __future__ import annotations

import subprocess
import sys

import pytest

from backfill_assets.strategies.cutover import status
from backfill_assets_tests.strategies.cutover.conftest import NEW, OLD, VIEW, Operator, make
from backfill_assets_tests.strategies.cutover.dying import in_steps
from backfill_assets_tests.warehouses import Warehouse

# the state that readers are in before, and after
ENDS = {"cut_over": ("dual_writing", "cut_over"), "roll_back": ("cut_over", "dual_writing"), "retire": ("cut_over", "retired")}  # fmt: skip
# as the warehouse does it, and as one does it that does not undo a replaced view with its transaction
DEATHS = [("cut_over", "transaction"), ("cut_over", "steps"), ("roll_back", "steps"), ("retire", "transaction"), ("retire", "steps")]  # fmt: skip
READS = {"dual_writing": {"old"}, "cut_over": {"new"}, "retired": {"new"}}


def killed(warehouse: Warehouse, move: str, number: int, how: str) -> bool:
    """Start a move that dies after so many writes; tell whether it died."""
    name = "backfill_assets_tests.strategies.cutover.dying"
    done = subprocess.run(
        [sys.executable, "-m", name, warehouse.url, move, str(number), how],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode in (0, -9), done.stderr
    return done.returncode == -9


@pytest.mark.slow
@pytest.mark.parametrize(("move", "how"), DEATHS)
def test_a_killed_move_leaves_readers_wholly_on_one_table_and_is_finished_or_redone(
    warehouse: Warehouse, move: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "PATIENCE_SECONDS", 0)
    make(warehouse)
    ann = Operator(warehouse)
    before, after = ENDS[move]
    for number in range(1, 99):
        _to(ann, before)
        died = killed(warehouse, move, number, how)
        seen, gone = ann.status(), warehouse.columns(OLD) is None
        assert ann.reads in ({"old"}, {"new"})
        if seen.state == after:
            assert ann.reads == READS[after]
            assert gone is (after == "retired")
        if gone:
            assert seen.state in ("retiring", "retired")
        if not died:
            assert seen.state == after
            break
        with warehouse.session() as session:
            if how == "steps":
                in_steps(session)
            done = getattr(ann, move)(session=session)
        assert (done.state, done.unfinished, ann.reads) == (after, None, READS[after])
        assert ann.status() == done
    assert number > 5  # it was killed more than once


def _to(ann: Operator, state: str) -> None:
    """Bring a migration to a state, whatever it was in."""
    if ann.warehouse.columns(OLD) is None:
        ann.warehouse.execute("DROP SCHEMA analytics CASCADE", "DROP SCHEMA backfill CASCADE")
        make(ann.warehouse)
    {"cut_over": ann.cut_over, "dual_writing": ann.roll_back}[state]()
    assert ann.reads == READS[state]


def test_a_view_that_was_replaced_by_hand_is_told_and_taken_over(warehouse: Warehouse) -> None:
    make(warehouse)
    ann = Operator(warehouse)
    ann.cut_over()
    columns = "order_id, order_date, CAST(amount AS DECIMAL(10, 2)) AS amount, CAST(source AS VARCHAR(10)) AS source"
    warehouse.execute(f"CREATE OR REPLACE VIEW {VIEW} AS SELECT {columns} FROM {OLD}")
    seen = ann.status()
    assert (seen.state, seen.reads) == ("dual_writing", "old")
    assert (
        seen.unfinished
        == "the log says cut_over, and the view reads old: it was replaced without these jobs"
    )
    assert ann.cut_over().state == "cut_over"
    assert ann.log == [
        "cutting_over",
        "cut_over",
        "rolling_back",
        "dual_writing",
        "cutting_over",
        "cut_over",
    ]


def test_nothing_is_called_done_while_the_view_reads_neither_table(warehouse: Warehouse) -> None:
    make(warehouse)
    ann = Operator(warehouse)
    ann.cut_over()
    warehouse.execute(f"DROP VIEW {VIEW}")
    seen = ann.status()
    assert (seen.state, seen.reads) == ("cutting_over", "there is no such view")
    warehouse.execute(
        f"CREATE VIEW {VIEW} AS SELECT order_id, order_date, amount, source FROM {NEW}"
    )
    assert ann.status().state == "cut_over"
