"""What a `snowflake://` URL says, as the arguments of Snowflake's connector and a few options of ours."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote

from backfill_assets.engines.snowflake_cost import CREDITS_PER_HOUR, size_named
from backfill_assets.errors import DeclarationError, without_secrets

EXAMPLE = "snowflake://user:password@account/database/schema?warehouse=WH&role=R"
# what the connector takes as it is
_THEIRS = (
    "warehouse", "role", "authenticator", "token", "token_file_path", "passcode", "connection_name",
    "connections_file_path", "private_key_file", "private_key_file_pwd", "host", "protocol", "ocsp_fail_open",
    "application", "oauth_client_id", "oauth_client_secret", "oauth_token_request_url", "oauth_scope",
    "workload_identity_provider", "proxy_host", "proxy_user", "proxy_password", "client_session_keep_alive",
    "client_store_temporary_credential", "client_request_mfa_token",
)  # fmt: skip
_NUMBERS = ("port", "login_timeout", "network_timeout", "socket_timeout", "proxy_port")
# how the demo and Dagster's resource call them
_ALSO = {
    "private_key_path": "private_key_file",
    "private_key_password": "private_key_file_pwd",
    "private_key_file_passphrase": "private_key_file_pwd",
}
_FLAGS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_OURS = ("lock_wait", "statement_timeout", "stage_schema", "warehouse_size", "bulk_load")
_LONGEST_WAIT = 604_800  # a week, the most that the service takes for a statement


@dataclass(frozen=True)
class Options:
    """`arguments` go to the connector as they are; times are in seconds, 0 for a statement that may take for ever."""

    arguments: Mapping[str, Any] = field(repr=False)
    wait_seconds: float = 600.0
    statement_limit: float = 0.0
    stage_schema: str = "backfill"
    warehouse_size: str | None = None
    bulk_load: str = "copy"

    @property
    def place(self) -> str:
        """The database; empty where a connection file names it."""
        return str(self.arguments.get("database") or "").upper()

    @property
    def address(self) -> str:
        """The account, or the connection file's name for it, and the host where one is given."""
        told = [
            str(self.arguments.get(name) or "") for name in ("account", "connection_name", "host")
        ]
        return " ".join(part.lower() for part in told if part)


def options_of(url: str) -> Options:
    """Return what `url` says; raise `DeclarationError` for what nobody would understand."""
    head, _, query = url.strip().partition("://")[2].partition("?")
    authority, _, path = head.partition("/")
    credentials, at, account = authority.rpartition("@")
    if not at:
        credentials, account = "", authority
    user, colon, password = credentials.partition(":")
    database, _, schema = path.partition("/")
    if "@" in credentials or "@" in path or "/" in schema:
        raise _wrong(
            "the warehouse URL cannot be used", "it has an @ or a / too many", percent=True
        )
    arguments: dict[str, Any] = {
        name: unquote(value)
        for name, value in (
            ("user", user),
            ("account", account),
            ("database", database),
            ("schema", schema.rstrip("/")),
        )
        if value
    }
    if colon:
        arguments["password"] = unquote(password)
    ours = _sort(dict(parse_qsl(query, keep_blank_values=True)), arguments, without_secrets(url))
    if "connection_name" not in arguments:
        missing = [name for name in ("account", "database") if name not in arguments]
        if missing:
            raise _wrong(
                f"the warehouse URL {without_secrets(url)!r} cannot be used",
                f"it names no {' and no '.join(missing)}",
            )
    return _options(arguments, ours, without_secrets(url))


def options_from(arguments: Mapping[str, Any], **ours: str) -> Options:
    """Return the same of arguments that are the connector's already, as Dagster's `SnowflakeResource` yields them."""
    unknown = sorted(set(ours) - set(_OURS))
    if unknown:
        raise _wrong("the engine cannot be made", f"the option {unknown[0]!r} is not known")
    return _options(dict(arguments), ours, "of the resource")


def _sort(given: Mapping[str, str], arguments: dict[str, Any], shown: str) -> dict[str, str]:
    """Put the connector's options among its `arguments`, and return ours."""
    ours: dict[str, str] = {}
    for told, value in given.items():
        name = _ALSO.get(told, told)
        if name in _OURS:
            ours[name] = value
        elif name in _NUMBERS:
            arguments[name] = int(_seconds(name, value, shown))
        elif name in _THEIRS:
            arguments[name] = _FLAGS.get(value.lower(), value)
        else:
            known = ", ".join(sorted((*_THEIRS, *_NUMBERS, *_OURS)))
            raise _wrong(
                f"the warehouse URL {shown!r} cannot be used",
                f"the option {told!r} is not known, only {known}",
            )
    return ours


def _options(arguments: dict[str, Any], ours: Mapping[str, str], shown: str) -> Options:
    size = ours.get("warehouse_size")
    if size is not None and size_named(size) is None:
        raise _wrong(
            f"the warehouse URL {shown!r} cannot be used",
            f"there is no warehouse size {size!r}, only {', '.join(CREDITS_PER_HOUR)}",
        )
    bulk_load = ours.get("bulk_load", "copy")
    if bulk_load not in ("copy", "insert"):
        raise _wrong(
            f"the warehouse URL {shown!r} cannot be used",
            f"rows cannot be loaded by {bulk_load!r}, only by copy or insert",
        )
    return Options(
        arguments,
        _seconds("lock_wait", ours.get("lock_wait", "600"), shown),
        _seconds("statement_timeout", ours.get("statement_timeout", "0"), shown),
        ours.get("stage_schema", "backfill"),
        size,
        bulk_load,
    )


def _seconds(name: str, value: str, shown: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 <= (seconds := float(value)) <= _LONGEST_WAIT:
            return seconds
    raise DeclarationError(
        f"the warehouse URL {shown!r} cannot be used",
        f"{name}={value!r} is no number of seconds up to {_LONGEST_WAIT}"
        if name != "port"
        else f"port={value!r} is no port",
        f"Write for example {name}=600",
    )


def _wrong(what: str, why: str, *, percent: bool = False) -> DeclarationError:
    more = ", with / @ : ? in a name or password percent-encoded" if percent else ""
    return DeclarationError(what, why, f"Write for example {EXAMPLE}{more}")
