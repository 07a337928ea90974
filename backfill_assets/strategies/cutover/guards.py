"""Guards: named functions that say why readers must not be moved now, or nothing; those that ask the warehouse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from backfill_assets.engines.protocol import Session
from backfill_assets.engines.sql import first, within
from backfill_assets.errors import BackfillError, DeclarationError
from backfill_assets.strategies.cutover.views import look, policies_differ
from backfill_assets.strategies.dual_write import Migration
from backfill_assets.strategies.reconcile.streak import newest_due
from backfill_assets.table import Table

Guard = Callable[[], "str | None"]


def named(name: str, guard: Guard) -> Guard:
    """Return the guard under the name by which it is told and overridden."""

    def asked() -> str | None:
        return guard()

    asked.__name__ = name
    return asked


def must_know(override: Sequence[str], guards: Sequence[Guard], what: str) -> None:
    known = [guard.__name__ for guard in guards]
    if unknown := [name for name in override if name not in known]:
        raise DeclarationError(
            what,
            f"there is no guard {unknown[0]!r} to override",
            f"Choose from {', '.join(known) or 'none'}",
        )


def asked(guard: Guard) -> str | None:
    """Return why not; a guard that cannot be asked says no."""
    try:
        return guard()
    except BackfillError as error:
        return f"it could not be asked: {error}"
    except Exception as error:
        return f"it could not be asked: {type(error).__name__}: {error}"


def together(refusals: Sequence[str]) -> str:
    return "; ".join(one.rstrip(".") for one in refusals)


def policies_alike(session: Session, migration: Migration) -> Guard:
    """Return `row_policies`: whoever reads sees as many rows of one table as of the other."""
    return named("row_policies", lambda: policies_differ(session, migration.old.table, migration.new.table))  # fmt: skip


def types_kept(session: Session, migration: Migration) -> Guard:
    """Return `types`: the view, which goes on showing the types that readers know, cuts no value of the new table."""

    def asked() -> str | None:
        if migration.view is None:
            return None
        view = look(session, Table(migration.view))
        columns = session.columns_of(migration.new.relation(session.spelling)) or {}
        if view.lacks(session.spelling, columns) or not (
            told := view.retyped(session.spelling, columns)
        ):
            return None
        return f"readers might see values cut or fail to read them: {', '.join(told)}"

    return named("types", asked)


def fresh(session: Session, migration: Migration, now: datetime) -> Guard:
    """Return `fresh`: the newest day that is due has rows on both sides; `now` is aware."""

    def asked() -> str | None:
        stale: list[str] = []
        for side in (migration.old, migration.new):
            day = newest_due(side.column.zone, now, migration.due_hours)
            rows = within(session.spelling, side.column, day)
            found = session.fetch(
                first(session.spelling, 1, f"1 FROM {side.relation(session.spelling)} WHERE {rows}")
            )
            if not found:
                stale.append(
                    f"{side.name} has no rows of {day.label(side.column.zone)}, the newest day that is due"
                )
        return together(stale) or None

    return named("fresh", asked)
