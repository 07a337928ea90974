"""Types on their way to BigQuery and back: a column of a frame, a field of a table's schema, as SQL spells them.

Nothing is rounded: decimals of up to 9 digits behind the point become NUMERIC where 29 before it suffice, and
BIGNUMERIC otherwise.
"""

from __future__ import annotations

from typing import Any

from backfill_assets.errors import SchemaMismatch

# the names of the API, which are those of an older SQL
_NAMES = {
    "INTEGER": "INT64",
    "FLOAT": "FLOAT64",
    "BOOLEAN": "BOOL",
    "RECORD": "STRUCT",
}
_NUMERIC_SCALE, _NUMERIC_WHOLE, _BIG_DIGITS = 9, 29, 38


def spelled(field: Any) -> str:
    """Return the SQL type of a field of a table's schema."""
    kind: str = field.field_type.upper()
    kind = _NAMES.get(kind, kind)
    if kind == "STRUCT":
        kind = f"STRUCT<{', '.join(f'`{part.name}` {spelled(part)}' for part in field.fields)}>"
    elif field.precision is not None:
        scale = f",{field.scale}" if field.scale else ""
        kind = f"{kind}({field.precision}{scale})"
    elif field.max_length is not None:
        kind = f"{kind}({field.max_length})"
    elif kind == "NUMERIC":
        kind = "NUMERIC(38,9)"  # which it is, said so that nothing that makes a table of it takes fewer digits
    return f"ARRAY<{kind}>" if field.mode == "REPEATED" else kind


def loadable(data: Any) -> tuple[Any, list[tuple[str, str]]]:
    """Return the frame in types that a load job takes, and (name, type) of each column."""
    import pyarrow as pa

    columns: list[Any] = []
    types: list[tuple[str, str]] = []
    for name, column in zip(data.column_names, data.columns, strict=True):
        try:
            ready = _ready(column)
            kind = _typed(ready)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SchemaMismatch(
                "the rows cannot be loaded into BigQuery",
                f"column {name!r} of type {column.type} has no type there ({error})",
                "Convert it in the transform",
            ) from error
        if kind is None:
            raise SchemaMismatch(
                "the rows cannot be loaded into BigQuery",
                f"column {name!r} of type {column.type} has no type there that holds it unchanged",
                "Convert it in the transform",
            )
        columns.append(ready)
        types.append((name, kind))
    return pa.table(columns, names=data.column_names), types


def _ready(column: Any) -> Any:
    """Return the values in an Arrow type that Parquet and BigQuery share."""
    import pyarrow as pa

    kind, is_ = column.type, pa.types
    if is_.is_dictionary(kind):
        return _ready(column.cast(kind.value_type))
    if is_.is_null(kind) or is_.is_large_string(kind) or is_.is_string_view(kind):
        return column.cast(pa.string())
    if is_.is_integer(kind):
        return column.cast(pa.decimal128(20, 0) if kind == pa.uint64() else pa.int64())
    if is_.is_floating(kind):
        return column.cast(pa.float64())
    if is_.is_date(kind):
        return column.cast(pa.date32())
    if is_.is_timestamp(kind):
        return column.cast(pa.timestamp("us", tz="UTC") if kind.tz else pa.timestamp("us"))
    if is_.is_time(kind):
        return column.cast(pa.time64("us"))
    if is_.is_fixed_size_binary(kind) or is_.is_large_binary(kind):
        return column.cast(pa.binary())
    if is_.is_decimal(kind) and kind.scale < 0:
        return column.cast(pa.decimal256(min(76, kind.precision - kind.scale), 0))
    return column


def _typed(column: Any) -> str | None:
    import pyarrow as pa

    kind, is_ = column.type, pa.types
    for of, name in (
        (is_.is_boolean, "BOOL"),
        (is_.is_integer, "INT64"),
        (is_.is_floating, "FLOAT64"),
        (is_.is_string, "STRING"),
        (is_.is_binary, "BYTES"),
        (is_.is_date, "DATE"),
        (is_.is_time, "TIME"),
    ):
        if of(kind):
            return name
    if is_.is_timestamp(kind):
        return "TIMESTAMP" if kind.tz else "DATETIME"
    if is_.is_decimal(kind):
        return _decimal(column)
    return None


def _decimal(column: Any) -> str | None:
    """Return the decimal that holds every value; None where BigQuery has none."""
    scale = column.type.scale
    whole = _whole_digits(column)
    if scale <= _NUMERIC_SCALE and whole <= _NUMERIC_WHOLE:
        return "NUMERIC"
    if scale <= _BIG_DIGITS and whole <= _BIG_DIGITS:
        return "BIGNUMERIC"
    return None


def _whole_digits(column: Any) -> int:
    """Return how many digits the largest value has before its point."""
    import pyarrow.compute

    pc: Any = pyarrow.compute
    low, high = (end.as_py() for end in pc.min_max(column).values())
    if low is None:
        return 0
    return max(len(str(int(abs(value)))) for value in (low, high))


def schema_of(types: list[tuple[str, str]]) -> list[Any]:
    """Return the schema of a table with these columns."""
    from google.cloud import bigquery

    return [bigquery.SchemaField(name, kind) for name, kind in types]
