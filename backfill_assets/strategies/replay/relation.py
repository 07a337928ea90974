"""Events in a table of a warehouse, an event store: read in bounded pieces by time, as far as it went when it was opened."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from backfill_assets.engines import Engine, Session, open_engine
from backfill_assets.engines.sql import bound, qualified, quoted
from backfill_assets.errors import Away, BadRows, DeclarationError, MissingTable, Refused
from backfill_assets.settings import told_now
from backfill_assets.strategies.replay.relation_rows import batch_of, instants, point
from backfill_assets.strategies.replay.source import Reading, Shard, must_be_aware
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import zone_named

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 50_000  # of one result, where its time can be cut that finely
_CLOCKS = ("timestamptz", "timestamp")
# a wall clock is set back by that much at the most
_SET_BACK = timedelta(hours=2)


@dataclass(frozen=True)
class TableEvents:
    """The events in `table` of a warehouse: a URL, a `dagster.EnvVar` that holds one, or an engine.

    `at` is the column with the time at which an event was stored: an instant, or a `SliceColumn` of another kind. It
    is what windows are read by, so that an index or partitions on it pay. An event is the JSON object in the column
    `value` (text or JSON), or the object that the typed `columns` make, under their own names. `key` names the columns
    of an event's key: the text of one as it is, several as a JSON object.

    Ends are fixed at opening: rows that come later are not read where their `position` (a column of whole numbers that
    only grow, such as an identity) is greater than the greatest there was, or, without one, where their `at` is. Events
    of one key are in the order of `position`; without one in that of `at`, and then of their values, so that a table
    whose events of a key share a time needs `Events.ordering`.

    `complete_since` (aware) is the time from which on nothing is missing; by default that of the first event.
    A result has no more than 50,000 rows unless more have the same millisecond, or the same day where `at` is a day.
    Needs SELECT on the table.
    """

    warehouse: Any
    table: str | Table
    at: str | SliceColumn = "at"
    value: str | None = None
    columns: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    position: str | None = None
    complete_since: datetime | None = None
    shard_word = "table"

    def __post_init__(self) -> None:
        for name in ("columns", "key"):
            given = getattr(self, name)
            object.__setattr__(self, name, (given,) if isinstance(given, str) else tuple(given))
        if isinstance(self.table, str):
            object.__setattr__(self, "table", Table(self.table))
        if isinstance(self.at, str):
            object.__setattr__(self, "at", SliceColumn(self.at))
        if (self.value is None) == (not self.columns):
            raise self._wrong("it needs either value or columns", "Give value='the column with the JSON', or columns=(...)")  # fmt: skip
        must_be_aware(self, self.complete_since)

    def _wrong(self, why: str, do: str) -> DeclarationError:
        return DeclarationError(f"the events of {self.name} cannot be declared so", why, do)

    @property
    def relation(self) -> Table:
        """The table."""
        assert isinstance(self.table, Table)
        return self.table

    @property
    def time(self) -> SliceColumn:
        """The column by which windows are read."""
        assert isinstance(self.at, SliceColumn)
        return self.at

    @property
    def name(self) -> str:
        """What a sentence calls it."""
        return f"table {self.relation.qualified}"

    def engine(self) -> Engine:
        """Return the warehouse that the table is in; a secret is read only now."""
        url = told_now(self.warehouse, f"the warehouse of {self.name}")
        return open_engine(url) if isinstance(url, str) else url

    @contextlib.contextmanager
    def open(self, who: str) -> Iterator[Reading]:
        """Ask how far the table goes, and fix its end."""
        yield _Relation(self, self.engine(), who)


@dataclass(frozen=True)
class _Extent:
    """How far the table goes: rows, first and last value of its time, greatest position."""

    rows: int
    first: Any
    last: Any
    position: int | None
    since: datetime


class _Relation:
    keeps_last_only = False

    def __init__(self, source: TableEvents, engine: Engine, who: str) -> None:
        self._source, self._engine, self._who = source, engine, f"replay {who}"
        self._span: tuple[str, str] | None = None
        self._read_from: datetime | None = None
        with self._session() as session:
            self._refuse_missing(session)
            self._then = self._extent(session)
        then = self._then
        self._shards = [
            Shard(
                source.relation.qualified,
                str(then.first),
                str(then.last if then.position is None else then.position),
                source.complete_since or then.since,
                then.rows,
            )
        ]

    def _session(self) -> contextlib.AbstractContextManager[Session]:
        return self._engine.session(who=self._who, read_only=True)

    @property
    def shards(self) -> Sequence[Shard]:
        return self._shards

    def _refuse_missing(self, session: Session) -> None:
        source = self._source
        found = session.columns_of(qualified(session.spelling, source.relation))
        if found is None:
            raise MissingTable(f"no events can be read from {source.name}", f"there is no such table in {self._engine.shown}", "Correct the name or the URL, or grant SELECT on it")  # fmt: skip
        there = {name.lower() for name in found}
        wanted = [source.time.name, *self._wanted(), *filter(None, [source.position])]
        if missing := [name for name in wanted if name.lower() not in there]:
            raise MissingTable(f"no events can be read from {source.name}", f"it has no column {', '.join(missing)}, only {', '.join(found)}", "Correct the declaration of its events")  # fmt: skip

    def _wanted(self) -> list[str]:
        source = self._source
        return [*([source.value] if source.value is not None else source.columns), *source.key]

    def _extent(self, session: Session) -> _Extent:
        """Ask for rows, first, last and greatest position of what was there at opening; refuse rows that no window finds."""
        source, spelling = self._source, session.spelling
        at = quoted(spelling, source.time.name)
        asked = [f"count(*) AS n, count({at}) AS timed, min({at}) AS first_at, max({at}) AS last_at"]  # fmt: skip
        if source.position:
            position = quoted(spelling, source.position)
            asked.append(f"count({position}) AS placed, max({position}) AS last_place")
        where = self._fixed(spelling)
        found = session.fetch_arrow(f"SELECT {', '.join(asked)} FROM {qualified(spelling, source.relation)}{f' WHERE {where}' if where else ''}")  # fmt: skip
        rows, timed, first, last, *place = (column[0].as_py() for column in found.columns)
        for name, number in ((source.time.name, timed), (source.position, place[0] if place else rows)):  # fmt: skip
            if number < rows:
                raise BadRows(f"{source.name} cannot be replayed", f"{rows - number} of its rows have no {name}, so nobody would read them", "Give them one, or replay from a view without them")  # fmt: skip
        since = session.clock() if first is None else instants(found.column(2), source.time)[0].as_py()  # fmt: skip
        return _Extent(int(rows), first, last, int(place[1]) if place and rows else None, since)

    def _fixed(self, spelling: Any) -> str:
        """Return the condition of the rows that were there at opening; nothing while it is being opened."""
        then: _Extent | None = getattr(self, "_then", None)
        if then is None or then.first is None:
            return ""
        if then.position is not None:
            return f"{quoted(spelling, str(self._source.position))} <= {then.position}"
        return f"{quoted(spelling, self._source.time.name)} < {self._literal(spelling, self._last())}"  # fmt: skip

    def read(self, shard: Shard, start: datetime, end: datetime | None) -> Iterator[pa.Table]:
        """Read the rows of `[start, end)` in pieces of time."""
        self._read_from, place = start, 0
        low, high = self._edges(start, end)
        if low >= high:
            return
        source, began = self._source, None
        with self._session() as session:
            spelling = session.spelling
            wanted = [source.time.name, *self._wanted(), *filter(None, [source.position])]
            columns = ", ".join(f"{quoted(spelling, name)} AS c{n}" for n, name in enumerate(wanted))  # fmt: skip
            for piece in self._pieces(session, low, high):
                rows = session.fetch_arrow(f"SELECT {columns} FROM {self._where(spelling, *piece)}")
                if not rows.num_rows:
                    continue
                batch = batch_of(rows, source.time, value=source.value, columns=source.columns, key=source.key, numbered=source.position is not None, place=place)  # fmt: skip
                place += batch.num_rows
                began = began or piece[0]
                self._span = (began.isoformat(), piece[1].isoformat())
                yield batch
                session.breathe()

    def _edges(self, start: datetime, end: datetime | None) -> tuple[datetime, datetime]:
        """Return where to read on the column's own clock: from `start`, but not before the first, to `end` or the last."""
        kind, zone = self._source.time.kind, zone_named(self._source.time.zone)
        low, high = point(self._then.first, self._source.time), self._last()
        if kind == "timestamptz":
            return max(low, start), high if end is None else min(high, end)
        begin, until = (t.astimezone(zone).replace(tzinfo=None) if t else high for t in (start, end))  # fmt: skip
        if kind == "timestamp":
            begin, until = begin - _SET_BACK, until + _SET_BACK
        else:
            begin, until = _midnight(begin), _midnight(until - timedelta(microseconds=1)) + timedelta(days=1)  # fmt: skip
        return max(low, begin), min(high, until)

    def _last(self) -> datetime:
        """Return the point behind the last event that was there at opening."""
        last = point(self._then.last, self._source.time)
        if self._source.time.kind in _CLOCKS:
            return last + timedelta(microseconds=1)
        return _midnight(last) + timedelta(days=1)

    def _pieces(self, session: Session, low: datetime, high: datetime) -> Iterator[tuple[datetime, datetime]]:  # fmt: skip
        """Yield stretches of time, in order, each of no more rows than a result may have."""
        step = timedelta(milliseconds=1) if self._source.time.kind in _CLOCKS else timedelta(days=1)
        ((rows,),) = session.fetch(f"SELECT count(*) AS n FROM {self._where(session.spelling, low, high)}")  # fmt: skip
        units = (high - low) // step
        if rows <= _ROWS or units < 2:
            if rows:
                yield low, high
            return
        parts = min(units, rows // _ROWS + 1, 64)
        edges = [low + step * (units * n // parts) for n in range(parts)] + [high]
        for begin, until in itertools.pairwise(edges):
            yield from self._pieces(session, begin, until)

    def _where(self, spelling: Any, low: datetime, high: datetime) -> str:
        """Return the table and the condition of a stretch of time: the bare column against typed literals."""
        name = quoted(spelling, self._source.time.name)
        fixed = f" AND {self._fixed(spelling)}" if self._then.position is not None else ""
        return (
            f"{qualified(spelling, self._source.relation)} WHERE {name} >= {self._literal(spelling, low)}"
            f" AND {name} < {self._literal(spelling, high)}{fixed}"
        )

    def _literal(self, spelling: Any, moment: datetime) -> str:
        column = self._source.time
        if column.kind in _CLOCKS:
            return bound(spelling, column, moment)
        day = moment.date()
        return bound(spelling, column, int(f"{day:%Y%m%d}") if column.kind == "int_yyyymmdd" else day)  # fmt: skip

    def span(self, shard: Shard) -> tuple[str, str] | None:
        return self._span

    def must_be_whole(self) -> None:
        """Raise where rows that were there at opening are gone."""
        if self._then.first is None:
            return
        with self._session() as session:
            now = self._extent(session)
        if now.rows >= self._then.rows:
            return
        what = f"{self._source.name} was not read whole"
        why = f"{self._then.rows - now.rows} of the {self._then.rows} rows that it had when the run began are gone"
        if self._read_from is not None and now.since > max(self._then.since, self._read_from):
            raise Refused(what, f"{why}: it begins at {now.since.isoformat()} now", "Launch it again: what is gone is told before anything is deleted")  # fmt: skip
        raise Away(what, why, "Launch it again once nothing is removed from it")

    def notes(self) -> Mapping[str, object]:
        return {}


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)
