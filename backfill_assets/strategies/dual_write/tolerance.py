"""What may differ between two values of a column before they count as different."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from backfill_assets.errors import DeclarationError

TimePrecision = Literal["microsecond", "millisecond", "second", "minute", "hour", "day"]
PRECISIONS: tuple[str, ...] = get_args(TimePrecision)


@dataclass(frozen=True)
class Tolerance:
    """How two values of one column are compared; by default they have to be equal, and NULL equals NULL only.

    `absolute` (in the column's unit) and `relative` (a share of the larger value's size): the larger of both may lie
    between two numbers. `time`: instants are compared after what is finer is cut off. `as_float`: numbers are compared
    as floats of 64 bits, which a FLOAT on one side and a DECIMAL on the other need. `ignore_case` and
    `ignore_trailing_space` for texts. `null_is_empty`: NULL equals a text without letters.
    """

    absolute: float = 0
    relative: float = 0
    time: TimePrecision | None = None
    as_float: bool = False
    ignore_case: bool = False
    ignore_trailing_space: bool = False
    null_is_empty: bool = False

    def __post_init__(self) -> None:
        for name in ("absolute", "relative"):
            given: Any = getattr(self, name)
            is_number = isinstance(given, (int, float)) and not isinstance(given, bool)
            if not is_number or not math.isfinite(given) or given < 0:
                raise _wrong(
                    f"it lets values differ by {name}={given!r}", "Give a number, 0 or more"
                )
        if self.relative >= 1:
            raise _wrong(
                f"relative={self.relative!r} lets every value pass",
                "Give a share below 1: 0.01 is one per cent",
            )
        if self.time is not None and self.time not in PRECISIONS:
            raise _wrong(
                f"it cuts times off at {self.time!r}", f"Choose one of {', '.join(PRECISIONS)}"
            )
        for field in fields(self):
            if field.default is False and not isinstance(getattr(self, field.name), bool):
                raise _wrong(
                    f"it has {field.name}={getattr(self, field.name)!r}", "Give True or False"
                )

    @property
    def is_numeric(self) -> bool:
        """Whether two numbers may differ, so that a hash cannot tell."""
        return bool(self.absolute or self.relative)

    @property
    def is_of_text(self) -> bool:
        """Whether it only makes sense for texts."""
        return self.ignore_case or self.ignore_trailing_space or self.null_is_empty


EXACT = Tolerance()


def tolerance_from(given: Any) -> Tolerance:
    """Return a tolerance from one, or from the mapping that it is in YAML."""
    if isinstance(given, Tolerance):
        return given
    known = {field.name for field in fields(Tolerance)}
    if not isinstance(given, dict) or not set(given) <= known:
        raise _wrong(
            f"it is given as {given!r}", f"Give a Tolerance, or any of {', '.join(sorted(known))}"
        )
    return Tolerance(**given)


def _wrong(why: str, do: str) -> DeclarationError:
    return DeclarationError("a tolerance cannot be declared so", why, do)
