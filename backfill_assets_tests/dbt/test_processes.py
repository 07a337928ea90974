"""Several processes at one table, dbt among them: killed, waiting, refused by name, and nothing doubled or lost."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from backfill_assets_tests.dbt.conftest import model
from backfill_assets_tests.dbt.projects import Project
from backfill_assets_tests.warehouses import Warehouse

# what a killed dbt waits in, between its INSERT and its audit row
_SLOW = {
    "duckdb": "SELECT sum(hash(i)) FROM range(1000000000000) AS numbers (i)",
    "postgres": "SELECT pg_sleep(120)",
}
_ROWS = "SELECT id, note FROM analytics.fct ORDER BY id"


def test_a_dbt_killed_between_delete_and_commit_leaves_the_day_as_it_was_and_the_rest_can_be_run(
    project: Project, warehouse: Warehouse
) -> None:
    project.write("models/analytics/fct.sql", model())
    assert project.dbt("run", start="2026-03-01", end="2026-03-05").code == 0
    before = warehouse.rows(_ROWS)
    warehouse.execute("UPDATE raw.events SET note = 'new'")
    file = project.folder / "macros" / "backfill_slices" / "rewrite.sql"
    whole = file.read_text()
    slow = _SLOW["postgres" if warehouse.is_postgres else "duckdb"]
    mark = "  {%- do backfill_verify(plan, slice, staged, before, after) -%}\n"
    assert mark in whole
    stop = (
        "  {%- if slice.name == '2026-03-03' -%}{%- do log('THE ROWS ARE IN', info=true) -%}{%- do backfill_fetch(\""
        + slow
        + '") -%}{%- endif -%}\n'
    )
    file.write_text(whole.replace(mark, stop + mark))
    dbt = project.start("run", start="2026-03-01", end="2026-03-05", reason="new notes")
    assert dbt.stdout is not None
    said = []
    for line in dbt.stdout:
        said.append(line)
        if "THE ROWS ARE IN" in line:
            break
    else:
        pytest.fail("".join(said))
    time.sleep(0.5)
    dbt.send_signal(signal.SIGKILL)
    dbt.wait()
    expected = [(id_, "new" if id_ < 20 else note) for id_, note in before]
    # a server notices that its client is gone when the statement ends; nobody else has to wait for that
    if warehouse.is_postgres:
        warehouse.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE query LIKE '%pg_sleep%' AND pid <> pg_backend_pid()"
        )
    assert warehouse.rows(_ROWS) == expected
    assert [row[0] for row in warehouse.loads()][4:] == ["2026-03-01", "2026-03-02"]
    file.write_text(whole)
    rest = project.dbt("run", start="2026-03-03", end="2026-03-05", reason="new notes, the rest")
    assert rest.code == 0, rest.text
    assert {note for _, note in warehouse.rows(_ROWS)} == {"new"}


def test_five_dbts_at_once_lose_and_double_nothing(project: Project, warehouse: Warehouse) -> None:
    """Three of them write other days, two the same ones; all open one file, or meet in one server's claims.

    Schemas, audit and table are not there yet, so that all five make them.
    """
    project.write("models/analytics/fct.sql", model())
    windows = [("01", "03"), ("03", "05"), ("05", "07"), ("07", "09"), ("07", "09")]
    running = []
    for number, (start, end) in enumerate(windows):
        own = Project(warehouse, project.folder, project.work / f"run{number}")
        own.work.mkdir()
        running.append(
            own.start(
                "run",
                start=f"2026-03-{start}",
                end=f"2026-03-{end}",
                run_id=f"run{number}",
                reason="five at once",
            )
        )
    ended = [(dbt.communicate(timeout=200)[0], dbt.returncode) for dbt in running]
    # the twin either waited for its turn or was overtaken, which it says
    for number, (text, code) in enumerate(ended):
        if code and "after this run read its own" not in " ".join(text.split()):
            log = project.work / f"run{number}" / "logs" / "dbt.log"
            pytest.fail(f"{text}\n{log.read_text() if log.exists() else 'and no log'}")
    found = warehouse.rows(
        "SELECT day, count(*), count(DISTINCT id) FROM analytics.fct GROUP BY 1 ORDER BY 1"
    )
    assert [(str(day), rows, ids) for day, rows, ids in found] == [
        (f"2026-03-0{n}", 2, 2) for n in range(1, 9)
    ]
    loads = warehouse.loads()
    assert {row[0] for row in loads} == {f"2026-03-0{n}" for n in range(1, 9)}
    assert len(loads) >= 8


@pytest.mark.only("postgres", why="another writer inside the warehouse at the same time")
def test_a_dbt_that_waits_too_long_for_a_claim_names_who_holds_it(
    project: Project, warehouse: Warehouse
) -> None:
    from backfill_assets.engines.protocol import Claim
    from backfill_assets.window import Window

    project.write("models/analytics/fct.sql", model())
    assert project.dbt("run", start="2026-03-01", end="2026-03-03").code == 0
    days = Window.day("2026-03-02").days("UTC")
    with warehouse.session(who="run 4f1c") as session, session.transaction():
        session.claim(Claim('"analytics"."fct"', days, "analytics.fct 2026-03-02", "4f1c"))
        said = project.dbt("run", start="2026-03-01", end="2026-03-03", reason="again", lock_wait=1)
    assert said.code == 1
    assert (
        "analytics.fct 2026-03-02 was left as it was: it is being rewritten by run 4f1c, and still was after 1.0 s"
        in said.words
    )
    assert [row[0] for row in warehouse.loads("refused")] == ["2026-03-02"]
    assert len(warehouse.loads()) == 3


@pytest.mark.only("duckdb", why="a file that one process opens at a time")
def test_dbt_waits_for_its_turn_at_the_file_and_says_who_has_it_when_it_waited_too_long(
    project: Project, warehouse: Warehouse
) -> None:
    project.write("models/analytics/fct.sql", model())
    ended: list[float] = []
    with warehouse.session(who="run 4f1c"):
        impatient = Project(
            warehouse, project.folder, project.work, {"BACKFILL_DBT_LOCK_WAIT": "0.5"}
        )
        refused = impatient.dbt("run", start="2026-03-01", end="2026-03-02")
        assert refused.code != 0
        assert "held by run 4f1c" in refused.words
        dbt = project.start("run", start="2026-03-01", end="2026-03-02")
        queue = threading.Event()
        limit = time.monotonic() + 60
        folder = project.work / "warehouse.duckdb.queue"
        while not list(folder.glob("*.ticket")) and time.monotonic() < limit:
            queue.wait(0.1)
        assert list(folder.glob("*.ticket")), "dbt never got in line"
        ended.append(time.monotonic())
        assert dbt.poll() is None
    text, _ = dbt.communicate(timeout=120)
    assert dbt.returncode == 0, text
    assert warehouse.count("analytics.fct") == 2


@pytest.mark.only("duckdb", why="its profile alone can switch transactions off")
def test_a_profile_that_commits_every_statement_is_refused_before_anything_is_deleted(
    project: Project, warehouse: Warehouse
) -> None:
    project.write("models/analytics/fct.sql", model())
    assert project.dbt("run", start="2026-03-01", end="2026-03-02").code == 0
    profile = project.folder / "profiles.yml"
    profile.write_text(
        profile.read_text().replace(
            "      type: duckdb\n", "      type: duckdb\n      disable_transactions: true\n"
        )
    )
    said = project.dbt("run", start="2026-03-01", end="2026-03-02", reason="again")
    assert said.code == 1, said.text
    assert warehouse.count("analytics.fct") == 2
    assert len(warehouse.loads()) == 1


def test_retries_in_a_profile_are_refused(project: Project, warehouse: Warehouse) -> None:
    """They open the file again and again while others write."""
    if warehouse.is_postgres:
        pytest.skip("a matter of DuckDB's file")
    project.write("models/analytics/fct.sql", model())
    profile = project.folder / "profiles.yml"
    profile.write_text(
        profile.read_text().replace(
            "      type: duckdb\n", "      type: duckdb\n      retries: {connect_attempts: 3}\n"
        )
    )
    said = project.dbt("run", start="2026-03-01", end="2026-03-02")
    assert said.code != 0
    assert "the profile sets retries" in said.words


@pytest.mark.only("postgres", why="readers beside a writer of DDL")
def test_a_new_column_keeps_no_reader_waiting_behind_one_that_takes_long(
    project: Project, warehouse: Warehouse
) -> None:
    project.write("models/analytics/fct.sql", model())
    assert project.dbt("run", start="2026-03-01", end="2026-03-03").code == 0
    project.write(
        "models/analytics/fct.sql",
        model(", schema_policy='add'", select="id, amount, note, 1 AS more"),
    )
    longest = 0.0
    with warehouse.session(who="a long look") as reader, reader.transaction():
        reader.fetch("SELECT * FROM analytics.fct")
        dbt = project.start("run", start="2026-03-01", end="2026-03-03", reason="more", lock_wait=6)
        while dbt.poll() is None:
            asked = time.monotonic()
            assert warehouse.count("analytics.fct") == 4
            longest = max(longest, time.monotonic() - asked)
            time.sleep(0.2)
        text, _ = dbt.communicate()
    words = " ".join(text.split())
    assert (
        "analytics.fct 2026-03-01 was left as it was: backfill_assets a long look (process" in words
    ), text
    assert "holds the table, which has to change for this, and still did after 6.0 s" in words
    assert 0.5 < longest < 4
    assert [row[0] for row in warehouse.loads("refused")] == ["2026-03-01"]
    rest = project.dbt("run", start="2026-03-01", end="2026-03-03", reason="more")
    assert rest.code == 0, rest.text
    assert warehouse.count("analytics.fct", "more = 1") == 4
