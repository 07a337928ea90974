"""Any control can refuse, none overrules another, and a pause is waited for as long as it may be."""

from __future__ import annotations

import pytest

from backfill_assets.controls.gate import Gate, Held
from backfill_assets.errors import Refused
from backfill_assets.slice import Slice
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import Window

DAY = Slice(Table("mart.t", SliceColumn("day", "date")), Window.day("2026-05-12"))


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def gate(**options: object) -> tuple[Gate, Clock]:
    clock = Clock()
    return Gate(**options, clock=clock, sleep=clock.sleep), clock  # type: ignore[arg-type]


def test_a_gate_without_controls_lets_everything_through() -> None:
    gate()[0].ask(DAY)


def test_every_control_gives_its_reason() -> None:
    refusing, _ = gate(
        controls=(lambda _: "too dear; raise it", lambda _: None, lambda _: "too old; ask")
    )
    with pytest.raises(
        Refused,
        match=r"mart\.t 2026-05-12 was left as it was: too dear; too old\. Raise it\. Ask\.",
    ):
        refusing.ask(DAY)


def test_a_pause_that_ends_is_waited_for_and_the_warehouse_given_back_meanwhile() -> None:
    said: list[str] = []
    given_back: list[bool] = []
    waiting, clock = gate(
        hold=lambda: "paused by ana" if clock.now < 5 else None,
        hold_seconds=60,
        say=said.append,
        before_waiting=lambda: given_back.append(True),
    )
    waiting.ask(DAY)
    assert clock.now == 5
    assert given_back == [True]
    assert said == [
        "mart.t 2026-05-12 waits up to 60 s: paused by ana",
        "mart.t 2026-05-12 goes on after 5 s.",
    ]


def test_a_pause_that_outlasts_the_wait_stops_the_run_and_says_how_to_go_on() -> None:
    waiting, clock = gate(hold=lambda: "paused by ana", hold_seconds=60)
    with pytest.raises(
        Held, match="was not begun: paused by ana. End the pause with the job resume_backfills"
    ):
        waiting.ask(DAY)
    assert clock.now == 60


def test_a_slice_that_is_under_way_is_finished_in_spite_of_a_pause_and_not_of_a_refusal() -> None:
    gate(hold=lambda: "paused")[0].ask(DAY, under_way=True)
    with pytest.raises(Refused, match="too dear"):
        gate(hold=lambda: "paused", controls=(lambda _: "too dear",))[0].ask(DAY, under_way=True)


def test_a_forgotten_pause_is_told_in_a_refusal() -> None:
    refusing, _ = gate(controls=(lambda _: "too dear; raise it",), notes=lambda: " (still on: x)")
    with pytest.raises(Refused, match=r"too dear \(still on: x\)\. Raise it"):
        refusing.ask(DAY)
