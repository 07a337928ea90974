"""pandas and Arrow at the edge: frames to Arrow tables and back, without importing pandas before it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from backfill_assets.errors import SchemaMismatch

if TYPE_CHECKING:
    import pyarrow as pa


def is_pandas(kind: Any) -> bool:
    """Tell whether `kind` is pandas' DataFrame or a subclass, without importing pandas."""
    return any(
        c.__module__.split(".")[0] == "pandas" and c.__name__ == "DataFrame"
        for c in getattr(kind, "__mro__", ())
    )


def is_arrow(kind: Any) -> bool:
    """Tell whether `kind` is an Arrow table, without importing pyarrow."""
    return any(
        c.__module__.split(".")[0] == "pyarrow" and c.__name__ == "Table"
        for c in getattr(kind, "__mro__", ())
    )


def arrow_of(frame: Any, whose: str) -> pa.Table:
    """Return the pandas `frame` as an Arrow table, its index left out; NaN and NaT become NULL."""
    import pyarrow as pa

    names = [str(name) for name in frame.columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SchemaMismatch(
            f"{whose} was left as it was",
            f"the frame has two columns named {', '.join(map(repr, twice))}",
            "Name each column once",
        )
    try:
        return pa.Table.from_pandas(frame, preserve_index=False, nthreads=1).rename_columns(names)
    except (
        pa.ArrowInvalid,
        pa.ArrowTypeError,
        pa.ArrowNotImplementedError,
        OverflowError,
    ) as error:
        raise SchemaMismatch(
            f"{whose} was left as it was",
            f"a column of the frame mixes types or holds a value that no column type holds ({error})",
            "Give each column one type in the transform, for example with astype",
        ) from error
