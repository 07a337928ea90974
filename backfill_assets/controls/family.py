"""What belongs together: a backfill and what executes it again have one budget and one pause, and so has a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import dagster as dg
from dagster._core.execution.backfill import BulkActionsFilter, PartitionBackfill

from backfill_assets.controls.lanes import BACKFILL

ROOT_BACKFILL = "dagster/root_backfill_id"
_ROOT_RUN = "dagster/root_run_id"
_GOING = ("REQUESTED", "CANCELING", "FAILING")


@dataclass(frozen=True)
class Family:
    """A backfill and all that execute it again, by the first of them; or a run and its repetitions, by the first run."""

    backfill: str | None
    run: str

    @classmethod
    def of(cls, run: dg.DagsterRun, backfill: str | None) -> Family:
        """Return the family of a run that counts as one of `backfill`, or of none."""
        root = run.tags.get(_ROOT_RUN) or run.root_run_id or run.run_id
        return cls((root_backfill(run.tags) or backfill) if backfill is not None else None, root)

    def backfills(self, instance: dg.DagsterInstance) -> tuple[str, ...]:
        """Return the ids of its backfills; none where it is one of runs."""
        if self.backfill is None:
            return ()
        return (self.backfill, *(one.backfill_id for one in _again(instance, self.backfill)))

    def runs(self, instance: dg.DagsterInstance) -> tuple[str, ...]:
        """Return the ids of the run and its repetitions."""
        again = instance.get_run_ids(dg.RunsFilter(tags={_ROOT_RUN: self.run}))
        return (self.run, *again)


def root_backfill(tags: Mapping[str, str]) -> str | None:
    """Return the backfill that the one of a run with these tags executes again, or that one itself."""
    return tags.get(ROOT_BACKFILL) or tags.get(BACKFILL) if BACKFILL in tags else None


def root_of(instance: dg.DagsterInstance, backfill: str) -> str:
    """Return the first backfill of a family by the id of any of it."""
    found = instance.get_backfill(backfill)
    return found.tags.get(ROOT_BACKFILL, backfill) if found is not None else backfill


def is_over(instance: dg.DagsterInstance, backfill: str) -> bool:
    """Tell whether a backfill has ended, and with it all that execute it again."""
    found = instance.get_backfill(backfill)
    if found is None:
        return False
    return not any(one.status.value in _GOING for one in (found, *_again(instance, backfill)))


def _again(instance: dg.DagsterInstance, root: str) -> list[PartitionBackfill]:
    return list(instance.get_backfills(filters=BulkActionsFilter(tags={ROOT_BACKFILL: root})))
