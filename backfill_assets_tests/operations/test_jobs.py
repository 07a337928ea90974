"""The jobs of people end what they should and nothing else."""

from __future__ import annotations

import dagster as dg
import pytest

from backfill_assets.controls.breaker import Failure, report_failure
from backfill_assets.controls.switch import Scope, Switch
from backfill_assets.operations.jobs import end_pause_of_budget

RUN = dg.DagsterRun(job_name="j", run_id="r1", tags={"dagster/backfill": "b1"})


@pytest.mark.parametrize(
    ("why", "ends"),
    [
        (
            "mart.t 2026-05-12 was left as it was: the budget of backfill b1 is used up: 6 of 6",
            True,
        ),
        ("12 rows of 13", False),
    ],
)
def test_more_budget_ends_the_pause_that_its_lack_has_caused(why: str, ends: bool) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        report_failure(instance, Failure(RUN, ["mart/t"], why), 1, lambda _: None)
        assert end_pause_of_budget(instance, "b1", "worth it", "ana") is ends
        assert (Switch(instance).pauses() == []) is ends


def test_more_budget_ends_no_pause_that_a_person_has_made() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        Switch(instance).pause(Scope(backfill="b1"), "its budget is used up: wait", "bob")
        assert not end_pause_of_budget(instance, "b1", "worth it", "ana")
        assert len(Switch(instance).pauses()) == 1
