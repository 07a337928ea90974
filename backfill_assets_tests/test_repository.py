"""What a stranger gets with the repository: locks, make targets, and versions that lose nothing."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LOCKS = ("requirements.lock", "requirements-dev.lock")


def number(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_holds_no_address(lock: str) -> None:
    assert not re.search(r"://|--index|--find-links|--extra-index", (ROOT / lock).read_text())


@pytest.mark.parametrize("lock", LOCKS)
def test_every_locked_package_has_one_version_and_a_hash(lock: str) -> None:
    entries = re.split(r"\n(?=\S)", (ROOT / lock).read_text().strip())
    assert len(entries) > 100
    for entry in entries:
        assert re.match(r"[A-Za-z0-9._-]+(\[[a-z0-9, -]+\])?==[^ ]+", entry), entry
        assert "--hash=sha256:" in entry, entry


def test_both_locks_agree_on_every_version() -> None:
    pins = [
        set(re.findall(r"^([A-Za-z0-9._-]+)(?:\[.*?\])?==(\S+)", (ROOT / lock).read_text(), re.M))
        for lock in LOCKS
    ]
    assert pins[0]
    assert pins[0] <= pins[1]


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", ".ci/run", "docs/quickstart.md"])
def test_every_make_target_that_a_page_names_is_there(page: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = set(re.findall(r"^\s*make ([a-z-]+)|`make ([a-z-]+)", (ROOT / page).read_text(), re.M))
    assert named
    assert {first or second for first, second in named} <= targets


def test_a_wheel_carries_models_and_settings_and_neither_tests_nor_leavings(tmp_path: Path) -> None:
    source = tmp_path / "source"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "backfill_assets", source / "backfill_assets", ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    dbt = source / "backfill_assets" / "dbt_project"
    for wanted in ("sample_only.yml", "models/marts/sample_only.sql", "seeds/sample_only.csv"):
        (dbt / wanted).parent.mkdir(parents=True, exist_ok=True)
        (dbt / wanted).write_text("")
    for leaving in ("target/run/written_by_dbt.sql", "logs/written_by_dbt.yml"):
        (dbt / leaving).parent.mkdir(parents=True, exist_ok=True)
        (dbt / leaving).write_text("")

    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--no-build-isolation", "-w", tmp_path, source], check=True)

    (wheel,) = tmp_path.glob("*.whl")
    held = zipfile.ZipFile(wheel).namelist()
    assert sum("sample_only" in name for name in held) == 3
    assert "backfill_assets/writing/rewrite.py" in held
    assert [name for name in held if "_tests" in name or "written_by_dbt" in name] == []


def test_duckdb_is_a_version_that_loses_no_commit() -> None:
    """2.0.0 and 2.0.1 read the file's header before they lock it (docs/decisions/0001)."""
    assert (1, 5, 5) <= number(version("duckdb")) < (2, 0, 0)


def test_dbt_is_a_version_that_downloads_nothing_when_it_is_installed() -> None:
    assert (1, 11) <= number(version("dbt-core"))[:2] < (1, 12)


@pytest.mark.parametrize("lock", LOCKS)
def test_python_3_10_gets_the_last_sqlglot_that_it_need_not_compile(lock: str) -> None:
    """dagster-dbt asks for its compiled part, which has had no wheel for 3.10 since 30.26."""
    text = (ROOT / lock).read_text()
    pinned = re.findall(r"^sqlglotc==(\S+)(.*)", text, re.M)
    pins = [pin for pin, marker in pinned if ">= '3.11'" not in marker]
    assert [number(pin) < (30, 26) for pin in pins] == [True]


@pytest.mark.parametrize("lock", LOCKS)
def test_what_builds_a_source_package_is_locked_like_the_rest(lock: str) -> None:
    pinned = set(re.findall(r"^([a-z0-9-]+)==", (ROOT / lock).read_text(), re.M))
    assert "setuptools" in pinned


def test_nothing_in_the_repository_names_a_registry() -> None:
    """A registry's host in a page or a script would be a promise that we cannot keep."""
    hosts = re.compile("pypi" + r"\.org|python" + r"hosted|registry\.npmjs")
    pages = [
        path for path in ROOT.rglob("*") if path.suffix in {".md", ".toml", ".yaml", ".py", ".lock"}
    ]
    own = [path for path in pages if not {".venv", ".demo"} & set(path.relative_to(ROOT).parts)]
    assert len(own) > 40
    assert [path for path in own if hosts.search(path.read_text())] == []
