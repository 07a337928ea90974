"""Drivers are imported when a session opens and no earlier."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from backfill_assets.errors import MissingDriver


def driver(module: str, warehouse: str, install: str) -> Any:
    """Return the driver's module; raise `MissingDriver` with the line that installs it, `install` being pip's name."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingDriver(
            f"{warehouse} cannot be reached",
            f"its driver {module} cannot be loaded ({error})",
            f"Run: pip install '{install}'",
        ) from error
