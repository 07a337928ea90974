"""Types on their way to Databricks: how each value of a frame is written in a statement, and what column it gets."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from backfill_assets.engines.frames import fitted
from backfill_assets.engines.protocol import Spelling
from backfill_assets.engines.sql import quoted, text

if TYPE_CHECKING:
    import pyarrow as pa

_SQL = {
    "bool": "BOOLEAN",
    "int64": "BIGINT",
    "double": "DOUBLE",
    "string": "STRING",
    "binary": "BINARY",
    "date32[day]": "DATE",
    "timestamp[us]": "TIMESTAMP_NTZ",
    "timestamp[us, tz=UTC]": "TIMESTAMP",
}
_DIGITS = 38
_CONVERT = (
    "Convert it in the transform: times, lists and structs to text, decimals to 38 digits, times of nanoseconds to"
    " microseconds"
)


def writable(data: pa.Table) -> pa.Table:
    """Return `data` in types that have a column type here, changing no value; raise `SchemaMismatch` else."""
    return fitted(data, _writable, sql_type, "Databricks", _CONVERT)


def sql_type(kind: Any) -> str | None:
    """Return the column type of a `writable` column."""
    import pyarrow as pa

    if pa.types.is_decimal(kind):
        fits = kind.precision <= _DIGITS and kind.scale >= 0
        return f"DECIMAL({kind.precision},{kind.scale})" if fits else None
    return _SQL.get(str(kind))


def selects(
    spelling: Spelling, rows: pa.Table, most_rows: int, most_bytes: int
) -> Generator[str, None, None]:
    """Yield queries that together give all `rows`: each value as text, which its column's type reads."""
    schema: Any = rows.schema
    places = [f"c{place}" for place in range(len(schema))]
    values = ", ".join(
        f"{_read(place, sql_type(field.type))} AS {quoted(spelling, field.name)}"
        for place, field in zip(places, schema, strict=True)
    )
    if not rows.num_rows:
        nothing = ", ".join("CAST(NULL AS STRING)" for _ in places)
        yield f"SELECT {values} FROM VALUES ({nothing}) AS sent ({', '.join(places)}) WHERE 1 = 0"
    lines: list[str] = []
    size = 0
    for row in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        line = f"({', '.join(text(spelling, _as_text(value)) for value in row)})"
        if lines and (len(lines) >= most_rows or size + len(line) > most_bytes):
            yield _sent(values, lines, places)
            lines, size = [], 0
        lines.append(line)
        size += len(line)
    if lines:
        yield _sent(values, lines, places)


def _sent(values: str, lines: list[str], places: list[str]) -> str:
    return f"SELECT {values} FROM VALUES {', '.join(lines)} AS sent ({', '.join(places)})"


def _read(place: str, kind: str | None) -> str:
    if kind == "STRING":
        return f"CAST({place} AS STRING)"  # a column that holds nothing would be of no type
    return f"unhex({place})" if kind == "BINARY" else f"CAST({place} AS {kind})"


def _as_text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    return value.hex() if isinstance(value, bytes) else str(value)


def _writable(column: Any) -> Any:
    import pyarrow as pa

    kind, types = column.type, pa.types
    if types.is_dictionary(kind):
        return _writable(column.cast(kind.value_type))
    if types.is_null(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return column.cast(pa.string())
    if types.is_integer(kind):
        return column.cast(pa.decimal128(20, 0) if kind == pa.uint64() else pa.int64())
    if types.is_floating(kind):
        return column.cast(pa.float64())
    if types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", tz="UTC") if kind.tz else pa.timestamp("us"))
    if types.is_date(kind):
        return column.cast(pa.date32())
    raw = types.is_large_binary(kind) or types.is_fixed_size_binary(kind)
    return column.cast(pa.binary()) if raw or str(kind) == "binary_view" else column
