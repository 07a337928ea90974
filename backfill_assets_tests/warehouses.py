"""A warehouse of any engine for tests: open it, put rows in, look what is there, look again from outside."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from backfill_assets.engines import Engine, Session, open_engine
from backfill_assets.engines.sql import quoted
from backfill_assets.slice import Slice
from backfill_assets.table import Table
from backfill_assets.window import Window
from backfill_assets.writing import AuditTable, Load, Run, Select, rewrite

AUDIT = AuditTable()


@dataclass(frozen=True)
class Warehouse:
    """A warehouse at `url`; every call opens a session of its own unless it is given one."""

    url: str

    @property
    def is_postgres(self) -> bool:
        return self.url.startswith("postgresql")

    @property
    def tells_case_apart(self) -> bool:
        """Whether two tables may have names that differ in case only."""
        return self.is_postgres

    @property
    def removal(self) -> str:
        """How the statement begins that takes a slice's old rows away."""
        return "DELETE"

    @property
    def replaces_at_once(self) -> bool:
        """Whether one statement replaces a slice, where a transaction over several cannot be had."""
        return False

    @property
    def keeps(self) -> frozenset[str]:
        """Types that this engine makes wider than their names say, so that nothing is lost in them."""
        return frozenset()

    @property
    def any_schema(self) -> bool:
        """Whether a schema and a table may have quotes in their names."""
        return True

    @property
    def keeps_lengths(self) -> bool:
        """Whether a text column takes no more characters than it says."""
        return self.is_postgres

    @property
    def keeps_nan(self) -> bool:
        """Whether floats may be NaN or infinite."""
        return True

    def day_after(self, day: str) -> str:
        """Return the day after a date, in the engine's own SQL."""
        return f"{day} + 1" if self.is_postgres else f"{day} + INTERVAL 1 DAY"

    def quoted(self, name: str) -> str:
        """Return a name for SQL that means the one of that spelling in a frame."""
        return quoted(self.engine().spelling, name)

    def engine(self, **options: object) -> Engine:
        return open_engine(with_options(self.url, **options))

    def spoken(self, sql: str) -> str:
        """Return a test's SQL as the engine has it."""
        return sql

    def type_of(self, kind: str) -> str:
        """Return a type in the engine's spelling, given in PostgreSQL's."""
        return kind

    def lacks(self, kind: str) -> str | None:
        """Say why a column cannot have that type, given in PostgreSQL's spelling; None where it can."""
        return None

    def takes_schema(self, name: str) -> bool:
        """Tell whether a schema may be called so at all."""
        return True

    def takes(self, name: str) -> bool:
        """Tell whether a column may be called so at all."""
        return True

    @contextlib.contextmanager
    def session(
        self, *, who: str = "a test", read_only: bool = False, **options: object
    ) -> Iterator[Session]:
        with self.engine(**options).session(who=who, read_only=read_only) as session:
            yield session

    def execute(self, *statements: str) -> None:
        with self.session() as session:
            for statement in statements:
                session.execute(statement)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with self.session() as session:
            return session.fetch(sql)

    def count(self, relation: str, where: str = "1 = 1") -> int:
        return self.rows(f"SELECT count(*) FROM {relation} WHERE {where}")[0][0]

    def columns(self, relation: str) -> dict[str, str] | None:
        with self.session() as session:
            return session.columns_of(relation)

    def write(
        self,
        table: Table,
        window: Window | str | None,
        rows: pa.Table | Select | Mapping[str, Any],
        *,
        fixed: Mapping[str, str] | None = None,
        session: Session | None = None,
        run_id: str = "a-run",
        **run: Any,
    ) -> Load:
        """Rewrite one slice; `window` may be a day in the zone of the slice column."""
        zone = table.slice_column.zone if table.slice_column else "UTC"
        if isinstance(window, str):
            window = Window.day(window, zone)
        slice_ = Slice(table, window, tuple((fixed or {}).items()))
        data = pa.table(dict(rows)) if isinstance(rows, Mapping) else rows
        if session is not None:
            return rewrite(session, slice_, data, Run(run_id, **run))
        with self.session(who=f"run {run_id}") as session:
            return rewrite(session, slice_, data, Run(run_id, **run))

    def loads(self, outcome: str = "committed") -> Sequence[tuple[Any, ...]]:
        """Return (partition_key, rows_before, rows_after, checksum, run_id) of the audit, oldest first."""
        with self.session() as session:
            relation = AUDIT.relation(session.spelling)
            if session.columns_of(relation) is None:
                return []
            return session.fetch(
                "SELECT partition_key, rows_before, rows_after, checksum, run_id"
                f" FROM {relation} WHERE outcome = '{outcome}' ORDER BY committed_at, audit_id"
            )

    def seen_from_outside(self, session: Session, sql: str) -> list[tuple[Any, ...]]:
        """Run a query on another connection while `session` is in the middle of something."""
        if self.is_postgres:
            return self.rows(sql)
        # a DuckDB file takes one process at a time; within it, a second connection is a reader like any other
        cursor = session._open_connection.cursor()  # type: ignore[attr-defined]
        cursor.execute(f'USE "{Path(self.url.removeprefix("duckdb:///")).stem}"')
        return cursor.execute(sql).fetchall()

    def somebody_waits(self) -> bool:
        """Tell whether a writer waits for another one."""
        if self.is_postgres:
            return self.count("pg_locks", "NOT granted AND locktype = 'advisory'") > 0
        file = Path(self.url.removeprefix("duckdb:///"))
        return any(file.with_name(f"{file.name}.queue").glob("*.ticket"))

    def leftovers(self) -> list[str]:
        """Return what writers left behind: temporary tables, stages by name, other people's open transactions."""
        with self.session() as session:
            stages = session.fetch(
                "SELECT table_schema, table_name FROM information_schema.tables"
                " WHERE table_name LIKE 'backfill_stage%' OR table_schema LIKE 'pg_temp%'"
            )
            if self.is_postgres:
                stages += session.fetch(
                    "SELECT nspname, relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace"
                    " WHERE nspname LIKE 'pg_temp%'"
                )
        return [".".join(map(str, stage)) for stage in stages]


def with_options(url: str, **options: object) -> str:
    """Return `url` with more options in its query."""
    pairs = [f"{name}={quote(str(value))}" for name, value in options.items()]
    return url + ("&" if "?" in url else "?") * bool(pairs) + "&".join(pairs)


def at(text: str) -> datetime:
    """Return an instant in UTC, written `2026-05-12 00:00`."""
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


def until(true: Callable[[], bool], seconds: float = 30) -> None:
    """Wait until something is so; fail when it is not in time."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.01)
