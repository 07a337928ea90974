"""Plain dbt in a process of its own, on the sample's project or a copy with a model changed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backfill_assets.dbt.environment import dbt_environment
from backfill_assets_tests.warehouses import Warehouse

PROJECT = Path(__file__).parents[2] / "backfill_assets" / "dbt_project"
_DBT = str(Path(sys.executable).with_name("dbt"))


@dataclass(frozen=True)
class Said:
    """What a dbt process printed, and how it ended."""

    code: int
    text: str

    @property
    def words(self) -> str:
        """The text on one line."""
        return " ".join(self.text.split())


@dataclass(frozen=True)
class Project:
    """A dbt project on a warehouse."""

    warehouse: Warehouse
    folder: Path
    work: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def command(self, *arguments: str, variables: Mapping[str, Any] | None = None) -> list[str]:
        told = ["--vars", json.dumps(dict(variables))] if variables is not None else []
        return [
            _DBT,
            *arguments,
            "--profiles-dir",
            str(self.folder),
            "--project-dir",
            str(self.folder),
            *told,
        ]

    @property
    def env(self) -> dict[str, str]:
        return {
            **os.environ,
            **dbt_environment(self.warehouse.url),
            "DBT_TARGET_PATH": str(self.work / "target"),
            "DBT_LOG_PATH": str(self.work / "logs"),
            "DBT_USE_COLORS": "false",
            "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
            **self.environment,
        }

    def dbt(self, *arguments: str, **variables: Any) -> Said:
        """Run dbt to its end; keywords become its vars."""
        done = subprocess.run(
            self.command(*arguments, variables=variables or None),
            env=self.env,
            cwd=self.work,
            capture_output=True,
            text=True,
            timeout=600,
        )
        return Said(done.returncode, done.stdout + done.stderr)

    def start(self, *arguments: str, **variables: Any) -> subprocess.Popen[str]:
        """Start dbt and return its process."""
        return subprocess.Popen(
            self.command(*arguments, variables=variables or None),
            env=self.env,
            cwd=self.work,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def write(self, path: str, text: str) -> None:
        """Put a file into the project, which has to be a copy."""
        assert self.folder != PROJECT
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text)


def copied(warehouse: Warehouse, work: Path) -> Project:
    """Return a copy of the macros alone, for models of the test's own."""
    folder = work / "project"
    folder.mkdir(parents=True)
    shutil.copytree(PROJECT / "macros", folder / "macros")
    for name in ("dbt_project.yml", "profiles.yml"):
        shutil.copy(PROJECT / name, folder)
    (folder / "models" / "analytics").mkdir(parents=True)
    (folder / "models" / "sources.yml").write_text((PROJECT / "models" / "sources.yml").read_text())
    return Project(warehouse, folder, work)


def sample(warehouse: Warehouse, work: Path) -> Project:
    """Return the sample's own project."""
    return Project(warehouse, PROJECT, work)
