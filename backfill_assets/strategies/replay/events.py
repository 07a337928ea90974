"""How events are declared: their fields and types, whose time and key they have, and what becomes of those that are wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, Protocol, get_args

from backfill_assets.errors import DeclarationError
from backfill_assets.window import zone_named

Unit = Literal["s", "ms", "us", "ns", "days"]
Poison = Literal["fail", "quarantine"]
_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "INT", "BIGINT", "HUGEINT")
_PLAIN = ("VARCHAR", "TEXT", "BOOLEAN", "DOUBLE", "DATE", "TIMESTAMP", "TIMESTAMPTZ", *_WHOLE)
_DECIMAL = re.compile(r"DECIMAL\((\d+), *(\d+)\)")


@dataclass(frozen=True)
class Field:
    """One value of an event.

    `type` is one of VARCHAR, BOOLEAN, TINYINT to HUGEINT, DOUBLE, DECIMAL(p, s), DATE, TIMESTAMP (a wall clock) and
    TIMESTAMPTZ (an instant). `path` are the names that lead to it in the event (`customer.country`); by default its own
    name. `unit` is that of a number that is a time: s, ms, us or ns since 1970 UTC, or days. `zone` is the IANA zone of
    an instant that is written without one. `encoding` is `base64` where a decimal travels as its unscaled bytes.
    """

    type: str
    path: str | None = None
    unit: Unit | None = None
    zone: str | None = None
    encoding: Literal["base64"] | None = None

    def __post_init__(self) -> None:
        kind = " ".join(self.type.upper().split())
        if kind not in _PLAIN and not _DECIMAL.fullmatch(kind):
            raise _wrong(
                f"a field of type {self.type!r}", "there is no such type", f"Choose one of {', '.join(_PLAIN)}, DECIMAL(p, s)"
            )  # fmt: skip
        object.__setattr__(self, "type", kind)
        if self.unit is not None and (
            self.unit not in get_args(Unit) or kind not in ("TIMESTAMPTZ", "TIMESTAMP", "DATE")
        ):
            raise _wrong(
                f"a {kind} field in {self.unit!r}", "only times have a unit", f"Give one of {', '.join(get_args(Unit))} with a time, or none"
            )  # fmt: skip
        if self.zone is not None:
            zone_named(self.zone)
            if kind != "TIMESTAMPTZ":
                raise _wrong(f"a {kind} field in the zone {self.zone}", "only an instant is in a zone", "Make it TIMESTAMPTZ, or leave the zone out")  # fmt: skip
        if self.encoding is not None and (self.encoding != "base64" or not self.scale_known):
            raise _wrong(f"a {kind} field encoded as {self.encoding!r}", "only a decimal is base64", "Declare DECIMAL(p, s), or leave the encoding out")  # fmt: skip

    @property
    def is_whole(self) -> bool:
        """Whether it holds whole numbers."""
        return self.type in _WHOLE

    @property
    def scale_known(self) -> bool:
        """Whether it is a decimal."""
        return _DECIMAL.fullmatch(self.type) is not None

    @property
    def scale(self) -> int:
        """The places of a decimal."""
        found = _DECIMAL.fullmatch(self.type)
        return int(found[2]) if found else 0


class Decoder(Protocol):
    """How the bytes of an event become one JSON object, or what else is known of it."""

    @property
    def within(self) -> Literal["slice", "table"]:
        """Whether the last event of a key counts within each slice, or of all: then it may have moved to another."""
        ...

    def opened(self) -> str:
        """Return the parts of a WITH that end in `opened`: `__body`, `__removed`, `__skipped` and `__bad` of each event of `batch`."""
        ...


@dataclass(frozen=True)
class Json:
    """Each event is a JSON object. `tombstones`: what an event without a value is.

    `delete` needs the key in the message's own key, as a JSON object with the fields of the key.
    """

    tombstones: Literal["poison", "ignore", "delete"] = "poison"
    within: Literal["slice", "table"] = "slice"

    def __post_init__(self) -> None:
        if self.tombstones == "delete" and self.within == "slice":
            raise _wrong("tombstones that delete within a slice", "a tombstone has no time, so it belongs to no slice", "Give Json(tombstones='delete', within='table')")  # fmt: skip

    def opened(self) -> str:
        """Return the parts of a WITH that end in `opened`: `__body`, `__removed`, `__skipped` and `__bad` of each event of `batch`."""
        deletes = self.tombstones == "delete"
        skipped = "__value IS NULL" if self.tombstones == "ignore" else "false"
        row = "CASE WHEN __value IS NULL THEN __key_text ELSE __text END" if deletes else "__text"
        nothing = "it has no value, and no text in its key" if deletes else "it has no value"
        empty = "__value IS NULL AND __key_text IS NULL" if deletes else "__value IS NULL"
        return f"""doc AS (SELECT *, {row} AS __said FROM batch),
opened AS (SELECT *, CASE WHEN json_valid(__said) THEN __said END AS __body, {"__value IS NULL" if deletes else "false"} AS __removed, {skipped} AS __skipped,
  CASE WHEN {empty} THEN '{nothing}' WHEN __said IS NULL THEN 'it is not UTF-8 text' WHEN NOT json_valid(__said) THEN 'it is no JSON' END AS __bad FROM doc)"""


Decode = Any  # Json, Debezium, or a function from a batch to an Arrow table


@dataclass(frozen=True)
class Events:
    """What an event holds, and how events become the rows of a slice.

    `fields`: names with types, `{"qty": "INTEGER"}`, or a `Field`. `time`: the field that says to which slice an event
    belongs, an instant (TIMESTAMPTZ), or a DATE or TIMESTAMP on the slice column's own clock. `key`: the fields that say
    which row it is of. `ordering`: the fields by which the last event of a key is told, the greatest being the last;
    by default the order of arrival, for which a key has to stay in one shard. An event without them is wrong.
    `deleted`: an SQL condition on the fields that is true for an event that deletes its row.

    `decode`: `Json()`, `Debezium()`, or a function from an Arrow batch (`ordinal`, `at`, `key`, `value`) to an Arrow table
    of as many rows with the fields, in order, and maybe `error`, a text for an event that is wrong.
    `early`, `late`: how much earlier and later than its own time an event may have reached the source: that much more is
    read on each side. `late=None` reads to the end of what there is, which is the default where the last event of all
    counts.
    `poison`: whether an event that cannot be read makes the run fail, or is put aside.
    """

    fields: Mapping[str, str | Field] = field(hash=False)
    time: str
    key: tuple[str, ...]
    ordering: tuple[str, ...] = ()
    deleted: str | None = None
    decode: Decode = field(default_factory=Json, hash=False)
    early: timedelta = timedelta(hours=1)
    late: timedelta | Literal["by decoder"] | None = "by decoder"
    poison: Poison = "fail"

    def __post_init__(self) -> None:
        typed = {n: f if isinstance(f, Field) else Field(f) for n, f in self.fields.items()}
        object.__setattr__(self, "fields", typed)
        for name in ("key", "ordering"):
            given = getattr(self, name)
            object.__setattr__(self, name, (given,) if isinstance(given, str) else tuple(given))
        names = [name.lower() for name in typed]
        for name in names:
            if name.startswith("__") or name == "rowid" or names.count(name) > 1:
                raise _wrong(f"a field {name!r}", "that name is taken, in whatever case", "Rename it, and give its path in the event: Field(..., path=...)")  # fmt: skip
        if self.ordering and getattr(self.decode, "tombstones", "") == "delete":
            raise _wrong("an ordering beside tombstones that delete", "a tombstone has no field to be ordered by", "Leave the ordering out: each key then has to stay in one shard")  # fmt: skip
        if not self.key:
            raise _wrong("events without a key", "events that come again could not be told from new ones", "Name the fields of the key")  # fmt: skip
        for name in (self.time, *self.key, *self.ordering):
            if name not in typed:
                raise _wrong(f"events by {name!r}", f"there is no such field, only {', '.join(typed)}", "Declare the field, or correct the name")  # fmt: skip
        if typed[self.time].type not in ("TIMESTAMPTZ", "TIMESTAMP", "DATE"):
            raise _wrong(f"the time {self.time!r}", f"it is {typed[self.time].type}", "Declare it as TIMESTAMPTZ, and give its unit where it is a number")  # fmt: skip
        if self.late == "by decoder":
            late = None if self.within == "table" else timedelta(hours=1)
            object.__setattr__(self, "late", late)
        if self.poison not in get_args(Poison):
            raise _wrong(f"poison events to {self.poison!r}", "there is no such policy", "Give 'fail' or 'quarantine'")  # fmt: skip
        for name in ("early", "late"):
            given = getattr(self, name)
            if given is not None and (not isinstance(given, timedelta) or given < timedelta(0)):
                raise _wrong(f"{name}={given!r}", "it is no length of time", "Give a timedelta of zero or more")  # fmt: skip

    @property
    def typed(self) -> Mapping[str, Field]:
        """The fields, each as a `Field`."""
        return self.fields  # pyright: ignore[reportReturnType] - made so above

    @property
    def within(self) -> Literal["slice", "table"]:
        """Whether the last event of a key counts within each slice, or of all."""
        return getattr(self.decode, "within", "slice")


def _wrong(what: str, why: str, do: str) -> DeclarationError:
    return DeclarationError(f"{what} cannot be declared", why, do)
