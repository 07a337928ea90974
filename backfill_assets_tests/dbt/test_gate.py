"""The gate is asked before each day of a dbt invocation: budget and reason inside the warehouse, a pause from outside."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from backfill_assets.controls.held import HELD
from backfill_assets.controls.switch import Scope, Switch
from backfill_assets.engines.protocol import Claim
from backfill_assets.window import Window
from backfill_assets_tests.dbt.places import FCT, Place, day, days
from backfill_assets_tests.warehouses import Warehouse, until


def test_a_budget_that_is_used_up_between_two_days_stops_dbt_and_a_raised_one_lets_the_rest_in(
    place: Place,
) -> None:
    two_days = place.wanted(day(1)) + place.wanted(day(2))
    backfill, status = place.backfill(days(1, 6), budget_rows=str(two_days + 1))
    assert status == "COMPLETED_FAILED"
    assert place.loads(backfill) == days(1, 3)
    spent = two_days + place.wanted(day(3))
    said = place.said(backfill)
    assert "2026-03-04 failed, partition 4 of 6 in this run; the 3 before it are committed" in said
    assert (
        f"the budget of backfill {backfill} is used up: {spent} of {two_days + 1} rows are spent"
        in said
    )
    assert place.instance.get_materialized_partitions(FCT) == set(days(1, 3))
    # no attempt at a day was made, and so none is in the audit
    assert not place.warehouse.loads("refused")

    place.daemon.job("raise_budget", backfill=backfill, rows=100_000, reason="more", by="ana")
    (new,) = place.daemon.job("resume_backfill", backfill=backfill, by="ana")["launched"]
    assert place.daemon.end(new) == "COMPLETED_SUCCESS", place.said(new)
    assert place.loads(new) == days(4, 6)


def test_a_day_that_needs_a_reason_keeps_the_first_loads_before_it(place: Place) -> None:
    _, status = place.backfill([day(3)])
    assert status == "COMPLETED_SUCCESS"
    backfill = place.request(days(1, 4), reason="")
    place.instance.update_backfill(place.daemon.found(backfill)._replace(title=None))
    assert place.daemon.end(backfill) == "COMPLETED_FAILED"
    assert place.loads(backfill) == days(1, 2)
    assert "2026-03-03 failed, partition 3 of 4" in place.said(backfill)
    assert "no reason is given, and it was loaded before" in place.said(backfill)


@contextmanager
def somebody_on(warehouse: Warehouse, of_day: str) -> Iterator[None]:
    """Another writer holds the claim on a day, so that dbt waits there and what it does can be timed."""
    window = Window.day(of_day).days("UTC")
    with warehouse.session(who="run 4f1c") as session, session.transaction():
        label = f"analytics.fct_orders {of_day}"
        session.claim(Claim('"analytics"."fct_orders"', window, label, "4f1c"))
        yield


def waiting_dbt(warehouse: Warehouse) -> psutil.Process:
    """Return the dbt process of this one once it waits for the claim."""
    until(warehouse.somebody_waits, 90)
    children = psutil.Process().children(recursive=True)
    (found,) = [one for one in children if any(part.endswith("/dbt") for part in one.cmdline())]
    return found


def backfilled_meanwhile(place: Place, wanted: list[str]) -> tuple[str, threading.Thread]:
    backfill = place.request(wanted)
    thread = threading.Thread(target=place.daemon.end, args=(backfill,))
    thread.start()
    return backfill, thread


@pytest.mark.only("postgres", why="another writer inside the warehouse at the same time")
def test_a_pause_in_the_middle_of_a_range_keeps_the_days_before_it_and_the_run_is_repeated_for_the_rest_alone(
    place: Place,
) -> None:
    assert place.backfill([day(9)])[1] == "COMPLETED_SUCCESS"  # the table is there
    before = place.warehouse.rows("SELECT * FROM analytics.fct_orders ORDER BY order_id")
    with somebody_on(place.warehouse, day(4)):
        backfill, thread = backfilled_meanwhile(place, days(1, 6))
        dbt = waiting_dbt(place.warehouse)
        Switch(place.instance).pause(Scope(backfill=backfill), "the source is wrong", "ana")
        until(lambda: not dbt.is_running() or dbt.status() == psutil.STATUS_ZOMBIE, 60)
    thread.join(200)
    assert place.loads(backfill) == days(1, 3)
    assert before == place.warehouse.rows(
        f"SELECT * FROM analytics.fct_orders WHERE order_date = DATE '{day(9)}' ORDER BY order_id"
    )
    (run,) = place.daemon.runs(backfill)
    said = place.said(backfill)
    assert "2026-03-04 failed, partition 4 of 6" in said
    assert "paused by ana" in said
    assert "the source is wrong" in said
    assert run.tags[HELD] == "yes"
    assert int(run.tags["dagster/max_retries"]) > 100
    # a run that a pause has stopped is no failure, for which the breaker would pause once more
    assert [pause.by for pause in place.pauses()] == ["ana"]

    Switch(place.instance).resume(Scope(backfill=backfill), "it is right again", "ana")
    (new,) = place.daemon.job("resume_backfill", backfill=backfill, by="ana")["launched"]
    assert place.daemon.end(new) == "COMPLETED_SUCCESS"
    assert place.loads(new) == days(4, 6)


@pytest.mark.only("postgres", why="another writer inside the warehouse at the same time")
def test_a_pause_that_ends_while_dbt_is_ending_lets_the_same_run_do_the_rest(place: Place) -> None:
    assert place.backfill([day(9)])[1] == "COMPLETED_SUCCESS"  # the table is there
    with somebody_on(place.warehouse, day(4)):
        backfill, thread = backfilled_meanwhile(place, days(1, 6))
        dbt = waiting_dbt(place.warehouse)
        Switch(place.instance).pause(Scope(backfill=backfill), "a moment", "ana")
        until(lambda: not dbt.is_running() or dbt.status() == psutil.STATUS_ZOMBIE, 60)
        Switch(place.instance).resume(Scope(backfill=backfill), "it is right again", "ana")
    thread.join(300)
    assert place.loads(backfill) == days(1, 6), place.said(backfill)
    assert len(place.daemon.runs(backfill)) == 1


@pytest.mark.only("postgres", why="another writer inside the warehouse at the same time")
def test_a_dbt_that_is_killed_leaves_its_day_as_it_was_and_the_rest_can_be_resumed(
    place: Place,
) -> None:
    assert place.backfill([day(9)])[1] == "COMPLETED_SUCCESS"  # the table is there
    with somebody_on(place.warehouse, day(4)):
        backfill, thread = backfilled_meanwhile(place, days(1, 6))
        os.kill(waiting_dbt(place.warehouse).pid, signal.SIGKILL)
        thread.join(200)
    assert place.loads(backfill) == days(1, 3)
    assert "dbt ended without a word, as a process does that is killed" in place.said(backfill)
    assert place.instance.get_materialized_partitions(FCT) == {*days(1, 3), day(9)}
    assert [pause.scope.backfill for pause in place.pauses()] == [backfill]
    Switch(place.instance).resume(Scope(backfill=backfill), "there is memory again", "ana")
    (new,) = place.daemon.job("resume_backfill", backfill=backfill, by="ana")["launched"]
    assert place.daemon.end(new) == "COMPLETED_SUCCESS"
    assert place.loads(new) == days(4, 6)
    counted = place.warehouse.rows(
        "SELECT CAST(order_date AS TEXT), count(*), count(DISTINCT order_id) FROM analytics.fct_orders GROUP BY 1 ORDER BY 1"
    )
    assert counted == [(d, place.wanted(d), place.wanted(d)) for d in (*days(1, 6), day(9))]
