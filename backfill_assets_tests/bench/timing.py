"""Two things timed in turn, A B A B ..., and the median of the ratios pair by pair."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """How long ours took against a reference, in milliseconds, and what is wanted of the ratio, if anything."""

    what: str
    ours_ms: float
    reference_ms: float
    ratio: float
    wanted: float | None

    @property
    def verdict(self) -> str:
        if self.wanted is None:
            return "for comparison"
        return "kept" if self.ratio <= self.wanted else "**missed**"


def compare(
    what: str,
    ours: Callable[[], object],
    reference: Callable[[], object],
    *,
    wanted: float | None,
    pairs: int = 15,
    ours_per: int = 1,
    reference_per: int = 1,
) -> Ratio:
    """Time both in turn after one warm-up; `..._per` divides a time by the slices that the call writes."""
    ours(), reference()
    timed = [(_ms(ours) / ours_per, _ms(reference) / reference_per) for _ in range(pairs)]
    return Ratio(
        what,
        statistics.median(a for a, _ in timed),
        statistics.median(b for _, b in timed),
        statistics.median(a / b for a, b in timed),
        wanted,
    )


def _ms(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000
