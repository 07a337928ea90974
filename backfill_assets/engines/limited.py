"""The part of an engine that gives the same warehouse with other limits."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import TypeVar

L = TypeVar("L", bound="Limited")


class Limited:
    """An engine that knows how long to wait for others and how long a statement may take."""

    def limited(
        self: L, *, lock_wait: float | None = None, statement_timeout: float | None = None
    ) -> L:
        """Return the same warehouse with other limits, in seconds; None keeps the one that it has."""
        told = {"wait_seconds": lock_wait, "statement_limit": statement_timeout}
        other = copy(self)
        other._limit({name: limit for name, limit in told.items() if limit is not None})
        return other

    def _limit(self, limits: Mapping[str, float]) -> None:
        """Take these limits, of `wait_seconds` and `statement_limit`; this is a copy of our own."""
        vars(self).update(limits)
