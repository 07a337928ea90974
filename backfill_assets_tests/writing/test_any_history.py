"""Whatever happened before - writes, failures at any statement, retries, any order - the end is that of one clean run."""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from backfill_assets.errors import BackfillError
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import Window
from backfill_assets.writing import Select
from backfill_assets_tests.interruptions import (
    Broken,
    after_call,
    before_call,
    fails,
    raises,
    undisturbed,
)
from backfill_assets_tests.warehouses import Warehouse, at

FIRST = date(2026, 5, 1)
DAYS = [FIRST + timedelta(days=n) for n in range(3)]
SALES = Table("mart.t", SliceColumn("day", "date"), unique_key=("day", "id"), max_shrink=1)
ALL = Window(at("2026-05-01 00:00"), at("2026-05-04 00:00"))
_numbers = itertools.count()


@dataclass(frozen=True)
class Attempt:
    """One write of `days` as the source has them in `version`, failing at a statement if that is reached."""

    days: tuple[int, ...]
    version: int
    number: int = 0
    moment: str = "before"
    error: str = "broken"
    as_select: bool = False
    in_the_same_session: bool = False


SLICES = [(0,), (1,), (2,), (0, 1, 2)]
ATTEMPTS = st.builds(
    Attempt,
    days=st.sampled_from(SLICES),
    version=st.integers(0, 2),
    number=st.integers(0, 60),
    moment=st.sampled_from(["before", "after"]),
    error=st.sampled_from(["broken", "interrupt", "warehouse"]),
    as_select=st.booleans(),
    in_the_same_session=st.booleans(),
)


def source(days: tuple[int, ...], version: int) -> dict[str, list[Any]]:
    """Rows of `days`: as many as day and version say, so that old and new never look alike."""
    found = [
        (DAYS[d], n, f"day {d} version {version}") for d in days for n in range(3 + d + 2 * version)
    ]
    return {
        "day": [r[0] for r in found],
        "id": [r[1] for r in found],
        "note": [r[2] for r in found],
    }


def as_select(rows: dict[str, list[Any]]) -> Select:
    values = ", ".join(f"(DATE '{d}', {i}, '{n}')" for d, i, n in zip(*rows.values(), strict=True))
    return Select(
        "SELECT day, CAST(id AS BIGINT) AS id, CAST(note AS TEXT) AS note"
        f" FROM (VALUES {values}) AS v (day, id, note) WHERE {{window}}",
        on="day",
        on_kind="date",
    )


class History:
    """A table of one warehouse to which attempts happen, and what it may hold after each."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse = warehouse
        self.table = replace(SALES, name=f"t{next(_numbers)}")
        self.versions: dict[int, int] = {}
        self.loads = 0
        # another table, so that schema and audit are there
        warehouse.write(replace(SALES, name="other"), str(FIRST), source((0,), 0))

    def write(self, attempt: Attempt, session: Any) -> None:
        rows: Any = source(attempt.days, attempt.version)
        window = ALL if len(attempt.days) > 1 else str(DAYS[attempt.days[0]])
        self.warehouse.write(
            self.table,
            window,
            as_select(rows) if attempt.as_select else pa.table(rows),
            session=session,
        )

    def happens(self, attempt: Attempt, session: Any) -> None:
        disturb = before_call if attempt.moment == "before" else after_call
        error = {
            "broken": raises(Broken()),
            "interrupt": raises(KeyboardInterrupt()),
            "warehouse": fails(session),
        }
        disturb(session, attempt.number, error[attempt.error])
        failed = False
        try:
            self.write(attempt, session)
        except (Broken, KeyboardInterrupt, BackfillError):
            failed = True
        self.must_be_whole(attempt, failed, undisturbed(session))

    def must_be_whole(self, attempt: Attempt, failed: bool, session: Any) -> None:
        """The slice is the old one or the new one, with as many audit rows as there were changes."""
        holds, loads = self.holds(session), self.count_loads(session)
        new = {**self.versions, **dict.fromkeys(attempt.days, attempt.version)}
        if loads == self.loads:
            assert failed
            assert holds == expected(self.versions)
        else:
            assert loads == self.loads + 1
            assert holds == expected(new)
            self.versions, self.loads = new, loads

    def holds(self, session: Any) -> dict[str, int]:
        if session.columns_of(self.table.qualified) is None:
            return {}
        return dict(
            session.fetch(f"SELECT note, count(*) FROM {self.table.qualified} GROUP BY note")
        )

    def count_loads(self, session: Any) -> int:
        name = self.table.qualified
        return session.fetch(
            f"SELECT count(*) FROM backfill.load_audit WHERE table_name = '{name}' AND outcome = 'committed'"
        )[0][0]

    def checksum(self) -> str:
        """The checksum of all days, as a rewrite of them that changes nothing tells it."""
        with self.warehouse.session() as session:
            data = session.fetch_arrow(f"SELECT day, id, note FROM mart.{self.table.name}")
        return self.warehouse.write(self.table, ALL, data).checksum


def expected(versions: dict[int, int]) -> dict[str, int]:
    return {f"day {d} version {v}": 3 + d + 2 * v for d, v in versions.items()}


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(attempts=st.lists(ATTEMPTS, min_size=1, max_size=6), order=st.permutations(range(3)))
@example(
    # right after BEGIN, and then again in the session that it happened to
    attempts=[
        Attempt((0,), 0),
        *(Attempt((0,), 1, n, "after", "interrupt") for n in range(8, 16)),
        Attempt((0,), 2, 0, in_the_same_session=True),
    ],
    order=[2, 0, 1],
)
def test_any_history_ends_in_the_checksum_of_one_clean_run(
    warehouse: Warehouse, attempts: list[Attempt], order: list[int]
) -> None:
    history, clean = History(warehouse), History(warehouse)
    left = list(attempts)
    while left:
        with warehouse.session() as session:
            history.happens(left.pop(0), session)
            while left and left[0].in_the_same_session:
                history.happens(left.pop(0), session)
    last = [history.versions.get(day, 0) for day in range(3)]
    for day in order:
        history.warehouse.write(history.table, str(DAYS[day]), source((day,), last[day]))
    for day in range(3):
        clean.warehouse.write(clean.table, str(DAYS[day]), source((day,), last[day]))
    assert history.checksum() == clean.checksum()
    assert warehouse.leftovers() == []


@pytest.mark.parametrize("error", ["broken", "interrupt", "warehouse"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_failure_at_every_statement_in_turn_leaves_a_session_that_goes_on(
    warehouse: Warehouse, moment: str, error: str
) -> None:
    with warehouse.session() as session:
        calls = before_call(session, 0, lambda: None)
        warehouse.write(SALES, "2026-05-01", source((0,), 0), session=session)
    with warehouse.session() as session:
        disturb = before_call if moment == "before" else after_call
        for number in range(1, len(calls) + 1):
            errors = {
                "broken": raises(Broken()),
                "interrupt": raises(KeyboardInterrupt()),
                "warehouse": fails(session),
            }
            disturb(session, number, errors[error])
            with contextlib.suppress(Broken, KeyboardInterrupt, BackfillError):
                warehouse.write(SALES, "2026-05-01", source((0,), number % 2), session=session)
            undisturbed(session)
            found = dict(session.fetch("SELECT note, count(*) FROM mart.t GROUP BY note"))
            assert found in (expected({0: 0}), expected({0: 1})), calls[number - 1]
            load = warehouse.write(SALES, "2026-05-01", source((0,), 0), session=session)
            assert (load.rows_before, load.rows_after) == (sum(found.values()), 3), calls[
                number - 1
            ]
    assert warehouse.leftovers() == []
