"""Turns at one file: whoever opens it holds `<file>.lock`, and those who wait are served in order.

The lock is an ordinary `flock` on `<file>.lock`, so `flock warehouse.duckdb.lock some-command` takes part.
Those who wait leave a ticket in `<file>.queue/`, locked while its owner lives, so that a writer of many
slices sees them and gives way, and a ticket of a dead process is removed by the next in line.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import uuid
from collections.abc import Generator
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from backfill_assets.engines.protocol import Report
from backfill_assets.errors import Unreachable, WarehouseBusy

_POLL_SECONDS = 0.005
_REPORT_SECONDS = 5.0


class FileQueue:
    """A fair, bounded wait for the right to open `file`. One instance serves one wait at a time."""

    def __init__(self, file: Path, wait_seconds: float) -> None:
        self.file = file
        self.wait_seconds = wait_seconds
        self._folder = file.with_name(file.name + ".queue")
        self._holder = self._folder / "holder.json"
        self._lock = _lock(f"{file}.lock")

    @contextlib.contextmanager
    def turn(self, who: str, report: Report) -> Generator[None, None, None]:
        """Hold the file for the body; raise `WarehouseBusy` naming the holder when the wait is over."""
        try:
            self._folder.mkdir(exist_ok=True)
            self._wait(who, report)
        except OSError as error:
            self._lock.release()
            raise Unreachable(
                f"{self.file} cannot be locked",
                f"its folder does not take the lock beside it ({error.strerror or error})",
                "Create the folder, make it writable or free some space there, or correct the warehouse URL"
                " (BACKFILL_WAREHOUSE_URL, where the location takes it from there)",
            ) from error
        try:
            # only a courtesy to those who wait; a full disk may be read
            with contextlib.suppress(OSError):
                note = {"pid": os.getpid(), "who": who, "since": time.time()}
                self._holder.write_bytes(json.dumps(note).encode())
            yield
        finally:
            # whoever holds the lock next may leave no note, and must not be taken for us
            with contextlib.suppress(OSError):
                self._holder.unlink()
            self._lock.release()

    def others_wait(self) -> bool:
        """Tell whether anybody is in line."""
        return any(self._folder.glob("*.ticket"))

    def _wait(self, who: str, report: Report) -> None:
        if not self.others_wait() and self._take():
            return
        began = time.monotonic()
        told = began
        ticket = self._folder / f"{time.time_ns():020d}-{os.getpid()}-{uuid.uuid4().hex}.ticket"
        mine = _lock(str(ticket))
        try:
            mine.acquire()
            while True:
                # removed between its making and its locking: get in line again
                if not ticket.exists():
                    mine.release()
                    mine.acquire()
                if self._first_in_line(ticket) and self._take():
                    return
                now = time.monotonic()
                if now - began > self.wait_seconds:
                    raise self._busy(who)
                if now - told > _REPORT_SECONDS:
                    told = now
                    report(
                        f"Waiting for {self.file.name} since {now - began:.0f} s: {self._held_by()}."
                    )
                time.sleep(_POLL_SECONDS)
        finally:
            with contextlib.suppress(OSError):
                ticket.unlink(missing_ok=True)
            mine.release()

    def _take(self) -> bool:
        try:
            self._lock.acquire(blocking=False)
        except Timeout:
            return False
        return True

    def _first_in_line(self, ticket: Path) -> bool:
        for other in sorted(self._folder.glob("*.ticket")):
            if other.name >= ticket.name:
                return True
            if not self._is_dead(other):
                return False
        return True

    @staticmethod
    def _is_dead(ticket: Path) -> bool:
        lock = _lock(str(ticket))
        try:
            lock.acquire(blocking=False)
        except Timeout:
            return False
        with contextlib.suppress(OSError):
            ticket.unlink(missing_ok=True)
        lock.release()
        return True

    def _held_by(self) -> str:
        try:
            held = json.loads(self._holder.read_text())
            return f"held by {held['who'] or 'a process'} (pid {held['pid']}) since {time.time() - held['since']:.0f} s"
        except (OSError, ValueError, KeyError, TypeError):
            return "held by another process"

    def _busy(self, who: str) -> WarehouseBusy:
        return WarehouseBusy(
            f"{self.file.name} could not be opened{f' for {who}' if who else ''}, so nothing was changed",
            f"it was {self._held_by()}, longer than the {self.wait_seconds:g} s that we wait",
            "Let that process finish, then launch this again, or raise lock_wait in the warehouse URL",
        )


def _lock(path: str) -> Any:
    return FileLock(path, thread_local=False)
