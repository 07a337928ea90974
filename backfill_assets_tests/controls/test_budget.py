"""A budget is what it says: a positive cap, summed from the audit, that stops the next slice and can be raised."""

from __future__ import annotations

from datetime import datetime, timezone

import dagster as dg
import pytest

from backfill_assets.controls.budget import Budget, raise_budget, raises_of
from backfill_assets.controls.store import Store
from backfill_assets.errors import DeclarationError, Unreachable
from backfill_assets.writing import Spent

NOW = datetime(2026, 5, 12, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"seconds": "-5"}, "the budget seconds=-5.0 cannot be used: it should be more than 0"),
        ({"rows": 0}, "the budget rows=0.0 cannot be used"),
        ({"cost": "nan"}, "the budget cost=nan cannot be used"),
        ({"rows": "many"}, "the budget rows=many cannot be used: it is not a number"),
        ({"minutes": "5"}, "the budget minutes=5 cannot be used: nothing is measured so"),
        ({"deadline": "tomorrow"}, "it is not a time like"),
        ({"deadline": "2026-05-12T06:00"}, "it has no time zone"),
    ],
)
def test_a_budget_that_cannot_be_meant_is_one_sentence(given: dict, said: str) -> None:
    with pytest.raises(DeclarationError, match=said):
        Budget.of(given)


def test_tags_set_a_budget_and_leave_other_tags_alone() -> None:
    tags = {"budget/rows": "1000", "budget/deadline": "2026-05-12T06:00Z", "reason": "x"}
    found = Budget.of_tags(tags)
    assert (found.rows, found.seconds) == (1000, None)
    assert found.deadline == datetime(2026, 5, 12, 6, tzinfo=timezone.utc)
    assert not Budget.of_tags({"reason": "x"}).is_set


def test_what_is_set_nearer_comes_first() -> None:
    found = Budget(rows=10).over(Budget(rows=5, seconds=7))
    assert (found.rows, found.seconds) == (10, 7)


@pytest.mark.parametrize(
    ("spent", "why"),
    [
        (Spent(9.9, 99, 0), []),
        (Spent(10, 0, 0), ["10 of 10 warehouse seconds are spent"]),
        (
            Spent(12.5, 100, 0),
            ["12.5 of 10 warehouse seconds are spent", "100 of 100 rows are spent"],
        ),
    ],
)
def test_a_cap_is_reached_when_as_much_is_spent(spent: Spent, why: list[str]) -> None:
    assert Budget(seconds=10, rows=100, cost=1).exceeded(spent, NOW) == why


def test_a_deadline_is_reached_at_its_minute() -> None:
    assert Budget(deadline=NOW).exceeded(Spent(), NOW) == [
        "the deadline 2026-05-12T00:00+00:00 has passed"
    ]
    assert Budget(deadline=NOW).exceeded(Spent(), NOW.replace(day=11)) == []


def test_a_budget_is_raised_with_reason_and_name_never_lowered_and_each_raise_is_remembered() -> (
    None
):
    with dg.DagsterInstance.ephemeral() as instance:
        for by, reason in (("", "worth it"), ("ana", " ")):
            with pytest.raises(DeclarationError, match="empty"):
                raise_budget(instance, "b1", Budget(rows=10), by, reason)
        with pytest.raises(DeclarationError, match="50.0 is allowed already, and this is less"):
            raise_budget(instance, "b1", Budget(rows=10), "ana", "r", Budget(rows=50.0))
        raise_budget(instance, "b1", Budget(rows=60), "ana", "worth it", Budget(rows=50))
        with pytest.raises(DeclarationError, match="60.* is allowed already"):
            raise_budget(instance, "b1", Budget(rows=55), "bob", "r", Budget(rows=50))
        raise_budget(instance, "b1", Budget(rows=70), "bob", "still worth it")
        told = [(one["by"], one["reason"], one["caps"]) for one in raises_of(instance, "b1")]
    assert told == [("ana", "worth it", {"rows": 60}), ("bob", "still worth it", {"rows": 70})]


@pytest.mark.parametrize("caps", ["many", ["rows"], {"rows": "many"}, {"weeks": 2}, 7])
def test_a_raise_that_cannot_be_read_is_one_sentence(caps: object) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        Store(instance).change("budget/b1", lambda _: {"caps": caps})
        with pytest.raises(Unreachable, match="what is stored is no budget"):
            raise_budget(instance, "b1", Budget(rows=10), "ana", "worth it")
