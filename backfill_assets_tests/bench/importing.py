"""What every run pays before it does anything: importing the code location, in a fresh process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from backfill_assets_tests.bench.timing import Ratio, compare


def measure(_: Path) -> Iterator[Ratio]:
    """Yield the ratio against `import dagster`, which any location pays."""
    yield compare(
        "import backfill_assets.definitions against import dagster",
        lambda: _import("backfill_assets.definitions"),
        lambda: _import("dagster"),
        wanted=1.25,
        pairs=7,
    )


def _import(module: str) -> None:
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
