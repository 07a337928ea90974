"""Types on both ways: of Arrow columns for a stage, and of a result's columns as the engine spells them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from backfill_assets.engines.protocol import Spelling
from backfill_assets.engines.sql import quoted
from backfill_assets.errors import SchemaMismatch

if TYPE_CHECKING:
    import pyarrow as pa


def spelled_type(name: str, length: int, precision: int, scale: int) -> str:
    """Return a column's type as it would be declared, from the numbers that the catalog has."""
    if name in ("nvarchar", "nchar", "varchar", "char", "varbinary", "binary"):
        size = length // 2 if name.startswith("n") and length > 0 else length
        return f"{name}({'max' if size < 0 else size})"
    if name in ("decimal", "numeric"):
        return f"{name}({precision},{scale})"
    if name in ("datetime2", "datetimeoffset", "time"):
        return f"{name}({scale})"
    return name


def column_types(spelling: Spelling, data: pa.Table) -> dict[str, str]:
    """Return the columns of a result as a stage of it would have them."""
    fields: Any = data.schema
    return {
        field.name: _type_of_result(spelling, field, column)
        for field, column in zip(fields, data.columns, strict=True)
    }


def in_utc(data: pa.Table) -> pa.Table:
    """Return a result whose instants are told in UTC, whatever offset they were stored with."""
    import pyarrow as pa

    fields: Any = data.schema
    for place, field in enumerate(fields):
        if pa.types.is_timestamp(field.type) and field.type.tz is not None:
            moment = data.column(place).cast(pa.timestamp(field.type.unit, "UTC"))
            data = data.set_column(place, field.name, moment)
    return data


def writable(spelling: Spelling, data: pa.Table) -> pa.Table:
    """Return rows in types that a stage has, changing no value; raise `SchemaMismatch` for one that no column keeps."""
    import pyarrow as pa

    fields: Any = data.schema
    for place, field in enumerate(fields):
        column = data.column(place)
        if pa.types.is_uint64(field.type):
            data = data.set_column(place, field.name, column.cast(pa.decimal128(20, 0)))
        elif pa.types.is_timestamp(field.type) and field.type.tz and spelling.instants_are_utc:
            clock = column.cast(pa.timestamp(field.type.unit))
            data = data.set_column(place, field.name, clock)
        elif pa.types.is_floating(field.type) and _is_no_number(column):
            raise _unfit(field, "NaN or infinity", "Give no value instead, in the transform")
    return data


def _is_no_number(column: Any) -> bool:
    """Tell whether a column of floats holds what is none to this engine."""
    import pyarrow.compute

    pc: Any = pyarrow.compute
    return pc.any(pc.invert(pc.is_finite(column))).as_py() is True


def _type_of_result(spelling: Spelling, field: Any, column: Any) -> str:
    import pyarrow as pa

    if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
        return "datetimeoffset(7)" if field.type.tz else "datetime2(7)"
    return _stage_type(spelling, field, column)


def stage_columns(spelling: Spelling, data: pa.Table) -> str:
    """Return the column list of a stage that holds `data` without changing a value."""
    fields: Any = data.schema
    return ", ".join(
        f"{quoted(spelling, field.name)} {_stage_type(spelling, field, column)} NULL"
        for field, column in zip(fields, data.columns, strict=True)
    )


def _stage_type(spelling: Spelling, field: Any, column: Any) -> str:
    import pyarrow as pa

    kind = field.type
    if pa.types.is_boolean(kind):
        return "bit"
    if pa.types.is_integer(kind):
        return "bigint"
    if pa.types.is_floating(kind):
        return "float"
    if pa.types.is_decimal(kind) and kind.precision <= 38:
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_date(kind):
        return "date"
    if pa.types.is_timestamp(kind):
        if kind.unit == "ns":
            raise _unfit(field, "digits below a microsecond", "Round it in the transform")
        instants = kind.tz is not None and not spelling.instants_are_utc
        return "datetimeoffset(6)" if instants else "datetime2(6)"
    if pa.types.is_time(kind):
        return "time(6)"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _text_type(spelling, column)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return "varbinary(max)"
    raise _unfit(field, f"values of type {kind}", "Convert it to text or a plain type")


def _text_type(spelling: Spelling, column: Any) -> str:
    """Return the usual type, or the unbounded one where a value would be cut off. nvarchar counts pairs of bytes."""
    import pyarrow.compute

    pc: Any = pyarrow.compute
    longest = pc.max(pc.binary_length(column)).as_py() or 0
    name, _, most = spelling.text_type.rstrip(")").partition("(")
    return spelling.text_type if longest <= int(most) else f"{name}(max)"


def _unfit(field: Any, what: str, do: str) -> SchemaMismatch:
    return SchemaMismatch(
        f"column {field.name!r} cannot be staged", f"it holds {what}, which this engine has not", do
    )
