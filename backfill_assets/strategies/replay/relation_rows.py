"""Rows of an event-store table as a batch of events: their time, their key, and a JSON value; in an order of their own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, datetime, time, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from backfill_assets.table import SliceColumn

if TYPE_CHECKING:
    import pyarrow as pa


def instants(column: Any, at: SliceColumn) -> Any:
    """Return the values of the time column as instants (Arrow, microseconds, UTC); a day is its midnight in `at.zone`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    moment = pa.timestamp("us", "UTC")
    if at.kind == "int_yyyymmdd":
        digits = column.cast(pa.int64()).cast(pa.string())
        column = pc.strptime(digits, format="%Y%m%d", unit="s")
    elif at.kind == "iso_text":
        column = pc.utf8_slice_codeunits(column.cast(pa.string()), 0, 10).cast(pa.date32())
    if pa.types.is_timestamp(column.type) and column.type.tz:
        return column.cast(moment, safe=False)
    zone = "UTC" if at.kind == "timestamptz" else at.zone
    clock = column.cast(pa.timestamp("us"), safe=False)
    told: Any = pc.assume_timezone(clock, zone, ambiguous="earliest", nonexistent="earliest")
    return told.cast(moment)


def point(value: Any, at: SliceColumn) -> datetime:
    """Return a value of the time column as a point on that column's own clock: aware (UTC) for instants alone."""
    if isinstance(value, datetime):
        if at.kind != "timestamptz":
            return value.replace(tzinfo=None)
        return value.astimezone(timezone.utc) if value.tzinfo else value.replace(tzinfo=timezone.utc)  # fmt: skip
    if at.kind == "int_yyyymmdd":
        return datetime.strptime(str(int(value)), "%Y%m%d")  # noqa: DTZ007 - a day, of no zone
    if not isinstance(value, date):
        value = date.fromisoformat(str(value)[:10])
    return datetime.combine(value, time())


def batch_of(
    rows: pa.Table, at: SliceColumn, *, value: str | None, columns: Sequence[str], key: Sequence[str], numbered: bool, place: int
) -> pa.Table:  # fmt: skip
    """Return rows as events, in order of arrival.

    `rows` has the time first, then `value` or `columns`, then `key`, then the position where they are `numbered`.
    `place` is the number of the first event where they are not: those of one time are then put in order by their value,
    and each has a `position`, its time and its place among them.
    """
    import pyarrow as pa

    wide = len(columns) if value is None else 1
    told = {
        "at": instants(rows.column(0), at),
        "key": _key(rows.columns[1 + wide : 1 + wide + len(key)], key) if key else pa.nulls(rows.num_rows, pa.binary()),
        "value": _bytes(rows.column(1)) if value is not None else _objects(rows.columns[1 : 1 + wide], columns),
    }  # fmt: skip
    if numbered:
        told["ordinal"] = rows.column(rows.num_columns - 1).cast(pa.int64())
        return pa.table(told).select(["ordinal", "at", "key", "value"]).sort_by("ordinal")
    table = pa.table(told).sort_by([("at", "ascending"), ("value", "ascending"), ("key", "ascending")])  # fmt: skip
    ordinal = pa.array(range(place, place + table.num_rows), pa.int64())
    return table.append_column("ordinal", ordinal).append_column("position", _positions(table))


def _positions(table: pa.Table) -> Any:
    import pyarrow as pa

    told, last, number = list[str](), None, 0
    times: list[Any] = table["at"].to_pylist()
    for moment in times:
        number = number + 1 if moment == last else 0
        last = moment
        told.append(f"{moment.isoformat()}{f' #{number}' if number else ''}")
    return pa.array(told, pa.string())


def _bytes(column: Any) -> Any:
    import pyarrow as pa

    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        column = column.cast(kind.storage_type)
    if str(column.type) == "string_view":
        column = column.cast(pa.string())
    return column.cast(pa.binary())


def _key(columns: Sequence[Any], names: Sequence[str]) -> Any:
    """Return the events' keys: the text of one column as it is, several columns as a JSON object."""
    import pyarrow as pa

    (first, *more) = columns
    if not more and (pa.types.is_string(first.type) or pa.types.is_binary(first.type)):
        return _bytes(first)
    return _objects(columns, names)


def _objects(columns: Sequence[Any], names: Sequence[str]) -> Any:
    """Return each row as a JSON object; decimals and times as texts, of which nothing is lost."""
    import pyarrow as pa

    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    made = [json.dumps(dict(zip(names, row, strict=True)), default=_plain).encode() for row in rows]
    return pa.array(made, pa.binary())


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return str(value)
