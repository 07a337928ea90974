"""`dagster job launch -j ...` in this folder finds its job without being told where to look."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from backfill_assets.demo.place import ROOT


def test_a_job_is_found_by_its_name_alone(tmp_path: Path) -> None:
    listed = subprocess.run(
        [str(Path(sys.executable).with_name("dagster")), "job", "list"],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "DAGSTER_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert listed.returncode == 0, listed.stderr
    assert "Job: preview_backfill" in listed.stdout
