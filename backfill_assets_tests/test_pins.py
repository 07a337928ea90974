"""Versions that are held back: why they are, and when they need not be any longer."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LOCKS = ("requirements.lock", "requirements-dev.lock")
# a source package that downloads a program while it is built; dbt-core asks for it from 1.12.6 on
PARSER = "dbt-core-experimental-parser"


@pytest.mark.parametrize("lock", LOCKS)
def test_dbt_is_locked_where_nothing_is_downloaded_while_it_is_built(lock: str) -> None:
    locked = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / lock).read_text(), re.M))
    assert locked["dbt-core"].startswith("1.11.")
    assert PARSER not in locked
    # adapters that were resolved together with that dbt
    assert {"dbt-adapters", "dbt-duckdb", "dbt-postgres"} <= locked.keys()


def test_the_installed_dbt_asks_for_no_such_package() -> None:
    assert not [asked for asked in metadata.requires("dbt-core") or () if PARSER in asked]


@pytest.mark.skipif(
    not os.environ.get("BACKFILL_TEST_PINS"), reason="asks a registry; `make pins` does"
)
def test_dbt_has_to_stay_because_its_parser_comes_without_a_wheel(tmp_path: Path) -> None:
    """Fails when the pin can move: then raise dbt-core's bound in pyproject.toml and run `make lock`."""
    asked = subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "--only-binary",
            ":all:",
            "-d",
            str(tmp_path),
            f"{PARSER}>=2.0.0b1",  # what dbt-core asks for
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert asked.returncode != 0, f"{PARSER} now comes as a wheel: dbt-core may go beyond 1.11"
    assert "No matching distribution" in asked.stderr, f"the registry did not say: {asked.stderr}"
