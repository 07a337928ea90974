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
from dataclasses import dataclass
from pathlib import Path

from backfill_assets.demo.graphql import Dagster
from backfill_assets.demo.place import ROOT, Place
from backfill_assets.errors import BackfillError

_START_SECONDS = 180
_STOP_SECONDS = 20


@dataclass(frozen=True)
class Running:
    """A webserver that answers, with a daemon behind it."""

    url: str
    dagster: Dagster


@contextlib.contextmanager
def servers(place: Place, port: int | None = None) -> Iterator[Running]:
    """Start both, wait until they work, and stop them whatever happens in the body."""
    port = port or free_port()
    url = f"http://127.0.0.1:{port}"
    with contextlib.ExitStack() as stack:
        workspace = ["-w", str(ROOT / "workspace.yaml")]
        web = ["dagster-webserver", *workspace, "-h", "127.0.0.1", "-p", str(port)]
        children = {
            "webserver": stack.enter_context(_child(web, place, place.log("webserver"))),
            "daemon": stack.enter_context(
                _child(["dagster-daemon", "run", *workspace], place, place.log("daemon"))
            ),
        }
        dagster = Dagster(url)
        _wait(dagster, children, place)
        yield Running(url, dagster)


def free_port() -> int:
    """Return a port of the loopback address that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def _child(command: list[str], place: Place, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    program = Path(sys.executable).with_name(command[0])
    with log.open("wb") as output:
        # in a group of its own: servers have children, and all of them have to go
        child = subprocess.Popen(
            [str(program), *command[1:]],
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
    """Ask the process to end, then end its whole group."""
    with contextlib.suppress(ProcessLookupError):
        child.send_signal(signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(_STOP_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _wait(dagster: Dagster, children: dict[str, subprocess.Popen[bytes]], place: Place) -> None:
    until = time.monotonic() + _START_SECONDS
    while not dagster.is_ready():
        for name, child in children.items():
            if child.poll() is not None:
                raise _failed(f"the {name} ended with status {child.returncode}", place.log(name))
        if time.monotonic() > until:
            raise _failed(f"Dagster was not ready after {_START_SECONDS} s", place.log("webserver"))
        time.sleep(0.5)


def _failed(what: str, log: Path) -> BackfillError:
    last = " | ".join(log.read_text(errors="replace").splitlines()[-5:])
    return BackfillError(what, f"its log ends with: {last}", f"Read {log} and run this again")
