"""Turns at one file, with real processes: in order, bounded, named, and free again when a holder dies."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from backfill_assets.engines import open_engine
from backfill_assets.engines.filequeue import FileQueue
from backfill_assets.errors import Unreachable, WarehouseBusy

HOLD = """
import sys, time
from pathlib import Path
from backfill_assets.engines.filequeue import FileQueue
file, who, seconds = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
print("asking", flush=True)
with FileQueue(file, 60).turn(who, print):
    print("in", flush=True)
    with Path(sys.argv[4]).open("a") as order:
        order.write(who + "\\n")
    time.sleep(seconds)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "warehouse.duckdb"


def process(file: Path, who: str, seconds: float = 0.0) -> subprocess.Popen[str]:
    """Start a process that takes a turn; returns once it asks for it."""
    command = [
        sys.executable,
        "-c",
        HOLD,
        str(file),
        who,
        str(seconds),
        str(file.with_name("order")),
    ]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    until(child, "asking")
    return child


def until(child: subprocess.Popen[str], said: str) -> None:
    assert child.stdout is not None
    for line in child.stdout:
        if line.strip() == said:
            return
    raise AssertionError(f"the process never said {said!r}")


def silent(_: str) -> None: ...


def test_those_who_wait_are_served_in_the_order_of_their_coming(file: Path) -> None:
    children = []
    with FileQueue(file, 60).turn("first", silent):
        for who in ("second", "third", "fourth"):
            children.append(process(file, who))
            wait_for(lambda: len(list(queue_of(file).glob("*.ticket"))) == len(children))
    assert [child.wait(30) for child in children] == [0, 0, 0]
    assert file.with_name("order").read_text().split() == ["second", "third", "fourth"]


def queue_of(file: Path) -> Path:
    return file.with_name(file.name + ".queue")


def wait_for(condition, seconds: float = 30) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "it never happened"
        time.sleep(0.01)


def test_a_wait_is_bounded_and_names_who_holds_the_file(file: Path) -> None:
    holder = process(file, "run 4f1c", 60)
    try:
        until(holder, "in")
        with pytest.raises(WarehouseBusy) as busy, FileQueue(file, 0.3).turn("run 77aa", silent):
            raise AssertionError("two of us are in")
        assert "run 4f1c" in str(busy.value)
        assert str(holder.pid) in str(busy.value)
        assert "for run 77aa" in str(busy.value)
        assert "nothing was changed" in str(busy.value)
    finally:
        holder.kill()
        holder.wait()


def test_a_holder_that_is_killed_frees_the_file(file: Path) -> None:
    holder = process(file, "killed", 60)
    until(holder, "in")
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with FileQueue(file, 10).turn("next", silent):
        pass


def test_one_who_is_killed_while_waiting_keeps_nobody_back(file: Path) -> None:
    with FileQueue(file, 60).turn("first", silent):
        dead = process(file, "dead")
        wait_for(lambda: FileQueue(file, 1).others_wait())
        dead.send_signal(signal.SIGKILL)
        dead.wait()
        alive = process(file, "alive")
        wait_for(lambda: any(queue_of(file).glob(f"*-{alive.pid}-*.ticket")))
    assert alive.wait(30) == 0
    assert file.with_name("order").read_text().split() == ["alive"]
    assert list(queue_of(file).glob("*.ticket")) == []


def test_nothing_is_left_in_line_when_all_are_served_or_gave_up(file: Path) -> None:
    with FileQueue(file, 60).turn("first", silent):
        with pytest.raises(WarehouseBusy), FileQueue(file, 0.05).turn("second", silent):
            pass
        assert not FileQueue(file, 1).others_wait()


def test_flock_of_the_shell_takes_part(file: Path) -> None:
    if shutil.which("flock") is None:
        pytest.skip("this machine has no flock command")
    with FileQueue(file, 60).turn("ours", silent):
        held = subprocess.run(["flock", "-n", f"{file}.lock", "true"], check=False)
    free = subprocess.run(["flock", "-n", f"{file}.lock", "true"], check=False)
    assert (held.returncode, free.returncode) == (1, 0)


def test_a_writer_of_many_slices_lets_others_in_between(file: Path) -> None:
    """Without giving way, the guest would come in after the last slice and not before it."""
    with open_engine(f"duckdb:///{file}").session(who="long") as session:
        guest = process(file, "guest")
        wait_for(lambda: FileQueue(file, 1).others_wait())
        session.breathe()
        assert file.with_name("order").read_text().split() == ["guest"]
        assert session.fetch("SELECT 1") == [(1,)]
    assert guest.wait(30) == 0


def test_whoever_makes_a_new_file_is_told_so_since_the_path_may_be_misspelt(tmp_path: Path) -> None:
    said: list[str] = []
    for _ in range(2):
        with open_engine(f"duckdb:///{tmp_path}/werehouse.duckdb").session(report=said.append):
            pass
    (once,) = said
    assert "werehouse.duckdb was not there and is a new warehouse now" in once


def test_waiting_is_told_to_whoever_launched_the_run(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backfill_assets.engines.filequeue._REPORT_SECONDS", 0.05)
    told: list[str] = []
    holder = process(file, "run 4f1c", 60)
    try:
        until(holder, "in")
        with pytest.raises(WarehouseBusy), FileQueue(file, 0.3).turn("x", told.append):
            pass
    finally:
        holder.kill()
        holder.wait()
    assert "Waiting for warehouse.duckdb" in told[0]
    assert "run 4f1c" in told[0]


def test_a_folder_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with (
        pytest.raises(Unreachable, match="cannot be locked"),
        FileQueue(tmp_path / "nowhere" / "w.duckdb", 1).turn("x", silent),
    ):
        pass


def test_a_program_that_takes_no_turns_is_waited_for_and_then_named(file: Path) -> None:
    code = f"import duckdb, time; c = duckdb.connect({str(file)!r}); print('in', flush=True); time.sleep(60)"
    stranger = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        until(stranger, "in")
        with (
            pytest.raises(WarehouseBusy) as busy,
            open_engine(f"duckdb:///{file}?lock_wait=0.5").session(),
        ):
            pass
        assert str(stranger.pid) in str(busy.value)
    finally:
        stranger.kill()
        stranger.wait()


def test_a_connection_that_this_process_has_open_by_itself_is_shared(file: Path) -> None:
    import duckdb

    with duckdb.connect(str(file)) as own:
        own.execute("CREATE TABLE t AS SELECT 1 AS a")
        with open_engine(f"duckdb:///{file}").session() as session:
            session.execute("INSERT INTO t VALUES (2)")
        assert own.execute("SELECT count(*) FROM t").fetchall() == [(2,)]


def test_the_file_is_complete_on_disk_between_two_sessions(file: Path) -> None:
    with open_engine(f"duckdb:///{file}").session() as session:
        session.execute("CREATE TABLE t AS SELECT * FROM range(1000)")
    assert not Path(f"{file}.wal").exists()
    copy = file.with_name("copy.duckdb")
    shutil.copyfile(file, copy)
    with open_engine(f"duckdb:///{copy}").session(read_only=True) as session:
        assert session.fetch("SELECT count(*) FROM t") == [(1000,)]
