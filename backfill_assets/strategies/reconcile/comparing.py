"""Days of both sides compared: cheap marks of many first, then row by row only those that differ.

No session stays open while a day is handed out: whoever stores it may need the one connection that DuckDB gives.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from backfill_assets.engines import Engine
from backfill_assets.engines.doors import must_be_one_inside
from backfill_assets.engines.protocol import Report, Session, silence
from backfill_assets.engines.sql import bound, predicate, quoted
from backfill_assets.errors import DeclarationError, SliceBusy
from backfill_assets.slice import Slice
from backfill_assets.strategies.cutover.views import same
from backfill_assets.strategies.dual_write import FileSide, Migration, Side
from backfill_assets.strategies.reconcile.apart import difference_apart, scratch
from backfill_assets.strategies.reconcile.columns import compared
from backfill_assets.strategies.reconcile.day import DayCompared, KeyFound, Mark, Verdict
from backfill_assets.strategies.reconcile.differing import Difference, difference
from backfill_assets.strategies.reconcile.marking import Marked, marks_of, without_day
from backfill_assets.window import Window

# days that are marked in one statement, seconds after which what is known is handed out, and looks at a day
_AT_ONCE, _HAND_OUT_SECONDS, _LOOKS = 400, 10.0, 3

Found = tuple[DayCompared, list[KeyFound]]


@dataclass(frozen=True)
class Looked:
    """Both marks of a day, and when the first row behind them was not yet read."""

    old: Mark
    new: Mark
    at: datetime


def compare(
    migration: Migration, slices: Sequence[Slice], own: Engine, *, run_id: str, who: str, report: Report = silence
) -> Iterator[Found]:  # fmt: skip
    """Yield each day with the keys that differ, in order; `slices` are cut of the new table.

    Raises `SchemaMismatch` or `MissingTable` for sides that cannot be compared, and `SliceBusy` for a day that changes
    whenever it is read; the days before it have been yielded then.
    """
    sides = Sides.of(migration, own, who, report)
    for start in range(0, len(slices), _AT_ONCE):
        some = slices[start : start + _AT_ONCE]
        with sides.opened(to_write=False) as both:
            looked = both.look(some)
        waiting = list(zip(some, looked, strict=True))
        while waiting:
            found, error = _some_days(sides, waiting, run_id)
            yield from found
            if error is not None:
                raise error
            waiting = waiting[len(found) :]


def _some_days(
    sides: Sides, waiting: Sequence[tuple[Slice, Looked]], run_id: str
) -> tuple[list[Found], Exception | None]:
    """Return the days that are known after some seconds, and what ended it early: they are handed out before it is raised."""
    found: list[Found] = []
    until = time.monotonic() + _HAND_OUT_SECONDS
    try:
        with contextlib.ExitStack() as stack:
            both: Both | None = None
            for slice_, looked in waiting:
                if _alike(looked.old, looked.new):
                    found.append(_day(sides.migration, slice_, looked, Difference(), run_id))
                    continue
                both = both or stack.enter_context(sides.opened(to_write=True))
                found.append(both.day(slice_, looked, run_id))
                if time.monotonic() > until:
                    break
    except Exception as error:
        return found, error
    return found, None


def marks(migration: Migration, slices: Sequence[Slice], own: Engine) -> list[tuple[Mark, Mark]]:
    """Return the marks of both sides for each slice, old and new, with no look at rows that differ."""
    sides = Sides.of(migration, own, f"marks of {migration.name}", silence)
    found: list[tuple[Mark, Mark]] = []
    with sides.opened(to_write=False) as both:
        for start in range(0, len(slices), _AT_ONCE):
            looked = both.look(slices[start : start + _AT_ONCE])
            found += [(one.old, one.new) for one in looked]
    return found


def null_days(migration: Migration, own: Engine) -> tuple[int, int]:
    """Return how many rows of the old and of the new side belong to no day: their slice column is NULL."""
    sides = Sides.of(migration, own, f"rows of {migration.name} without a day", silence)
    with sides.opened(to_write=False) as both:
        return without_day(both.old), without_day(both.new)


def around(
    migration: Migration, first: Window, last: Window, own: Engine
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return how many rows each side, old and new, has before the window `first` and from the end of `last` on."""
    sides = Sides.of(migration, own, f"rows of {migration.name} beside its quiet days", silence)
    with sides.opened(to_write=False) as both:
        return _around(both.old, first, last), _around(both.new, first, last)


def _around(side: Marked, first: Window, last: Window) -> tuple[int, int]:
    column, spelling = side.side.column, side.spelling
    name = quoted(spelling, column.name)
    start = bound(spelling, column, column.bounds(first)[0])
    end = bound(spelling, column, column.bounds(last)[1])
    before, after = (
        int(side.session.fetch(f"SELECT count(*) FROM {side.relation} WHERE {where}")[0][0])
        for where in (f"{name} < {start}", f"{name} >= {end}")
    )
    return before, after


@dataclass(frozen=True)
class Sides:
    """Where both sides are; `one` warehouse needs one session."""

    migration: Migration
    old: Engine
    new: Engine
    one: bool
    who: str
    report: Report

    @classmethod
    def of(cls, migration: Migration, own: Engine, who: str, report: Report) -> Sides:
        """Find both warehouses, connecting only where their addresses cannot tell whether they are one."""
        if isinstance(migration.old, FileSide) or isinstance(migration.new, FileSide):
            engines = [
                own if isinstance(s, FileSide) else s.engine(own)
                for s in (migration.old, migration.new)
            ]
            return cls(migration, engines[0], engines[1], False, who, report)
        old, new = migration.old.engine(own), migration.new.engine(own)
        return cls(migration, old, new, _are_one(old, new), who, report)

    @contextlib.contextmanager
    def opened(self, *, to_write: bool) -> Iterator[Both]:
        """Open what is needed to look at both sides; `to_write`: to stage rows as well."""
        with contextlib.ExitStack() as stack:
            if self.one:
                session = stack.enter_context(self._session(self.new, read_only=not to_write))
                _must_be_two(session, self.migration)
                old = new = place = session
            else:
                old = stack.enter_context(self._opened_side(self.migration.old, self.old))
                new = stack.enter_context(self._opened_side(self.migration.new, self.new))
                place = None
                if to_write:
                    place = stack.enter_context(
                        stack.enter_context(scratch()).session(who=self.who)
                    )
            columns = compared(old, new, self.migration)
            yield Both(
                self.migration,
                Marked(old, self.migration.old, columns, "old"),
                Marked(new, self.migration.new, columns, "new"),
                place,
            )

    @contextlib.contextmanager
    def _opened_side(self, side: Side, engine: Engine) -> Iterator[Session]:
        if isinstance(side, FileSide):
            with scratch() as files, files.session(who=self.who) as session:
                yield session
        else:
            with self._session(engine, read_only=True) as session:
                yield session

    def _session(
        self, engine: Engine, *, read_only: bool
    ) -> contextlib.AbstractContextManager[Session]:
        return engine.session(who=self.who, read_only=read_only, report=self.report)


@dataclass(frozen=True)
class Both:
    """Both sides, open; `place` is where rows are compared."""

    migration: Migration
    old: Marked
    new: Marked
    place: Session | None

    def look(self, slices: Sequence[Slice]) -> list[Looked]:
        """Return the marks of both sides."""
        at = self.new.session.clock()
        old, new = marks_of(self.old, slices), marks_of(self.new, slices)
        return [Looked(a, b, at) for a, b in zip(old, new, strict=True)]

    def day(self, slice_: Slice, looked: Looked, run_id: str) -> Found:
        """Compare one day row by row; again where a writer came between, and not for ever."""
        for _ in range(_LOOKS):
            found = self._difference(slice_, looked)
            (after,) = self.look([slice_])
            steady = _same(looked.old, after.old) and _same(looked.new, after.new)
            both = looked.old.rows - found.left_old == looked.new.rows - found.left_new
            if steady and both:
                return _day(self.migration, slice_, looked, found, run_id)
            looked = after
        raise SliceBusy(
            f"{self.migration.name} {slice_.name} was not compared",
            f"its rows changed each of the {_LOOKS} times that they were read",
            "Compare the day again when no writer is at work on it",
        )

    def _difference(self, slice_: Slice, looked: Looked) -> Difference:
        assert self.place is not None
        measure = self.migration.measures[0] if self.migration.measures else None
        keep = self.migration.keep_keys
        if self.old.session is not self.new.session:
            rows = max(looked.old.rows, looked.new.rows)
            return difference_apart(self.place, self.old, self.new, slice_, rows, keep, measure)
        old, new = (_rows_of(side, slice_) for side in (self.old, self.new))
        return difference(self.place, self.old.compared, old, new, keep, measure)


def _rows_of(side: Marked, slice_: Slice) -> str:
    values = ", ".join(f"{value.hashed} AS v{n}" for n, value in enumerate(side.values()))
    return (
        f"SELECT {values} FROM {side.relation} WHERE {predicate(side.spelling, side.cut(slice_))}"
    )


def _same(before: Mark, after: Mark) -> bool:
    return (before.rows, before.checksum) == (after.rows, after.checksum)


def _alike(old: Mark, new: Mark) -> bool:
    """Tell whether a day needs no look at its rows: sums that differ are asked too, in case a hash does not tell."""
    return _same(old, new) and all(
        total == new.sums[name] or (total.is_nan() and new.sums[name].is_nan())
        for name, total in old.sums.items()
    )


def _day(
    migration: Migration, slice_: Slice, looked: Looked, found: Difference, run_id: str
) -> Found:
    """Put together what is known of a day."""
    assert slice_.window is not None
    old, new = looked.old, looked.new
    wrong = found.only_old + found.only_new + found.differing
    day = DayCompared(
        migration=migration.name,
        partition_key=slice_.name,
        window_start=slice_.window.start,
        window_end=slice_.window.end,
        old=old,
        new=new,
        only_old=found.only_old,
        only_new=found.only_new,
        differing=found.differing,
        equal=old.rows - found.left_old + found.within,
        columns=found.columns or {},
        verdict=_verdict(migration, old.rows, new.rows, wrong),
        fingerprint=migration.fingerprint,
        run_id=run_id,
        compared_at=looked.at,
    )
    keys = [
        KeyFound(
            migration.name, slice_.name, pair.kind, pair.key, pair.old, pair.new, pair.columns, pair.copies
        )
        for pair in found.worst
    ]  # fmt: skip
    return day, keys


def _verdict(migration: Migration, old: int, new: int, wrong: int) -> Verdict:
    if (old == 0) != (new == 0):
        return "missing"
    if not wrong:
        return "equal"
    return "within" if wrong / max(old, new) <= migration.threshold else "differs"


def _must_be_two(session: Session, migration: Migration) -> None:
    if same(session, migration.old.table, migration.new.table):
        raise DeclarationError(
            f"the migration {migration.name} cannot be compared",
            f"{migration.old.name} and {migration.new.name} are one table, which always agrees with itself",
            "Name the table of each path",
        )


def _are_one(old: Engine, new: Engine) -> bool:
    if old is new:
        return True
    try:
        must_be_one_inside(old, new)
    except DeclarationError:
        return False
    return True
