"""A migration that could not be compared is refused when it is declared, in one sentence."""

from __future__ import annotations

from typing import Any

import pytest

from backfill_assets.errors import DeclarationError
from backfill_assets.strategies.dual_write import EXACT, FileSide, Migration, Side, Tolerance
from backfill_assets.table import SliceColumn, Table

DAY = SliceColumn("day", kind="date")
OLD, NEW = Side(Table("a.old", DAY)), Side(Table("a.new", DAY))


def declared(**given: Any) -> Migration:
    return Migration(**{"name": "m", "old": OLD, "new": NEW, "key": ("id",), **given})


def test_what_is_left_out_is_compared_exactly_for_a_fortnight() -> None:
    found = declared(key="id", measures="amount")
    assert (found.key, found.measures, found.quiet_days, found.threshold) == (
        ("id",),
        ("amount",),
        14,
        0,
    )
    assert found.tolerance_of("amount") == EXACT


def test_a_tolerance_may_be_given_as_it_stands_in_yaml() -> None:
    found = declared(tolerances={"amount": {"absolute": 0.01}})
    assert found.tolerance_of("amount") == Tolerance(absolute=0.01)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"key": ()}, "it has no key"),
        ({"key": ("id", "id")}, "its key names a column twice"),
        ({"key": 7}, "its key is 7"),
        ({"compare": ()}, "its compare names no column"),
        ({"tolerances": ["amount"]}, "its tolerances are ['amount']"),
        ({"tolerances": {1: EXACT}}, "its tolerances are {1"),
        ({"view": 5}, "its view is 5"),
        ({"due_hours": 1e12}, "its due_hours is 1000000000000"),
        ({"quiet_days": 10**7}, "its quiet_days is 10000000"),
        ({"name": "my orders"}, "it is called 'my orders'"),
        ({"old": "a.old"}, "its old side is 'a.old'"),
        ({"new": OLD}, "both sides are the same table"),
        ({"view": "a.new"}, "both the view that readers read and the table of a side"),
        ({"threshold": 1}, "its threshold is 1"),
        ({"threshold": float("nan")}, "its threshold is nan"),
        ({"threshold": True}, "its threshold is True"),
        ({"quiet_days": 0}, "its quiet_days is 0"),
        ({"quiet_days": 1.5}, "its quiet_days is 1.5"),
        ({"due_hours": -1}, "its due_hours is -1"),
        ({"keep_keys": -1}, "its keep_keys is -1"),
        ({"retire_after_days": "30"}, "its retire_after_days is '30'"),
        ({"ignore": ("id",)}, "'id' is ignored, and is a key"),
        ({"ignore": ("day",)}, "'day' is ignored, and is a key, a slice column"),
        ({"ignore": ("amount",), "measures": ("amount",)}, "'amount' is ignored"),
        ({"tolerances": {"id": Tolerance(absolute=1)}}, "key column 'id' has a tolerance"),
        ({"tolerances": {"x": EXACT}, "ignore": ("x",)}, "'x' has a tolerance and is not compared"),
        ({"tolerances": {"x": EXACT}, "compare": ("y",)}, "'x' has a tolerance and is not compared"),
        ({"tolerances": {"x": {"absolut": 1}}}, "it is given as {'absolut': 1}"),
        ({"tolerances": {"x": {"absolute": -1}}}, "absolute=-1"),
        ({"tolerances": {"x": {"relative": 1}}}, "relative=1 lets every value pass"),
        ({"tolerances": {"x": {"time": "week"}}}, "it cuts times off at 'week'"),
        ({"tolerances": {"x": {"ignore_case": "yes"}}}, "it has ignore_case='yes'"),
    ],
)  # fmt: skip
def test_what_could_not_be_compared_is_refused(given: dict[str, Any], why: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        declared(**given)
    assert why in str(refused.value)


def test_an_empty_entry_of_yaml_is_nothing_given() -> None:
    found = declared(measures=None, ignore=None, tolerances=None)
    assert (found.measures, found.ignore, dict(found.tolerances)) == ((), (), {})


def test_files_that_are_not_named_are_no_side() -> None:
    with pytest.raises(DeclarationError, match="it is made of files and names none"):
        FileSide(Table("a.old", DAY))


def test_a_side_needs_a_table_with_a_slice_column() -> None:
    with pytest.raises(DeclarationError, match="declares no slice column"):
        Side(Table("a.old"))
    with pytest.raises(DeclarationError, match="its table is given as 'a.old'"):
        Side("a.old")  # type: ignore[arg-type]


def test_a_table_and_the_files_it_came_from_are_two_sides() -> None:
    lake = FileSide(Table("a.old", DAY), files="/lake/old/*.parquet")
    assert declared(old=lake, new=OLD).old is lake


def test_a_url_with_a_password_is_in_no_fingerprint() -> None:
    reached = declared(old=Side(OLD.table, "postgresql://u:secret@h/d"))
    assert reached.fingerprint == declared().fingerprint
