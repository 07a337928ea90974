"""A failed run of a backfill pauses that backfill, once, and alerts; others and live runs are untouched."""

from __future__ import annotations

import dagster as dg
import pytest

from backfill_assets.controls.alerts import Alert
from backfill_assets.controls.breaker import Failure, forgive, report_failure, strictest
from backfill_assets.controls.store import Change, Document, Store
from backfill_assets.controls.switch import Scope, Switch
from backfill_assets.errors import DeclarationError, Unreachable


def run(run_id: str, **tags: str) -> dg.DagsterRun:
    names = {"backfill": "dagster/backfill", "partition": "dagster/partition"}
    return dg.DagsterRun(
        job_name="j",
        run_id=run_id,
        tags={names.get(key, key): value for key, value in tags.items()},
    )


def fail(
    instance: dg.DagsterInstance, of: dg.DagsterRun, after: int | None = 1
) -> tuple[str | None, list[Alert]]:
    sent: list[Alert] = []
    failure = Failure(of, ["mart/t"], "12 rows of 13, password=hunter2")
    return report_failure(instance, failure, after, sent.append), sent


def test_the_first_failure_pauses_its_backfill_and_no_other(instance: dg.DagsterInstance) -> None:
    done, sent = fail(instance, run("r1-123456", backfill="b1", partition="2026-05-12"))
    assert done == "it is paused"
    (on,) = Switch(instance).pauses()
    assert (on.scope, on.by) == (Scope(backfill="b1"), "the circuit breaker")
    assert on.reason.startswith("run r1-12345 failed at mart/t 2026-05-12: 12 rows of 13")
    (alert,) = sent
    assert alert.title == "Backfill b1 failed at mart/t 2026-05-12"
    assert "12 rows of 13" in alert.text
    assert "-j resume_backfills" in alert.text
    assert '"backfill": "b1"' in alert.text
    assert "hunter2" not in alert.text + on.reason


def test_a_run_counts_once_whoever_reports_it(instance: dg.DagsterInstance) -> None:
    fail(instance, run("r1", backfill="b1"))
    Switch(instance).resume(Scope(backfill="b1"), "mended", "ana")
    assert fail(instance, run("r1", backfill="b1")) == (None, [])
    assert Switch(instance).pauses() == []


def refusing(*names: str):
    """Return a way of writing documents that fails for those with one of these names, as a storage that is full does."""
    change = Store.change

    def fail(store: Store, name: str, how: Change) -> Document:
        if name.startswith(names):
            raise Unreachable("the switch cannot be written", "the disk is full", "Make room")
        return change(store, name, how)

    return fail


@pytest.mark.parametrize("name", ["switch", "failures"])
def test_a_pause_that_fails_is_told_as_it_is_and_made_by_whoever_reports_next(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(Store, "change", refusing(name))
        done, sent = fail(instance, run("r1", backfill="b1"))
    assert Switch(instance).pauses() == []
    assert done == "it could NOT be paused, since the switch cannot be written: the disk is full"
    assert str(done) in sent[0].text
    assert "already" not in sent[0].text
    done, sent = fail(instance, run("r1", backfill="b1"))
    assert done == "it is paused"
    assert len(sent) == len(Switch(instance).pauses()) == 1


def test_a_pause_that_is_made_is_told_as_made_though_nothing_more_can_be_written(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, asked = Store.change, []

    def full_at_the_end(store: Store, name: str, how: Change) -> Document:
        asked.append(name)
        if asked == ["failures/b1", "switch", "failures/b1"]:
            raise Unreachable("it cannot be written", "the disk is full", "Make room")
        return change(store, name, how)

    monkeypatch.setattr(Store, "change", full_at_the_end)
    done, sent = fail(instance, run("r1", backfill="b1"))
    assert (done, len(sent), len(Switch(instance).pauses())) == ("it is paused", 1, 1)


def test_a_page_that_cannot_be_written_neither_undoes_the_pause_nor_keeps_the_alert(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise OSError("the event log is full")

    monkeypatch.setattr(type(instance), "report_runless_asset_event", broken)
    done, sent = fail(instance, run("r1", backfill="b1"))
    assert (done, len(sent)) == ("it is paused", 1)
    assert len(Switch(instance).pauses()) == 1
    assert Switch(instance).resume(Scope(backfill="b1"), "mended", "ana") == []


def test_a_table_may_go_on_or_pause_after_some_failures(instance: dg.DagsterInstance) -> None:
    assert fail(instance, run("r1", backfill="b1"), after=None)[0] == "it goes on"
    assert fail(instance, run("r2", backfill="b1"), after=3)[0] == "it goes on"
    assert Switch(instance).pauses() == []
    assert fail(instance, run("r3", backfill="b1"), after=3)[0] == "it is paused"
    assert fail(instance, run("r4", backfill="b1"), after=3)[0] == "it was paused already"
    assert fail(instance, run("r5", backfill="b2"), after=3)[0] == "it goes on"


def test_what_executes_a_backfill_again_is_paused_with_it_and_counted_anew_after_a_resume(
    instance: dg.DagsterInstance,
) -> None:
    again = {"dagster/root_backfill_id": "b1"}
    assert fail(instance, run("r1", backfill="b1"), after=2)[0] == "it goes on"
    done, sent = fail(instance, run("r2", backfill="b2", **again), after=2)
    assert done == "it is paused"
    assert '"backfill": "b1"' in sent[0].text
    assert [pause.scope for pause in Switch(instance).pauses()] == [Scope(backfill="b1")]
    Switch(instance).resume(Scope(backfill="b1"), "mended", "ana")
    forgive(instance, "b1")
    assert fail(instance, run("r2", backfill="b2", **again), after=2) == (None, [])
    assert fail(instance, run("r3", backfill="b1"), after=2)[0] == "it goes on"
    assert fail(instance, run("r4", backfill="b1"), after=2)[0] == "it is paused"


def test_a_live_run_trips_nothing_and_a_single_run_of_the_lane_only_alerts(
    instance: dg.DagsterInstance,
) -> None:
    assert fail(instance, run("r1", lane="live")) == (None, [])
    done, sent = fail(instance, run("r2", lane="backfill", partition="2026-01-01"))
    assert done == "it was a single run"
    assert len(sent) == 1
    assert Switch(instance).pauses() == []


@pytest.mark.parametrize(
    ("policies", "after"),
    [
        ([], 1),
        (["pause"], 1),
        (["continue"], None),
        ([3], 3),
        (["continue", 2], 2),
        ([5, "pause"], 1),
    ],
)
def test_the_strictest_table_of_a_step_decides(policies: list[object], after: int | None) -> None:
    assert strictest(policies, "pause") == after


@pytest.mark.parametrize("policy", ["stop", 0, -1, True, None])
def test_a_policy_that_there_is_not_is_one_sentence(policy: object) -> None:
    with pytest.raises(DeclarationError, match="failure policy"):
        strictest([policy], "pause")
