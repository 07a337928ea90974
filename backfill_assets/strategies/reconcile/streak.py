"""How many quiet days in a row a migration has, and in words why there are not enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from backfill_assets.engines.protocol import Session
from backfill_assets.slice import Slice
from backfill_assets.strategies.dual_write.migration import Migration
from backfill_assets.strategies.dual_write.side import Side
from backfill_assets.strategies.reconcile.day import DayCompared
from backfill_assets.strategies.reconcile.store import ReconciliationStore
from backfill_assets.window import Window, zone_named
from backfill_assets.writing import AuditTable, Load

_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Streak:
    """Quiet days in a row, `days` of `needed`; `windows` are those days, the newest first.

    `why` says what ended it, None where it is long enough. `newest` is the newest day that is due.
    """

    days: int
    needed: int
    why: str | None
    windows: tuple[Window, ...]
    compared: tuple[DayCompared, ...]
    newest: Window


def newest_due(zone: str, now: datetime, due_hours: float) -> Window:
    """Return the newest day of `zone` that ended `due_hours` ago or earlier; `now` is aware."""
    begun = (now - timedelta(hours=due_hours)).astimezone(zone_named(zone)).date()
    return Window.day(begun - _DAY, zone)


def streak_of(
    session: Session,
    migration: Migration,
    audit: AuditTable,
    now: datetime,
    *,
    store: ReconciliationStore | None = None,
    old_session: Session | None = None,
) -> Streak:
    """Return the streak that ends with the newest due day; `session` is the new side's warehouse.

    A day counts if it was compared as the migration is declared now, is within the threshold, and no load of either
    table has touched it since; a day without rows on both sides is passed over. `old_session`, where the old side's table is in another warehouse that keeps an audit.
    """
    zone = migration.new.column.zone
    newest = newest_due(zone, now, migration.due_hours)
    kept = (store or ReconciliationStore(audit.schema)).days(session, migration.name)
    known = {(day.window_start, day.window_end): day for day in kept}
    loads = _loads(session, old_session, migration, audit)
    windows: list[Window] = []
    compared: list[DayCompared] = []
    why, window = None, newest
    while len(windows) < migration.quiet_days:
        day = known.get((window.start, window.end))
        why = _not_quiet(migration, window.label(zone), day, loads)
        if why is not None or day is None:
            break
        # a day without rows on either side proves nothing: it neither counts nor ends the row
        if day.old.rows or day.new.rows:
            windows.append(window)
            compared.append(day)
        window = Window.day(window.days(zone)[0] - _DAY, zone)
    if why is not None:
        why = f"{len(windows)} quiet days in a row of {migration.quiet_days} that are needed: {why}"
    return Streak(len(windows), migration.quiet_days, why, tuple(windows), tuple(compared), newest)


def _not_quiet(
    migration: Migration,
    name: str,
    day: DayCompared | None,
    loads: Mapping[str, Sequence[Load]],
) -> str | None:
    if day is None:
        return f"{name} has not been compared"
    if day.fingerprint != migration.fingerprint:
        return f"{name} was compared by another declaration of the migration"
    if not day.is_quiet:
        return f"{name} differs: {told(day)}"
    for table, own in loads.items():
        for load in own:
            if load.committed_at > day.compared_at and _touches(load, day):
                return f"{table} of {name} was written by run {load.run_id} after it was compared"
    return None


def told(day: DayCompared) -> str:
    """Return what differs on a day, in words."""
    parts = [
        f"{count:,} {'row' if count == 1 else 'rows'} {what}"
        for count, what in (
            (day.only_old, "only in old"),
            (day.only_new, "only in new"),
            (day.differing, "with other values"),
        )
        if count
    ]
    worst = max(day.columns, key=lambda name: day.columns[name], default=None)
    if worst is not None:
        parts.append(f"most of them in {worst}")
    return f"{', '.join(parts) or 'nothing'} ({day.share:.2%} of {max(day.old.rows, day.new.rows):,} rows)"


def _touches(load: Load, day: DayCompared) -> bool:
    if load.window_start is None or load.window_end is None:
        return True
    return load.window_start < day.window_end and load.window_end > day.window_start


def _loads(
    session: Session, old_session: Session | None, migration: Migration, audit: AuditTable
) -> dict[str, list[Load]]:
    """Return the newest loads of both tables, where they are audited."""
    sides: list[tuple[Side, Session]] = [
        (migration.old, old_session or session),
        (migration.new, session),
    ]
    return {side.name: audit.newest(where, side.table, None) for side, where in sides}


def slices_of(migration: Migration, windows: Sequence[Window]) -> list[Slice]:
    """Return the new side's slices of days, named as Dagster names daily partitions."""
    zone = migration.new.column.zone
    return [
        Slice(migration.new.table, window, partition=window.days(zone)[0].isoformat())
        for window in windows
    ]
