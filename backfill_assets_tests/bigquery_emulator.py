"""An emulator of BigQuery in a process of its own, with transactions as BigQuery describes them.

As it comes, the emulator has one connection for all: what one session has not committed everybody reads, and a second
BEGIN is an error. Here every BigQuery session gets a connection of its own, so that transactions have the snapshots of
the database underneath; and two transactions that change (not append) rows of one table meet as BigQuery documents
it: the second is aborted. This is our reading of the documentation, in a test; it is no measurement of BigQuery.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextvars import ContextVar
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_EXTENSIONS = ("icu", "spatial")
_STARTS_WITHIN_SECONDS = 120
_CHANGES = re.compile(
    r'\s*(?:UPDATE|DELETE\s+FROM|MERGE(?:\s+INTO)?)\s+((?:"[^"]+"\.)*"[^"]+")', re.IGNORECASE
)


@contextlib.contextmanager
def running() -> Iterator[str]:
    """Start an emulator on a free port of this machine alone, and stop it at the end."""
    rest, grpc = _free_ports(2)
    with tempfile.TemporaryDirectory(prefix="bq", ignore_cleanup_errors=True) as home:
        _install_extensions(Path(home))
        with (Path(home) / "log").open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(rest), str(grpc)],
                env={**os.environ, "HOME": home},
                cwd=Path(__file__).parents[1],
                stdout=log,
                stderr=log,
            )
        try:
            address = f"http://127.0.0.1:{rest}"
            _await(address, process, Path(home) / "log")
            yield address
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _install_extensions(home: Path) -> None:
    """Put what the emulator would download where it looks first."""
    for name in _EXTENSIONS:
        spec = find_spec(f"duckdb_extension_{name}")
        assert spec is not None
        assert spec.origin is not None
        for file in Path(spec.origin).parent.rglob(f"{name}.duckdb_extension"):
            folder = home / ".duckdb" / "extensions" / file.parent.name / "linux_amd64"
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, folder)


def _await(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _STARTS_WITHIN_SECONDS
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"{address}/bigquery/v2/projects", timeout=5).close()
            return
        time.sleep(0.1)
    raise AssertionError(f"the emulator did not start: {log.read_text()[-2000:]}")


# from here on, what runs in the emulator's process


class _Tables:
    """Which transactions have changed which tables: a number for every commit, and the session that is changing each."""

    def __init__(self) -> None:
        self.commits = 0
        self.began: dict[str, int] = {}
        self.changing: dict[str, str] = {}
        self.changed_at: dict[str, int] = {}

    def begin(self, session: str) -> None:
        self.began[session] = self.commits

    def change(self, session: str, table: str) -> bool:
        """Note a change; False where another transaction changes the table, or has since this one began."""
        if self.changing.setdefault(table, session) != session:
            return False
        return self.changed_at.get(table, 0) <= self.began.get(session, self.commits)

    def end(self, session: str, *, committed: bool) -> None:
        self.commits += committed
        for table in [t for t, by in self.changing.items() if by == session]:
            del self.changing[table]
            if committed:
                self.changed_at[table] = self.commits
        self.began.pop(session, None)


def _serve(rest: int, grpc: int) -> None:
    import asyncio

    from bqemulator.api.routes import jobs
    from bqemulator.config import PersistenceMode, Settings
    from bqemulator.server import EmulatorServer
    from bqemulator.storage.engine import DuckDBEngine

    _separate_sessions(jobs, DuckDBEngine)
    settings = Settings(
        rest_port=rest,
        grpc_port=grpc,
        persistence_mode=PersistenceMode.EPHEMERAL,
        enable_format_extensions=False,
    )
    server = EmulatorServer(settings)

    async def run() -> None:
        await server.start()
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        await stop.wait()

    asyncio.run(run())
    os._exit(0)  # nothing is kept, and its threads would be waited for


def _separate_sessions(jobs: Any, engine_class: Any) -> None:
    import duckdb

    session_of_request: ContextVar[str | None] = ContextVar("session", default=None)
    cursors: dict[str, Any] = {}
    tables = _Tables()
    check, mint, execute = (
        jobs._validate_session_id,
        jobs._maybe_mint_session,
        engine_class.execute,
    )

    def checked(config: dict[str, Any]) -> None:
        check(config)
        properties = config.get("connectionProperties") or []
        named = [one.get("value") for one in properties if one.get("key") == "session_id"]
        session_of_request.set(named[0] if named else None)

    def minted(config: dict[str, Any]) -> str | None:
        token = mint(config)
        if token is not None:
            session_of_request.set(token)
        return token

    def connection(self: Any) -> Any:
        session = session_of_request.get()
        if session is None:
            return self._connection
        if session not in cursors:
            cursors[session] = self._connection.cursor()
            cursors[session].execute("SET TimeZone = 'UTC'")
        return cursors[session]

    def executed(self: Any, sql: str, parameters: Any = None) -> Any:
        session = session_of_request.get() or "none"
        word = sql.split(None, 1)[0].rstrip(";").upper() if sql.strip() else ""
        change = _CHANGES.match(sql)
        try:
            if change and not tables.change(session, change[1]):
                raise duckdb.TransactionException("Conflict on table")
            result = execute(self, sql, parameters)
        except duckdb.TransactionException as error:
            if "Conflict" not in str(error):
                raise
            with contextlib.suppress(duckdb.Error):
                execute(self, "ROLLBACK")
            tables.end(session, committed=False)
            raise duckdb.TransactionException(
                f"Transaction is aborted due to concurrent update against table {change[1] if change else ''}"
            ) from error
        if word == "BEGIN":
            tables.begin(session)
        if word in ("COMMIT", "ROLLBACK") or session == "none":
            tables.end(session, committed=word != "ROLLBACK")
        return result

    jobs._validate_session_id, jobs._maybe_mint_session = checked, minted
    engine_class.connection, engine_class.execute = property(connection), executed


if __name__ == "__main__":
    _serve(int(sys.argv[1]), int(sys.argv[2]))
