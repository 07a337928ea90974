"""Each partition has results of its own in Dagster, whether it was written alone or with twenty-nine others."""

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd
import pytest

from backfill_assets.engines import open_engine
from backfill_assets.errors import DeclarationError
from backfill_assets.expectations import NoRows, RowCount, Source
from backfill_assets.io_managers import DeleteInsertIOManager, Select, table_metadata
from backfill_assets.operations.partition_checks import partition_checks
from backfill_assets.table import SliceColumn, Table

DAYS = dg.DailyPartitionsDefinition("2026-05-01", end_date="2026-05-31")
KEYS = [str(date(2026, 5, 1) + timedelta(days=n)) for n in range(30)]
SALES = Table(
    "mart.sales",
    SliceColumn("day", "date"),
    unique_key=("id",),
    allow_empty=frozenset({date(2026, 5, 9)}),
    source=Source("raw.control", on="day"),
    expects=(
        RowCount(tolerance=0, severity="warn"),
        NoRows("positive", "SELECT * FROM slice_rows WHERE amount < 0", severity="warn"),
    ),
)


@dg.asset(
    key_prefix=["mart"],
    partitions_def=DAYS,
    metadata=table_metadata(SALES),
    backfill_policy=dg.BackfillPolicy.single_run(),
)
def sales() -> Select:
    return Select("SELECT day, id, amount FROM raw.sales WHERE good")


@dg.asset(
    key_prefix=["mart"],
    partitions_def=DAYS,
    metadata={"partition_expr": "day", "partition_kind": "date"},
    ins={"sales": dg.AssetIn(key=["mart", "sales"])},
    backfill_policy=dg.BackfillPolicy.single_run(),
)
def downstream(sales: pd.DataFrame) -> pd.DataFrame:
    return sales[["day", "id"]]


class Place:
    """A warehouse with ten rows of each of thirty days, all good, and a Dagster instance."""

    def __init__(self, folder: Path) -> None:
        self.url = f"duckdb:///{folder}/w.duckdb"
        self.instance = dg.DagsterInstance.ephemeral()
        self.execute(
            "CREATE SCHEMA raw",
            "CREATE TABLE raw.sales AS SELECT CAST(DATE '2026-05-01' + CAST(d AS INTEGER) AS DATE) AS day,"
            " d * 100 + n AS id, 1 AS amount, true AS good FROM range(30) AS days(d), range(10) AS ns(n)",
            "CREATE VIEW raw.control AS SELECT * FROM raw.sales",
        )

    def execute(self, *statements: str) -> None:
        with open_engine(self.url).session() as session:
            for statement in statements:
                session.execute(statement)

    def run(
        self,
        *assets: Any,
        first: str = KEYS[0],
        last: str = KEYS[-1],
        ok: bool = True,
        tags: dict[str, str] | None = None,
    ) -> Any:
        result = dg.materialize(
            [*assets, partition_checks(assets[0])],
            instance=self.instance,
            resources={"io_manager": DeleteInsertIOManager(url=self.url)},
            tags={
                "dagster/asset_partition_range_start": first,
                "dagster/asset_partition_range_end": last,
                **(tags or {}),
            },
            raise_on_error=False,
        )
        assert result.success is ok
        return result

    def statuses(self, check: str) -> dict[str, str]:
        """The newest result of each partition: green, or how bad it is."""
        return {
            partition: "green" if found.passed else found.severity.value
            for partition, found in self.results(check).items()
        }

    def described(self, check: str) -> dict[str, str]:
        return {
            partition: str(found.description) for partition, found in self.results(check).items()
        }

    def results(self, check: str) -> dict[str, Any]:
        key, storage = dg.AssetCheckKey(sales.key, check), self.instance.event_log_storage
        found: dict[str, Any] = {}
        for record in storage.get_asset_check_execution_history(key, 1000):
            event = record.event.dagster_event if record.event is not None else None
            data: Any = event.event_specific_data if event is not None else None
            if getattr(data, "passed", None) is not None and data.partition is not None:
                found.setdefault(data.partition, data)
        return found


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_thirty_days_in_one_run_with_day_17_bad_show_29_green_and_one_red(place: Place) -> None:
    place.execute(f"UPDATE raw.sales SET good = false WHERE day = DATE '{KEYS[16]}' AND id % 2 = 0")
    place.run(sales)
    found = place.statuses("row_count")
    assert {day: status for day, status in found.items() if status != "green"} == {KEYS[16]: "WARN"}
    assert sorted(found) == KEYS
    assert set(place.statuses("duplicate_keys").values()) == {"green"}


def test_a_result_says_what_was_expected_and_found_and_shows_the_rows(place: Place) -> None:
    place.execute(f"UPDATE raw.sales SET amount = -5 WHERE day = DATE '{KEYS[2]}' AND id = 203")
    result = place.run(sales)
    evaluations = {(e.check_name, e.partition): e for e in result.get_asset_check_evaluations()}
    bad = evaluations["positive", KEYS[2]]
    assert not bad.passed
    assert bad.metadata["found"].value == 1
    assert "203, -5" in str(bad.metadata["sample"].value)
    assert "amount < 0" in str(bad.metadata["query"].value)
    good = evaluations["row_count", KEYS[2]]
    assert (good.metadata["expected"].value, good.metadata["found"].value) == (10, 10)
    together = evaluations["positive", None]
    assert (together.passed, together.metadata["failed_partitions"].value) == (False, [KEYS[2]])


def test_a_single_day_has_its_result_too(place: Place) -> None:
    result = dg.materialize(
        [sales, partition_checks(sales)],
        instance=place.instance,
        resources={"io_manager": DeleteInsertIOManager(url=place.url)},
        partition_key=KEYS[4],
    )
    assert result.success
    assert place.statuses("row_count") == {KEYS[4]: "green"}


def test_a_legitimately_empty_day_is_green_and_says_so(place: Place) -> None:
    place.execute("DELETE FROM raw.sales WHERE day = DATE '2026-05-09'")
    result = place.run(sales)
    (told,) = [
        e
        for e in result.get_asset_check_evaluations()
        if (e.check_name, e.partition) == ("missing_partitions", "2026-05-09")
    ]
    assert told.passed
    assert "none is expected" in str(told.description)


def test_a_check_that_blocks_keeps_what_is_downstream_from_starting(place: Place) -> None:
    place.run(sales)
    place.execute("ALTER TABLE mart.sales ALTER amount TYPE DOUBLE")
    result = place.run(sales, downstream, first=KEYS[5], last=KEYS[6])
    assert len(result.asset_materializations_for_node("mart__downstream")) == 2
    declared = {"day": "DATE", "id": "BIGINT", "amount": "BIGINT"}
    strict = sales.with_attributes(
        metadata_by_key={sales.key: table_metadata(replace(SALES, columns=declared))}
    )
    result = place.run(strict, downstream, first=KEYS[5], last=KEYS[6], ok=False)
    assert set(place.statuses("schema").values()) == {"green", "ERROR"}
    red = [day for day, status in place.statuses("schema").items() if status == "ERROR"]
    assert sorted(red) == KEYS[5:7]
    assert result.asset_materializations_for_node("mart__downstream") == []


def test_what_a_run_was_allowed_to_pass_is_told_and_blocks_nothing_later(place: Place) -> None:
    place.execute("UPDATE raw.sales SET amount = -1 WHERE id = 3")
    strict = sales.with_attributes(
        metadata_by_key={
            sales.key: table_metadata(
                replace(
                    SALES,
                    expects=(NoRows("positive", "SELECT * FROM slice_rows WHERE amount < 0"),),
                )
            )
        }
    )
    place.run(strict, last=KEYS[0], ok=False)
    place.run(strict, last=KEYS[0], tags={"allow": "rule:positive", "reason": "a refund"})
    assert place.statuses("positive") == {KEYS[0]: "WARN"}
    assert "a refund" in place.described("positive")[KEYS[0]]


def test_a_check_whose_source_is_gone_is_red(place: Place) -> None:
    place.execute("DROP VIEW raw.control")
    place.run(sales)
    assert set(place.statuses("row_count").values()) == {"WARN"}
    assert "could not be asked" in place.described("row_count")[KEYS[4]]


@pytest.mark.parametrize("wrong", [{"budget": {"rows": -1}}, {"budget": 5}, {"on_failure": 0}])
def test_metadata_that_a_control_cannot_use_is_refused_when_the_location_loads(
    wrong: dict[str, object],
) -> None:
    @dg.asset(partitions_def=DAYS, metadata={**table_metadata(SALES), **wrong})
    def capped() -> None: ...

    with pytest.raises(DeclarationError, match="cannot be used"):
        partition_checks(capped)
