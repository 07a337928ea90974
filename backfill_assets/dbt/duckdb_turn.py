"""A plugin of dbt-duckdb: dbt waits for its turn at the file before DuckDB opens it, and keeps it until it ends.

Named in profiles.yml under `plugins`. dbt's own process takes the lock, so that plain `dbt build` is as safe as a run
of Dagster, and a killed dbt gives it back.
"""

from __future__ import annotations

import atexit
import contextlib
from pathlib import Path
from typing import Any

from dbt.adapters.duckdb.plugins import BasePlugin

from backfill_assets.engines.filequeue import FileQueue
from backfill_assets.errors import DeclarationError, WarehouseBusy

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
        # registered before dbt closes its connections, so run after it
        atexit.register(turn.close)
