"""A plugin of dbt-duckdb: dbt waits for its turn at the file before DuckDB opens it, and keeps it until it ends.

Named in profiles.yml under `plugins`. dbt's own process takes the lock, so that plain `dbt build` is as safe as a run
of Dagster, and a killed dbt gives it back.
"""

from __future__ import annotations

import atexit
import contextlib
import time
from pathlib import Path
from typing import Any

import duckdb
from dbt.adapters.duckdb.connections import DuckDBConnectionManager
from dbt.adapters.duckdb.plugins import BasePlugin

from backfill_assets.engines.filequeue import FileQueue
from backfill_assets.errors import DeclarationError, WarehouseBusy

_POLL_SECONDS = 0.1
# one turn for each file, however often dbt makes its environment anew within the process
_turns: dict[str, contextlib.ExitStack] = {}


class Plugin(BasePlugin):
    """Takes the turn at `path` of the profile; `lock_wait` (600) is how many seconds to wait for it."""

    def initialize(self, plugin_config: dict[str, Any]) -> None:
        """Read how long to wait; nothing is opened yet."""
        self._patience = float(plugin_config.get("lock_wait", 600))
        if self.creds is not None and self.creds.retries:
            raise DeclarationError(
                "dbt may not open the warehouse so",
                "the profile sets retries, which open the file again and again while others write",
                "Leave out retries; lock_wait of the plugin is how long to wait for the file",
            )

    def update_connection_config(self, creds: Any, config: dict[str, Any]) -> None:
        """Take the turn: called right before DuckDB connects."""
        path = str(Path(creds.path).resolve())
        if creds.path == ":memory:" or path in _turns:
            return
        turn = contextlib.ExitStack()
        try:
            turn.enter_context(FileQueue(Path(path), self._patience).turn("dbt", print))
        except WarehouseBusy as error:
            # the only kind of error that dbt shows as a sentence here
            raise RuntimeError(str(error)) from error
        _turns[path] = turn
        atexit.register(_end, turn)
        self._wait_for_others(path, config)

    def _wait_for_others(self, path: str, config: dict[str, Any]) -> None:
        """Wait for a program that takes no turns, or that has ended its own and not yet closed the file."""
        until = time.monotonic() + self._patience
        while True:
            try:
                duckdb.connect(path, read_only=False, config=config).close()
                return
            except duckdb.IOException as error:
                if "Could not set lock" not in str(error) or time.monotonic() > until:
                    raise
            time.sleep(_POLL_SECONDS)


def _end(turn: contextlib.ExitStack) -> None:
    """Close the file, then end the turn: dbt itself closes it later, and the next in line would find it open."""
    environment = DuckDBConnectionManager._ENV
    if environment is not None:
        environment.close()
    turn.close()
