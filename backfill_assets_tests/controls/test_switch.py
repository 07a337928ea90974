"""The switch says who paused what, since when and why; of two people at once one is told of the other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import dagster as dg
import pytest
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill

from backfill_assets.controls.pausing import Paused, forgotten_pauses
from backfill_assets.controls.store import Store
from backfill_assets.controls.switch import (
    ASSET,
    DOCUMENT,
    AlreadyPaused,
    Scope,
    Switch,
    forgotten,
    holding,
)
from backfill_assets.errors import BackfillError, DeclarationError, Unreachable

ALL = Scope()
NOW = datetime(2026, 5, 12, 9, 30, tzinfo=timezone.utc)


def test_a_pause_holds_until_it_is_resumed_and_both_are_remembered(
    instance: dg.DagsterInstance,
) -> None:
    switch = Switch(instance)
    assert switch.pauses() == []
    switch.pause(ALL, "the source is wrong", "ana", now=NOW)
    (on,) = switch.pauses()
    assert on.told(NOW) == "backfills paused by ana since 2026-05-12 09:30 UTC: the source is wrong"
    assert Paused(instance, ["mart.t"], None).why() == on.told(datetime.now(timezone.utc))
    assert switch.resume(ALL, "it is right again", "bob") == []
    assert switch.pauses() == []
    assert Paused(instance, ["mart.t"], None).why() is None
    assert [(line["what"], line["by"]) for line in switch.history()] == [
        ("resumed", "bob"),
        ("paused", "ana"),
    ]


def test_the_history_is_on_the_page_of_an_asset(instance: dg.DagsterInstance) -> None:
    Switch(instance).pause(ALL, "the source is wrong", "ana")
    Switch(instance).resume(ALL, "it is right again", "bob")
    records = instance.fetch_materializations(ASSET, limit=5).records
    shown = [record.asset_materialization for record in records]
    assert [one.description for one in shown if one] == [
        "everything resumed by bob: it is right again",
        "everything paused by ana: the source is wrong",
    ]
    assert [one.metadata["switches_on"].value for one in shown if one] == [0, 1]


def test_a_switch_that_somebody_has_set_is_not_set_again(instance: dg.DagsterInstance) -> None:
    Switch(instance).pause(ALL, "first", "ana")
    with pytest.raises(
        BackfillError, match=r"was not paused again: backfills paused by ana since .*: first\."
    ):
        Switch(instance).pause(ALL, "second", "bob")
    assert [pause.reason for pause in Switch(instance).pauses()] == ["first"]


def test_resuming_what_is_not_paused_says_what_is(instance: dg.DagsterInstance) -> None:
    Switch(instance).pause(Scope(table="mart.t"), "first", "ana")
    with pytest.raises(
        BackfillError, match=r"no such pause is on; on are: table mart\.t paused by ana"
    ):
        Switch(instance).resume(ALL, "go on", "bob")
    assert len(Switch(instance).pauses()) == 1


def test_of_twenty_who_pause_at_once_one_is_first_and_nineteen_are_told(
    instance: dg.DagsterInstance,
) -> None:
    def pause(name: str) -> str:
        try:
            return Switch(instance).pause(ALL, "at once", name).by
        except BackfillError as error:
            return str(error)

    names = [f"person{n}" for n in range(20)]
    with ThreadPoolExecutor(20) as people:
        said = list(people.map(pause, names))
    (on,) = Switch(instance).pauses()
    assert [answer for answer in said if answer in names] == [on.by]
    assert sum(f"paused by {on.by}" in answer for answer in said) == 19


def test_pauses_of_different_things_at_once_are_all_kept(instance: dg.DagsterInstance) -> None:
    tables = [f"mart.t{n}" for n in range(20)]
    with ThreadPoolExecutor(20) as people:
        list(
            people.map(
                lambda table: Switch(instance).pause(Scope(table=table), "at once", "ana"), tables
            )
        )
    assert {pause.scope.table for pause in Switch(instance).pauses()} == set(tables)


@pytest.mark.parametrize(
    ("scope", "tables", "backfill", "held"),
    [
        (ALL, ["mart.t"], None, True),
        (Scope(table="mart.t"), ["mart.t"], "b1", True),
        (Scope(table="mart/t"), ["mart.t"], None, True),
        (Scope(table="MART.T"), ["mart/t"], None, True),
        (Scope(table="mart.t"), ["mart.u", "mart.t2"], None, False),
        (Scope(backfill="b1"), ["mart.t"], "b1", True),
        (Scope(backfill="b1"), ["mart.t"], "b2", False),
        (Scope(backfill="b1"), ["mart.t"], None, False),
    ],
)
def test_a_pause_stops_what_it_names_and_nothing_else(
    scope: Scope, tables: list[str], backfill: str | None, held: bool
) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        on = Switch(instance).pause(scope, "why", "ana")
        assert (holding([on], tables, backfill) == [on]) is held
        assert (Paused(instance, tables, backfill).why() is not None) is held


def test_a_switch_that_cannot_be_read_counts_as_on(instance: dg.DagsterInstance) -> None:
    for broken in ("not json", "[1]", '{"on": [{"reason": "x"}]}', '{"on": 3}'):
        instance.daemon_cursor_storage.set_cursor_values({f"backfill_assets/{DOCUMENT}": broken})
        with pytest.raises(Unreachable):
            Switch(instance).pauses()
        assert "count as paused" in str(Paused(instance, ["mart.t"], None).why())


def test_a_pause_that_is_on_for_days_is_told_in_every_refusal() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        old = Switch(instance).pause(
            Scope(table="mart.t"), "why", "ana", now=NOW - timedelta(days=30)
        )
        new = Switch(instance).pause(ALL, "why", "bob", now=NOW)
    assert forgotten([old, new], NOW) == (
        " (still on: table mart.t paused by ana since 2026-04-12 09:30 UTC, 30 days ago: why)"
    )


@pytest.mark.parametrize(
    ("status", "again", "is_told"),
    [
        (BulkActionStatus.REQUESTED, None, True),
        (BulkActionStatus.COMPLETED_FAILED, None, False),
        (BulkActionStatus.CANCELED, BulkActionStatus.COMPLETED_SUCCESS, False),
        (BulkActionStatus.COMPLETED_FAILED, BulkActionStatus.REQUESTED, True),
    ],
)
def test_a_pause_of_a_backfill_that_has_ended_is_told_no_more(
    instance: dg.DagsterInstance,
    status: BulkActionStatus,
    again: BulkActionStatus | None,
    is_told: bool,
) -> None:
    instance.add_backfill(backfill("b1", status))
    if again is not None:
        instance.add_backfill(backfill("b2", again, **{"dagster/root_backfill_id": "b1"}))
    month_ago = datetime.now(timezone.utc) - timedelta(days=30)
    Switch(instance).pause(Scope(backfill="b1"), "why", "ana", now=month_ago)
    assert ("still on: backfill b1" in forgotten_pauses(instance)) is is_told


def backfill(name: str, status: BulkActionStatus, **tags: str) -> PartitionBackfill:
    return PartitionBackfill(
        backfill_id=name,
        status=status,
        from_failure=False,
        tags=tags,
        backfill_timestamp=NOW.timestamp(),
        asset_selection=[dg.AssetKey(["mart", "t"])],
    )


@pytest.mark.parametrize(
    ("reason", "by", "why"),
    [("", "ana", "reason is empty"), ("  ", " ", "reason and by are empty")],
)
def test_a_pause_without_reason_or_name_is_refused(reason: str, by: str, why: str) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        with pytest.raises(DeclarationError, match=why):
            Switch(instance).pause(ALL, reason, by)
        assert Switch(instance).pauses() == []


def test_a_scope_is_a_table_or_a_backfill_and_not_both() -> None:
    with pytest.raises(DeclarationError, match="Give one of them"):
        Scope("mart.t", "b1")
    with pytest.raises(DeclarationError, match="empty text"):
        Scope(table="")


def test_a_table_is_one_scope_however_it_is_spelled(instance: dg.DagsterInstance) -> None:
    Switch(instance).pause(Scope(table="analytics/fct_sales"), "first", "ana")
    with pytest.raises(AlreadyPaused):
        Switch(instance).pause(Scope(table="Analytics.fct_sales"), "second", "bob")
    assert Switch(instance).resume(Scope(table='analytics."fct_sales"'), "mended", "ana") == []


@pytest.mark.parametrize("given", [{"table": " "}, {"backfill": " "}])
def test_a_name_of_blanks_is_no_name(given: dict) -> None:
    with pytest.raises(DeclarationError, match="empty text"):
        Scope(**given)


def test_a_time_without_a_zone_stops_backfills_and_not_the_queue(
    instance: dg.DagsterInstance,
) -> None:
    on = [
        {"table": "mart.t", "reason": "r", "by": "ana", "since": "2026-05-12T09:30:00"},
        {"table": "mart.u", "reason": "r", "by": "bob", "since": "2026-05-12T09:31:00+00:00"},
    ]
    Store(instance).change(DOCUMENT, lambda _: {"on": on})
    assert [pause.by for pause in Switch(instance).pauses()] == ["ana", "bob"]
    assert instance.get_concurrency_config().run_queue_config is not None


def test_a_change_that_fails_leaves_the_document_as_it_was(instance: dg.DagsterInstance) -> None:
    store = Store(instance)
    store.change("page", lambda page: {**page, "n": 1})

    def fail(page: dict) -> dict:
        page["n"] = 2
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        store.change("page", fail)
    assert store.read("page") == {"n": 1}


def test_a_hundred_changes_at_once_are_all_made(instance: dg.DagsterInstance) -> None:
    store = Store(instance)
    with ThreadPoolExecutor(10) as people:
        list(
            people.map(
                lambda _: store.change("count", lambda page: {"n": page.get("n", 0) + 1}),
                range(100),
            )
        )
    assert store.read("count") == {"n": 100}
