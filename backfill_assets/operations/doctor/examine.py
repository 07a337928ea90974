"""One lane looked at: connection, role, clock, zone, stages, transactions, claims, limits and the rights on every table."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone

from backfill_assets.engines import Claim, Engine, Session
from backfill_assets.engines.doors import must_be_one_inside
from backfill_assets.engines.protocol import replacing
from backfill_assets.engines.sql import instant, qualified
from backfill_assets.errors import (
    BackfillError,
    BadRows,
    LimitReached,
    MissingRight,
    MissingTable,
    WriteFailed,
)
from backfill_assets.operations.doctor.points import Point, Points
from backfill_assets.operations.doctor.rights import DAY, Rights, undone
from backfill_assets.table import Table
from backfill_assets.writing import AuditTable

# nobody waits minutes for a doctor, and a claim that is held shows soon
PATIENCE_SECONDS = 10
_SECOND_SECONDS = 1
_LIMIT_SECONDS = 1
_VISIBLE_SKEW = timedelta(seconds=1)
_LARGEST_SKEW = timedelta(minutes=5)
_NOON = datetime(2026, 7, 1, 12, tzinfo=timezone.utc)


def examined(
    lanes: Mapping[str, Callable[[], Engine]],
    tables: Sequence[Table],
    audit: AuditTable,
    *,
    ddl: bool = False,
) -> list[Point]:
    """Return the points of every lane, by the door that it has; no row changes.

    Nothing is left behind but what the first load of a table makes for its claims.
    """
    found: list[Point] = []
    for lane, door in lanes.items():
        points = Points(lane)
        _examine(points, door, tables, audit, ddl)
        found += points.found
    if len(lanes) > 1:
        points = Points(" and ".join(lanes))
        with points.tried("one warehouse", "both lanes lead to it"):
            live, lane = (door() for door in lanes.values())
            must_be_one_inside(live, lane)
        found += points.found
    return found


def _examine(
    points: Points,
    door: Callable[[], Engine],
    tables: Sequence[Table],
    audit: AuditTable,
    ddl: bool,
) -> None:
    connected = False
    try:
        engine = door().limited(lock_wait=PATIENCE_SECONDS)
        if not ddl and not _is_there(engine):
            points.note(
                "connection",
                f"{engine.shown} is not there, and the first load makes it",
                "Ask with ddl to have it made and looked at",
            )
            return
        with engine.session(who="doctor") as session:
            connected = True
            points.ok("connection", f"{engine.shown}, database {session.database}")
            rights = Rights(session, points, _role(session, points))
            _clock(session, points)
            _zone(session, points)
            _stages(session, points, rights)
            stored = _stored(session, audit)
            rights.of(stored, ("SELECT", "INSERT"), ddl=ddl, whose="the audit table ")
            for table in tables:
                rights.of(table, ("SELECT", "DELETE", "INSERT"), ddl=ddl)
                rights.of_source(table)
            _transactions(session, points)
            _claims(session, points, engine, tables)
        _limits(points, door())
    except BackfillError as error:
        points.fails("session" if connected else "connection", error.why, error.do)


def _is_there(engine: Engine) -> bool:
    """Tell whether the warehouse is there; opening it to write might make it."""
    try:
        with engine.session(who="doctor", read_only=True):
            return True
    except MissingTable:
        return False


def _role(session: Session, points: Points) -> str | None:
    if session.spelling.who_am_i is None:
        return None
    role = str(session.fetch(session.spelling.who_am_i)[0][0])
    points.ok("role", role)
    return role


def _clock(session: Session, points: Points) -> None:
    began = datetime.now(timezone.utc)
    theirs = session.clock()
    ours = began + (datetime.now(timezone.utc) - began) / 2
    apart = theirs - ours
    told = f"the warehouse's is {abs(apart.total_seconds()):.1f} s {'ahead of' if apart > timedelta() else 'behind'} this machine's"
    if abs(apart) > _LARGEST_SKEW:
        points.fails("clock", told, "Set this machine's clock (NTP)")
    elif abs(apart) > _VISIBLE_SKEW:
        points.note("clock", f"{told}, which is corrected when a run says when it read its source")
    else:
        points.ok("clock", "the warehouse's and this machine's agree")


def _zone(session: Session, points: Points) -> None:
    from sqlglot import exp

    literal = instant(session.spelling, _NOON)
    kind = exp.DataType.build("TEXT").sql(dialect=session.spelling.dialect)
    with points.tried("zone", "the session tells instants in UTC"):
        value, shown = session.fetch(f"SELECT {literal}, CAST({literal} AS {kind})")[0]
        if session.spelling.instants_are_utc:
            value = value.replace(tzinfo=timezone.utc)
        if value != _NOON or not str(shown).replace("T", " ").startswith("2026-07-01 12:00"):
            raise WriteFailed(
                "days would be cut elsewhere",
                f"noon in UTC is told as {shown}",
                "Keep the account's settings from changing the zone of a session that set it to UTC",
            )


def _stages(session: Session, points: Points, rights: Rights) -> None:
    import pyarrow as pa

    with points.tried("stages", "rows can be put beside a table, and removed", rights.staging):
        for make in (
            lambda name: session.stage_arrow(name, pa.table({"one": [1]})),
            lambda name: session.stage_select(name, "SELECT 1 AS one"),
        ):
            name = f"backfill_stage_{uuid.uuid4().hex}"
            try:
                session.fetch(f"SELECT one FROM {make(name)}")
            finally:
                session.drop_stage(name)


def _transactions(session: Session, points: Points) -> None:
    """Delete a staged row in a transaction that is rolled back: it has to be there again."""
    if replacing(session) is not None:
        _replacement(session, points)
        return
    name = f"backfill_stage_{uuid.uuid4().hex}"
    what = "transactions"
    try:
        stage = session.stage_select(name, "SELECT 1 AS one")
        with undone(session):
            session.execute(f"DELETE FROM {stage} WHERE one = 1")
            gone = not session.fetch(f"SELECT one FROM {stage}")
        back = len(session.fetch(f"SELECT one FROM {stage}"))
    except MissingRight:  # told with the stages
        return
    finally:
        with contextlib.suppress(BackfillError):
            session.drop_stage(name)
    if gone and back == 1:
        points.ok(what, "what was rolled back is as it was")
    else:
        points.fails(what, "a write survived its ROLLBACK", "Do not write slices here")


def _replacement(session: Session, points: Points) -> None:
    """Replace a staged row by one that does not fulfil the condition: it has to be refused, and the old one there."""
    name = f"backfill_stage_{uuid.uuid4().hex}"
    what = "replacement"
    refused = False
    try:
        stage = session.stage_select(name, "SELECT 1 AS one")
        for query in ("SELECT 2 AS one", "SELECT 1 AS one"):
            try:
                session.execute(
                    session.spelling.replace.format(table=stage, condition="one = 1", query=query)
                )
            except BadRows:
                refused = True
        there = session.fetch(f"SELECT one FROM {stage}")
    except MissingRight:  # told with the stages
        return
    finally:
        with contextlib.suppress(BackfillError):
            session.drop_stage(name)
    if refused and there == [(1,)]:
        points.ok(what, "one statement replaces rows by a condition, and refuses a row outside it")
    else:
        points.fails(what, "a row outside the condition was taken", "Do not write slices here")


def _claims(session: Session, points: Points, engine: Engine, tables: Sequence[Table]) -> None:
    """Claim what no run claims: a second session must find it taken."""
    what = "claims"
    # where a claim needs a table of its own, none is made for a name that nobody will ever claim
    relation = _one_of(session, tables) if session.spelling.claims_are_rows else "backfill_doctor"
    if relation is None:
        points.note(
            what,
            "they were not tried, since no table is there yet",
            "Ask again after the first load",
        )
        return
    claim = Claim(relation, (DAY,), "the doctor's claim", "doctor")
    if session.spelling.claims_meet_late:
        with points.tried(what, "of two writers at once the second to commit is refused"):
            _refused_at_the_end(session, engine, claim)
        return
    waited: float | None = None
    with points.tried(what, "a second writer finds the first one's taken"), undone(session, claim):
        waited = _refused_after(engine.limited(lock_wait=_SECOND_SECONDS), claim)
    if waited is not None:
        points.ok("lock_wait", f"a writer gives up waiting ({waited:.1f} s at {_SECOND_SECONDS} s)")


def _refused_after(engine: Engine, claim: Claim) -> float:
    """Return the seconds after which a second writer was told that somebody has what it claims."""
    began = time.monotonic()
    try:
        with engine.session(who="a second doctor") as second, undone(second, claim):
            pass
    except BackfillError as error:
        if error.then != "wait":
            raise
        return time.monotonic() - began
    raise WriteFailed(
        "a slice can have two writers",
        "two sessions claimed one slice at once",
        "Do not write slices here",
    )


def _refused_at_the_end(session: Session, engine: Engine, claim: Claim) -> None:
    """Commit two claims that overlap, which changes nothing but whose name is in the row that is claimed."""
    try:
        with session.transaction():
            session.claim(claim)
            with engine.session(who="a second doctor") as second, second.transaction():
                second.claim(claim)
    except BackfillError as error:
        if error.then != "wait":
            raise
        return
    raise WriteFailed(
        "a slice can have two writers",
        "two sessions committed one claim at once",
        "Do not write slices here",
    )


def _one_of(session: Session, tables: Sequence[Table]) -> str | None:
    """Return the SQL name of a table that is there."""
    for table in tables:
        relation = qualified(session.spelling, table)
        with contextlib.suppress(BackfillError):
            if session.columns_of(relation) is not None:
                return relation
    return None


def _limits(points: Points, engine: Engine) -> None:
    """Let the warehouse itself say its limits, and run into one on purpose."""
    spelling = engine.spelling
    if spelling.limits is not None:
        with engine.session(who="doctor", read_only=True) as session:
            lock_wait, limit = (str(value) for value in session.fetch(spelling.limits)[0])
        points.ok("limits in force", f"lock wait {lock_wait}, statement {limit}")
    what = "statement_timeout"
    if spelling.slow is None:
        points.note(what, "it was not tried: this engine knows no statement that is slow for sure")
        return
    hurried = engine.limited(statement_timeout=_LIMIT_SECONDS)
    try:
        with hurried.session(who="doctor", read_only=True) as session:
            session.fetch(spelling.slow)
    except LimitReached:
        points.ok(
            what, f"a statement is stopped when its time is up ({_LIMIT_SECONDS} s were tried)"
        )
    except BackfillError as error:
        points.fails(what, error.why, error.do)
    else:
        points.fails(what, "a statement outlived it", "Watch long statements yourself")


def _stored(session: Session, audit: AuditTable) -> Table:
    """Return the table that audit rows are written to."""
    name = f"{audit.name}_entries" if session.spelling.log_field else audit.name
    return Table(name, schema=audit.schema)
