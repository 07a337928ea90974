"""The demo as a stranger runs it: real servers, a real backfill, a verdict that can be bad."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

import pytest

from backfill_assets.demo.verdict import Day
from backfill_assets.engines import open_engine

ROOT = Path(__file__).parents[2]


def demo(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "backfill_assets.demo", *arguments, "--home", str(folder)]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )


def children_of(folder: Path) -> list[str]:
    """Return the processes whose environment says that they belong to the demo in `folder`."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if (
                process.name.isdigit()
                and f"DAGSTER_HOME={folder}".encode() in (process / "environ").read_bytes()
            ):
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


@pytest.mark.slow
def test_the_demo_loads_its_days_twice_to_the_same_table_and_leaves_nothing_running(
    tmp_path: Path,
) -> None:
    look = "SELECT count(*), sum(amount), count(DISTINCT sale_id) FROM analytics.fct_sales"
    tables = []
    for _ in range(2):
        shown = demo(tmp_path, "sales", "--first", "2026-05-24", "--last", "2026-05-26")
        assert shown.returncode == 0, shown.stdout + shown.stderr
        assert "Every day is right." in shown.stdout
        for line in ("2026-05-24", "2026-05-25", "2026-05-26"):
            assert any(
                row.startswith(line) and row.rstrip().endswith("ok")
                for row in shown.stdout.splitlines()
            )
        assert "make dev" in shown.stdout
        (report,) = [line.strip() for line in shown.stdout.splitlines() if line.endswith(".md")]
        assert "partitions are done; 2 of them rightly empty." in Path(report).read_text()
        assert children_of(tmp_path / "dagster_home") == []
        with open_engine(f"duckdb:///{tmp_path}/warehouse.duckdb").session() as session:
            tables.append(session.fetch(look))
    assert tables[0] == tables[1]
    assert tables[0][0][0] == tables[0][0][2] > 0


@pytest.mark.slow
def test_a_day_that_is_not_right_ends_the_demo_with_a_bad_status(tmp_path: Path) -> None:
    """A column that nobody declared stops the fact, so the day has no audit row of the second backfill."""
    first = demo(tmp_path, "sales", "--first", "2026-05-24", "--last", "2026-05-24")
    assert first.returncode == 0, first.stdout + first.stderr
    with open_engine(f"duckdb:///{tmp_path}/warehouse.duckdb").session() as session:
        session.execute("ALTER TABLE analytics.fct_sales ADD COLUMN added_by_hand INTEGER")
    second = demo(tmp_path, "sales", "--first", "2026-05-24", "--last", "2026-05-24")
    assert second.returncode == 1, second.stdout + second.stderr
    assert "added_by_hand" in second.stdout.replace("\n", "")
    assert "WRONG: no audit row of this backfill" in second.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGHUP], ids=["it_is_told_to", "its_terminal_is_closed"]
)
def test_the_ui_stays_up_until_it_is_stopped_and_then_takes_everything_with_it(
    number: signal.Signals, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "backfill_assets.demo", "serve", "--home", str(tmp_path)]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as ui:
        assert ui.stdout is not None
        said = next((line for line in ui.stdout if "The UI is at" in line), "")
        assert "http://127.0.0.1:" in said
        assert children_of(tmp_path / "dagster_home")
        ui.send_signal(number)
        assert ui.wait(60) == 130
    time.sleep(0.2)
    assert children_of(tmp_path / "dagster_home") == []


@pytest.mark.parametrize(
    ("day", "verdict"),
    [
        (Day("2026-05-01", 0, 3, 3, Decimal("6.00"), Decimal("6.00")), "ok"),
        (Day("2026-05-01", 3, 3, 4, 6, 6), "WRONG: -1 rows"),
        (Day("2026-05-01", 3, 6, 3, 12, 6), "WRONG: +3 rows"),
        (Day("2026-05-01", 3, 3, 3, Decimal("6.01"), Decimal("6.00")), "WRONG: sum 6.01, not 6.00"),
        (Day("2026-05-01", None, 3, 3, 6, 6), "WRONG: no audit row of this backfill"),
    ],
)
def test_a_day_is_right_only_when_it_was_written_and_rows_and_sums_agree(
    day: Day, verdict: str
) -> None:
    assert day.verdict == verdict
    assert day.is_right is (verdict == "ok")


@pytest.mark.slow
def test_the_demo_of_a_replay_mends_its_week_leaves_the_other_days_and_refuses_what_is_gone(
    tmp_path: Path,
) -> None:
    shown = demo(tmp_path, "replay")
    assert shown.returncode == 0, shown.stdout + shown.stderr
    ends = [
        line.split()[-1] for line in shown.stdout.splitlines() if re.match(r"2026-05-\d\d ", line)
    ]
    assert ends == ["untouched"] * 5 + ["mended"] * 7 + ["untouched"] * 2
    assert "no longer holds all their events" in shown.stdout
    assert "The first whole one that can be replayed is" in shown.stdout
    assert children_of(tmp_path) == []


@pytest.mark.slow
def test_the_demo_of_a_migration_finds_three_faults_and_moves_the_readers_over_and_back(
    tmp_path: Path,
) -> None:
    shown = demo(tmp_path, "cutover")
    assert shown.returncode == 0, shown.stdout + shown.stderr
    steps = [line.split(maxsplit=1) for line in shown.stdout.splitlines() if line.startswith("  yes ") or line.startswith("  NO ")]  # fmt: skip
    assert [answer for answer, _ in steps] == ["yes"] * 6
    assert "0 quiet days in a row of 14 that are needed" in shown.stdout
    with open_engine(f"duckdb:///{tmp_path}/warehouse.duckdb").session(read_only=True) as session:
        (days,) = session.fetch("SELECT count(*), min(verdict), max(verdict), sum(differing + only_old + only_new) FROM backfill.reconciliation_daily")  # fmt: skip
        assert days == (21, "equal", "equal", 0)
        assert "fct_orders_new" in str(session.fetch("SELECT sql FROM duckdb_views() WHERE view_name = 'orders'"))  # fmt: skip
    assert children_of(tmp_path) == []
