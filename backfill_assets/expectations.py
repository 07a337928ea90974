"""What the slices of a table are expected to hold, as the table's owner declares it.

Values only: `writing/expecting.py` compares them before a commit, `checks` after it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from backfill_assets.errors import DeclarationError

Severity = Literal["block", "warn"]
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ELSEWHERE = ("duckdb:", "postgresql:", "snowflake:", "bigquery:", "databricks:", "mssql:")


@dataclass(frozen=True)
class Source:
    """Rows of the same warehouse that a table is made from or compared with, one for each row expected.

    `sql` is a SELECT, or a table's name. `on` is the column of it that holds a row's time (`on_kind` and `on_zone` as
    in a `Select`: found out from its type, and the table's zone). `ingested_at` is the column (an instant) that says
    when a row reached the source; it finds rows that came late. Static dimensions have the table's column names.
    """

    sql: str
    on: str
    on_kind: str | None = None
    on_zone: str | None = None
    ingested_at: str | None = None

    def __post_init__(self) -> None:
        for name in ("sql", "on"):
            given: object = getattr(self, name)
            if not isinstance(given, str) or not given.strip():
                raise _wrong(f"its source has no {name}", "Give it as a text")
        if self.sql.strip().lower().startswith(_ELSEWHERE):
            raise _wrong(
                "its source lies in another warehouse, which cannot be read in one statement with the table",
                "Copy the counts to a table of this warehouse, or reconcile the two",
            )

    @property
    def query(self) -> str:
        """The rows as a SELECT."""
        sql = trimmed(self.sql)
        return sql if _SELECT.match(sql) else f"SELECT * FROM {sql}"


@dataclass(frozen=True)
class RowCount:
    """How many rows a slice should have.

    `against`: `"source"` (the table's own), another `Source` (a sibling table), `"last_load"` (what the last committed
    load of the slice left), a number, or a query that returns one number, in which `{start}` and `{end}` stand for the
    slice's edges as its column spells them. The larger of `tolerance` (a share of what is expected) and `absolute`
    (rows) may be missing or too many.
    """

    against: Source | str | int = "source"
    tolerance: float = 0.01
    absolute: float = 0
    severity: Severity = "block"

    name = "row_count"

    def __post_init__(self) -> None:
        _refuse_limits(self)
        against: object = self.against
        if isinstance(against, bool) or not isinstance(against, (Source, str, int)):
            raise _wrong(f"it expects {against!r} rows", "Give a Source, a number or a query")
        if isinstance(against, int) and against < 0:
            raise _wrong(f"it expects {against!r} rows", "Give a number of rows that is 0 or more")
        if self.query is not None and not _SELECT.match(self.query):
            raise _wrong(
                f"it expects as many rows as {self.query!r} says, which is no query",
                "Give a SELECT that returns one number, a number, 'source' or 'last_load'",
            )

    @property
    def query(self) -> str | None:
        """The query that `against` is, None where it is something else."""
        named = isinstance(self.against, str) and self.against in ("source", "last_load")
        return self.against if isinstance(self.against, str) and not named else None


@dataclass(frozen=True)
class Totals:
    """Sums of columns that have the same name in the table and in its source, or in another `Source`."""

    measures: tuple[str, ...]
    against: Source | Literal["source"] = "source"
    tolerance: float = 0.01
    absolute: float = 0
    severity: Severity = "block"

    name = "totals"

    def __post_init__(self) -> None:
        given: Any = self.measures
        measures = (given,) if isinstance(given, str) else tuple(given or ())
        if not all(isinstance(name, str) and name for name in measures):
            raise _wrong(f"its totals add up {given!r}", "Name columns")
        object.__setattr__(self, "measures", measures)
        _refuse_limits(self)
        if not measures:
            raise _wrong("its totals name no column", "Name the columns to be summed")
        if not (self.against == "source" or isinstance(self.against, Source)):
            raise _wrong(f"its totals are compared with {self.against!r}", "Give a Source")


@dataclass(frozen=True)
class NoRows:
    """A query that must return no rows; it reads the slice's new rows from `slice_rows`."""

    name: str
    sql: str
    severity: Severity = "block"

    def __post_init__(self) -> None:
        _refuse_severity(self)
        name: object = self.name
        if not isinstance(name, str) or not _NAME.fullmatch(name) or name in RESERVED:
            raise _wrong(
                f"its rule cannot be called {self.name!r}",
                "Give letters, digits and underscores, and no name that is used already",
            )
        if not isinstance(self.sql, str) or "slice_rows" not in self.sql:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise _wrong(
                f"its rule {self.name} does not read the slice",
                "Read it from slice_rows: SELECT * FROM slice_rows WHERE amount < 0",
            )
        if not _SELECT.match(self.sql):
            raise _wrong(
                f"its rule {self.name} is no query",
                "Give a SELECT that returns the rows that are wrong, and nothing that changes any",
            )


# what begins a query, behind comments and brackets; anything else is a table's name
_SELECT = re.compile(
    r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*(?:select|with|values|from|table)\b", re.I | re.S
)
_TAIL = re.compile(r"[\s;]*(?:--[^\n'\"]*)?\Z")


def trimmed(sql: str) -> str:
    """Return one statement without what stands behind it: blanks, a semicolon, a comment."""
    return _TAIL.sub("", _TAIL.sub("", sql))


Expectation = RowCount | Totals | NoRows

# what a rule of one's own cannot be called: the names of checks, and of what a run may allow
RESERVED = (
    "row_count",
    "totals",
    "duplicate_keys",
    "missing_partitions",
    "late_rows",
    "schema",
    "empty",
    "shrink",
    "retention",
)
_KINDS: dict[str, Any] = {"row_count": RowCount, "totals": Totals, "no_rows": NoRows}


def as_plain(expectation: Expectation) -> dict[str, Any]:
    """Return the expectation as JSON has it, for an asset's metadata."""
    kind = next(kind for kind, made in _KINDS.items() if type(expectation) is made)
    return {"expect": kind, **asdict(expectation)}


def from_plain(given: Any) -> Expectation:
    """Return the expectation that `as_plain` gave, or that somebody wrote."""
    if isinstance(given, (RowCount, Totals, NoRows)):
        return given
    if not isinstance(given, Mapping) or given.get("expect") not in _KINDS:
        raise _wrong(f"it expects {given!r}", f"Give one of {', '.join(_KINDS)} as 'expect'")
    made = _KINDS[given["expect"]]
    options = {name: value for name, value in given.items() if name != "expect"}
    if isinstance(options.get("against"), Mapping):
        options["against"] = source_from(options["against"])
    return _made(made, options)


def source_from(given: Any) -> Source | None:
    """Return the `Source` that metadata holds: itself, its fields, or nothing."""
    if given is None or isinstance(given, Source):
        return given
    if not isinstance(given, Mapping):
        raise _wrong(f"its source is {given!r}", "Give a Source")
    return _made(Source, dict(given))


def _made(made: Any, options: dict[str, Any]) -> Any:
    known = {field.name for field in fields(made)}
    unknown = sorted(set(options) - known)
    if unknown:
        raise _wrong(
            f"{made.__name__} has no {unknown[0]!r}", f"Choose from {', '.join(sorted(known))}"
        )
    try:
        return made(**options)
    except TypeError as error:
        raise _wrong(f"{made.__name__} is incomplete ({error})", "Give what is missing") from None


def _refuse_limits(given: RowCount | Totals) -> None:
    _refuse_severity(given)
    for name in ("tolerance", "absolute"):
        value: object = getattr(given, name)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise _wrong(f"{given.name} has {name}={value!r}", "Give a number")
    if not 0 <= given.tolerance < 1:
        raise _wrong(
            f"{given.name} tolerates {given.tolerance:.0%}, with which hardly anything could be wrong",
            "Give tolerance as a share from 0 to below 1, such as 0.01",
        )
    if not 0 <= given.absolute < float("inf"):
        raise _wrong(f"{given.name} tolerates {given.absolute}", "Give absolute as 0 or more")


def _refuse_severity(given: Expectation) -> None:
    if given.severity not in get_args(Severity):
        raise _wrong(f"{given.name} has the severity {given.severity!r}", "Give 'block' or 'warn'")


def _wrong(why: str, do: str) -> DeclarationError:
    return DeclarationError("what a table is expected to hold cannot be declared so", why, do)
