"""A warehouse table as its owner declares it: name, slice column, unique key, columns and policies.

What cannot be compared safely is refused here, when the table is declared, and not in the middle of a backfill.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, Literal, cast, get_args

from backfill_assets.closed_days import is_closed, must_be_rules
from backfill_assets.errors import DeclarationError
from backfill_assets.expectations import (
    RESERVED,
    Expectation,
    NoRows,
    Severity,
    Source,
    from_plain,
    source_from,
)
from backfill_assets.window import Window, zone_named

SliceKind = Literal["date", "timestamp", "timestamptz", "int_yyyymmdd", "iso_text"]
SchemaPolicy = Literal["fail", "add", "ignore"]
Bound = date | datetime | int | str

KINDS: tuple[str, ...] = get_args(SliceKind)
POLICIES: tuple[str, ...] = get_args(SchemaPolicy)
SourceHistory = Literal["snapshot", "cdc"]
HISTORIES: tuple[str, ...] = get_args(SourceHistory)
_ALL_DAYS = 700_000
_NONE = type(None)
# what each option may be, and how to say it
_KINDS_OF: tuple[tuple[str, tuple[type, ...], str], ...] = (
    ("source_days", (int, _NONE), "source_days as a whole number"),
    ("source_mutable", (bool,), "source_mutable as True or False"),
    ("max_shrink", (int, float), "max_shrink as a share between 0 and 1"),
    ("shrink_floor", (int,), "shrink_floor as a number of rows"),
    ("schema", (str, _NONE), "schema as a text"),
    ("database", (str, _NONE), "database as a text"),
    ("unique_key", (str, Iterable), "unique_key as the names of columns"),
    ("dimensions", (str, Iterable), "dimensions as the names of columns"),
    ("closed", (str, Iterable), "closed as a list of rules"),
    ("allow_empty", (bool, Iterable), "True, False or days written YYYY-MM-DD"),
    ("expects", (Iterable,), "expects as a list of RowCount, Totals and NoRows"),
    ("columns", (Mapping, _NONE), "columns as names with their SQL types"),
)
_WHOLE_DAYS_ONLY = ("date", "int_yyyymmdd", "iso_text")


@dataclass(frozen=True)
class SliceColumn:
    """The column that cuts a table into slices.

    `kind` is how it holds time: `date`, `timestamp` (wall clock of `zone`), `timestamptz` (an instant),
    `int_yyyymmdd` or `iso_text` (`YYYY-MM-DD`, whatever follows). `zone` is the IANA zone whose days
    and clock the values are in; for `timestamptz` it only names days in messages.
    """

    name: str
    kind: SliceKind = "timestamptz"
    zone: str = "UTC"

    def __post_init__(self) -> None:
        if not self.name:
            raise DeclarationError(
                "the slice column has no name", "it is an empty text", "Name the column"
            )
        if self.kind not in KINDS:
            raise DeclarationError(
                f"the slice column {self.name!r} cannot be of kind {self.kind!r}",
                "values of that kind cannot be compared safely with a window",
                f"Declare one of {', '.join(KINDS)}, or add such a column to the table",
            )
        zone_named(self.zone)

    def bounds(self, window: Window) -> tuple[Bound, Bound]:
        """Return the window's start and end as this column holds them: one spelling for DELETE and INSERT."""
        if self.kind == "timestamptz":
            return window.start, window.end
        if self.kind in _WHOLE_DAYS_ONLY and not window.is_whole_days(self.zone):
            raise DeclarationError(
                f"the window {window.label(self.zone)} cannot be compared with column {self.name!r}",
                f"the column holds whole days of {self.zone} and the window is not made of them",
                f"Partition by days of {self.zone}, or declare the time zone that the column's days are in",
            )
        return self._bound(window.start), self._bound(window.end)

    def _bound(self, instant: datetime) -> Bound:
        local = instant.astimezone(zone_named(self.zone))
        if self.kind == "timestamp":
            self._refuse_repeated(local)
            return local.replace(tzinfo=None, fold=0)
        # a day that begins at 01:00, because midnight was skipped, is still that day
        if self.kind == "date":
            return local.date()
        return int(f"{local:%Y%m%d}") if self.kind == "int_yyyymmdd" else local.date().isoformat()

    def _refuse_repeated(self, local: datetime) -> None:
        """Refuse a bound inside the hour that the clock shows twice: its wall clock does not say which one."""
        just_before = (local.astimezone(zone_named("UTC")) - timedelta(microseconds=1)).astimezone(
            local.tzinfo
        )
        if _is_repeated(local) and _is_repeated(just_before):
            raise DeclarationError(
                f"the time {local.isoformat()} cannot be compared with column {self.name!r}",
                f"the column holds the wall clock of {self.zone}, which shows that hour twice",
                "Partition by day, or slice on a column with a time zone",
            )


def _is_repeated(local: datetime) -> bool:
    """Tell whether the wall clock of `local` happens twice there: the offset shrinks from fold 0 to fold 1."""
    first, second = local.replace(fold=0).utcoffset(), local.replace(fold=1).utcoffset()
    return first is not None and second is not None and first > second


@dataclass(frozen=True)
class Table:
    """A table whose slices are replaced as a unit.

    `name` may be qualified (`analytics.fct_sales`); give `schema` apart where a name itself holds a dot.
    `slice_column` is None for a table that is only ever replaced whole.
    `dimensions` are columns that hold a static second dimension (`region`).
    `columns` maps names to SQL types in the warehouse's own spelling; None takes them from the table
    that is there, or else from the first rows.
    `on_schema_change`: `fail` refuses; `add` adds new columns and fills missing ones with NULL; `ignore`
    leaves new columns out and fills missing ones with NULL.
    `allow_empty`: whether a slice without rows is right: True, False, or the days (`YYYY-MM-DD`) on which it is.
    `max_shrink`: the largest share of its rows that a slice of `shrink_floor` rows or more may lose.
    `source_days`: for how many days after a window its source still holds it (and, where `source_mutable` says
    that the source is changed in place, may be trusted); None for ever, or, if it is mutable, not at all.
    `source_history`: `snapshot` or `cdc` where the source's old states are kept, so that any window can be rewritten.
    `source`: the rows that the table is made from, which counts, totals and late rows are compared with.
    `expects`: what is compared before a commit and after it (`RowCount`, `Totals`, `NoRows`).
    `duplicate_keys`: whether twins of the unique key `block` a slice or only `warn`.
    `closed`: rules for days without rows (`sunday`, `holidays:US`, `exchange:XNYS`), beside those that
    `allow_empty` names. `hours`: the local hours of a day, first and last excluded, each of which has rows: `(8, 20)`.
    """

    name: str
    slice_column: SliceColumn | None = None
    unique_key: tuple[str, ...] = ()
    schema: str | None = None
    database: str | None = None
    dimensions: tuple[str, ...] = ()
    columns: Mapping[str, str] | None = field(default=None, hash=False)
    on_schema_change: SchemaPolicy = "fail"
    allow_empty: bool | frozenset[date] = False
    max_shrink: float = 0.5
    shrink_floor: int = 100
    source_days: int | None = None
    source_mutable: bool = False
    source_history: SourceHistory | None = None
    source: Source | None = None
    expects: tuple[Expectation, ...] = ()
    duplicate_keys: Severity = "block"
    closed: tuple[str, ...] = ()
    hours: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        self._check_types()
        _set(self, "unique_key", _names(self.unique_key, "unique key"))
        _set(self, "dimensions", _names(self.dimensions, "dimension"))
        if self.schema is None and self.database is None:
            self._split_name()
        if not self.name or self.schema == "" or self.database == "":
            raise self._wrong(
                "has an empty part in its name",
                "Write it as table, schema.table or database.schema.table",
            )
        if self.database is not None and self.schema is None:
            raise self._wrong(
                f"names the database {self.database!r} and no schema in it",
                "Write it as database.schema.table, or give schema= too",
            )
        if self.on_schema_change not in POLICIES:
            raise self._wrong(
                f"has no policy {self.on_schema_change!r} for changed columns",
                f"Choose one of {', '.join(POLICIES)}",
            )
        if not 0 <= self.max_shrink <= 1:
            raise self._wrong(
                f"cannot shrink by {self.max_shrink!r}",
                "Give max_shrink as a share between 0 and 1",
            )
        if self.source_days is not None:
            if self.source_days < 0:
                raise self._wrong(
                    f"cannot trust its source for {self.source_days} days",
                    "Give source_days as 0 or more",
                )
            # more days than any calendar has: they mean the same as that many
            _set(self, "source_days", min(self.source_days, _ALL_DAYS))
        if self.source_history not in (None, *HISTORIES):
            raise self._wrong(
                f"has no history {self.source_history!r}", f"Choose one of {', '.join(HISTORIES)}"
            )
        if not isinstance(self.allow_empty, bool):
            _set(self, "allow_empty", _days(self.allow_empty, self))
        self._check_expectations()
        if self.columns is not None:
            _set(self, "columns", dict(self.columns))
            self._refuse_undeclared(self.columns)

    def _check_types(self) -> None:
        """Refuse a value that is not what it is meant to be: `"False"` would count as true, and `"30"` as no number."""
        for name, kinds, wanted in _KINDS_OF:
            value = getattr(self, name)
            # True is an int to Python, and no number of days
            if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
                raise self._wrong(f"has {name}={value!r}", f"Give {wanted}")

    def _check_expectations(self) -> None:
        _set(self, "source", source_from(self.source))
        _set(self, "expects", tuple(from_plain(given) for given in self.expects))
        _set(self, "closed", _names(self.closed, "rule for days without rows"))
        must_be_rules(self.closed)
        if self.duplicate_keys not in get_args(Severity):
            raise self._wrong(
                f"cannot treat duplicate keys as {self.duplicate_keys!r}", "Give 'block' or 'warn'"
            )
        names = [rule.name for rule in self.expects]
        for name in names:
            if name not in RESERVED and names.count(name) > 1:
                raise self._wrong(f"has two rules called {name}", "Give each a name of its own")
        if self.source is None and any(_needs_source(rule) for rule in self.expects):
            raise self._wrong(
                "compares with its source and declares none",
                "Add source=Source('schema.table', on='the_time_column')",
            )
        if self.hours is not None:
            first, last = _set_hours(self)
            if not 0 <= first < last <= 24:
                raise self._wrong(
                    f"cannot have rows from {first} to {last} o'clock",
                    "Give hours as two numbers from 0 to 24, the first one smaller",
                )

    def _split_name(self) -> None:
        parts = self.name.split(".")
        if len(parts) > 3:
            raise self._wrong("has too many dots in its name", "Give schema= and database= apart")
        _set(self, "name", parts[-1])
        _set(self, "schema", parts[-2] if len(parts) > 1 else None)
        _set(self, "database", parts[-3] if len(parts) > 2 else None)

    def _refuse_undeclared(self, columns: Mapping[str, str]) -> None:
        needed = [*self.unique_key, *self.dimensions]
        if self.slice_column is not None:
            needed.append(self.slice_column.name)
        missing = [name for name in needed if name not in columns]
        if missing:
            raise self._wrong(
                f"declares columns without {', '.join(map(repr, missing))}, which its slices or its key need",
                "Add them to columns=",
            )

    def _wrong(self, why: str, do: str) -> DeclarationError:
        return DeclarationError(
            f"table {self.qualified or '(no name)'} cannot be declared so", f"it {why}", do
        )

    @property
    def qualified(self) -> str:
        """The name as a person writes it: `schema.table`. For SQL use the engine, which quotes it."""
        return ".".join(str(part) for part in (self.database, self.schema, self.name) if part)

    def empty_is_right(self, window: Window | None) -> bool:
        """Tell whether no rows at all is a right answer for `window` (None: the whole table)."""
        return self.allow_empty is True or self.empty_is_expected(window)

    def empty_is_expected(self, window: Window | None) -> bool:
        """Tell whether `allow_empty` or `closed` names the days of `window`, so that even rows that are there may go."""
        if window is None:
            return False
        zone = self.slice_column.zone if self.slice_column else "UTC"
        return all(self.is_closed(day) for day in window.days(zone))

    def is_closed(self, day: date) -> bool:
        """Tell whether no rows are expected on the local `day`: named by `allow_empty`, or by a rule of `closed`."""
        named = not isinstance(self.allow_empty, bool) and day in self.allow_empty
        return named or is_closed(day, self.closed)

    def rule(self, name: str) -> NoRows | None:
        """Return the rule of one's own with that name."""
        return next((r for r in self.expects if isinstance(r, NoRows) and r.name == name), None)


def _needs_source(rule: Expectation) -> bool:
    return not isinstance(rule, NoRows) and rule.against == "source"


def _set_hours(table: Table) -> tuple[int, int]:
    try:
        first, last = (int(hour) for hour in table.hours or ())
    except (TypeError, ValueError):
        raise DeclarationError(
            f"table {table.qualified} cannot be declared so",
            f"its hours are {table.hours!r}",
            "Give two numbers, as in (8, 20)",
        ) from None
    _set(table, "hours", (first, last))
    return first, last


def _set(owner: Any, name: str, value: object) -> None:
    object.__setattr__(owner, name, value)


def _names(names: str | Iterable[str], what: str) -> tuple[str, ...]:
    found = (names,) if isinstance(names, str) else tuple(names)
    if any(not isinstance(name, str) for name in cast("tuple[object, ...]", found)):
        raise DeclarationError(
            f"the {what} {list(found)!r} cannot be used", "not all of it is text", "Give names"
        )
    if len(set(found)) < len(found) or not all(found):
        raise DeclarationError(
            f"the {what} {list(found)!r} cannot be used",
            "a column is named twice or not at all",
            "Name each column once",
        )
    return found


def _days(days: Iterable[date | str], table: Table) -> frozenset[date]:
    try:
        return frozenset(date.fromisoformat(d) if isinstance(d, str) else d for d in days)
    except (TypeError, ValueError) as error:
        raise DeclarationError(
            f"table {table.qualified} cannot be declared so",
            f"allow_empty holds something that is not a day ({error})",
            "Give True, False or days written YYYY-MM-DD",
        ) from None
