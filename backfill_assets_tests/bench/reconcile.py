"""1.8 million rows against as many, three of them differing, in DuckDB: days and keys named, against others and a bare hash."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from backfill_assets_tests.bench.timing import Ratio

if TYPE_CHECKING:
    import duckdb

ROWS, MANY, DAYS, PAIRS, ROUNDS = 1_800_000, 20_000_000, 90, 5, 3
FIRST = datetime(2026, 1, 1, tzinfo=timezone.utc)
MEMORY_MB = 1024
KEYS = (5, 900_000, 1_799_995)
# each alone, since one takes minutes: the ratio that is wanted of ours to it, where it is installed
OTHERS = {"reladiff": "reladiff", "datacompy": "datacompy"}
# a hash of each row, added up by day, on both sides: what nobody who reads all rows can be faster than by much
HASH = (
    "SELECT CAST(ordered_at AS DATE), count(*), sum(hash(order_id, ordered_at, customer_id, product, quantity, amount,"
    " weight)) FROM {} GROUP BY 1"
)


def measure(folder: Path) -> Iterator[Ratio]:
    """Yield ratios of the times of processes of their own, and that of our peak memory to what it may be."""
    file = folder / "reconcile.duckdb"
    in_a_process("fill", file, ROWS)
    what = f"reconciling {ROWS:,} rows with {ROWS:,}, 3 differing, {DAYS} days, against"
    pairs = [
        (in_a_process("ours", file, ROWS), in_a_process("bare", file, ROWS)) for _ in range(PAIRS)
    ]
    yield _ratio(f"{what} a bare hash by day", pairs, 10.0)
    for name, module in OTHERS.items():
        if find_spec(module) is None:
            print(f"   -   {what} {name}: it is not installed", flush=True)
            continue
        yield _ratio(f"{what} {name}", [(pairs[0][0], in_a_process(name, file, ROWS))], 0.1)
    many = folder / "many.duckdb"
    in_a_process("fill", many, MANY)
    peak = in_a_process("ours", many, MANY)["peak_mb"]
    many.unlink()
    yield Ratio(
        f"peak memory of reconciling {MANY:,} rows against {MEMORY_MB} MiB (MiB in place of ms)",
        peak, MEMORY_MB, peak / MEMORY_MB, 1.0,
    )  # fmt: skip


def _ratio(what: str, pairs: list[tuple[dict[str, float], dict[str, float]]], wanted: float) -> Ratio:  # fmt: skip
    seconds = [(ours["seconds"], theirs["seconds"]) for ours, theirs in pairs]
    return Ratio(
        what,
        statistics.median(a for a, _ in seconds) * 1000,
        statistics.median(b for _, b in seconds) * 1000,
        statistics.median(a / b for a, b in seconds),
        wanted,
    )


def in_a_process(how: str, file: Path, rows: int) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", __name__, how, str(file), str(rows)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def fill(file: str, rows: int) -> float:
    """Make two tables alike, but for the amounts of three orders."""
    step = timedelta(days=DAYS) / rows // timedelta(microseconds=1)
    with _opened(file) as connection:
        for table in ("orders_old", "orders_new"):
            connection.execute(
                f"CREATE TABLE {table} AS SELECT i AS order_id, TIMESTAMPTZ '{FIRST.isoformat(' ')}' + to_microseconds(i * {step})"
                " AS ordered_at, i % 1000 AS customer_id, 'product ' || (i % 77) AS product, CAST(i % 9 AS INTEGER) AS quantity,"
                " CAST(i % 100000 / 100.0 AS DECIMAL(12, 2)) AS amount, i * 0.1 :: DOUBLE AS weight"
                f" FROM range({rows}) AS numbers (i)"
            )
        wrong = ", ".join(map(str, KEYS))
        connection.execute(f"UPDATE orders_new SET amount = amount + 1 WHERE order_id IN ({wrong})")
    return 0.0


def ours(file: str, rows: int) -> float:
    """Compare all days, see that the three orders are named, and return the seconds of the faster of some rounds."""
    from backfill_assets.engines import open_engine
    from backfill_assets.slice import Slice
    from backfill_assets.strategies.dual_write import Migration, Side
    from backfill_assets.strategies.reconcile.comparing import compare
    from backfill_assets.table import SliceColumn, Table
    from backfill_assets.window import Window

    column = SliceColumn("ordered_at")
    sides = (Side(Table(name, column)) for name in ("orders_old", "orders_new"))
    migration = Migration("orders", *sides, key=("order_id",), measures=("amount",))
    days = [(FIRST + timedelta(days=n)).date() for n in range(DAYS)]
    slices = [Slice(migration.new.table, Window.day(day), partition=str(day)) for day in days]
    engine = open_engine(f"duckdb:///{file}")

    def once() -> object:
        found = list(compare(migration, slices, engine, run_id="bench", who="bench"))
        keys = [key for _, keys in found for key in keys]
        assert [day.old.rows for day, _ in found] == [rows // DAYS] * DAYS or rows % DAYS
        assert sorted(int(key.key["order_id"] or 0) for key in keys) == sorted(KEYS)
        assert {key.columns for key in keys} == {("amount",)}
        return found

    return _fastest(once, ROUNDS if rows == ROWS else 1)


def bare(file: str, rows: int) -> float:
    """Add up a hash of each row by day on both sides, which names days and no keys."""

    def once() -> None:
        with _opened(file) as connection:
            for table in ("orders_old", "orders_new"):
                connection.execute(HASH.format(table)).fetchall()

    return _fastest(once, ROUNDS)


def reladiff(file: str, rows: int) -> float:
    """Name the keys that differ with reladiff, as its own page shows it."""
    import reladiff as theirs

    columns = ("ordered_at", "customer_id", "product", "quantity", "amount", "weight")
    tables = [
        theirs.connect_to_table(f"duckdb://{file}", name, "order_id", extra_columns=columns)
        for name in ("orders_old", "orders_new")
    ]

    def once() -> None:
        keys = {key for _, (key, *_) in theirs.diff_tables(*tables, extra_columns=columns)}
        assert {int(key) for key in keys} == set(KEYS)

    return _fastest(once, 1)


def datacompy(file: str, rows: int) -> float:
    """Name the keys that differ with datacompy over two pandas frames, reading them included."""
    import datacompy as theirs

    def once() -> None:
        with _opened(file) as connection:
            frames = [connection.table(name).df() for name in ("orders_old", "orders_new")]
        compared = getattr(theirs, "PandasCompare", None) or theirs.Compare
        found = compared(*frames, join_columns="order_id")
        assert set(found.all_mismatch()["order_id"]) == set(KEYS)

    return _fastest(once, 1)


def _fastest(once: Callable[[], object], rounds: int) -> float:
    seconds: list[float] = []
    for _ in range(rounds):
        began = time.monotonic()
        once()
        seconds.append(time.monotonic() - began)
    return min(seconds)


def _opened(file: str) -> duckdb.DuckDBPyConnection:
    import duckdb

    connection = duckdb.connect(file)
    connection.execute("SET TimeZone = 'UTC'")
    return connection


if __name__ == "__main__":
    what, where, count = sys.argv[1:]
    doing = {"fill": fill, "ours": ours, "bare": bare, "reladiff": reladiff, "datacompy": datacompy}
    seconds = doing[what](where, int(count))
    # not getrusage, which counts what the parent had before it became this process
    (peak,) = [int(line.split()[1]) / 1024 for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]  # fmt: skip
    print(json.dumps({"seconds": seconds, "peak_mb": peak}))
