"""Where Dagster keeps runs and events: SQLite in DAGSTER_HOME, or PostgreSQL when one variable is set.

Stock YAML can name either and not choose between them, so dagster.yaml names this chooser.
"""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit

from dagster._core.storage.base_storage import DagsterStorage
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from dagster._serdes import ConfigurableClass, ConfigurableClassData

from backfill_assets.errors import DeclarationError, Unreachable, without_secrets

VARIABLE = "BACKFILL_DAGSTER_PG_URL"
_SCHEMES = ("postgresql", "postgresql+psycopg", "postgresql+psycopg2", "postgres")


class StorageChooser(DagsterStorage, ConfigurableClass):
    """Builds one of Dagster's own storages; is never a storage itself."""

    @property
    def inst_data(self) -> ConfigurableClassData | None:
        return None

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        return {}

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Any
    ) -> DagsterStorage:
        """Return the storage that the environment asks for."""
        url = os.environ.get(VARIABLE, "").strip()
        if not url:
            return DagsterSqliteStorage.from_config_value(inst_data, {"base_dir": _home()})
        return _postgres(inst_data, url)


def _home() -> str:
    home = os.environ.get("DAGSTER_HOME", "").strip()
    if not home:
        raise DeclarationError(
            "Dagster's storage cannot be chosen",
            f"neither DAGSTER_HOME nor {VARIABLE} is set",
            "Set DAGSTER_HOME to a folder, for example: export DAGSTER_HOME=$PWD/.dagster",
        )
    return home


def _postgres(inst_data: ConfigurableClassData | None, url: str) -> DagsterStorage:
    if urlsplit(url).scheme not in _SCHEMES:
        raise DeclarationError(
            f"{VARIABLE}={without_secrets(url)!r} cannot be used",
            "it is no PostgreSQL URL",
            "Write postgresql://user:password@host:5432/database, or unset it for SQLite",
        )
    from dagster_postgres import DagsterPostgresStorage
    from sqlalchemy.exc import SQLAlchemyError

    # psycopg 3 is what we install; SQLAlchemy before 2.1 would look for psycopg2 under the plain name
    _, _, rest = url.partition("://")
    settings = {"postgres_url": f"postgresql+psycopg://{rest}", "should_autocreate_tables": True}
    try:
        return DagsterPostgresStorage.from_config_value(inst_data, settings)
    except SQLAlchemyError as error:
        raise Unreachable(
            f"Dagster's storage at {without_secrets(url)} cannot be opened",
            str(getattr(error, "orig", None) or error).split("\n")[0],
            f"Correct {VARIABLE} or start that server; unset it for SQLite",
        ) from None
