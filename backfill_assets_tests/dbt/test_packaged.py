"""What loading the dbt location reads, and what it must not do."""

from __future__ import annotations

import os
import subprocess
import sys

from backfill_assets.dbt.manifest import text
from backfill_assets.dbt.place import MANIFEST


def test_the_packaged_manifest_is_the_one_of_the_packaged_project() -> None:
    assert MANIFEST.read_text() == text(), "run `make dbt`"


def test_the_location_loads_without_running_dbt_and_the_first_one_without_dagster_dbt() -> None:
    code = """
import sys
started = []
sys.addaudithook(lambda event, given: started.append(str(given[1])) if event == "subprocess.Popen" else None)
import backfill_assets.definitions
assert "dagster_dbt" not in sys.modules and "dbt.cli" not in sys.modules
import backfill_assets.dbt.definitions as location
checks = location.defs.get_repository_def().asset_graph.asset_check_keys
assert any(check.name == "unique_fct_orders_order_id" for check in checks)
assert not [given for given in started if given.startswith("[") and "/bin/dbt" in given], started
"""
    clean = {
        k: v for k, v in os.environ.items() if not k.startswith(("BACKFILL_", "DBT_", "DAGSTER_"))
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=clean, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
