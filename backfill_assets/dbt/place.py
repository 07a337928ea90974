"""Where the sample's dbt project and its prepared manifest are, inside the package."""

from __future__ import annotations

import sys
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "dbt_project"
MANIFEST = Path(__file__).with_name("manifest.json")
# beside the interpreter, which need not be on PATH
DBT = str(Path(sys.executable).with_name("dbt"))
