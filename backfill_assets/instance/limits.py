"""The queue's limits as dagster.yaml states them now: a cap that is changed there holds for the next run."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backfill_assets.controls.lanes import LANE
from backfill_assets.errors import DeclarationError

Limit = Mapping[str, Any]
# of the backfill lane, where the file gives none
CAP = 3
BACKFILLS: Limit = {"key": LANE, "value": "backfill"}
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Limits:
    """How many runs at once: of all kinds (-1 for any number), and by tag."""

    runs: int
    by_tag: tuple[Limit, ...]

    def __post_init__(self) -> None:
        cap = self.backfill_cap
        if cap < 1:
            raise _wrong(
                f"the cap of the backfill lane is {cap}",
                "Give 1 or more; to stop backfills for a while, run the job pause_backfills",
            )
        if 0 <= self.runs <= cap:
            raise _wrong(
                f"the backfill lane may take {cap} of {self.runs} runs at once, which leaves live runs none",
                "Raise max_concurrent_runs above the cap of the backfill lane, or lower that cap",
            )

    @property
    def backfill_cap(self) -> int:
        """How many runs of the backfill lane may go on at once; of two limits on one tag, Dagster takes the later."""
        return ([CAP] + [one["limit"] for one in self.by_tag if is_backfill_lane(one)])[-1]

    @property
    def in_order(self) -> list[dict[str, Any]]:
        """The limits by tag as Dagster is to have them, the lane's cap among them."""
        rest = [dict(one) for one in self.by_tag if not is_backfill_lane(one)]
        return [*rest, {**BACKFILLS, "limit": self.backfill_cap}]


def is_backfill_lane(at_most: Limit) -> bool:
    """Tell whether a limit is the cap of the backfill lane."""
    return at_most.get("key") == LANE and at_most.get("value") == "backfill"


class LimitsFile:
    """The limits in `DAGSTER_HOME/dagster.yaml`, read again when the file changes; the last good ones otherwise."""

    def __init__(self, first: Limits, file: Path | None = None) -> None:
        self._limits, self._read_at = first, 0
        self._file = file or Path(os.environ.get("DAGSTER_HOME") or ".") / "dagster.yaml"

    def limits(self) -> Limits:
        """Return what holds now; a file that cannot be used changes nothing, and is told once."""
        try:
            changed = self._file.stat().st_mtime_ns
        except OSError:
            return self._limits
        if changed != self._read_at:
            self._read_at = changed
            try:
                self._limits = self._parsed(self._file.read_text())
            except Exception as error:
                _log.error("%s changes no limit: %s", self._file, _told(error))
        return self._limits

    def _parsed(self, text: str) -> Limits:
        import yaml

        config = ((yaml.safe_load(text) or {}).get("run_coordinator") or {}).get("config") or {}
        runs = config.get("max_concurrent_runs", self._limits.runs)
        by_tag = config.get("tag_concurrency_limits", self._limits.by_tag)
        if not isinstance(by_tag, Sequence) or not all(map(_is_limit, by_tag)):
            raise _wrong(
                "tag_concurrency_limits is no list of key, value and limit",
                "Write it as the file that came with this project does",
            )
        # {env: NAME} is settled when a process starts
        return Limits(runs if isinstance(runs, int) else self._limits.runs, tuple(by_tag))


def _told(error: Exception) -> str:
    """Return what is wrong without what stands there: a parser shows lines of the file, and those hold passwords."""
    if isinstance(error, DeclarationError):
        return str(error)
    mark = getattr(error, "problem_mark", None)
    where = f", line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
    return f"it cannot be read ({type(error).__name__}{where})"


def _is_limit(found: Any) -> bool:
    return (
        isinstance(found, Mapping)
        and isinstance(found.get("key"), str)
        and isinstance(found.get("limit"), int)
        and not isinstance(found.get("limit"), bool)
    )


def _wrong(why: str, do: str) -> DeclarationError:
    return DeclarationError("the limits in dagster.yaml cannot be used", why, do)
