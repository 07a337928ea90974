"""The gate: asked before each slice whether it may be rewritten now. Every control is asked, and none overrules another."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from backfill_assets.errors import Refused
from backfill_assets.slice import Slice

# answers one question about a slice: why it may not be rewritten, or nothing
Control = Callable[[Slice], "str | None"]
Hold = Callable[[], "str | None"]

_POLL_SECONDS = 1.0
_TELL_SECONDS = 60.0
# what only a pause tells people to do
END_THE_PAUSE = "End the pause with the job resume_backfills"


class Held(Refused):
    """A slice was left as it was because backfills are paused, and the pause outlasted the wait."""


def refusals(controls: Iterable[Control], slice_: Slice) -> list[str]:
    """Return in words why `slice_` may not be rewritten, empty when it may."""
    return [why for control in controls if (why := control(slice_))]


@dataclass
class Gate:
    """The controls of a run. `hold` is waited for up to `hold_seconds`; any of `controls` refuses for good.

    `hold_at_start` is asked instead for a slice that was under way before anybody could be asked: it knows only the
    pauses that were on when the run began.

    `before_waiting` is called once before a wait, to give back what others may need meanwhile.
    `notes` are added to every refusal: switches that somebody may have forgotten.
    """

    hold: Hold = lambda: None
    hold_at_start: Hold = lambda: None
    controls: tuple[Control, ...] = ()
    hold_seconds: float = 0.0
    say: Callable[[str], None] = lambda _: None
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    before_waiting: Callable[[], None] = field(default=lambda: None)
    notes: Callable[[], str] = lambda: ""

    def ask(self, slice_: Slice, *, under_way: bool = False) -> None:
        """Return when `slice_` may be rewritten; raise `Held` or `Refused` with every reason when it may not.

        A slice that is `under_way` was computed already, and is finished in spite of a later pause.
        """
        self._wait(slice_.label, self.hold_at_start if under_way else self.hold)
        why = refusals(self.controls, slice_)
        if why:
            reason, how = in_words(why)
            raise Refused(f"{slice_.label} was left as it was", reason + self.notes(), how)

    def wait(self, what: str) -> None:
        """Return when nothing holds `what`; raise `Held` when something still does after `hold_seconds`."""
        self._wait(what, self.hold)

    def _wait(self, what: str, hold: Hold) -> None:
        why = hold()
        if why is None:
            return
        self.before_waiting()
        began = told = self.clock()
        self.say(f"{what} waits up to {self.hold_seconds:g} s: {why}")
        while self.clock() - began < self.hold_seconds:
            self.sleep(min(_POLL_SECONDS, self.hold_seconds))
            why = hold()
            if why is None:
                self.say(f"{what} goes on after {self.clock() - began:.0f} s.")
                return
            if self.clock() - told > _TELL_SECONDS:
                told = self.clock()
                self.say(f"{what} still waits: {why}")
        raise Held(
            f"{what} was not begun",
            why,
            f"{END_THE_PAUSE}, then launch what is left"
            " ('Re-execute from failure' on a backfill's page does just that)",
        )


def in_words(why: list[str]) -> tuple[str, str]:
    """Split each reason at its first semicolon into what is wrong and what helps."""
    parts = [reason.partition("; ") for reason in why]
    helps = [how[:1].upper() + how[1:] for _, _, how in parts if how]
    return "; ".join(reason for reason, _, _ in parts), ". ".join(helps) or "Look at the reason"
