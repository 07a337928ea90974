"""Arrow tables to and from the CSV of PostgreSQL's COPY, losing nothing: NULL is not '', 1.10 is not 1.1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from backfill_assets.engines.frames import fitted

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS_AT_ONCE = 5_000
_LARGEST_BLOCK = 2**31 - 1

# Arrow's name of a type -> the column it is staged in
_SQL = {
    "bool": "boolean",
    "int8": "smallint",
    "int16": "smallint",
    "int32": "integer",
    "int64": "bigint",
    "uint8": "smallint",
    "uint16": "integer",
    "uint32": "bigint",
    "uint64": "numeric(20,0)",
    "halffloat": "real",
    "float": "real",
    "double": "double precision",
    "string": "text",
    "large_string": "text",
    "binary": "bytea",
    "date32[day]": "date",
    "time32[s]": "time without time zone",
    "time32[ms]": "time without time zone",
    "time64[us]": "time without time zone",
    "timestamp[us]": "timestamp without time zone",
    "timestamp[us, tz=UTC]": "timestamp with time zone",
    "extension<arrow.uuid>": "uuid",
    "extension<arrow.json>": "jsonb",
}
_CONVERT = "Convert it in the transform: timestamps to microseconds, lists and structs to JSON text"


def writable(data: pa.Table) -> pa.Table:
    """Return `data` in types that have a column type here, changing no value; raise `SchemaMismatch` else."""
    return fitted(data, _writable_column, _sql_type, "PostgreSQL", _CONVERT)


def typed(rows: pa.Table) -> dict[str, str]:
    """Return the SQL type of each column of a `writable` table."""
    schema: Any = rows.schema
    return {field.name: _sql_type(field.type) or "text" for field in schema}


def csv_chunks(rows: pa.Table) -> Iterator[bytes]:
    """Yield a `writable` table as CSV: every text quoted, NULL the unquoted empty field."""
    import pyarrow as pa
    from pyarrow import csv

    table = pa.table([_as_text(column) for column in rows.columns], names=rows.column_names)
    for batch in table.to_batches(max_chunksize=_ROWS_AT_ONCE):
        sink = pa.BufferOutputStream()
        csv.write_csv(batch, sink, csv.WriteOptions(include_header=False))
        yield sink.getvalue().to_pybytes()


def arrow_from_csv(rows: bytes, names: Sequence[str], kinds: Sequence[tuple[int, int]]) -> pa.Table:
    """Return the CSV of COPY as Arrow; `kinds` are OID and modifier of each column's type.

    Types that Arrow lacks come as text, and so does a column with a value that Arrow's type lacks
    (`NaN` in a numeric, `infinity` in a timestamp).
    """
    import pyarrow as pa

    wanted = [_arrow_type(oid, modifier) for oid, modifier in kinds]
    try:
        table = _parsed(rows, wanted)
    except pa.ArrowInvalid:
        text = _parsed(rows, [pa.string()] * len(wanted))
        table = pa.table(
            [_cast(c, w) for c, w in zip(text.columns, wanted, strict=True)],
            names=text.column_names,
        )
    columns = [
        _finished(column, oid) for column, (oid, _) in zip(table.columns, kinds, strict=True)
    ]
    return pa.Table.from_arrays(columns, names=list(names))


def _writable_column(column: Any) -> Any:
    import pyarrow as pa

    kind, types = column.type, pa.types
    if types.is_dictionary(kind):
        return _writable_column(column.cast(kind.value_type))
    if types.is_null(kind) or str(kind) == "string_view":
        return column.cast(pa.string())
    # in UTC, whose offset CSV can write; old ones of other zones have seconds
    if types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", tz="UTC") if kind.tz else pa.timestamp("us"))
    if types.is_date64(kind):
        return column.cast(pa.date32())
    if types.is_time64(kind):
        return column.cast(pa.time64("us"))
    if (
        types.is_large_binary(kind)
        or types.is_fixed_size_binary(kind)
        or str(kind) == "binary_view"
    ):
        return column.cast(pa.binary())
    return column


def _sql_type(kind: Any) -> str | None:
    import pyarrow as pa

    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision},{kind.scale})"
    return _SQL.get(str(kind))


def _as_text(column: Any) -> Any:
    """Return a column as Arrow's CSV writer can spell it."""
    import pyarrow as pa

    name = str(column.type)
    if name == "binary":
        return pa.array(
            ["\\x" + v.hex() if v is not None else None for v in column.to_pylist()], pa.string()
        )
    if name == "extension<arrow.uuid>":
        return pa.array([None if v is None else str(v) for v in column.to_pylist()], pa.string())
    return column.cast(pa.string()) if name == "extension<arrow.json>" else column


def _arrow_type(oid: int, modifier: int) -> Any:
    import pyarrow as pa

    if oid == 1700 and modifier >= 4:
        precision, scale = (modifier - 4) >> 16, (modifier - 4) & 0x7FF
        return pa.decimal128(38, scale) if precision <= 38 and scale <= precision else pa.string()
    return {
        16: pa.bool_(),
        20: pa.int64(),
        21: pa.int16(),
        23: pa.int32(),
        700: pa.float32(),
        701: pa.float64(),
        1082: pa.date32(),
        1083: pa.time64("us"),
        1114: pa.timestamp("us"),
        1184: pa.timestamp("us", tz="UTC"),
    }.get(oid, pa.string())


def _parsed(rows: bytes, wanted: Sequence[Any]) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv

    names = [f"c{n}" for n in range(len(wanted))]  # a query may name two columns alike
    if not rows:
        return pa.schema(list(zip(names, wanted, strict=True))).empty_table()
    source: Any = pa.BufferReader(rows)
    return csv.read_csv(
        source,
        # one block: a row that does not fit into a block cannot be read
        csv.ReadOptions(column_names=names, block_size=min(len(rows) + 1, _LARGEST_BLOCK)),
        csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        csv.ConvertOptions(
            column_types=dict(zip(names, wanted, strict=True)),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=["t"],
            false_values=["f"],
        ),
    )


def _cast(column: Any, wanted: Any) -> Any:
    import pyarrow as pa

    try:
        return column.cast(wanted)
    except pa.ArrowInvalid:
        return column


def _finished(column: Any, oid: int) -> Any:
    """Bring what was read as text for want of a better type into its own type."""
    import pyarrow as pa

    if not pa.types.is_string(column.type):
        return column
    if oid == 17:
        return pa.chunked_array(
            [[None if v is None else bytes.fromhex(v[2:]) for v in column.to_pylist()]], pa.binary()
        )
    return _exact(column) if oid == 1700 else column


def _exact(column: Any) -> Any:
    """Return numbers of any scale as the narrowest decimal that holds them all, or as the text they are."""
    import pyarrow as pa
    import pyarrow.compute

    pc: Any = pyarrow.compute  # its functions are made when it is imported, and typed nowhere
    dots = pc.find_substring(column, ".")
    places = pc.if_else(
        pc.less(dots, 0), 0, pc.subtract(pc.subtract(pc.utf8_length(column), dots), 1)
    )
    scale = pc.max(places).as_py() or 0
    for decimal, digits in ((pa.decimal128, 38), (pa.decimal256, 76)):
        if scale <= digits:
            done = _cast(column, decimal(digits, scale))
            if not pa.types.is_string(done.type):
                return done
    return column
