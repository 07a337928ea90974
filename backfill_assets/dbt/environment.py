"""The warehouse's URL as the environment variables that profiles.yml reads, so that both reach one warehouse."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from backfill_assets.errors import DeclarationError, without_secrets

_PASSWORD = "DBT_ENV_SECRET_BACKFILL_{}PASSWORD"


def dbt_environment(url: str, lane_url: str | None = None) -> dict[str, str]:
    """Return the variables of profiles.yml for the warehouse at `url`, and for the backfill lane's own door to it."""
    kind = urlsplit(url).scheme.partition("+")[0]
    if kind not in _PARTS:
        raise DeclarationError(
            f"dbt cannot reach the warehouse {without_secrets(url)!r}",
            "there is a dbt profile for DuckDB, PostgreSQL and Snowflake alone",
            "Give a URL of one of them, or run dbt with a profile of your own",
        )
    profile, parts = _PARTS[kind]
    found = {"BACKFILL_DBT_PROFILE": profile, **_named(parts(url), "")}
    if lane_url is not None:
        found.update(_named(parts(lane_url), "LANE_"))
    return found


def _named(parts: dict[str, str | None], lane: str) -> dict[str, str]:
    """Return the parts that are given under their variables; dbt hides the value of the password's."""
    return {
        _PASSWORD.format(lane) if name == "PASSWORD" else f"BACKFILL_DBT_{lane}{name}": value
        for name, value in parts.items()
        if value
    }


def _duckdb(url: str) -> dict[str, str | None]:
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    # dbt runs in its project's folder, where a relative file would be another one
    return {
        "PATH": str(Path(unquote(parts.path[1:])).absolute()),
        "LOCK_WAIT": options.get("lock_wait"),
    }


def _postgres(url: str) -> dict[str, str | None]:
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    return {
        "HOST": parts.hostname or options.get("host"),
        "PORT": str(parts.port) if parts.port else options.get("port"),
        "USER": unquote(parts.username or options.get("user") or ""),
        "PASSWORD": unquote(parts.password or options.get("password") or ""),
        "DATABASE": unquote(parts.path.strip("/")) or options.get("dbname"),
        "LOCK_WAIT": options.get("lock_wait"),
    }


def _snowflake(url: str) -> dict[str, str | None]:
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    database = unquote(parts.path.strip("/")).split("/")[0]
    return {
        "ACCOUNT": parts.hostname,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "DATABASE": database,
        "WAREHOUSE": options.get("warehouse"),
        "ROLE": options.get("role"),
    }


_PARTS = {
    "duckdb": ("duckdb", _duckdb),
    "postgresql": ("postgres", _postgres),
    "postgres": ("postgres", _postgres),
    "snowflake": ("snowflake", _snowflake),
}
