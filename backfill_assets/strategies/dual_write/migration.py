"""A migration as its owner declares it: two sides, what makes their rows the same, and when readers may move.

What cannot be compared is refused here, when it is declared, or when the columns of both sides are first seen.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from backfill_assets.errors import DeclarationError
from backfill_assets.strategies.dual_write.side import Side
from backfill_assets.strategies.dual_write.tolerance import EXACT, Tolerance, tolerance_from
from backfill_assets.table import Table

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Migration:
    """The `old` path and the `new` one write a table each; `view` is what readers read.

    `key` names the columns that tell rows apart: it need not be unique, copies are compared as a multiset.
    `measures` are numbers whose totals are compared and shown. `compare` names the columns that have to agree, by
    default all that both sides have; `ignore` leaves some of them out. `tolerances` are by column (see `Tolerance`).
    `threshold` is the share of a day's rows that may differ in all (0.001 is one in a thousand), `quiet_days` how many
    days in a row have to stay below it before readers may move; the last of them is the newest that is due, which a day
    is `due_hours` after its end. `view` (schema.view) is in the warehouse of the new
    side. `retire_after_days`: how long after a cutover the old table stays, whatever anyone says.
    `keep_keys` bounds how many differing keys of a day are kept with their values.
    """

    name: str
    old: Side
    new: Side
    key: tuple[str, ...]
    measures: tuple[str, ...] = ()
    compare: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    tolerances: Mapping[str, Tolerance] = field(default_factory=dict[str, Tolerance], hash=False)
    threshold: float = 0.0
    quiet_days: int = 14
    due_hours: float = 24
    view: str | None = None
    retire_after_days: int = 30
    keep_keys: int = 100

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise self._wrong(f"it is called {self.name!r}", "Give letters, digits and underscores")
        for side in ("old", "new"):
            if not isinstance(getattr(self, side), Side):
                raise self._wrong(f"its {side} side is {getattr(self, side)!r}", "Give a Side")
        for columns in ("key", "measures", "compare", "ignore"):
            given = getattr(self, columns)
            if given is None and columns != "compare":
                given = ()  # what an empty entry of YAML is
            if given is not None:
                object.__setattr__(self, columns, self._names(given, columns))
        if not self.key:
            raise self._wrong(
                "it has no key, so nobody could say which rows belong together",
                "Give key=('order_id',), even where it is not unique",
            )
        if self.compare == ():
            raise self._wrong(
                "its compare names no column, so that only keys would be compared",
                "Name columns, or leave it out to compare all of them",
            )
        tolerances: Any = self.tolerances or {}
        if not isinstance(tolerances, Mapping) or not all(isinstance(k, str) for k in tolerances):
            raise self._wrong(
                f"its tolerances are {tolerances!r}", "Give them by the names of columns"
            )
        object.__setattr__(self, "tolerances", tolerances)
        view: Any = self.view
        if view is not None and not (isinstance(view, str) and view.strip()):
            raise self._wrong(f"its view is {view!r}", "Give its name: schema.view")
        object.__setattr__(
            self, "tolerances", {k: tolerance_from(v) for k, v in dict(self.tolerances).items()}
        )
        self._check_columns()
        self._check_numbers()
        if (
            self.old.warehouse == self.new.warehouse
            and self.old.name == self.new.name
            and type(self.old) is type(self.new)
        ):
            raise self._wrong("both sides are the same table", "Name the table of each path")
        if self.view is not None and Table(self.view).qualified in (self.old.name, self.new.name):
            raise self._wrong(
                f"{self.view} is both the view that readers read and the table of a side",
                "Give the view a name of its own",
            )

    def _check_columns(self) -> None:
        keyed = set(self.key) | {self.old.column.name, self.new.column.name}
        for name in self.tolerances:
            if name in self.key:
                raise self._wrong(
                    f"key column {name!r} has a tolerance, so that rows would not know which one they belong to",
                    "Compare keys exactly",
                )
            if name in self.ignore or (self.compare is not None and name not in self.compare):
                raise self._wrong(
                    f"{name!r} has a tolerance and is not compared", "Take one of both away"
                )
        for name in self.ignore:
            if name in keyed or name in self.measures or name in (self.compare or ()):
                raise self._wrong(
                    f"{name!r} is ignored, and is a key, a slice column, a measure or compared",
                    "Take it out of ignore",
                )

    def _check_numbers(self) -> None:
        share: Any = self.threshold
        if (
            isinstance(share, bool)
            or not isinstance(share, (int, float))
            or not math.isfinite(share)
            or not 0 <= share < 1
        ):
            raise self._wrong(
                f"its threshold is {self.threshold!r}",
                "Give a share from 0 to below 1: 0.001 is one row in a thousand",
            )
        hours: Any = self.due_hours
        if (
            isinstance(hours, bool)
            or not isinstance(hours, (int, float))
            or not math.isfinite(hours)
            or not 0 <= hours <= 8_784
        ):
            raise self._wrong(
                f"its due_hours is {hours!r}", "Give hours from 0 to 8784, which is a year"
            )
        for name, least, most in (
            ("quiet_days", 1, 3_660),
            ("retire_after_days", 0, 36_600),
            ("keep_keys", 0, 10_000),
        ):
            given = getattr(self, name)
            if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:
                raise self._wrong(
                    f"its {name} is {given!r}", f"Give a whole number from {least} to {most}"
                )

    def _names(self, given: Any, what: str) -> tuple[str, ...]:
        names = (
            (given,)
            if isinstance(given, str)
            else tuple(given)
            if isinstance(given, Iterable)
            else ()
        )
        if (given and not names) or not all(isinstance(name, str) and name for name in names):
            raise self._wrong(f"its {what} is {given!r}", "Give the names of columns")
        if len(set(names)) < len(names):
            raise self._wrong(f"its {what} names a column twice", "Name each once")
        return names

    def tolerance_of(self, column: str) -> Tolerance:
        """Return how two values of a column are compared."""
        return self.tolerances.get(column, EXACT)

    @property
    def fingerprint(self) -> str:
        """What changes when days have to be compared again: everything that decides a verdict."""
        told = (
            self.name, self.old, self.new, self.key, self.measures, self.compare, self.ignore,
            sorted(self.tolerances.items()), self.threshold,
        )  # fmt: skip
        return hashlib.sha256(repr([_shown(one) for one in told]).encode()).hexdigest()[:16]

    def _wrong(self, why: str, do: str) -> DeclarationError:
        return DeclarationError(f"the migration {self.name} cannot be declared so", why, do)


def _shown(value: object) -> object:
    """Return a side without its URL: what it is reached by decides no verdict."""
    if isinstance(value, Side):
        return (value.name, value.column, repr(getattr(value, "files", "")))
    return value
