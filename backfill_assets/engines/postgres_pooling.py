"""Poolers before PostgreSQL: one that lends a connection for a transaction only keeps no stage and no setting for us."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from backfill_assets.errors import Unreachable

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

# other clients may come in between two questions, and make one answer look like that of a connection of one's own
_ROUNDS = 5


def process_told(connection: Connection) -> int:
    """Return the server process that the connection was told of when it was made; a pooler tells a number of its own."""
    return connection.info.backend_pid


def process_asked(connection: Connection) -> int:
    """Return the server process that answers now."""
    found = connection.execute("SELECT pg_backend_pid()").fetchone()
    assert found is not None
    return found[0]


def refuse_pool_of_transactions(
    connection: Connection, connect: Callable[[], Connection], shown: str
) -> None:
    """Raise `Unreachable` where two connections take turns at one server process; a pooler of sessions passes.

    `connect` opens a second one, which is done only behind a pooler.
    """
    if process_asked(connection) == process_told(connection):
        return
    with connect() as other:
        mine: set[int] = set()
        theirs: set[int] = set()
        for _ in range(_ROUNDS):
            mine.add(process_asked(connection))
            theirs.add(process_asked(other))
    if len(mine) > 1 or mine & theirs:
        raise Unreachable(
            f"the warehouse {shown} cannot be used through this pooler",
            "it lends a connection for one transaction only, so that stages and settings would be left to others",
            "Connect to the server itself, or to a pool in session mode (pool_mode = session)",
        )
