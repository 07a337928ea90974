"""Which columns of both sides are compared, and as what; what cannot be compared is refused here, all of a kind at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from backfill_assets.engines.protocol import Session, Spelling
from backfill_assets.engines.sql import by_type, quoted, told
from backfill_assets.errors import BackfillError, MissingTable, SchemaMismatch
from backfill_assets.strategies.dual_write import Migration, Side, Tolerance
from backfill_assets.strategies.reconcile.canonical import (
    EXACT_NUMBERS,
    MOMENTS,
    NUMBERS,
    as_float,
    as_text,
    common_scale,
    cut_off,
    family_of,
    has_text,
    is_long,
    tolerant_text,
)
from backfill_assets.writing.fit import holds_kind

# of numbers whose types do not say how many places they have, and of those too long for one decimal
_SCALE_WHERE_NONE_IS_TOLD = 18


@dataclass(frozen=True)
class Value:
    """A column of one side: `hashed` enters the hash of a row as `kind`, `sent` is what leaves the warehouse, if it must."""

    hashed: str
    kind: str
    sent: str


@dataclass(frozen=True)
class Column:
    """A column of both sides. Where they are compared, `{value}` is what it holds there.

    `held` makes it comparable again after it was sent, `shown` is its text, `number` the number that a tolerance is
    asked of (None where it is none), `exactly` whether that is a decimal.
    """

    name: str
    family: str
    old: Value
    new: Value
    tolerance: Tolerance
    is_key: bool
    held: str
    shown: str
    number: str | None
    exactly: bool


@dataclass(frozen=True)
class Compared:
    """The columns of two tables that have to agree, keys first, and how each side names its measures.

    `one_place`: whether one session sees both. `alike`: whether both are of one engine, so that its own hash tells.
    """

    columns: tuple[Column, ...]
    measures: tuple[tuple[str, str, str], ...]
    one_place: bool
    alike: bool

    @property
    def key(self) -> tuple[Column, ...]:
        """The columns that tell rows apart."""
        return tuple(column for column in self.columns if column.is_key)

    @property
    def rest(self) -> tuple[Column, ...]:
        """The others."""
        return tuple(column for column in self.columns if not column.is_key)


@dataclass(frozen=True)
class Found:
    """The columns of one side that is there: by the name they share, their own name and type."""

    side: Side
    spelling: Spelling
    types: dict[str, str]

    def own(self, name: str) -> str | None:
        """Return the side's own name of a column: case counts only where two differ by nothing else."""
        by_told = {told(self.spelling, own): own for own in self.types}
        if name in by_told:
            return by_told[name]
        folded = [own for shown, own in by_told.items() if shown.lower() == name.lower()]
        return folded[0] if len(folded) == 1 else None


def compared(session_old: Session, session_new: Session, migration: Migration) -> Compared:
    """Return what is compared; raise `SchemaMismatch` (or `MissingTable`) with everything of one kind that is wrong."""
    old = _found(session_old, migration.old, migration)
    new = _found(session_new, migration.new, migration)
    alike = old.spelling.dialect == new.spelling.dialect
    one_place = session_old is session_new
    names = _names(old, new, migration)
    columns: list[Column] = []
    apart: list[str] = []
    floats: list[str] = []
    unsupported: list[str] = []
    for name, own_old, own_new in names:
        is_key = name in _keys(new, migration)
        made = _column(name, own_old, own_new, old, new, migration, is_key, alike, one_place)
        if isinstance(made, Column):
            columns.append(made)
        elif made.startswith("float"):
            floats.append(f"{name!r} ({old.types[own_old]} and {new.types[own_new]})")
        elif made.startswith("apart"):
            apart.append(f"{name!r} ({old.types[own_old]} and {new.types[own_new]})")
        else:
            unsupported.append(f"{name!r} ({old.types[own_old]})")
    _refuse(
        migration,
        apart,
        "hold other kinds of values on both sides",
        "Convert one side, or name them in ignore",
    )
    _refuse(
        migration,
        floats,
        "are inexact on one side and exact on the other",
        "Give Tolerance(as_float=True), or how much they may differ, for each",
    )
    _refuse(
        migration,
        unsupported,
        "have types that two engines do not spell alike",
        "Make them text on both sides, or name them in ignore",
    )
    _refuse_tolerances(migration, columns)
    columns.sort(key=lambda column: not column.is_key)
    return Compared(tuple(columns), _measures(old, new, migration), one_place, alike)


def _found(session: Session, side: Side, migration: Migration) -> Found:
    try:
        types = session.columns_of(side.relation(session.spelling))
    except BackfillError as error:
        if "No files found" not in error.why:
            raise
        types = None
    if types is None:
        raise MissingTable(
            f"the migration {migration.name} cannot be compared",
            f"there is no {side.name}{_files(side)}",
            "Let its path write it first, or correct the name of the side",
        )
    found = Found(side, session.spelling, types)
    cut = found.own(side.column.name)
    if cut is None:
        raise _wrong(
            migration,
            f"{side.name} has no slice column {side.column.name!r}",
            "Name the column that holds a row's time in the SliceColumn of that side",
        )
    holds = family_of(types[cut], session.spelling)
    if not holds_kind(side.column.kind, holds, session.spelling):
        raise _wrong(
            migration,
            f"slice column {cut!r} of {side.name} is declared to hold {side.column.kind} and holds {types[cut]}",
            "Declare the kind that the column really has",
        )
    return found


def _files(side: Side) -> str:
    files = getattr(side, "files", None)
    return f" (no files match {files})" if files else ""


def _names(old: Found, new: Found, migration: Migration) -> list[tuple[str, str, str]]:
    """Return the columns to compare: the name told, and that of each side."""
    ignored = {name.lower() for name in migration.ignore}
    cuts = _slice_columns(old, new)
    lacking: list[str] = []

    def wanted(names: Iterable[str]) -> list[tuple[str, str, str]]:
        pairs: list[tuple[str, str, str]] = []
        for name in names:
            mine, theirs = old.own(name), new.own(name)
            if mine is None or theirs is None:
                sides = [f.side.name for f, own in ((old, mine), (new, theirs)) if own is None]
                lacking.append(f"{name!r} ({' and '.join(sides)})")
            else:
                pairs.append((told(new.spelling, theirs), mine, theirs))
        return pairs

    pairs = wanted((*migration.key, *migration.measures, *migration.tolerances))
    if migration.compare is not None:
        pairs = wanted(migration.key) + wanted(migration.compare)
    else:
        every = [told(new.spelling, own) for own in new.types]
        every += [shown for own in old.types if new.own(shown := told(old.spelling, own)) is None]
        left_out = ignored | _lonely_slice_columns(old, new)
        pairs = wanted(migration.key)
        pairs += wanted(name for name in every if name.lower() not in left_out)
    if lacking:
        raise _wrong(
            migration,
            f"columns are not on both sides: {', '.join(dict.fromkeys(lacking))} without them"
            if len(lacking) > 1
            else f"a column is not on both sides: {lacking[0]} without it",
            "Add them, or name them in ignore, or name those to compare in compare",
        )
    if cuts is not None and cuts[0] not in [name for name, _, _ in pairs]:
        pairs.append(cuts)
    return list({name: (name, a, b) for name, a, b in pairs}.values())


def _lonely_slice_columns(old: Found, new: Found) -> set[str]:
    """Return the slice columns that are compared as such or not at all: the other side's has another name or kind."""
    found = {f.side.column.name.lower() for f in (old, new)}
    if len(found) == 1:
        return found
    return {name for name in found if old.own(name) is None or new.own(name) is None}


def _slice_columns(old: Found, new: Found) -> tuple[str, str, str] | None:
    """Return the slice columns where they hold the same kind of value, so that they can be compared as such."""
    mine, theirs = old.own(old.side.column.name), new.own(new.side.column.name)
    assert mine is not None
    assert theirs is not None
    kinds = {family_of(f.types[own], f.spelling) for f, own in ((old, mine), (new, theirs))}
    zones = {f.side.column.zone for f in (old, new)}
    same = len(kinds) == 1 and (len(zones) == 1 or kinds == {"timestamptz"})
    return (told(new.spelling, theirs), mine, theirs) if same else None


def _keys(new: Found, migration: Migration) -> set[str]:
    return {told(new.spelling, own) for name in migration.key if (own := new.own(name)) is not None}


def _measures(old: Found, new: Found, migration: Migration) -> tuple[tuple[str, str, str], ...]:
    found: list[tuple[str, str, str]] = []
    wrong: list[str] = []
    for name in migration.measures:
        mine, theirs = old.own(name), new.own(name)
        assert mine is not None
        assert theirs is not None
        found.append((name, quoted(old.spelling, mine), quoted(new.spelling, theirs)))
        for side, own in ((old, mine), (new, theirs)):
            if family_of(side.types[own], side.spelling) not in NUMBERS:
                wrong.append(f"{name!r} ({side.types[own]} in {side.side.name})")
    _refuse(migration, wrong, "are measures and no numbers", "Name columns that can be added up")
    return tuple(found)


def _tolerance(name: str, own: Sequence[str], migration: Migration) -> Tolerance:
    by_name = {given.lower(): tolerance for given, tolerance in migration.tolerances.items()}
    for one in (name, *own):
        if one.lower() in by_name:
            return by_name[one.lower()]
    return Tolerance()


def _column(
    name: str, own_old: str, own_new: str, old: Found, new: Found, migration: Migration, is_key: bool, alike: bool, one_place: bool
) -> Column | str:  # fmt: skip
    """Return a column, or in a word why it cannot be compared."""
    kinds = (old.types[own_old], new.types[own_new])
    families = (family_of(kinds[0], old.spelling), family_of(kinds[1], new.spelling))
    tolerance = _tolerance(name, (own_old, own_new), migration)
    family = _common(families, tolerance)
    if family in ("apart", "float against decimal"):
        return family
    if not alike and not all(has_text(f.spelling, family) for f in (old, new)):
        return "unsupported"
    scale = common_scale(new.spelling, *kinds) if family in EXACT_NUMBERS else None
    values = [
        _value(f.spelling, own, kinds, mine, family, families[n], tolerance, scale, alike)
        for n, (f, own, mine) in enumerate(((old, own_old, kinds[0]), (new, own_new, kinds[1])))
    ]
    spelling, held = new.spelling, "{value}"
    if not one_place:
        from backfill_assets.engines.duckdb import SPELLING

        spelling = SPELLING
        if family == "text":
            held = tolerant_text(spelling, tolerance, "{value}")
    is_text = values[1].kind == spelling.text_type if one_place else family != "float"
    shown = "{value}"
    if one_place and is_text:
        shown = spelling.shown_text if family == "text" else "{value}"
    elif family == "float":
        shown = as_text(spelling, "float", spelling.wide["float"], "{value}")
    elif not is_text:
        shown = as_text(spelling, family, values[1].kind, "{value}")
    return Column(
        name, family, values[0], values[1], tolerance, is_key, held, shown,
        _number(spelling, family, kinds), family in EXACT_NUMBERS,
    )  # fmt: skip


def _common(families: tuple[str, str], tolerance: Tolerance) -> str:
    """Return the family as which two columns are compared, or why they are not."""
    if all(one in NUMBERS for one in families):
        if tolerance.as_float or (tolerance.is_numeric and "float" in families):
            return "float"
        if "float" in families:
            return "float" if families[0] == families[1] else "float against decimal"
        return "decimal" if "decimal" in families else "integer"
    return families[0] if families[0] == families[1] else "apart"


def _value(
    spelling: Spelling, own: str, kinds: tuple[str, str], mine: str, family: str, its: str, tolerance: Tolerance, scale: int | None, alike: bool
) -> Value:  # fmt: skip
    """Return what a column of one side is compared as."""
    name = quoted(spelling, own)
    if family == "float":
        value = as_float(spelling, its, name)
        shown = as_text(spelling, "float", spelling.wide["float"], value)
        return Value(value if alike else shown, spelling.wide["float"], value)
    if family == "text":
        # blanks that only fill a CHAR up are no part of it
        padded = mine.lower().startswith(("char(", "character(", "bpchar"))
        value = f"CAST({name} AS {spelling.text_type})" if padded else name
        value = tolerant_text(spelling, tolerance, value)
        plain = as_text(spelling, its, mine, value)
        exact = spelling.exact_text.format(column=value)
        return Value(exact if alike else plain, spelling.text_type, plain)
    plain = as_text(spelling, its, mine, name)
    if tolerance.time is not None and family in MOMENTS:
        plain = cut_off(spelling, tolerance, plain)
    elif alike and family in (*EXACT_NUMBERS, *MOMENTS, "date"):
        if kinds[0] == kinds[1]:
            return Value(name, mine, plain)
        if family in EXACT_NUMBERS and scale is not None:
            wide = spelling.wide[family].format(scale=scale)
            return Value(f"CAST({name} AS {wide})", wide, plain)
    return Value(
        spelling.exact_text.format(column=plain) if alike else plain, spelling.text_type, plain
    )


def _number(spelling: Spelling, family: str, kinds: tuple[str, str]) -> str | None:
    """Return a value as a number, where rows are compared."""
    if family == "float":
        return "{value}"
    if family not in EXACT_NUMBERS:
        return None
    scale = common_scale(spelling, *kinds)
    wide = spelling.wide["decimal"].format(
        scale=_SCALE_WHERE_NONE_IS_TOLD if scale is None else scale
    )
    return spelling.try_cast.format(value="{value}", type=wide)


def _refuse_tolerances(migration: Migration, columns: Sequence[Column]) -> None:
    for what, families, is_wrong in (
        ("texts", ("text",), lambda t: t.is_of_text),
        ("numbers", NUMBERS, lambda t: t.is_numeric or t.as_float),
        ("times", (*MOMENTS, "date"), lambda t: t.time is not None),
    ):
        wrong = [
            f"{column.name!r} ({column.family})"
            for column in columns
            if is_wrong(column.tolerance) and column.family not in families
        ]
        _refuse(migration, wrong, f"have a tolerance that only {what} have", "Correct it")


def _refuse(migration: Migration, wrong: Sequence[str], why: str, do: str) -> None:
    if wrong:
        word = "columns" if len(wrong) > 1 else "column"
        raise _wrong(migration, f"{word} {', '.join(dict.fromkeys(wrong))} {why}", do)


def _wrong(migration: Migration, why: str, do: str) -> SchemaMismatch:
    return SchemaMismatch(f"the migration {migration.name} cannot be compared", why, do)


def hashes(spelling: Spelling, values: Sequence[Value]) -> str:
    """Return the engine's own hash of a row, as a number."""
    columns = [
        by_type(spelling.column_hash, value.kind).format(
            column=spelling.hash_of_long.format(column=value.hashed)
            if is_long(value.kind)
            else value.hashed,
            place=place,
        )
        for place, value in enumerate(values, 1)
    ]
    row = spelling.row_hash.format(columns=spelling.hash_joint.join(columns))
    return spelling.mixed.format(hash=row)
