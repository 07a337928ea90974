"""A disk that is full leaves the slice as it was, and is named as the reason."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from backfill_assets.engines import open_engine

# the system refuses to let the file grow, in a process of its own, as it does when nothing is left
WRITE = """
import datetime, os, resource, signal, sys
import pyarrow as pa
from backfill_assets.engines import open_engine
from backfill_assets.slice import Slice
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import Window
from backfill_assets.writing import Run, rewrite
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
limit = int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)) if limit else None
day, rows = datetime.date(2026, 5, 1), int(sys.argv[2])
data = pa.table({"d": [day] * rows, "x": [os.urandom(50).hex() for _ in range(rows)]})
with open_engine(sys.argv[1]).session() as session:
    rewrite(session, Slice(Table("mart.t", SliceColumn("d", "date")), Window.day(day)), data, Run("r"))
"""


def write(url: str, rows: int, limit: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WRITE, url, str(rows), str(limit)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_slice_that_does_not_fit_on_the_disk_is_as_it_was_and_fits_later(tmp_path: Path) -> None:
    url = f"duckdb:///{tmp_path}/w.duckdb"
    look = "SELECT count(*), (SELECT count(*) FROM backfill.load_audit WHERE outcome = 'committed') FROM mart.t"
    assert write(url, 100).returncode == 0
    full = write(url, 200_000, limit=6 * 2**20)
    assert full.returncode != 0
    said = full.stderr.strip().splitlines()[-1]
    assert "WriteFailed" in said or "Unreachable" in said, said
    assert "as it was" in said or "could not be" in said, said
    with open_engine(url).session(read_only=True) as session:
        assert session.fetch(look) == [(100, 1)]
    assert write(url, 200_000).returncode == 0
    with open_engine(url).session(read_only=True) as session:
        assert session.fetch(look) == [(200_000, 2)]
