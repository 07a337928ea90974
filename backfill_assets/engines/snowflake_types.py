"""Types between Arrow and Snowflake: what rows are staged as, and what a query's columns come back as."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from backfill_assets.engines.frames import fitted

if TYPE_CHECKING:
    import pyarrow as pa

# Arrow's name of a type -> the column it is staged in
_SQL = {
    "bool": "BOOLEAN",
    "int64": "BIGINT",
    "double": "FLOAT",
    "string": "VARCHAR",
    "binary": "BINARY",
    "date32[day]": "DATE",
    "time64[us]": "TIME",
    "timestamp[us]": "TIMESTAMP_NTZ",
    "timestamp[ns]": "TIMESTAMP_NTZ",
    "timestamp[us, tz=UTC]": "TIMESTAMP_TZ",
    "timestamp[ns, tz=UTC]": "TIMESTAMP_TZ",
}
# the connector's numbers of types; 0 and 2 depend on their size
_NAMES = {
    1: "FLOAT",
    3: "DATE",
    4: "TIMESTAMP_NTZ",
    5: "VARIANT",
    6: "TIMESTAMP_LTZ",
    7: "TIMESTAMP_TZ",
    8: "TIMESTAMP_NTZ",
    9: "OBJECT",
    10: "ARRAY",
    11: "BINARY",
    12: "TIME",
    13: "BOOLEAN",
    14: "GEOGRAPHY",
    15: "GEOMETRY",
    16: "VECTOR",
}
_UNBOUNDED = 16_777_216
_FINEST = 9
_MOST_PLACES = 37
_CONVERT = "Convert it in the transform: lists and structs to JSON text, decimals to 38 digits"


def writable(data: pa.Table) -> pa.Table:
    """Return `data` in types that have a column type here, changing no value; raise `SchemaMismatch` else."""
    return fitted(data, _writable, sql_type, "Snowflake", _CONVERT)


def sql_type(kind: Any) -> str | None:
    """Return the column type of a `writable` column."""
    import pyarrow as pa

    if pa.types.is_decimal(kind):
        return f"NUMBER({kind.precision},{kind.scale})" if kind.precision <= 38 else None
    return _SQL.get(str(kind))


def type_name(column: Any) -> str:
    """Return the type of a column that the connector describes, as SQL writes it."""
    code = column.type_code
    if code == 0:
        precision, scale = column.precision or 38, column.scale or 0
        return "BIGINT" if (precision, scale) == (38, 0) else f"NUMBER({precision},{scale})"
    if code == 2:
        longest = column.internal_size
        return f"VARCHAR({longest})" if longest and longest < _UNBOUNDED else "VARCHAR"
    name = _NAMES.get(code, "VARIANT")
    is_time = name == "TIME" or name.startswith("TIMESTAMP")
    coarse = is_time and column.scale is not None and column.scale < _FINEST
    return f"{name}({column.scale})" if coarse else name


def arrow_type(column: Any) -> Any:
    """Return what a described column is in Arrow: decimals exact, instants in UTC; None to leave it as it comes."""
    import pyarrow as pa

    code = column.type_code
    if code == 0:
        precision, scale = column.precision or 38, column.scale or 0
        return pa.decimal128(precision, scale) if scale else pa.int64()
    kinds = {
        1: pa.float64(),
        2: pa.string(),
        3: pa.date32(),
        6: pa.timestamp("us", tz="UTC"),
        7: pa.timestamp("us", tz="UTC"),
        8: pa.timestamp("us"),
        11: pa.binary(),
        12: pa.time64("us"),
        13: pa.bool_(),
    }
    return kinds.get(code, pa.string())


def table_of_rows(rows: Sequence[Sequence[Any]], described: Sequence[Any]) -> pa.Table:
    """Return fetched rows as Arrow, in the types that the connector describes."""
    import pyarrow as pa

    columns = [
        _array([_plain(row[place]) for row in rows], arrow_type(column))
        for place, column in enumerate(described)
    ]
    return pa.Table.from_arrays(columns, names=[column.name for column in described])


def table_of_arrow(table: pa.Table, described: Sequence[Any]) -> pa.Table:
    """Return what the connector gave as Arrow, in the types of its columns instead of the narrowest that hold them."""
    import pyarrow as pa

    named: Any = pa.Table

    columns = [
        _cast(column, arrow_type(meta))
        for column, meta in zip(table.columns, described, strict=True)
    ]
    found: pa.Table = named.from_arrays(columns, names=[column.name for column in described])
    return found


def _writable(column: Any) -> Any:
    import pyarrow as pa

    kind, types = column.type, pa.types
    if types.is_dictionary(kind):
        return _writable(column.cast(kind.value_type))
    if types.is_null(kind) or types.is_large_string(kind) or str(kind) == "string_view":
        return column.cast(pa.string())
    # Parquet's unsigned numbers are not read as such there
    if types.is_uint64(kind):
        return column.cast(pa.decimal128(20, 0))
    if types.is_integer(kind):
        return column.cast(pa.int64())
    if types.is_floating(kind):
        return column.cast(pa.float64())
    if types.is_timestamp(kind):
        unit = "ns" if kind.unit == "ns" else "us"
        return column.cast(pa.timestamp(unit, tz="UTC") if kind.tz else pa.timestamp(unit))
    if types.is_decimal(kind) and not 0 <= kind.scale <= _MOST_PLACES:
        whole = min(38, kind.precision - kind.scale) if kind.scale < 0 else 38
        return column.cast(pa.decimal128(whole, max(0, min(kind.scale, _MOST_PLACES))))
    if types.is_date64(kind):
        return column.cast(pa.date32())
    if types.is_time(kind):
        return column.cast(pa.time64("us"))
    raw = types.is_large_binary(kind) or types.is_fixed_size_binary(kind)
    return column.cast(pa.binary()) if raw or str(kind) == "binary_view" else column


def _array(values: list[Any], kind: Any) -> Any:
    import pyarrow as pa

    made: Any = pa.array  # which of its overloads answers is not known before
    try:
        return made(values, kind)
    except pa.ArrowInvalid:
        # whole numbers beyond 64 bits, decimals of more digits than the type was described with
        return made(values, pa.decimal128(38, 0) if kind == pa.int64() else None)


def _cast(column: Any, kind: Any) -> Any:
    import pyarrow as pa

    try:
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return column


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value
