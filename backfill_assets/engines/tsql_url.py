"""A T-SQL warehouse's URL, read into what the driver is told; secrets go to the driver and nowhere else."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

from backfill_assets.errors import DeclarationError, without_secrets

# our option -> the driver's keyword, and what may be written
_DRIVER = {
    "encrypt": "Encrypt",
    "trust_server_certificate": "TrustServerCertificate",
    "hostname_in_certificate": "HostnameInCertificate",
    "authentication": "Authentication",
    "trusted_connection": "Trusted_Connection",
    "multi_subnet_failover": "MultiSubnetFailover",
    "application_intent": "ApplicationIntent",
}
_SECONDS = {"lock_wait": 600.0, "statement_timeout": 0.0, "login_timeout": 15.0}
_MOST_SECONDS = 2_000_000


@dataclass(frozen=True)
class Address:
    """Where a warehouse is, how to get in, and how long to wait; `connection` holds the password, so it is not shown."""

    host: str
    port: int
    database: str
    connection: str
    wait_seconds: float
    statement_limit: float
    login_timeout: float
    bulk_load: str
    sees_all_rows: bool

    def __repr__(self) -> str:
        return f"Address({self.host},{self.port},{self.database})"


def read(url: str, scheme: str, authentication: str | None = None) -> Address:
    """Return what `scheme://user:password@host:1433/database?option=value` says; raise `DeclarationError`."""
    shown = without_secrets(url)

    def refused(why: str) -> DeclarationError:
        return DeclarationError(
            f"the warehouse URL {shown!r} cannot be used",
            why,
            f"Write {scheme}://user:password@host:1433/database?encrypt=yes, with / ? # @ : and spaces in a password"
            " percent-encoded (%2F %3F %23 %40 %3A %20)",
        )

    try:
        parts = urlsplit(url.strip())
        port = parts.port or 1433
    except ValueError:
        shown = f"{scheme}://..."
        raise refused("what stands behind the host is no port") from None
    if parts.netloc.count("@") > 1 or "@" in parts.path or any(c.isspace() for c in url.strip()):
        shown = f"{scheme}://..."
        raise refused("it has a space or an @ too many, and nobody can tell where the host begins")
    database = unquote(parts.path[1:])
    if not parts.hostname or not database or "/" in parts.path[1:]:
        raise refused("it names no host or not one database")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    unknown = sorted(set(options) - set(_DRIVER) - set(_SECONDS) - {"bulk_load", "sees_all_rows"})
    if unknown:
        raise refused(f"the option {unknown[0]!r} is not known")
    seconds = dict(_SECONDS)
    for name in _SECONDS:
        if name in options:
            value = _seconds(options[name])
            if value is None:
                raise refused(f"{name}={options[name]!r} is no number of seconds")
            seconds[name] = value
    bulk_load = options.get("bulk_load", "copy")
    if bulk_load not in ("copy", "insert"):
        raise refused(f"rows cannot be loaded by {bulk_load!r}, only by copy or insert")
    sees_all = options.get("sees_all_rows", "no")
    if sees_all not in ("yes", "no"):
        raise refused(f"sees_all_rows={sees_all!r} is neither yes nor no")
    if authentication and parts.username and parts.password:
        options.setdefault("authentication", authentication)
    told = {
        "Server": f"{parts.hostname},{port}",
        "Database": database,
        "Encrypt": options.get("encrypt", "yes"),
        **{_DRIVER[name]: value for name, value in options.items() if name in _DRIVER},
        # a connection that is made again behind our back has lost its settings, its claim and its transaction
        "ConnectRetryCount": "0",
    }
    if parts.username:
        told["UID"] = unquote(parts.username)
    if parts.password:
        told["PWD"] = unquote(parts.password)
    connection = "".join(f"{name}={_braced(value)};" for name, value in told.items())
    return Address(
        parts.hostname,
        port,
        database,
        connection,
        wait_seconds=seconds["lock_wait"],
        statement_limit=seconds["statement_timeout"],
        login_timeout=seconds["login_timeout"],
        bulk_load=bulk_load,
        sees_all_rows=sees_all == "yes",
    )


def _braced(value: str) -> str:
    """Return a value as a connection string takes any text."""
    return "{" + value.replace("}", "}}") + "}"


def _seconds(text: str) -> float | None:
    with contextlib.suppress(ValueError):
        if 0 <= (seconds := float(text)) <= _MOST_SECONDS:
            return seconds
    return None
