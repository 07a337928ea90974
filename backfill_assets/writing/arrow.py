"""Arrow tables on their way in: types made plain before staging, and a frame of many days cut by slice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from backfill_assets.errors import BadRows, SchemaMismatch
from backfill_assets.slice import Slice

if TYPE_CHECKING:
    import pyarrow as pa


def plain(data: pa.Table, whose: str) -> pa.Table:
    """Return `data` with types that every warehouse has, changing no value.

    Dictionaries are decoded, small integers and floats widened, timestamps kept in microseconds where that
    loses nothing, decimals given 38 digits, and columns without any type become text.
    """
    import pyarrow as pa

    fields: list[Any] = []
    for name, column in zip(data.column_names, data.columns, strict=True):
        try:
            fields.append(_plain_column(column))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SchemaMismatch(
                f"{whose} was left as it was",
                f"column {name!r} of type {column.type} cannot be brought into a plain type ({error})",
                "Convert it in the transform",
            ) from error
    return pa.table(fields, names=data.column_names)


def must_have_columns(data: pa.Table, whose: str) -> None:
    """Raise for a frame that has no columns at all: nobody knows what it is empty of."""
    if data.num_columns == 0:
        raise SchemaMismatch(
            f"{whose} was left as it was",
            "the frame has no columns",
            "Return a frame with the table's columns, also when it holds no rows",
        )


def untyped(data: pa.Table) -> frozenset[str]:
    """Return the columns that hold no value at all, so that their type says nothing."""
    return frozenset(
        name
        for name, column in zip(data.column_names, data.columns, strict=True)
        if column.null_count == len(column)
    )


def undecided(data: pa.Table) -> frozenset[str]:
    """Return the columns of an empty table that have neither a type nor a value to make a column from.

    Where rows came, a column without any value is made as text.
    """
    import pyarrow as pa

    schema: Any = data.schema
    return frozenset(f.name for f in schema if pa.types.is_null(f.type) and not data.num_rows)


def _plain_column(column: Any) -> Any:
    import pyarrow as pa

    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        # its storage would be written, and mean something else: a month as the number of months since 1970
        raise pa.ArrowNotImplementedError("an extension type, whose values only its library reads")
    if pa.types.is_dictionary(kind):
        return _plain_column(column.cast(kind.value_type))
    if pa.types.is_null(kind):
        return column.cast(pa.string())
    if pa.types.is_timestamp(kind) and kind.unit != "us":
        try:
            return column.cast(pa.timestamp("us", tz=kind.tz))
        except pa.ArrowInvalid:
            # digits below a microsecond are kept, for the table's type to take or to refuse
            return column
    if pa.types.is_decimal(kind) and kind.bit_width <= 128 and kind.precision < 38:
        return column.cast(pa.decimal128(38, kind.scale))
    if pa.types.is_integer(kind) and kind.bit_width < 64:
        return column.cast(pa.int64())
    if pa.types.is_floating(kind) and kind.bit_width < 64:
        return column.cast(pa.float64())
    return column


def cut(data: pa.Table, slices: list[Slice]) -> list[pa.Table]:
    """Return the rows of each slice, in order; raise `BadRows` when a row belongs to none of them.

    Asked before the first slice is written, so that a stray row changes nothing at all.
    """
    import pyarrow.compute

    pc: Any = pyarrow.compute
    parts = [data.filter(_mask(data, slice_)) for slice_ in slices]
    lost = data.num_rows - sum(part.num_rows for part in parts)
    if lost:
        table, column = slices[0].table, slices[0].table.slice_column
        about = ""
        if column is not None and slices[0].window is not None:
            values = _column(data, slices[0], column.name)
            low, high = (end.as_py() for end in pc.min_max(values).values())
            about = (
                f" ({values.null_count} without a value; {column.name!r} runs from {low} to {high})"
            )
        raise BadRows(
            f"{table.qualified} was left as it was",
            f"{lost} of {data.num_rows} rows belong to none of the {len(slices)} slices from {slices[0].name}"
            f" to {slices[-1].name}{about}",
            "Filter the source to the partitions of the run and give every row a value, or correct the time zone",
        )
    return parts


def _mask(data: pa.Table, slice_: Slice) -> Any:
    import pyarrow as pa
    import pyarrow.compute

    pc: Any = pyarrow.compute  # its functions are made when it is imported, and typed nowhere
    mask: Any = pa.scalar(True)
    if slice_.window is not None and slice_.table.slice_column is not None:
        column = _column(data, slice_, slice_.table.slice_column.name)
        try:
            start, end = (
                pa.scalar(v).cast(column.type)
                for v in slice_.table.slice_column.bounds(slice_.window)
            )
            mask = pc.and_(pc.greater_equal(column, start), pc.less(column, end))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise SchemaMismatch(
                f"{slice_.label} was left as it was",
                f"column {slice_.table.slice_column.name!r} of the frame holds {column.type} and is declared to hold"
                f" {slice_.table.slice_column.kind}",
                "Convert it in the transform, or declare the kind that the column really has",
            ) from error
    for name, value in slice_.fixed:
        mask = pc.and_(mask, pc.equal(_column(data, slice_, name).cast(pa.string()), value))
    return pc.fill_null(mask, False)


def _column(data: pa.Table, slice_: Slice, name: str) -> Any:
    same = [column for column in data.column_names if column == name] or [
        column for column in data.column_names if column.lower() == name.lower()
    ]
    if len(same) != 1:
        raise SchemaMismatch(
            f"{slice_.label} was left as it was",
            f"the rows have no column {name!r}, only {', '.join(map(repr, data.column_names)) or 'none at all'}",
            "Return that column, or correct the name in partition_expr (a column's name, not SQL)",
        )
    return data[same[0]]
