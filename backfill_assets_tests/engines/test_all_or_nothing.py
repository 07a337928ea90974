"""A slice is replaced whole or not at all, and nobody ever sees it in between."""

from __future__ import annotations

import contextlib
from datetime import date
from typing import Any

import pytest

from backfill_assets.errors import BackfillError, BadRows, MissingTable, SchemaMismatch, WriteFailed
from backfill_assets.table import SliceColumn, Table
from backfill_assets_tests.interruptions import (
    Broken,
    after_statement,
    before_call,
    fails,
    instead_of_statement,
    raises,
    undisturbed,
)
from backfill_assets_tests.warehouses import Warehouse

DAY, NEXT = date(2026, 5, 12), date(2026, 5, 13)
SALES = Table("analytics.fct_sales", SliceColumn("sale_date", "date"), unique_key=("sale_id",))
OLD = {"sale_date": [DAY, DAY], "sale_id": [1, 2], "note": ["old", "old"]}
NEW = {"sale_date": [DAY, DAY, DAY], "sale_id": [1, 2, 3], "note": ["new", "new", "new"]}
NEIGHBOUR = {"sale_date": [NEXT], "sale_id": [9], "note": ["neighbour"]}


@pytest.fixture
def loaded(warehouse: Warehouse) -> Warehouse:
    """Two old rows on 12 May and a neighbour on 13 May."""
    warehouse.write(SALES, "2026-05-12", OLD)
    warehouse.write(SALES, "2026-05-13", NEIGHBOUR)
    return warehouse


def notes(warehouse: Warehouse) -> list[Any]:
    return [
        n for (n,) in warehouse.rows("SELECT note FROM analytics.fct_sales ORDER BY sale_id, note")
    ]


def test_a_rewritten_slice_holds_the_new_rows_only(loaded: Warehouse) -> None:
    load = loaded.write(SALES, "2026-05-12", NEW)
    assert (load.rows_before, load.rows_after) == (2, 3)
    assert notes(loaded) == ["new", "new", "new", "neighbour"]


@pytest.mark.but(
    "databricks",
    why="Databricks has no transaction over several statements",
)
@pytest.mark.parametrize(
    "statement", ["DELETE", 'INSERT INTO "analytics"', 'INSERT INTO "backfill"']
)
def test_readers_see_the_old_slice_until_the_new_one_is_committed(
    loaded: Warehouse, statement: str
) -> None:
    seen: list[Any] = []
    query = "SELECT count(*), min(note) FROM analytics.fct_sales WHERE sale_id < 9"
    with loaded.session() as session:
        after_statement(
            session, statement, lambda: seen.append(loaded.seen_from_outside(session, query))
        )
        loaded.write(SALES, "2026-05-12", NEW, session=session)
        assert seen == [[(2, "old")]]
        assert session.fetch(query) == [(3, "new")]


@pytest.mark.parametrize(
    "statement", ["DELETE", 'INSERT INTO "analytics"', 'INSERT INTO "backfill"', "COMMIT"]
)
def test_a_statement_that_fails_leaves_the_old_slice_and_no_audit_row(
    loaded: Warehouse, statement: str
) -> None:
    if loaded.replaces_at_once and not statement.startswith("INSERT"):
        pytest.skip("it replaces a slice by one INSERT, and has no COMMIT")
    before = loaded.loads()
    with loaded.session() as session:
        instead_of_statement(session, statement, fails(session))
        with pytest.raises(MissingTable):
            loaded.write(SALES, "2026-05-12", NEW, session=session)
    assert notes(loaded) == ["old", "old", "neighbour"]
    assert loaded.loads() == before
    assert loaded.leftovers() == []


@pytest.mark.parametrize(
    "error", [Broken("bug"), KeyboardInterrupt(), SystemExit(1)], ids=lambda e: type(e).__name__
)
def test_whatever_is_raised_inside_the_transaction_undoes_it(
    loaded: Warehouse, error: BaseException
) -> None:
    with loaded.session() as session:
        after_statement(session, 'INSERT INTO "analytics"', raises(error))
        with pytest.raises(type(error)):
            loaded.write(SALES, "2026-05-12", NEW, session=session)
        assert (
            loaded.write(SALES, "2026-05-13", NEIGHBOUR, session=undisturbed(session)).rows_before
            == 1
        )
    assert notes(loaded) == ["old", "old", "neighbour"]


def test_a_session_goes_on_with_the_next_slice_after_a_failed_one(loaded: Warehouse) -> None:
    bad = {**NEW, "sale_id": [1, 1, 3]}
    with loaded.session() as session:
        with pytest.raises(BadRows):
            loaded.write(SALES, "2026-05-12", bad, session=session)
        loaded.write(SALES, "2026-05-13", {**NEIGHBOUR, "note": ["moved"]}, session=session)
    assert notes(loaded) == ["old", "old", "moved"]
    assert [load[0] for load in loaded.loads()] == ["2026-05-12", "2026-05-13", "2026-05-13"]


@pytest.mark.but(
    "databricks",
    why="Databricks has no transaction over several statements",
)
def test_an_error_that_was_swallowed_inside_a_transaction_comes_back_at_its_end(
    loaded: Warehouse,
) -> None:
    with loaded.session() as session:
        with pytest.raises(MissingTable, match="(?i)nowhere"), session.transaction():
            session.execute("DELETE FROM analytics.fct_sales")
            with contextlib.suppress(BackfillError):
                session.execute("INSERT INTO nowhere VALUES (1)")
    assert notes(loaded) == ["old", "old", "neighbour"]


def test_an_insert_that_fails_and_is_swallowed_is_no_success(loaded: Warehouse) -> None:
    before = loaded.loads()
    with loaded.session() as session:

        def swallow() -> int:
            with contextlib.suppress(BackfillError):
                fails(session)()
            return 3

        instead_of_statement(session, 'INSERT INTO "analytics"', swallow)
        with pytest.raises(BackfillError):
            loaded.write(SALES, "2026-05-12", NEW, session=session)
    assert notes(loaded) == ["old", "old", "neighbour"]
    assert loaded.loads() == before


def test_an_audit_row_that_is_not_there_after_the_commit_is_a_failure(loaded: Warehouse) -> None:
    with loaded.session() as session:
        instead_of_statement(session, 'INSERT INTO "backfill"', lambda: 1)
        with pytest.raises(WriteFailed, match="audit row"):
            loaded.write(SALES, "2026-05-12", NEW, session=session)


def test_rows_that_did_not_arrive_as_they_were_staged_are_a_failure(loaded: Warehouse) -> None:
    with loaded.session() as session:
        spoil = "UPDATE analytics.fct_sales SET note = 'spoilt' WHERE sale_id = 3"
        execute = session.execute
        after_statement(session, 'INSERT INTO "analytics"', lambda: execute(spoil))
        with pytest.raises(
            WriteFailed, match="3 rows were staged, 3 inserted and 3 found with another checksum"
        ):
            loaded.write(SALES, "2026-05-12", NEW, session=session)
    assert notes(loaded) == ["old", "old", "neighbour"]


def test_a_value_that_fits_no_column_leaves_the_slice_of_that_day_and_the_days_before(
    warehouse: Warehouse,
) -> None:
    warehouse.execute(
        "CREATE SCHEMA analytics",
        "CREATE TABLE analytics.fct_sales (sale_date DATE, sale_id BIGINT, n NUMERIC(4, 0))",
    )
    days = [date(2026, 5, d) for d in (1, 2, 3)]
    for day in days:
        warehouse.write(SALES, str(day), {"sale_date": [day], "sale_id": [day.day], "n": [1]})
    # an emulator that forgets the digits of a column says it when the rows are inserted, in its own words
    named = "'n'" if warehouse.lacks("NUMERIC(18, 2)") is None else "column n"
    with pytest.raises(SchemaMismatch, match=named):
        for day, number in zip(days, (7, 7, 70_000.5), strict=True):
            warehouse.write(
                SALES, str(day), {"sale_date": [day], "sale_id": [day.day], "n": [number]}
            )
    assert warehouse.rows("SELECT n FROM analytics.fct_sales ORDER BY sale_date") == [
        (7,),
        (7,),
        (1,),
    ]


def test_five_runs_of_one_day_leave_one_copy_and_one_checksum(warehouse: Warehouse) -> None:
    loads = [warehouse.write(SALES, "2026-05-12", NEW, run_id=f"run-{n}") for n in range(5)]
    assert warehouse.count("analytics.fct_sales") == 3
    assert len({load.checksum for load in loads}) == 1
    assert [load.rows_before for load in loads] == [0, 3, 3, 3, 3]
    assert len(warehouse.loads()) == 5


def test_a_checksum_does_not_depend_on_the_order_of_rows_and_columns(warehouse: Warehouse) -> None:
    first = warehouse.write(
        SALES, "2026-05-12", {"sale_date": [DAY] * 2, "sale_id": [1, 2], "note": ["a", None]}
    )
    again = warehouse.write(
        SALES, "2026-05-12", {"note": [None, "a"], "sale_id": [2, 1], "sale_date": [DAY] * 2}
    )
    other = warehouse.write(
        SALES, "2026-05-12", {"note": [None, "a"], "sale_id": [1, 2], "sale_date": [DAY] * 2}
    )
    assert first.checksum == again.checksum != other.checksum


@pytest.mark.but(
    "databricks",
    why="Databricks has no transaction over several statements",
)
def test_nothing_is_claimed_deleted_or_inserted_outside_the_transaction(loaded: Warehouse) -> None:
    with loaded.session() as session:
        calls = before_call(session, 0, lambda: None)
        loaded.write(SALES, "2026-05-12", NEW, session=session)
    seen = [
        call.split(" ", 1)[1].split(" ")[0]
        for call in calls
        if call.startswith(("execute", "claim", "define"))
    ]
    order = [
        word
        for word in seen
        if word in ("BEGIN", "DELETE", "INSERT", "COMMIT") or word.startswith("Claim")
    ]
    assert [word[:6] for word in order if word != "COMMIT"] == [
        "BEGIN",
        "Claim(",
        "DELETE",
        "INSERT",
        "INSERT",
    ]
    between = seen[seen.index("BEGIN") : seen.index("INSERT") + 1]
    assert not {"CREATE", "ALTER", "DROP", "TRUNCATE"} & set(between)
