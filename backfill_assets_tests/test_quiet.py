"""Only the warnings of what is used here on purpose are silenced; a user's own are heard."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator

import dagster as dg
import pytest

from backfill_assets.quiet import quiet_known_warnings

DAYS = dg.DailyPartitionsDefinition("2026-03-01")


@pytest.fixture
def heard() -> Iterator[list[warnings.WarningMessage]]:
    """Everything that is warned of after the known warnings were silenced."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        quiet_known_warnings()
        yield heard


def test_a_backfill_policy_and_a_check_of_each_day_warn_of_nothing(
    heard: list[warnings.WarningMessage],
) -> None:
    @dg.asset(partitions_def=DAYS, backfill_policy=dg.BackfillPolicy.single_run())
    def sales() -> None: ...

    @dg.asset_check(asset=sales, partitions_def=DAYS, blocking=True)
    def every_sale_once() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=True)

    dg.Definitions(assets=[sales], asset_checks=[every_sale_once])
    assert [str(warning.message) for warning in heard] == []


def test_what_is_not_used_here_still_warns(heard: list[warnings.WarningMessage]) -> None:
    warnings.warn("Parameter `backfill_policy` of yours will go", DeprecationWarning, stacklevel=1)
    dg.observable_source_asset(name="events", partitions_def=DAYS)(lambda: None)
    assert len(heard) == 2


def test_silencing_imports_no_dagster() -> None:
    """Every run is a new process, and the import of Dagster is most of its start."""
    code = "import sys, backfill_assets.quiet as q; q.quiet_known_warnings(); print('dagster' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"
