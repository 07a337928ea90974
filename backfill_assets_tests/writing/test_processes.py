"""Several processes at one warehouse, and processes that die: one copy of every slice, old or new, always whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backfill_assets_tests.interruptions import before_call
from backfill_assets_tests.warehouses import Warehouse, until, with_options
from backfill_assets_tests.writing.processes import (
    PROCESSES,
    SALES,
    Writer,
    day_of,
    rows,
    write,
    write_and_die,
    write_days,
    write_slowly,
)

DAY = "2026-05-01"


def slices(warehouse: Warehouse) -> dict[str, list[tuple[str, int]]]:
    """Return what is written on the rows of each day, and how many rows say so."""
    found: dict[str, list[tuple[str, int]]] = {}
    for day, note, count in warehouse.rows(
        "SELECT day, note, count(*) FROM mart.fct_sales GROUP BY day, note ORDER BY day, note"
    ):
        found.setdefault(str(day), []).append((note, count))
    return found


@pytest.mark.parametrize("full", [False, True], ids=["empty", "full"])
def test_two_processes_on_one_slice_leave_one_copy(warehouse: Warehouse, full: bool) -> None:
    if full:
        warehouse.write(SALES, DAY, rows("old", day_of(0)))
    for attempt in range(3):
        start = PROCESSES.Barrier(2)
        names = [f"{attempt}-{n}" for n in range(2)]
        writers = [
            Writer(write, warehouse.url, DAY, rows(name, day_of(0)), name, start) for name in names
        ]
        outcomes = [writer.outcome() for writer in writers]
        done = [name for name, said in zip(names, outcomes, strict=True) if said == "done 200"]
        assert done, outcomes
        # whoever read earlier and came later is refused, and that is right
        assert all(said == "done 200" or said.startswith("StaleSource") for said in outcomes), (
            outcomes
        )
        ((day, copies),) = slices(warehouse).items()
        assert day == DAY
        assert copies == [(warehouse.loads()[-1][-1], 200)]


def test_a_rebuild_of_the_whole_table_and_one_day_at_once_leave_each_day_once(
    warehouse: Warehouse,
) -> None:
    days = [day_of(n) for n in range(4)]
    warehouse.write(SALES, None, rows("old", *days))
    for attempt in range(3):
        start = PROCESSES.Barrier(2)
        writers = [
            Writer(write, warehouse.url, None, rows("all", *days), f"all-{attempt}", start),
            Writer(
                write, warehouse.url, str(days[1]), rows("one", days[1]), f"one-{attempt}", start
            ),
        ]
        outcomes = [writer.outcome() for writer in writers]
        assert all(said.startswith(("done", "StaleSource")) for said in outcomes), outcomes
        found = slices(warehouse)
        assert found.pop(str(days[1])) in ([("all", 200)], [("one", 200)])
        assert found.keys() == {str(days[n]) for n in (0, 2, 3)}
        assert all(len(notes) == 1 and notes[0][1] == 200 for notes in found.values())


def test_a_writer_killed_before_any_statement_leaves_the_old_slice_or_the_new(
    warehouse: Warehouse,
) -> None:
    warehouse.write(SALES, DAY, rows("old", day_of(0)))
    warehouse.write(SALES, "2026-05-02", rows("neighbour", day_of(1)))
    with warehouse.session() as session:
        calls = before_call(session, 0, lambda: None)
        warehouse.write(SALES, DAY, rows("old", day_of(0)), session=session)
    ends = set()
    for number in range(1, len(calls) + 1):
        known = len(warehouse.loads())
        writer = Writer(
            write_and_die, warehouse.url, SALES, DAY, rows("new", day_of(0), count=300), number
        )
        assert writer.outcome() == "killed", calls[number - 1]
        until(lambda: not others(warehouse))
        found = slices(warehouse)
        assert found["2026-05-02"] == [("neighbour", 200)]
        assert found[DAY] in ([("old", 200)], [("new", 300)]), calls[number - 1]
        ends.add(found[DAY][0][0])
        assert len(warehouse.loads()) == known + (found[DAY] == [("new", 300)])
        assert warehouse.leftovers() == []
        assert warehouse.write(SALES, DAY, rows("old", day_of(0))).rows_before == found[DAY][0][1]
    assert ends == {"old", "new"}, "some died before the commit and some after it"


def others(warehouse: Warehouse) -> list[object]:
    """Return the server's connections other than ours: it takes a moment to notice that a client is gone."""
    if not warehouse.is_postgres:
        return []
    return warehouse.rows(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


def test_a_killed_writer_of_a_new_table_leaves_room_for_the_next(warehouse: Warehouse) -> None:
    number, said = 1, ""
    while "survived" not in said:
        table = replace(SALES, name=f"t{number}")
        said = Writer(
            write_and_die, warehouse.url, table, DAY, rows("new", day_of(0)), number
        ).outcome()
        assert said in ("killed", "done survived")
        assert warehouse.write(table, DAY, rows("next", day_of(0))).rows_after == 200
        assert warehouse.count(table.qualified) == 200
        number += 1
    assert number > 10


def test_a_wait_for_another_process_is_bounded_and_names_its_run(warehouse: Warehouse) -> None:
    warehouse.write(SALES, DAY, rows("old", day_of(0)))
    inside, go_on = PROCESSES.Event(), PROCESSES.Event()
    first = Writer(
        write_slowly, warehouse.url, DAY, rows("first", day_of(0)), "4f1c", inside, go_on
    )
    assert inside.wait(60)
    second = Writer(
        write, with_options(warehouse.url, lock_wait=0.3), DAY, rows("second", day_of(0)), "77aa"
    )
    said = second.outcome()
    assert said.startswith(("SliceBusy", "WarehouseBusy")), said
    assert "run 4f1c" in said
    assert "so nothing was changed" in said
    patient = Writer(write, warehouse.url, DAY, rows("patient", day_of(0)), "99bb")
    go_on.set()
    assert first.outcome() == "done 200"
    assert patient.outcome().startswith(("done 200", "StaleSource"))
    ((_, copies),) = slices(warehouse).items()
    assert copies in ([("first", 200)], [("patient", 200)])


def test_a_process_killed_while_it_holds_the_slice_lets_the_one_that_waits_go_on(
    warehouse: Warehouse,
) -> None:
    warehouse.write(SALES, DAY, rows("old", day_of(0)))
    inside, never = PROCESSES.Event(), PROCESSES.Event()
    first = Writer(
        write_slowly, warehouse.url, DAY, rows("first", day_of(0)), "first", inside, never
    )
    assert inside.wait(60)
    second = Writer(write, warehouse.url, DAY, rows("second", day_of(0)), "second")
    until(warehouse.somebody_waits)
    first.process.kill()
    assert first.outcome() == "killed"
    assert second.outcome() == "done 200"
    assert slices(warehouse) == {DAY: [("second", 200)]}
    assert [load[-1] for load in warehouse.loads()] == ["a-run", "second"]


@pytest.mark.slow
def test_five_processes_of_thirty_days_each_fail_never(warehouse: Warehouse) -> None:
    days = [day_of(n) for n in range(150)]
    start = PROCESSES.Barrier(5)
    writers = [Writer(write_days, warehouse.url, days[n::5], f"p{n}", start) for n in range(5)]
    outcomes = [writer.outcome(300) for writer in writers]
    assert outcomes == ["done 30"] * 5
    found = slices(warehouse)
    assert found == {str(day): [(f"p{n % 5}", 200)] for n, day in enumerate(days)}
    assert len(warehouse.loads()) == 150
    assert warehouse.leftovers() == []
