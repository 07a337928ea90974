"""What a `databricks://` URL says: workspace, catalog, SQL warehouse, credentials and a few options of ours."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

from backfill_assets.engines.databricks_cost import DBU_PER_HOUR, size_named
from backfill_assets.errors import DeclarationError, without_secrets

EXAMPLE = "databricks://host/catalog/schema?http_path=/sql/1.0/warehouses/..."
_OPTIONS = {
    "http_path": "",
    "lock_wait": "600",
    "statement_timeout": "0",
    "claim_lease": "1800",
    "connect_wait": "300",
    "stage_schema": "backfill",
    "warehouse_size": "",
    "profile": "",
}
_PORT = 443
_SHORTEST_LEASE = 60
_LONGEST_WAIT = 172_800  # two days, the most that the service takes for a statement


@dataclass(frozen=True)
class Options:
    """What `shown` tells of all of it is no secret. `token` is a personal access token; `client_id` and `client_secret` are a service principal's, for OAuth.

    Times are in seconds, 0 for the warehouse's own limit of a statement.
    """

    shown: str
    host: str
    port: int
    http_path: str
    catalog: str
    schema: str
    token: str = field(default="", repr=False)
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    profile: str = ""
    wait_seconds: float = 600.0
    statement_limit: float = 0.0
    lease_seconds: float = 1800.0
    connect_seconds: float = 300.0
    stage_schema: str = "backfill"
    warehouse_size: str = ""


def options_of(url: str) -> Options:
    """Return what `url` says; raise `DeclarationError` for what nobody would understand."""
    head, _, query = url.strip().partition("://")[2].partition("?")
    authority, _, path = head.partition("/")
    credentials, at, place = authority.rpartition("@")
    # whoever forgets the user has written the token in its place
    shown = without_secrets(f"databricks://{place}/{path}{'?' * bool(query)}{query}")
    user, colon, secret = credentials.partition(":")
    host, _, port = place.partition(":")
    catalog, _, schema = path.rstrip("/").partition("/")
    given = dict(parse_qsl(query, keep_blank_values=True))
    options = {**_OPTIONS, **given}
    unknown = sorted(set(given) - set(_OPTIONS))
    size = options["warehouse_size"]
    why = None
    if not host or "@" in credentials or (port and not port.isdecimal()):
        why = "it names no workspace, or has an @ or a : too many"
    elif at and not (user and colon and secret):
        why = "before the @ stand neither the word token and a token nor a service principal and its secret"
    elif not catalog or "/" in schema:
        why = "it does not name a catalog, and at most one schema of it"
    elif unknown:
        why = f"the option {unknown[0]!r} is not known; there are {', '.join(_OPTIONS)}"
    elif not options["http_path"].startswith("/"):
        why = "it names no SQL warehouse by http_path"
    elif size and size_named(size) is None:
        why = f"there is no warehouse size {size!r}, only {', '.join(DBU_PER_HOUR)}"
    if why is not None:
        raise _wrong(shown, why)
    lease = _seconds("claim_lease", options, shown)
    if lease < _SHORTEST_LEASE:
        raise _wrong(
            shown,
            f"claim_lease={lease:g} s is shorter than the statements that a claim is held for",
        )
    is_token = user == "token"
    return Options(
        shown,
        unquote(host),
        int(port or _PORT),
        options["http_path"],
        unquote(catalog),
        unquote(schema) or "default",
        unquote(secret) if is_token else "",
        "" if is_token else unquote(user),
        "" if is_token else unquote(secret),
        options["profile"],
        _seconds("lock_wait", options, shown),
        _seconds("statement_timeout", options, shown),
        lease,
        _seconds("connect_wait", options, shown),
        options["stage_schema"],
        size,
    )


def _seconds(name: str, options: Mapping[str, str], shown: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 <= (seconds := float(options[name])) <= _LONGEST_WAIT:
            return seconds
    raise _wrong(shown, f"{name}={options[name]!r} is no number of seconds up to {_LONGEST_WAIT}")


def _wrong(shown: str, why: str) -> DeclarationError:
    return DeclarationError(
        f"the warehouse URL {shown!r} cannot be used",
        why,
        f"Write for example {EXAMPLE}, with the token in DATABRICKS_TOKEN",
    )
