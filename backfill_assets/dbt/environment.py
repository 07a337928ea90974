"""The warehouse's URL as the environment variables that profiles.yml reads, so that both reach one warehouse."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from backfill_assets.errors import DeclarationError, without_secrets

# values that dbt hides: it does so by the name of the variable
_SECRETS = ("PASSWORD", "KEY_PASSPHRASE", "TOKEN", "OAUTH_CLIENT_SECRET")
# options that say who one is or how safely one connects, and that dbt's profile has no field for
_BEYOND_POSTGRES = (
    "channel_binding", "gssencmode", "options", "passfile", "require_auth", "service", "ssl_max_protocol_version",
    "ssl_min_protocol_version", "sslcrl", "sslcrldir", "sslnegotiation", "sslpassword", "target_session_attrs",
)  # fmt: skip
_BEYOND_SNOWFLAKE = (
    "connection_name", "connections_file_path", "oauth_scope", "oauth_token_request_url", "passcode", "proxy_password",
    "proxy_user", "token_file_path",
)  # fmt: skip


def dbt_environment(url: str, lane_url: str | None = None) -> dict[str, str]:
    """Return the variables of profiles.yml for the warehouse at `url`, and for the backfill lane's own door to it.

    Each of both doors is there, also where a URL does not give it: what somebody else has set, or the other door, would
    be taken instead.
    """
    kind = urlsplit(url).scheme.partition("+")[0]
    if kind not in _PARTS:
        raise DeclarationError(
            f"dbt cannot reach the warehouse {without_secrets(url)!r}",
            "there is a dbt profile for DuckDB, PostgreSQL and Snowflake alone",
            "Give a URL of one of them, or run dbt with a profile of your own",
        )
    profile, parts = _PARTS[kind]
    lane = parts(url if lane_url is None else lane_url)
    return {"BACKFILL_DBT_PROFILE": profile, **_named(parts(url), ""), **_named(lane, "LANE_")}


def is_ours(variable: str) -> bool:
    """Tell whether profiles.yml or the macros may read an environment variable."""
    return variable.startswith(("BACKFILL_DBT_", "DBT_ENV_SECRET_BACKFILL_"))


def _named(parts: dict[str, str | None], lane: str) -> dict[str, str]:
    """Return the parts under their variables, those that are not given as empty texts."""
    return {
        f"{'DBT_ENV_SECRET_BACKFILL' if name in _SECRETS else 'BACKFILL_DBT'}_{lane}{name}": value
        or ""
        for name, value in parts.items()
    }


def _options(url: str, beyond: tuple[str, ...]) -> dict[str, str]:
    options = dict(parse_qsl(urlsplit(url).query))
    lost = [name for name in beyond if name in options]
    if lost:
        raise DeclarationError(
            f"dbt cannot reach the warehouse {without_secrets(url)!r}",
            f"a profile of dbt has no field for {', '.join(lost)}",
            "Leave that out of the URL, or run dbt with a profile of your own",
        )
    return options


def _file(name: str | None) -> str | None:
    """Return where a file is: dbt runs in its project's folder, where a relative one would be another."""
    return str(Path(name).expanduser().absolute()) if name and name != "system" else name


def _duckdb(url: str) -> dict[str, str | None]:
    options = _options(url, ())
    return {
        "PATH": _file(unquote(urlsplit(url).path[1:])),
        "LOCK_WAIT": options.get("lock_wait", "600"),
    }


def _postgres(url: str) -> dict[str, str | None]:
    parts = urlsplit(url)
    options = _options(url, _BEYOND_POSTGRES)
    user = unquote(parts.username or options.get("user") or "")
    return {
        "HOST": parts.hostname or options.get("host"),
        "PORT": str(parts.port) if parts.port else options.get("port", "5432"),
        "USER": user,
        "PASSWORD": unquote(parts.password or options.get("password") or ""),
        "DATABASE": unquote(parts.path.strip("/")) or options.get("dbname") or user or "postgres",
        "SSLMODE": options.get("sslmode"),
        "SSLROOTCERT": _file(options.get("sslrootcert")),
        "SSLCERT": _file(options.get("sslcert")),
        "SSLKEY": _file(options.get("sslkey")),
        "LOCK_WAIT": options.get("lock_wait", "600"),
    }


def _snowflake(url: str) -> dict[str, str | None]:
    parts = urlsplit(url)
    options = _options(url, _BEYOND_SNOWFLAKE)
    authenticator = options.get("authenticator", "")
    # the connector's names in any case are dbt's in lower case; an identity provider's address stays as it is
    if "://" not in authenticator:
        authenticator = authenticator.lower()
    passphrase = [
        options.get(name)
        for name in ("private_key_file_pwd", "private_key_password", "private_key_file_passphrase")
    ]
    return {
        "ACCOUNT": parts.hostname,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "DATABASE": unquote(parts.path.strip("/")).split("/")[0],
        "WAREHOUSE": options.get("warehouse"),
        "ROLE": options.get("role"),
        "AUTHENTICATOR": authenticator,
        "TOKEN": options.get("token"),
        "KEY_PATH": _file(options.get("private_key_file") or options.get("private_key_path")),
        "KEY_PASSPHRASE": next((one for one in passphrase if one), None),
        "OAUTH_CLIENT_ID": options.get("oauth_client_id"),
        "OAUTH_CLIENT_SECRET": options.get("oauth_client_secret"),
        "WORKLOAD_IDENTITY_PROVIDER": options.get("workload_identity_provider"),
        "HOST": options.get("host"),
        "PORT": options.get("port", "443"),
        "PROTOCOL": options.get("protocol"),
        "PROXY_HOST": options.get("proxy_host"),
        "PROXY_PORT": options.get("proxy_port", "0"),
        "LOCK_WAIT": options.get("lock_wait", "600"),
        "STATEMENT_TIMEOUT": options.get("statement_timeout", "0"),
        "STAGE_SCHEMA": options.get("stage_schema", "backfill"),
    }


_PARTS = {
    "duckdb": ("duckdb", _duckdb),
    "postgresql": ("postgres", _postgres),
    "postgres": ("postgres", _postgres),
    "snowflake": ("snowflake", _snowflake),
}
