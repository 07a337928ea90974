"""The IO manager against the stock one, through `dg.materialize`, and its memory over longer ranges."""

import functools
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pandas as pd
from dagster_duckdb_pandas import DuckDBPandasIOManager

from backfill_assets.io_managers import DeleteInsertIOManager, PerSlice
from backfill_assets.quiet import quiet_known_warnings
from backfill_assets_tests.bench.rows import FIRST, day_of, rows_of
from backfill_assets_tests.bench.timing import Ratio, compare

quiet_known_warnings()
DAYS = dg.DailyPartitionsDefinition(FIRST.isoformat())
OPTIONS = {
    "partitions_def": DAYS,
    "key_prefix": ["analytics"],
    "metadata": {"partition_expr": "sale_date", "partition_kind": "date"},
    "backfill_policy": dg.BackfillPolicy.single_run(),
}
FRAMES: dict[str, pd.DataFrame] = {}


def frame(key: str) -> pd.DataFrame:
    if key not in FRAMES:
        FRAMES[key] = rows_of((pd.Timestamp(key).date() - FIRST).days).to_pandas()
    return FRAMES[key]


@dg.asset(**OPTIONS)
def one_day(context: dg.AssetExecutionContext) -> pd.DataFrame:
    return frame(context.partition_key)


@dg.asset(**OPTIONS)
def many_days() -> PerSlice:
    return PerSlice(lambda slice_: frame(slice_.partition))


@dg.asset(**OPTIONS)
def one_frame(context: dg.AssetExecutionContext) -> pd.DataFrame:
    return month()


@functools.cache
def month() -> pd.DataFrame:
    return pd.concat([frame(day_of(n).isoformat()) for n in range(30)])


@dg.asset(**OPTIONS)
def fresh_days() -> PerSlice:
    return PerSlice(lambda slice_: rows_of((slice_.window.start.date() - FIRST).days))


def measure(folder: Path) -> Iterator[Ratio]:
    """Yield the ratios: one partition a run, and thirty in one run against the stock manager's thirty runs."""
    logging.disable(logging.CRITICAL)
    instance = dg.DagsterInstance.ephemeral()
    ours = DeleteInsertIOManager(url=f"duckdb:///{folder}/io_ours.duckdb")
    stock = DuckDBPandasIOManager(database=f"{folder}/io_stock.duckdb")

    def run(asset: dg.AssetsDefinition, manager: object, **options: object) -> None:
        dg.materialize([asset], resources={"io_manager": manager}, instance=instance, **options)

    def stock_day() -> None:
        run(one_day, stock, partition_key="2026-05-03")

    yield compare(
        "IO manager, one partition a run, against the stock manager",
        lambda: run(one_day, ours, partition_key="2026-05-03"),
        stock_day,
        wanted=0.8,
        pairs=25,
    )
    edges = {
        "dagster/asset_partition_range_start": FIRST.isoformat(),
        "dagster/asset_partition_range_end": day_of(29).isoformat(),
    }
    for asset, returns in ((many_days, "a function of the day"), (one_frame, "one frame")):
        yield compare(
            f"a day of a 30-day run, the asset returning {returns}, against the stock manager's run of one day",
            lambda asset=asset: run(asset, ours, tags=edges),
            stock_day,
            wanted=1 / 3,
            pairs=5,
            ours_per=30,
        )
    logging.disable(logging.NOTSET)


def memory(folder: Path) -> dict[int, float]:
    """Return the peak memory in MiB of a fresh process that writes a range of so many days."""
    peaks = {}
    for days in (30, 240):
        command = [sys.executable, "-m", __name__, str(days), f"{folder}/memory{days}.duckdb"]
        peaks[days] = float(
            subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1]
        )
    return peaks


def _main(days: int, file: str) -> None:
    logging.disable(logging.CRITICAL)
    edges = {
        "dagster/asset_partition_range_start": FIRST.isoformat(),
        "dagster/asset_partition_range_end": day_of(days - 1).isoformat(),
    }
    manager = DeleteInsertIOManager(url=f"duckdb:///{file}")
    dg.materialize([fresh_days], resources={"io_manager": manager}, tags=edges)
    status = Path("/proc/self/status").read_text()  # ru_maxrss would tell the parent's peak too
    print(next(int(line.split()[1]) for line in status.splitlines() if "VmHWM" in line) / 1024)


if __name__ == "__main__":
    _main(int(sys.argv[1]), sys.argv[2])
