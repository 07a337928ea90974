"""Dropping the old table: only after its time, only by its name, and never while anybody reads it."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from backfill_assets.engines.protocol import Report, Session
from backfill_assets.engines.sql import qualified, text
from backfill_assets.errors import BackfillError, Refused
from backfill_assets.strategies.cutover.guards import Guard, asked, together
from backfill_assets.strategies.cutover.moves import Entry, Moves
from backfill_assets.strategies.cutover.order import Order
from backfill_assets.strategies.cutover.states import CUT_OVER, RETIRE, words
from backfill_assets.strategies.cutover.status import (
    Status,
    must_be_one_warehouse,
    settle,
    settled,
    status,
)
from backfill_assets.strategies.cutover.views import dependents
from backfill_assets.strategies.dual_write import Migration


def retire(
    session: Session,
    migration: Migration,
    guards: Sequence[Guard] = (),
    *,
    drop_table: str,
    by: str,
    reason: str,
    run_id: str,
    dry_run: bool = True,
    report: Report,
    schema: str = "backfill",
) -> Status:
    """Drop the old table once its time has come and `drop_table` is its name; a dry run tells what stands in the way."""
    order = Order(by, reason, run_id, (), dry_run, report, schema)
    what = f"{migration.old.name} was not dropped"
    order.must_be_told(what)
    must_be_one_warehouse(migration, what)
    moves = Moves(migration.name, schema)
    if not dry_run:
        moves.ensure(session)
        settle(session, migration, order)
    now = status(session, migration, schema=schema)
    if now.state == RETIRE.end:
        report(f"Nothing is left to do: {now.told}")
        return now
    refusals = _against_dropping(session, migration, now, drop_table, moves)
    refusals += [
        f"{guard.__name__}: {why}" for guard in guards if (why := asked(guard)) is not None
    ]
    statement = _drop(session, migration)
    if dry_run:
        report(f"Would run {statement}.")
        for why in refusals:
            report(f"Would be refused: {why}.")
        report(f"Nothing was changed: {now.told}")
        return replace(now, refusals=tuple(refusals), plan=(f"run {statement}",))
    if refusals:
        raise Refused(what, together(refusals), "Clear these away, then launch this again")
    _drop_in_steps(session, migration, moves, order, statement)
    done = status(session, migration, schema=schema)
    report(done.told)
    return done


def _against_dropping(
    session: Session, migration: Migration, now: Status, drop_table: str, moves: Moves
) -> list[str]:
    old = migration.old.table
    found: list[str] = []
    if now.state not in ("cut_over", "retiring"):
        found.append(f"{migration.name} is {now.state}: {words(now.state)}")
    if now.reads != "new":
        found.append(f"the view does not read the new table: it reads {now.reads}")
    if drop_table != old.qualified:
        said = f"drop_table is {drop_table!r}" if drop_table else "drop_table is not given"
        found.append(f"{said}; to drop the old table it has to be {old.qualified!r}")
    cut = [one.at for one in moves.entries(session) if one.state == CUT_OVER.end]
    if cut:
        end = cut[-1] + timedelta(days=migration.retire_after_days)
        if session.clock() < end:
            found.append(f"readers were moved at {cut[-1]:%Y-%m-%d %H:%M} UTC, and the old table stays for {migration.retire_after_days} days, until {end:%Y-%m-%d %H:%M} UTC")  # fmt: skip
    if reading := dependents(session, old):
        found.append(f"{', '.join(reading)} read{'s' if len(reading) == 1 else ''} {old.qualified}")
    return found


def _drop(session: Session, migration: Migration) -> str:
    spelling, name = session.spelling, qualified(session.spelling, migration.old.table)
    return spelling.drop_table.format(name=name, name_text=text(spelling, name))


def _drop_in_steps(
    session: Session, migration: Migration, moves: Moves, order: Order, statement: str
) -> None:
    """Record the intent, drop, and record that it is done; in one transaction where the warehouse undoes a drop."""
    holder = f"run {order.run_id[:8]}"
    move = Entry(
        migration.name, 0, RETIRE.going, uuid.uuid4().hex, session.clock(), order.by, order.reason,
        order.run_id,
    )  # fmt: skip

    def begin() -> Entry:
        last = moves.last(session)
        if last is not None and last.state == RETIRE.going:
            return last
        return moves.enter(session, RETIRE.going, move)

    if session.spelling.view_rolls_back:
        with moves.alone(session, holder):
            begun = begin()
            session.execute(statement)
            moves.enter(session, RETIRE.end, begun)
        return
    with moves.alone(session, holder):
        begin()
    try:
        session.execute(statement)
    except BackfillError:
        # given up where it is still there, so that readers may be moved back to it
        with contextlib.suppress(BackfillError), moves.alone(session, holder):
            settled(session, migration, moves, move, "given up: it could not be dropped")
        raise
    with moves.alone(session, holder):
        settled(session, migration, moves, move, None)
