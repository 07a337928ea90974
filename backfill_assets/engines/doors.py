"""Whether two URLs are doors of one warehouse: claims, audit and the order of reads hold inside one, not between two."""

from __future__ import annotations

from backfill_assets.engines.protocol import Engine
from backfill_assets.errors import DeclarationError, MissingRight


def must_be_one(live: Engine, backfill: Engine) -> None:
    """Raise `DeclarationError` for URLs of two warehouses; what only a connection can tell is not asked here."""
    if type(live) is not type(backfill):
        raise _two(live, backfill, "they are of different kinds")
    if live.place != backfill.place:
        raise _two(live, backfill, f"one leads to {live.place}, the other to {backfill.place}")


def must_be_one_inside(live: Engine, backfill: Engine) -> None:
    """Raise the same after asking both, where their URLs cannot tell: a pooler is another address of one server."""
    must_be_one(live, backfill)
    if live.address == backfill.address and live.place:
        return
    answers = [_identity(live), _identity(backfill)]
    if None in answers:
        raise _two(
            live, backfill, "their addresses differ, and the server does not tell which it is"
        )
    if answers[0] != answers[1]:
        raise _two(live, backfill, "they lead to two servers")


def _identity(engine: Engine) -> object:
    statement = engine.spelling.identity
    if statement is None:
        return None
    with engine.session(read_only=True) as session:
        try:
            return session.fetch(statement)[0]
        except MissingRight:  # then nobody can tell
            return None


def _two(live: Engine, backfill: Engine, why: str) -> DeclarationError:
    return DeclarationError(
        f"backfills cannot be written through {backfill.shown} while live runs use {live.shown}",
        f"{why}, and a slice would have two writers that do not know of each other",
        "Give the lane another door of the same warehouse: another role, limits or pool, and the same database",
    )
