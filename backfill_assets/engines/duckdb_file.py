"""Opening a DuckDB file quickly: attached to an instance that a process keeps, detached when done.

Starting DuckDB costs several times what attaching a file does, so each process starts it once. Detaching
closes the file like closing a connection would: checkpointed, unlocked, free for any other program.

One thread does the work until somebody asks for more: waking the others costs more than they save on a small slice.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

# names that an attached file may not have, or that SQL would take for something else
_RESERVED = ("information_schema", "main", "memory", "pg_catalog", "system", "temp")
# a table that is not there yet would otherwise be looked for among the variables of the code that asks, ours included:
# `time`, `path` or `T` could never be made
_NO_VARIABLES = ("python_enable_replacements", "false")
_instances: dict[tuple[object, ...], duckdb.DuckDBPyConnection] = {}
_guard = threading.Lock()


class OpenFile:
    """An open file and the one connection to it."""

    def __init__(self, file: Path, settings: Mapping[str, str], *, read_only: bool) -> None:
        """Open `file`; raises DuckDB's own errors."""
        import duckdb

        self._name = f"{file.stem}_db" if file.stem.lower() in _RESERVED else file.stem
        self._path, self._read_only = str(file).replace("'", "''"), read_only
        self._attached = True
        self._widened = "threads" in settings
        self._narrow_again = self._renamed = False
        self.connection = _instance(file, settings).cursor()
        try:
            self._attach()
        except duckdb.BinderException as error:
            self.connection.close()
            if "Unique file handle conflict" not in str(error):
                raise
            # this very process has the file open by itself: DuckDB shares that instance with us, safely
            self._attached, self._widened = False, True
            # as it was opened there: another configuration would be refused
            self.connection = duckdb.connect(str(file), read_only=read_only)
            self.connection.execute("SET TimeZone = 'UTC'")
            self.connection.execute(f"SET {' = '.join(_NO_VARIABLES)}")
        except BaseException:
            self.connection.close()
            raise
        # a table that is not there is not there, also where some variable of Python has its name
        self.connection.execute("SET python_enable_replacements = false")

    def rename(self) -> bool:
        """Attach the file by another name, where its own is that of a schema and DuckDB cannot tell them apart.

        Return False where that was done before, or is not ours to do.
        """
        import duckdb

        if self._renamed or not self.is_ours:
            return False
        self._renamed = True
        with contextlib.suppress(duckdb.TransactionException):
            self.connection.execute("ROLLBACK")
        self.connection.execute("USE memory")
        self.connection.execute(f"DETACH {_quoted(self._name)}")
        self._name = f"{self._name}_db"
        self._attach()
        return True

    def _attach(self) -> None:
        mode = " (READ_ONLY)" if self._read_only else ""
        self.connection.execute(f"ATTACH '{self._path}' AS {_quoted(self._name)}{mode}")
        self.connection.execute(f"USE {_quoted(self._name)}")

    @property
    def name(self) -> str:
        """What DuckDB calls the file."""
        return self._name

    @property
    def is_ours(self) -> bool:
        """Whether its settings concern nobody else in this process."""
        return self._attached

    def widen(self) -> None:
        """Let all cores work, until the file is closed; not where the settings say how many threads."""
        if not self._widened:
            self.connection.execute("RESET threads")
            self._widened = self._narrow_again = True

    def close(self) -> None:
        """Roll back what is open and let go of the file."""
        import duckdb

        try:
            if self._narrow_again:
                self.connection.execute("SET threads = 1")
            if self._attached:
                with contextlib.suppress(duckdb.TransactionException):
                    self.connection.execute("ROLLBACK")
                self.connection.execute("USE memory")
                self.connection.execute(f"DETACH {_quoted(self._name)}")
        finally:
            self.connection.close()


def _instance(file: Path, settings: Mapping[str, str]) -> duckdb.DuckDBPyConnection:
    """Return this process's instance for `file`; a forked child starts its own, threads do not survive a fork."""
    import duckdb

    config = {"temp_directory": f"{file}.tmp", "threads": "1", **settings}
    config |= [_NO_VARIABLES]
    key = (os.getpid(), str(file.absolute()), *sorted(config.items()))
    with _guard:
        if key not in _instances:
            _instances[key] = duckdb.connect(":memory:", config=dict(config))
            _instances[key].execute("SET GLOBAL TimeZone = 'UTC'")
        return _instances[key]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
