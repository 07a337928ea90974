"""Two things timed in turn, A B A B ..., and the median of the ratios pair by pair."""

from __future__ import annotations

import logging
import multiprocessing
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


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
    timed = [(_time(ours) / ours_per, _time(reference) / reference_per) for _ in range(pairs)]
    return Ratio(
        what,
        statistics.median(a for a, _ in timed),
        statistics.median(b for _, b in timed),
        statistics.median(a / b for a, b in timed),
        wanted,
    )


def compare_apart(
    what: str,
    ours: Callable[[str], Callable[[], object]],
    reference: Callable[[str], Callable[[], object]],
    folder: str,
    *,
    wanted: float | None,
    pairs: int = 15,
    ours_per: int = 1,
) -> Ratio:
    """The same, each side in a process of its own, as runs are: what one leaves in memory is not the other's to clear up.

    `ours` and `reference` are functions of a module; given the folder, each returns what is timed in its process.
    """
    with _Elsewhere(ours, folder) as a, _Elsewhere(reference, folder) as b:
        return compare(what, a, b, wanted=wanted, pairs=pairs, ours_per=ours_per)


class _Elsewhere:
    """A call that is made, and timed, in a process of its own."""

    def __init__(self, make: Callable[[str], Callable[[], object]], folder: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, make, folder), daemon=True)

    def __call__(self) -> float:
        self._pipe.send(True)
        return self._pipe.recv()

    def __enter__(self) -> _Elsewhere:
        self._process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.send(False)
        self._process.join()


def _serve(pipe: Any, make: Callable[[str], Callable[[], object]], folder: str) -> None:
    logging.disable(logging.CRITICAL)
    call = make(folder)
    while pipe.recv():
        pipe.send(_ms(call))


def _time(call: Callable[[], object]) -> float:
    """Return the milliseconds of a call, which one that is made elsewhere tells itself."""
    return call() if isinstance(call, _Elsewhere) else _ms(call)


def _ms(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000
