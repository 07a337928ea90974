"""Types on both ways: of Arrow columns for a stage, and of a result's columns as the engine spells them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from backfill_assets.engines.protocol import Spelling
from backfill_assets.engines.sql import quoted
from backfill_assets.errors import SchemaMismatch

if TYPE_CHECKING:
    import pyarrow as pa

# SQL type of ODBC -> name; {0} is the size, {1} the scale
_ODBC = {
    -155: "datetimeoffset({1})",
    -154: "time({1})",
    -152: "xml",
    -11: "uniqueidentifier",
    -10: "nvarchar(max)",
    -9: "nvarchar({0})",
    -8: "nchar({0})",
    -7: "bit",
    -6: "tinyint",
    -5: "bigint",
    -4: "varbinary(max)",
    -3: "varbinary({0})",
    -2: "binary({0})",
    -1: "varchar(max)",
    1: "char({0})",
    2: "numeric({0},{1})",
    3: "decimal({0},{1})",
    4: "int",
    5: "smallint",
    6: "float",
    7: "real",
    8: "float",
    12: "varchar({0})",
    91: "date",
    92: "time({1})",
    93: "datetime2({1})",
}
_SIZED = ("nvarchar(0)", "varchar(0)", "varbinary(0)")


def described(column: Any) -> str:
    """Return the type of one column of a cursor's description."""
    _, code, _, size, precision, scale, *_ = column
    kind = _ODBC.get(int(code), "sql_variant").format(size or precision or 0, scale or 0)
    return kind.replace("(0)", "(max)") if kind in _SIZED else kind


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
        return "decimal(20,0)" if kind == pa.uint64() else "bigint"
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
