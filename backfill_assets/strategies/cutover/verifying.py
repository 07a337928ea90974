"""Reading through the view after a flip: its columns, and rows and hash of the newest days against the table itself."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from backfill_assets.engines.protocol import Session, Spelling
from backfill_assets.engines.sql import by_type, qualified, quoted, within
from backfill_assets.strategies.cutover.views import View, folded
from backfill_assets.strategies.dual_write import Side
from backfill_assets.table import SliceColumn
from backfill_assets.window import Window, midnight

_DAYS = 3


def wrong(session: Session, view: View, query: str, side: Side) -> str | None:
    """Return what the view shows otherwise than `query`, by which it should read `side`; None where it is right."""
    spelling = session.spelling
    now = session.columns_of(qualified(spelling, view.table))
    if now is None or dict(now) != dict(view.types):
        return f"its columns are {now} and were {dict(view.types)}"
    rows = _newest(session, view, query, side)
    checked = f"count(*), {_checksum(spelling, view)}"
    # one statement, so that no writer comes between both
    found = session.fetch(
        f"SELECT 1, {checked} FROM {qualified(spelling, view.table)} AS seen WHERE {rows}"
        f" UNION ALL SELECT 2, {checked} FROM ({query}) AS meant WHERE {rows}"
    )
    seen, meant = sorted(found)
    if seen[1:] != meant[1:]:
        return (
            f"of the newest days it shows {seen[1]} rows with the checksum {seen[2]}, and {side.name} has"
            f" {meant[1]} with {meant[2]}"
        )
    return None


def _newest(session: Session, view: View, query: str, side: Side) -> str:
    """Return the condition for the rows of the newest days; all rows where the view does not show the slice column."""
    spelling, column = session.spelling, side.column
    shown = [n for n, s in view.sources.items() if folded(spelling, s) == folded(spelling, column.name)]  # fmt: skip
    there = session.columns_of(side.relation(spelling)) or {}
    kinds = {folded(spelling, name): kind for name, kind in there.items()}
    if not shown or view.types[shown[0]] != kinds.get(folded(spelling, column.name)):
        return "1 = 1"
    own = SliceColumn(shown[0], column.kind, zone=column.zone)
    newest = session.fetch(f"SELECT max({quoted(spelling, own.name)}) FROM ({query}) AS meant")
    last = _day(newest[0][0])
    if last is None:
        return "1 = 1"
    days = (last - timedelta(days=_DAYS - 1), last + timedelta(days=2))
    return within(spelling, own, Window(*(midnight(day, own.zone) for day in days)))


def _day(value: object) -> date | None:
    """Return the day of a value of a slice column, as it is written; None where it is none."""
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    try:
        return datetime.strptime(str(value)[:10].replace("-", "")[:8], "%Y%m%d").date()  # noqa: DTZ007
    except ValueError:
        return None


def _checksum(spelling: Spelling, view: View) -> str:
    columns = [
        by_type(spelling.column_hash, kind).format(column=quoted(spelling, name), place=place)
        for place, (name, kind) in enumerate(view.types.items(), 1)
    ]
    joined = spelling.hash_joint.join(columns)
    return spelling.hash_sum.format(hash=spelling.row_hash.format(columns=joined))
