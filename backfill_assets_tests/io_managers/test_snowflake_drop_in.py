"""What dagster-snowflake's pandas manager is configured with makes ours, and each partition is one slice."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg
import pandas as pd
import pytest

from backfill_assets.errors import DeclarationError
from backfill_assets.io_managers.snowflake import SnowflakeDeleteInsertIOManager
from backfill_assets_tests.snowflake_accounts import SnowflakeWarehouse, account_in_this_process

FIELDS = {
    "account": "fake",
    "user": "ana",
    "password": "s3cret",
    "database": "warehouse",
    "warehouse": "LIVE_WH",
    "role": "LIVE",
}


@pytest.fixture
def ours() -> Iterator[SnowflakeWarehouse]:
    with account_in_this_process():
        yield SnowflakeWarehouse("snowflake://ana:s3cret@fake/warehouse")


@dg.asset(
    key_prefix="mart",
    partitions_def=dg.DailyPartitionsDefinition("2026-05-01"),
    metadata={"partition_expr": "day"},
)
def sales(context) -> pd.DataFrame:  # type: ignore[no-untyped-def]
    day = pd.Timestamp(context.partition_key).date()
    return pd.DataFrame({"day": [day, day], "amount": [1.5, 2.5]})


def test_a_partition_that_is_materialized_twice_is_there_once(ours: SnowflakeWarehouse) -> None:
    manager = SnowflakeDeleteInsertIOManager(**FIELDS, schema="mart")
    for day in ("2026-05-03", "2026-05-04", "2026-05-03"):
        assert dg.materialize([sales], resources={"io_manager": manager}, partition_key=day).success
    assert ours.rows("SELECT count(*), sum(amount) FROM mart.sales") == [(4, 8.0)]


def test_backfills_use_a_warehouse_and_a_role_of_their_own(ours: SnowflakeWarehouse) -> None:
    manager = SnowflakeDeleteInsertIOManager(
        **FIELDS, lane_warehouse="BACKFILL_WH", lane_role="BACKFILLER"
    )
    used = [
        (engine.options.arguments["warehouse"], engine.options.arguments["role"])  # type: ignore[attr-defined]
        for engine in (manager.engine_of("live"), manager.engine_of("backfill"))
    ]
    assert used == [("LIVE_WH", "LIVE"), ("BACKFILL_WH", "BACKFILLER")]


def test_times_stored_as_text_are_refused_in_a_sentence() -> None:
    manager = SnowflakeDeleteInsertIOManager(**FIELDS, store_timestamps_as_strings=True)
    with pytest.raises(DeclarationError, match="declare columns that hold text as iso_text"):
        manager.engine_of("live")
