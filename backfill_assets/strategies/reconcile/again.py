"""What a cutover asks once more of the days that it relies on: are both tables as they were when they were compared?"""

from __future__ import annotations

from backfill_assets.engines import Engine
from backfill_assets.strategies.dual_write.migration import Migration
from backfill_assets.strategies.reconcile.comparing import around, marks, null_days
from backfill_assets.strategies.reconcile.streak import Streak, slices_of


def changed_since(migration: Migration, streak: Streak, own: Engine) -> str | None:
    """Return which quiet days are not any more what was compared, whoever changed them; None where all are.

    One hash a day and side, in one statement each: jobs that keep no audit are found out too.
    """
    if not streak.windows:
        return None
    found: list[str] = []
    looked = marks(migration, slices_of(migration, streak.windows), own)
    for day, (old, new) in zip(streak.compared, looked, strict=True):
        for side, was, now in ((migration.old, day.old, old), (migration.new, day.new, new)):
            if (was.rows, was.checksum) != (now.rows, now.checksum):
                found.append(f"{day.partition_key} of {side.name}")
    if not found:
        return None
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return (
        f"{', '.join(found[:3])}{more} changed after they were compared: compare these days again"
    )


def without_a_day(migration: Migration, own: Engine) -> str | None:
    """Return how many rows are in no day and so were never compared; None where there are none."""
    old, new = null_days(migration, own)
    if not old and not new:
        return None
    return (
        f"{old:,} rows of {migration.old.name} and {new:,} of {migration.new.name} have no day, so they were never"
        " compared, and readers would see the others"
    )


def beside(migration: Migration, streak: Streak, own: Engine) -> str | None:
    """Return what readers would lose or gain outside the quiet days; None where both sides have as many rows there.

    The quiet days say nothing of the years before them.
    """
    last = streak.newest
    first = streak.windows[-1] if streak.windows else last
    old, new = around(migration, first, last, own)
    zone = migration.new.column.zone
    told = [
        f"{migration.old.name} has {a:,} rows {when} and {migration.new.name} has {b:,}"
        for a, b, when in (
            (old[0], new[0], f"before {first.label(zone)}"),
            (old[1], new[1], f"after {last.label(zone)}"),
        )
        if a != b
    ]
    return "; ".join(told) or None
