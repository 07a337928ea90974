"""The half-open stretch of time `[start, end)` that a slice covers: aware, kept in UTC.

How a column spells a window is the table's business (`table.py`); where windows come from is Dagster's.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from typing import Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from backfill_assets.errors import DeclarationError

UTC = timezone.utc


class TimeWindow(Protocol):
    """Anything with an aware `start` and `end`, as Dagster's `TimeWindow` has."""

    @property
    def start(self) -> datetime: ...
    @property
    def end(self) -> datetime: ...


def zone_named(name: str) -> ZoneInfo:
    """Return the IANA zone `name`, or raise `DeclarationError`."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise DeclarationError(
            f"the time zone {name!r} cannot be used",
            "it is not a name of the IANA zone database",
            "Give a name such as 'UTC' or 'America/New_York'",
        ) from None


def midnight(day: date, zone: str) -> datetime:
    """Return the instant (UTC) at which the local `day` begins in `zone`, also where midnight does not exist."""
    return datetime.combine(day, time(), zone_named(zone)).astimezone(UTC)


@dataclass(frozen=True, order=True)
class Window:
    """A half-open range of instants `[start, end)`; both aware on the way in, both UTC inside."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        for name, instant in (("start", self.start), ("end", self.end)):
            if instant.tzinfo is None or instant.utcoffset() is None:
                raise DeclarationError(
                    f"the window's {name} {instant.isoformat()} cannot be placed in time",
                    "it has no time zone",
                    "Give it one, for example datetime(..., tzinfo=ZoneInfo('UTC'))",
                )
            # compared and kept in UTC: two datetimes of one zone compare by wall clock, blind to the repeated hour
            object.__setattr__(self, name, instant.astimezone(UTC))
        if self.start >= self.end:
            raise DeclarationError(
                f"the window from {self.start.isoformat()} to {self.end.isoformat()} holds no time",
                "its start is not before its end",
                "Give a start before the end; the end itself belongs to the next window",
            )

    @classmethod
    def of(cls, time_window: TimeWindow) -> Window:
        """Return the window of a Dagster `TimeWindow` (or anything with aware `start` and `end`)."""
        return cls(time_window.start, time_window.end)

    @classmethod
    def day(cls, day: date | str, zone: str = "UTC") -> Window:
        """Return the local `day` (a date or `YYYY-MM-DD`) in `zone`: 23, 24 or 25 hours long."""
        first = date.fromisoformat(day) if isinstance(day, str) else day
        return cls(midnight(first, zone), midnight(first + timedelta(days=1), zone))

    def days(self, zone: str = "UTC") -> tuple[date, ...]:
        """Return the local days of `zone` that the window touches, first to last."""
        place = zone_named(zone)
        first = self.start.astimezone(place).date()
        last = (self.end - timedelta(microseconds=1)).astimezone(place).date()
        return tuple(first + timedelta(days=n) for n in range((last - first).days + 1))

    def is_whole_days(self, zone: str) -> bool:
        """Tell whether the window begins and ends where local days of `zone` begin."""
        days = self.days(zone)
        end = midnight(days[-1] + timedelta(days=1), zone)
        return self.start == midnight(days[0], zone) and self.end == end

    def contains(self, instant: datetime) -> bool:
        """Tell whether the aware `instant` lies in the window; its end does not."""
        return self.start <= instant < self.end

    def overlaps(self, other: Window) -> bool:
        """Tell whether the two windows share an instant."""
        return self.start < other.end and other.start < self.end

    def label(self, zone: str = "UTC") -> str:
        """Return the window as a person would say it: a day, its days `first...last`, or two instants."""
        days = self.days(zone)
        if not self.is_whole_days(zone):
            return f"{self.start.isoformat()}/{self.end.isoformat()}"
        return str(days[0]) if len(days) == 1 else f"{days[0]}...{days[-1]}"
