"""The webserver and the daemon as child processes: started on loopback and a free port, stopped by their pids."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock, Timeout

from backfill_assets.demo.graphql import Dagster
from backfill_assets.demo.place import ROOT, Place
from backfill_assets.errors import BackfillError

_START_SECONDS = 180
_STOP_SECONDS = 20
_PORTS = 5


class _PortTaken(BackfillError):
    """Somebody else listens there."""


@dataclass(frozen=True)
class Running:
    """A webserver that answers, with a daemon behind it."""

    url: str
    place: Place
    children: dict[str, subprocess.Popen[bytes]]
    stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    def dagster(self) -> Dagster:
        return Dagster(self.url)

    def must_be_alive(self) -> None:
        """Raise when one of the processes has ended."""
        for name, child in self.children.items():
            if child.poll() is not None:
                raise _failed(self.place, name, f"the {name} ended with status {child.returncode}")

    def restart_daemon(self) -> None:
        """Stop the daemon and start another one; runs that go on are not its business, and are ended at the end."""
        self.children["daemon"].terminate()
        self.children["daemon"].wait(_STOP_SECONDS)
        self.children["daemon"] = self.stack.enter_context(_child(self.place, "daemon", "run"))

    def wait(self) -> None:
        """Wait until both work."""
        until = time.monotonic() + _START_SECONDS
        while not self.dagster.is_ready():
            self.must_be_alive()
            if time.monotonic() > until:
                what = f"Dagster was not ready after {_START_SECONDS} s"
                raise _failed(self.place, "webserver", what)
            time.sleep(0.5)


@contextlib.contextmanager
def servers(place: Place, port: int | None = None) -> Iterator[Running]:
    """Start both, wait until they work, and stop them whatever happens in the body."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(_alone(place))
        _make_storage(place)
        daemon = stack.enter_context(_child(place, "daemon", "run"))
        for tries_left in reversed(range(1 if port else _PORTS)):
            number = port or free_port()
            web = stack.enter_context(
                _child(place, "webserver", "-h", "127.0.0.1", "-p", str(number))
            )
            url = f"http://127.0.0.1:{number}"
            running = Running(url, place, {"webserver": web, "daemon": daemon}, stack)
            try:
                running.wait()
            except _PortTaken:
                if not tries_left:
                    raise
                continue
            yield running
            return


def free_port() -> int:
    """Return a port of the loopback address that nobody listens on; somebody may take it before we do."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def _alone(place: Place) -> Iterator[None]:
    """Keep a second demo out of the folder: two daemons on one instance would launch its runs twice."""
    lock = FileLock(place.folder / "running.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise BackfillError(
            f"the demo in {place.folder} cannot be started",
            "another one runs there, 'make dev' perhaps",
            "Stop that one, or give another folder with --home",
        ) from None
    try:
        yield
    finally:
        lock.release()


def _make_storage(place: Place) -> None:
    """Let one process make Dagster's databases: two that make them at once leave them broken for good."""
    made = subprocess.run(
        [sys.executable, "-c", "import dagster; dagster.DagsterInstance.get().dispose()"],
        cwd=ROOT,
        env=place.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        raise BackfillError(
            f"Dagster's storage in {place.dagster_home} cannot be opened",
            (made.stderr.strip().splitlines() or ["its process was ended"])[-1],
            "Remove that folder, which costs its runs' history and no data, and run this again",
        )


@contextlib.contextmanager
def _child(place: Place, name: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    program = [str(Path(sys.executable).with_name(f"dagster-{name}"))]
    if name == "daemon" and place.daemon is not None:
        program = [sys.executable, str(place.daemon)]
    with place.log(name).open("ab") as output:
        # in a group of its own: servers have children, and all of them have to go
        child = subprocess.Popen(
            [*program, *arguments, "-w", str(place.workspace)],
            cwd=ROOT,
            env=place.environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield child
    finally:
        _stop(child)


def _stop(child: subprocess.Popen[bytes]) -> None:
    """Ask the process to end, then end its whole group, also when a second Ctrl-C cuts the waiting short."""
    try:
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_STOP_SECONDS)
    finally:
        # nobody is left in it, which macOS calls a lack of permission
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _failed(place: Place, name: str, what: str) -> BackfillError:
    said = place.log(name).read_text(errors="replace")
    kind = _PortTaken if "address already in use" in said.lower() else BackfillError
    last = " | ".join(said.splitlines()[-5:])
    return kind(what, f"its log ends with: {last}", f"Read {place.log(name)} and run this again")
