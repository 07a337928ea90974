"""What DuckDB's errors mean to somebody who rewrites slices."""

from __future__ import annotations

from pathlib import Path

from backfill_assets.errors import (
    BackfillError,
    BadRows,
    LimitReached,
    MissingTable,
    SchemaMismatch,
    SliceBusy,
    Unreachable,
    WarehouseBusy,
    WriteFailed,
)

# in the operating system's words; a path may hold shorter ones
_FULL = "No space left on device"
# the second is what becomes of `mart.csv`, which DuckDB also looks for among the files
_ABSENT = ("database does not exist", "No files found that match the pattern")
_AMBIGUOUS = "Ambiguous reference to catalog or schema"


def is_ambiguous(error: Exception) -> bool:
    """Tell whether a name may be the file's or a schema's in it."""
    return _AMBIGUOUS in str(error)


def told(error: Exception, path: Path, statement_limit: float) -> BackfillError:
    """Say an error about the file at `path` as a sentence of ours; `statement_limit` is in seconds."""
    import duckdb

    said = str(error).split("\n")[0]
    file = path.name
    if isinstance(error, duckdb.InterruptException):
        return LimitReached(
            f"a statement on {file} was stopped, and the slice is as it was",
            f"it took longer than the {statement_limit:g} s of statement_timeout",
            "Raise statement_timeout in the warehouse URL, or cut the slice smaller",
        )
    if isinstance(error, duckdb.ConnectionException) and "different configuration" in said:
        return Unreachable(
            f"{file} could not be opened, so nothing was changed",
            "this very process has it open, with settings of its own",
            "Close that connection first, or open it there without config",
        )
    if isinstance(error, duckdb.IOException) and "Could not set lock on file" in said:
        return WarehouseBusy(
            f"{file} could not be opened, so nothing was changed",
            f"another program holds it ({said})",
            "Close that program (or let it take turns through the lock file beside it) and launch this again",
        )
    if isinstance(error, duckdb.OutOfMemoryException) and _FULL not in said:
        return WriteFailed(
            f"{file} could not be written, and the slice is as it was",
            f"DuckDB has no memory left for it ({said})",
            "Raise memory_limit in the warehouse URL, or cut the slice smaller",
        )
    if _FULL in said.replace(str(path.absolute()), ""):
        return WriteFailed(
            f"{file} could not be written, and the slice is as it was",
            f"the disk is full ({said})",
            "Free some space, then launch this partition again",
        )
    nothing_there = isinstance(error, duckdb.IOException) and any(map(said.__contains__, _ABSENT))
    if nothing_there or isinstance(error, (duckdb.CatalogException, duckdb.BinderException)):
        return MissingTable(
            f"a statement on {file} names something that is not there",
            said,
            "Load the table or correct the name, then launch this again",
        )
    if isinstance(error, duckdb.ConstraintException):
        return BadRows(
            "the rows break a constraint of the table, and the slice is as it was",
            said,
            "Correct the rows or the constraint",
        )
    if isinstance(error, (duckdb.ConversionException, duckdb.OutOfRangeException)):
        return SchemaMismatch(
            "a value does not fit its column, and the slice is as it was",
            said,
            "Correct the value or change the column's type",
        )
    if isinstance(error, duckdb.TransactionException) and "onflict" in said:
        return SliceBusy(
            f"a slice in {file} is being written by another connection, so nothing was changed",
            said,
            "Let that writer finish, then launch this partition again",
        )
    if isinstance(error, duckdb.IOException):
        return Unreachable(
            f"{file} could not be opened or read",
            said,
            "Check the path, its folder and their rights",
        )
    return WriteFailed(
        f"{file} refused a statement, and the slice is as it was",
        said,
        "Correct what it names, then launch this again",
    )
