"""Where events lie between the source and the slices: a DuckDB file of the run's own, which spills and is removed."""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from backfill_assets.engines.drivers import driver
from backfill_assets.strategies.replay.decoding import insert_events, table_of_events
from backfill_assets.strategies.replay.events import Events
from backfill_assets.strategies.replay.texts import with_texts

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_PREFIX = "backfill-replay-"


@contextlib.contextmanager
def scratch(
    events: Events, bounds: Sequence[tuple[Any, Any]], folder: Path | None, memory_mb: int
) -> Iterator[Scratch]:
    """Open a scratch database for slices with these bounds of their time, and remove it at the end.

    What a killed run has left in `folder` (default: the system's own for temporary files) is removed as well.
    """
    within = Path(folder or tempfile.gettempdir())
    within.mkdir(parents=True, exist_ok=True)
    _remove_orphans(within)
    place = within / f"{_PREFIX}{os.getpid()}-{uuid.uuid4().hex[:12]}"
    alive = FileLock(_lock_of(place))
    # held before the folder is there, so that a folder whose lock is free has no owner
    alive.acquire()
    place.mkdir()
    try:
        connection: duckdb.DuckDBPyConnection = driver("duckdb", "DuckDB", "duckdb").connect(
            place / "events.duckdb",
            config={
                "memory_limit": f"{memory_mb}MiB",
                "temp_directory": str(place / "spill"),
                "preserve_insertion_order": False,
                "autoinstall_known_extensions": False,
            },
        )
        with contextlib.closing(connection):
            yield Scratch(connection, events, bounds)
    finally:
        shutil.rmtree(place, ignore_errors=True)
        _lock_of(place).unlink(missing_ok=True)
        alive.release()


def _lock_of(place: Path) -> Path:
    return place.with_name(f"{place.name}.lock")


def _remove_orphans(within: Path) -> None:
    """Remove folders whose owner ended: by their locks, since a process of another container may have any number."""
    for lock in within.glob(f"{_PREFIX}*.lock"):
        with contextlib.suppress(Timeout, OSError), FileLock(lock, timeout=0):
            shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
            lock.unlink(missing_ok=True)


class Scratch:
    """Decoded events: batches go in by `add`, and SQL is asked of the table `events`."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        events: Events,
        bounds: Sequence[tuple[Any, Any]],
    ) -> None:
        self._connection, self._events = connection, events
        connection.execute("SET TimeZone = 'UTC'")
        if any(f.encoding for f in events.typed.values()):
            connection.create_function("unscaled", _unscaled, ["VARCHAR", "INTEGER"], "VARCHAR")  # pyright: ignore[reportArgumentType] - names are types too
        connection.execute(table_of_events(events))
        kind = events.typed[events.time].type
        self._bounds = [(f"{kind} '{a.isoformat()}'", f"{kind} '{b.isoformat()}'") for a, b in bounds]  # fmt: skip

    def add(self, shard: int, batch: pa.Table) -> None:
        """Decode a batch of the shard with that number, and keep it."""
        ready = with_texts(batch, self._events)
        self._connection.register("batch", ready)
        self._connection.execute(
            insert_events(self._events, shard, ready.column_names, self._bounds)
        )
        self._connection.unregister("batch")

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""
        return self._connection.execute(sql).fetchall()

    def arrow(self, sql: str) -> pa.Table:
        """Run a query and return its rows."""
        return self._connection.execute(sql).to_arrow_table()


def _unscaled(text: str, scale: int) -> str | None:
    """Return the decimal whose unscaled value is the base64 text, as Kafka Connect writes it: big-endian, signed."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    number = int.from_bytes(data, "big", signed=True)
    digits = str(abs(number)).rjust(scale + 1, "0")
    whole, places = (digits[:-scale], digits[-scale:]) if scale else (digits, "")
    return f"{'-' if number < 0 else ''}{whole}{'.' if scale else ''}{places}"
