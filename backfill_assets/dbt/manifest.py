"""dbt's manifest, prepared when the package is built: loading the code location never runs dbt.

`python -m backfill_assets.dbt.manifest` (in `make dbt`) writes it again. Texts of macros, times and places are left
out, so that it says the same wherever it is made.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from backfill_assets.dbt.place import DBT, MANIFEST, PROJECT

# what dagster-dbt reads; macros are most of a manifest, and nothing of it
_KEPT = (
    "nodes",
    "sources",
    "exposures",
    "metrics",
    "groups",
    "selectors",
    "parent_map",
    "child_map",
    "semantic_models",
    "saved_queries",
    "unit_tests",
    "disabled",
)
_CHANGES = ("created_at", "root_path", "build_path", "compiled_path", "deferred")


def prepared() -> dict[str, Any]:
    """Run `dbt parse`, which asks no warehouse, and return the manifest without what differs between two runs of it."""
    with tempfile.TemporaryDirectory() as folder:
        # nobody's own warehouse leads it elsewhere
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("BACKFILL_", "DBT_"))}
        done = subprocess.run(
            [
                DBT,
                "--quiet",
                "parse",
                "--project-dir",
                str(PROJECT),
                "--profiles-dir",
                str(PROJECT),
                "--target-path",
                folder,
                "--log-path",
                folder,
            ],
            env={**clean, "BACKFILL_DBT_PATH": "warehouse.duckdb"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(done.stdout + done.stderr)
        found = json.loads((Path(folder) / "manifest.json").read_text())
    kept: dict[str, Any] = {name: found.get(name, {}) for name in _KEPT}
    metadata = found["metadata"]
    kept["metadata"] = {
        name: metadata[name]
        for name in ("dbt_schema_version", "dbt_version", "project_name", "adapter_type")
    }
    kept["macros"], kept["docs"] = {}, {}
    return _steady(kept)


def _steady(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _steady(one) for key, one in value.items() if key not in _CHANGES}
    return [_steady(one) for one in value] if isinstance(value, list) else value


def text() -> str:
    """Return the file as it should be."""
    return json.dumps(prepared(), indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    MANIFEST.write_text(text())
