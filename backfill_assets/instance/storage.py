"""Where Dagster keeps runs and events: SQLite in DAGSTER_HOME, or PostgreSQL when one variable is set.

Stock YAML can name either and not choose between them, so dagster.yaml names this chooser.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from dagster._core.storage.base_storage import DagsterStorage
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from dagster._serdes import ConfigurableClass, ConfigurableClassData
from filelock import FileLock

from backfill_assets.errors import DeclarationError, Unreachable
from backfill_assets.settings import read, variable

VARIABLE = variable("dagster_pg_url")
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
    def from_config_value(  # pyright: ignore[reportIncompatibleMethodOverride] - it builds another class
        cls, inst_data: Any, config_value: Any
    ) -> DagsterStorage:
        """Return the storage that the environment asks for."""
        url = read().dagster_pg_url
        if not url:
            return _sqlite(inst_data, Path(_home()))
        return _postgres(inst_data, url)


def _sqlite(inst_data: Any, home: Path) -> DagsterStorage:
    """Open the databases in `home`, one process at a time: two that make them at once break them for good."""
    home.mkdir(parents=True, exist_ok=True)
    with FileLock(home / "storage.lock"):
        return DagsterSqliteStorage.from_config_value(inst_data, {"base_dir": str(home)})


def _home() -> str:
    """Return Dagster's home; `dagster dev` in a checkout has none, and gets a folder that stays."""
    return os.environ.get("DAGSTER_HOME", "").strip() or str(Path.cwd() / ".dagster")


def _postgres(inst_data: Any, url: str) -> DagsterStorage:
    rest, shown = _address(url)
    from dagster_postgres import DagsterPostgresStorage
    from dagster_postgres.utils import DagsterPostgresException
    from sqlalchemy.exc import SQLAlchemyError

    # under psycopg 3, which SQLAlchemy 2.1 takes for the plain name, Dagster's NOTIFY is a syntax error
    settings: Any = {
        "postgres_url": f"postgresql+psycopg2://{rest}",
        "should_autocreate_tables": True,
    }
    try:
        return DagsterPostgresStorage.from_config_value(inst_data, settings)
    except (SQLAlchemyError, DagsterPostgresException) as error:
        raise Unreachable(
            f"Dagster's storage at {shown} cannot be opened",
            _reason(error),
            f"Correct {VARIABLE} or start that server; unset it for SQLite",
        ) from None


def _address(url: str) -> tuple[str, str]:
    """Return what follows the scheme, and what of it may be shown; refuse what the driver would misread.

    A URL that is not understood is not shown at all, since nobody knows where its password ends.
    """
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    scheme, separator, rest = url.partition("://")
    if not separator:
        raise _unusable("it has no ://")
    if scheme.lower() not in _SCHEMES:
        raise _unusable(f"{scheme}:// is not PostgreSQL")
    try:
        parsed = make_url(f"postgresql://{rest}")
    except (ValueError, ArgumentError):
        raise _unusable("its host and port cannot be read") from None
    if "@" in (parsed.host or ""):
        raise _unusable(
            "it has more than one @; inside a user name or a password, @ is written %40"
        )
    # a socket's folder stands among the options
    asked = {name: value for name, value in parsed.query.items() if name in ("host", "port")}
    place = parsed.set(username=None, password=None, query=asked)
    return rest, place.render_as_string()


def _unusable(why: str) -> DeclarationError:
    return DeclarationError(
        f"{VARIABLE} cannot be used",
        why,
        "Write user:password@host:5432/database behind postgresql://, or unset it for SQLite",
    )


def _reason(error: BaseException) -> str:
    """Return the driver's own words; Dagster wraps them once the retries are over."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(getattr(error, "orig", None) or error).strip().split("\n")[0]
