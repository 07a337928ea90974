"""Where a demo lives: the warehouse file, Dagster's home and the logs, all below one folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from backfill_assets.engines import Engine, open_engine
from backfill_assets.errors import DeclarationError
from backfill_assets.settings import PREFIX

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Place:
    """The folder of a demo."""

    folder: Path
    time_zone: str | None = None
    workspace: Path = ROOT / "workspace.yaml"
    settings: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    # a program of its own in place of dagster-daemon
    daemon: Path | None = None
    # a warehouse of another kind than the folder's own file
    at: str | None = None

    @property
    def warehouse(self) -> Path:
        return self.folder / "warehouse.duckdb"

    @property
    def url(self) -> str:
        return self.at or f"duckdb:///{self.warehouse}"

    @property
    def events(self) -> Path:
        return self.folder / "events"

    def engine(self) -> Engine:
        """Return the warehouse, whose file is made here without a word: nobody can have misspelt its path."""
        engine = open_engine(self.url)
        with engine.session():
            return engine

    @property
    def dagster_home(self) -> Path:
        return self.folder / "dagster_home"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of every process of the demo; `time_zone` is that of their sessions.

        What is set for a warehouse or an instance of one's own must not lead the demo there.
        """
        found = {key: value for key, value in os.environ.items() if not key.startswith(PREFIX)}
        found |= {"DAGSTER_HOME": str(self.dagster_home), f"{PREFIX}WAREHOUSE_URL": self.url}
        found[f"{PREFIX}EVENTS"] = str(self.events)
        found |= self.settings
        return found | ({"TZ": self.time_zone} if self.time_zone else {})

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"


def prepared(folder: Path) -> Place:
    """Make the folder, with the project's dagster.yaml as the instance's."""
    if not (ROOT / "dagster.yaml").exists():
        raise DeclarationError(
            "the demo cannot start",
            "dagster.yaml and workspace.yaml are not beside the package",
            "Run it from a checkout of the project",
        )
    place = Place(folder.absolute())
    place.dagster_home.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(ROOT / "dagster.yaml", place.dagster_home / "dagster.yaml")
    return place
