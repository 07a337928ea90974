"""What the doctor found: one point a line, with what to do about it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal

from backfill_assets.errors import BackfillError, SliceBusy, WarehouseBusy

Verdict = Literal["ok", "fails", "note"]
_MARKS: dict[str, str] = {"ok": "✓", "fails": "✗", "note": "-"}


@dataclass(frozen=True)
class Point:
    """One thing that was tried. A `note` is no fault, but good to know."""

    lane: str
    what: str
    verdict: Verdict
    why: str
    do: str = ""

    @property
    def line(self) -> str:
        """The point as a terminal shows it."""
        told = f"{_MARKS[self.verdict]} {self.lane}: {self.what}: {self.why}"
        return f"{told}. Do: {self.do}" if self.do else told

    def as_json(self) -> Mapping[str, str]:
        """The point as plain data."""
        return asdict(self)


@dataclass
class Points:
    """The points of one lane, in the order in which they were found."""

    lane: str
    found: list[Point] = field(default_factory=list[Point])

    def ok(self, what: str, why: str) -> None:
        """Note that something works."""
        self.found.append(Point(self.lane, what, "ok", why))

    def note(self, what: str, why: str, do: str = "") -> None:
        """Note something that is no fault."""
        self.found.append(Point(self.lane, what, "note", why, do))

    def fails(self, what: str, why: str, do: str) -> None:
        """Note something that would fail."""
        self.found.append(Point(self.lane, what, "fails", why, do))

    @contextlib.contextmanager
    def tried(
        self,
        what: str,
        why: str,
        mend: Callable[[BackfillError], str | None] = lambda _: None,
        but: type[BackfillError] | tuple[()] = (),
    ) -> Generator[None, None, None]:
        """Note that the body works, or why not; `mend` may know better than the error what to do. `but` is let out."""
        try:
            yield
        except (SliceBusy, WarehouseBusy) as error:
            self.note(what, f"somebody is at it just now ({error.why})", "Ask again later")
        except but:
            raise
        except BackfillError as error:
            self.fails(what, error.why, mend(error) or error.do)
        else:
            self.ok(what, why)


def failed(points: Iterable[Point]) -> list[Point]:
    """Return the points that would fail."""
    return [point for point in points if point.verdict == "fails"]


def table_of_points(points: Iterable[Point]) -> str:
    """Return the points as a Markdown table."""
    rows = [
        f"| {_MARKS[point.verdict]} | {point.lane} | {' | '.join(_cell(part) for part in (point.what, point.why, point.do))} |"
        for point in points
    ]
    return "\n".join(["| | lane | what | why | what to do |", "|---|---|---|---|---|", *rows])


def _cell(told: str) -> str:
    return told.replace("|", "\\|").replace("\n", " ")
