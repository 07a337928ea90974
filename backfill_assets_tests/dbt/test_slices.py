"""Plain dbt with the materialization backfill_slices: what is in the table and in the audit after it."""

from __future__ import annotations

from datetime import datetime, timezone

from backfill_assets.slice import Slice
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import Window
from backfill_assets.writing import Load, Run, Select
from backfill_assets_tests.dbt.conftest import model
from backfill_assets_tests.dbt.projects import Project
from backfill_assets_tests.warehouses import AUDIT, Warehouse

FCT = Table("analytics.fct", SliceColumn("day", "date"), unique_key=("id",))
WHOLE = "SELECT day, id, amount, note FROM analytics.fct ORDER BY id"


def test_each_day_of_a_window_is_replaced_audited_and_hashed_as_rewrite_does_it(
    project: Project, warehouse: Warehouse
) -> None:
    project.write("models/analytics/fct.sql", model())
    first = project.dbt(
        "run", start="2026-03-01", end="2026-03-04", reason="first load", ticket="T-1"
    )
    assert first.code == 0, first.text
    assert [row[:3] for row in warehouse.loads()] == [
        ("2026-03-01", 0, 2),
        ("2026-03-02", 0, 2),
        ("2026-03-03", 0, 2),
    ]
    assert warehouse.count("analytics.fct") == 6
    told = warehouse.rows(
        "SELECT DISTINCT table_name, lane, reason, ticket, strategy, dimensions FROM backfill.load_audit"
    )
    assert told == [("analytics.fct", "backfill", "first load", "T-1", "recompute", "{}")]
    before = warehouse.rows(WHOLE)

    # a row that vanished, one that came late and one that changed, in a day between two that stay
    warehouse.execute(
        "DELETE FROM raw.events WHERE id = 10",
        "INSERT INTO raw.events VALUES (19, '2026-03-02 23:59:59.999999+00', 7, 'late')",
        "UPDATE raw.events SET note = 'changed' WHERE id = 11",
    )
    again = project.dbt("run", start="2026-03-02", end="2026-03-03", reason="late rows")
    assert again.code == 0, again.text
    found = warehouse.rows("SELECT id, note FROM analytics.fct WHERE day = '2026-03-02' ORDER BY 1")
    assert found == [(11, "changed"), (19, "late")]
    after = warehouse.rows(WHOLE)
    assert [r for r in before if r[1] not in (10, 11)] == [r for r in after if r[1] not in (11, 19)]

    # and our own write path, over the same rows, says the same of them
    by_dbt = warehouse.loads()[-1]
    ours = warehouse.write(
        FCT,
        "2026-03-02",
        Select(
            "SELECT CAST(happened AT TIME ZONE 'UTC' AS DATE) AS day, id, amount, note FROM raw.events",
            on="happened",
        ),
        reason="compare",
    )
    assert (by_dbt[2], by_dbt[3]) == (ours.rows_after, ours.checksum)
    with warehouse.session() as session:
        newest = AUDIT.newest(session, FCT, None)
    assert {load.partition_key: load.run_id for load in newest}["2026-03-02"] == "a-run"


def test_what_cannot_be_right_is_refused_in_a_sentence_and_leaves_the_day_and_the_others(
    project: Project, warehouse: Warehouse
) -> None:
    """One invocation over many models, each wrong in its own way; every table holds 2026-03-01 and 02 from before."""
    wrong = {
        "no_slice_column": "{{ config(unique_key='id') }} SELECT id FROM {{ source('raw', 'events') }} WHERE {{ in_slice('happened') }}",
        "no_filter": model(where="1 = 1"),
        "other_day": model(day="CAST(happened AT TIME ZONE 'UTC' AS DATE) + 1"),
        "without_day": model(day="CAST(NULL AS DATE)"),
        "without_key": model(select="CAST(NULL AS BIGINT) AS id, amount, note"),
        "twins": model(select="1 AS id, amount, note"),
        "nothing": model(where="{{ in_slice('happened') }} AND id < 0"),
        "shrunk": model(
            ", shrink_floor=2, max_shrink=0.4", where="{{ in_slice('happened') }} AND id = 0"
        ),
        "new_column": model(select="id, amount, note, 1 AS more"),
        "lost_column": model(select="id, amount"),
        "retyped": model(select="id, note AS amount, note"),
        "rounded": model(select="id, amount + 0.001 AS amount, note"),
        "no_policy": model(", schema_policy='sync'"),
        "bad_kind": model(where="{{ in_slice('happened', kind='moment') }}").replace(
            "{{ config", "{% if false %}{% endif %}{{ config"
        ),
    }
    told_of = {
        "no_slice_column": "analytics.no_slice_column was left as it was: the model names no slice_column",
        "no_filter": "analytics.no_filter was left as it was: the model never says in_slice()",
        "other_day": "2 of 2 rows do not belong to it, 0 of them without a value",
        "without_day": "2 of 2 rows do not belong to it, 2 of them without a value",
        "without_key": "2 rows have no value in the unique key (id)",
        "twins": "1 values of the unique key (id) come more than once",
        "nothing": "no rows came for it, and an empty slice is not declared to be right",
        "shrunk": "it holds 2 rows and only 1 came, a loss beyond 40%",
        "new_column": "the rows bring 'more' (",
        "lost_column": "the table has 'note' (",
        "retyped": "which would have to be reinterpreted",
        "rounded": "2 values of column 'amount' would change from",
        "no_policy": "there is no schema_policy 'sync'",
    }
    bad_kind = wrong.pop("bad_kind")
    warehouse.execute("CREATE SCHEMA IF NOT EXISTS analytics")
    for name, text in wrong.items():
        project.write(f"models/analytics/{name}.sql", text)
        warehouse.execute(
            f"CREATE TABLE analytics.{name} AS SELECT CAST(happened AT TIME ZONE 'UTC' AS DATE) AS day, id, amount, note"
            " FROM raw.events WHERE id < 20"
        )
    before = {name: warehouse.rows(f"SELECT * FROM analytics.{name} ORDER BY id") for name in wrong}
    said = project.dbt("run", start="2026-03-01", end="2026-03-03", reason="all wrong")
    assert said.code == 1
    for name, sentence in told_of.items():
        assert sentence in said.words, (name, said.text)
    for name, rows in before.items():
        assert warehouse.rows(f"SELECT * FROM analytics.{name} ORDER BY id") == rows, name
    assert warehouse.loads() == []
    refused = warehouse.rows(
        "SELECT table_name, partition_key, rows_before, rows_after FROM backfill.load_audit WHERE outcome = 'refused'"
    )
    measured = set(told_of) - {"no_slice_column", "no_filter", "no_policy"}
    assert sorted(refused) == sorted((f"analytics.{n}", "2026-03-01", 2, 2) for n in measured)
    assert "day 1 of 2 in this run: the 0 before it are committed and stay" in said.words

    project.write("models/analytics/bad_kind.sql", bad_kind)
    assert "the kind 'moment' cannot be compared safely with a window" in project.dbt("parse").words


def test_a_window_that_is_missing_or_no_window_names_what_to_write(project: Project) -> None:
    project.write("models/analytics/fct.sql", model())
    missing = project.dbt("run", start="2026-03-01")
    assert missing.code == 1
    assert "fct was left as it was: the var 'end' is missing" in missing.words
    wrong = project.dbt("run", start="2026-03-01", end="3 March")
    assert "the var 'end' is '3 March', which is no day. Write it as YYYY-MM-DD." in wrong.words
    empty = project.dbt("run", start="2026-03-03", end="2026-03-03")
    assert "holds no day, since its end is excluded" in empty.words
    dropping = project.dbt("run", "--full-refresh", start="2026-03-01", end="2026-03-02")
    assert "--full-refresh would drop every day that the window does not name" in dropping.words


def test_a_failing_day_keeps_those_before_it_and_the_rest_can_be_run(
    project: Project, warehouse: Warehouse
) -> None:
    """A test that fails on day 3, asked before the commit; and an error of the warehouse's own on day 2."""
    project.write("models/analytics/fct.sql", model())
    project.write(
        "models/analytics/schema.yml",
        "models:\n  - name: fct\n    columns:\n      - name: note\n        data_tests: [not_null]\n",
    )
    warehouse.execute("UPDATE raw.events SET note = NULL WHERE id = 20")
    said = project.dbt("build", start="2026-03-01", end="2026-03-06")
    assert said.code == 1
    assert (
        "analytics.fct 2026-03-03 was left as it was: its tests failed before the commit: 1 rows of the day fail it (not_null_fct_note)"
        in said.words
    )
    assert (
        "day 3 of 5 in this run: the 2 before it are committed and stay, the 2 after it were not begun"
        in said.words
    )
    assert [row[0] for row in warehouse.loads()] == ["2026-03-01", "2026-03-02"]
    assert [row[0] for row in warehouse.loads("refused")] == ["2026-03-03"]
    warehouse.execute("UPDATE raw.events SET note = 'found' WHERE id = 20")
    rest = project.dbt("build", start="2026-03-03", end="2026-03-06")
    assert rest.code == 0, rest.text
    assert [row[0] for row in warehouse.loads()] == [f"2026-03-0{n}" for n in range(1, 6)]

    # 1 / 0 on the second day: no macro can catch that, and it is written down at the end of the invocation
    broken = "CAST(100 / CASE WHEN id = 30 THEN length(note) - 4 ELSE 1 END AS TEXT)"
    if not warehouse.is_postgres:
        broken = "CAST(CAST(CASE WHEN id = 30 THEN 'x' ELSE '1' END AS INTEGER) AS TEXT)"
    project.write("models/analytics/fct.sql", model(select=f"id, amount, {broken} AS note"))
    failed = project.dbt("build", start="2026-03-03", end="2026-03-06", reason="a new note")
    assert failed.code == 1
    assert [row[0] for row in warehouse.loads("failed")] == ["2026-03-04"]
    notes = "SELECT note FROM analytics.fct WHERE day = '{}' ORDER BY id"
    assert warehouse.rows(notes.format("2026-03-04")) == [("note",), ("note",)]
    assert warehouse.rows(notes.format("2026-03-03")) != [("found",), ("note",)]


def test_a_later_look_at_the_source_is_never_overwritten_by_an_earlier_one(
    project: Project, warehouse: Warehouse
) -> None:
    project.write("models/analytics/fct.sql", model())
    assert project.dbt("run", start="2026-03-01", end="2026-03-02").code == 0
    future = datetime(2099, 1, 1, tzinfo=timezone.utc)
    with warehouse.session() as session:
        AUDIT.record(
            session,
            Load.of(
                Slice(FCT, Window.day("2026-03-01")),
                Run("from-the-future"),
                source_read_at=future,
                started_at=future,
                committed_at=future,
                outcome="committed",
                rows_before=2,
                rows_after=2,
                checksum="0",
            ),
        )
    said = project.dbt("run", start="2026-03-01", end="2026-03-02", reason="an older look")
    assert said.code == 1
    assert "run from-the wrote it from a source read after this run read its own" in said.words


def test_days_of_a_zone_are_the_same_instants_as_rewrites(
    project: Project, warehouse: Warehouse
) -> None:
    """2026-03-08 has 23 hours in New York; its rows at the edges belong where the clock of that place says."""
    warehouse.execute(
        "INSERT INTO raw.events VALUES (801, '2026-03-08 04:59:59.999999+00', 1, 'still the 7th'),"
        " (802, '2026-03-08 05:00:00+00', 1, 'first of the 8th'), (803, '2026-03-09 03:59:59.999999+00', 1, 'last of the 8th'),"
        " (804, '2026-03-09 04:00:00+00', 1, 'first of the 9th')"
    )
    day = "CAST(happened AT TIME ZONE 'America/New_York' AS DATE)"
    project.write(
        "models/analytics/fct.sql",
        model(
            ", time_zone='America/New_York'",
            day=day,
            where="{{ in_slice('happened', zone='America/New_York') }}",
        ),
    )
    said = project.dbt("run", start="2026-03-07", end="2026-03-10", reason="zones")
    assert said.code == 0, said.text
    found = warehouse.rows(
        "SELECT id FROM analytics.fct WHERE day = '2026-03-08' AND id > 800 ORDER BY 1"
    )
    assert found == [(802,), (803,)]
    windows = warehouse.rows(
        "SELECT window_start, window_end FROM backfill.load_audit WHERE partition_key = '2026-03-08'"
    )
    expected = Window.day("2026-03-08", "America/New_York")
    assert windows == [(expected.start, expected.end)]
    assert (expected.end - expected.start).total_seconds() == 23 * 3600


def test_an_old_day_is_not_rewritten_without_a_reason_nor_from_a_source_that_changed_since(
    project: Project, warehouse: Warehouse
) -> None:
    project.write("models/analytics/fct.sql", model())
    project.write("models/analytics/now.sql", model(source="{{ source('raw', 'changing') }}"))
    project.write(
        "models/analytics/through_a_view.sql",
        model(source="{{ ref('view_of_it') }}"),
    )
    project.write(
        "models/view_of_it.sql",
        "{{ config(materialized='view') }} SELECT * FROM {{ source('raw', 'changing') }}",
    )
    project.write(
        "models/analytics/kept.sql",
        model(
            ", meta={'source_history': 'cdc'}, source_history='cdc'",
            source="{{ source('raw', 'changing') }}",
        ),
    )
    first = project.dbt("run", start="2026-03-01", end="2026-03-02")
    assert (
        "2026-03-01 was left as it was: its source raw.changing is changed in place" in first.words
    )
    loaded = {
        row[0]
        for row in warehouse.rows(
            "SELECT DISTINCT table_name FROM backfill.load_audit WHERE outcome = 'committed'"
        )
    }
    assert loaded == {"analytics.fct", "analytics.kept"}
    again = project.dbt("run", "--select", "fct", start="2026-03-01", end="2026-03-02")
    assert "no reason is given, and it was loaded before" in again.words
    allowed = project.dbt(
        "run",
        "--select",
        "now",
        start="2026-03-01",
        end="2026-03-02",
        allow="retention",
        reason="nothing changed that day, says ops",
    )
    assert allowed.code == 0, allowed.text
    unreasoned = project.dbt(
        "run", "--select", "now", start="2026-03-01", end="2026-03-02", allow="shrink"
    )
    assert "The run may not pass the guard shrink: it gives no reason" in unreasoned.words


def test_a_new_column_comes_where_the_model_declares_it(
    project: Project, warehouse: Warehouse
) -> None:
    project.write("models/analytics/fct.sql", model())
    assert project.dbt("run", start="2026-03-01", end="2026-03-03").code == 0
    project.write(
        "models/analytics/fct.sql",
        model(", schema_policy='add'", select="'x' AS country, note, amount, id"),
    )
    said = project.dbt("run", start="2026-03-02", end="2026-03-03", reason="country")
    assert said.code == 0, said.text
    found = warehouse.rows("SELECT day, id, country FROM analytics.fct ORDER BY id")
    assert [(str(day), id_, country) for day, id_, country in found] == [
        ("2026-03-01", 0, None),
        ("2026-03-01", 1, None),
        ("2026-03-02", 10, "x"),
        ("2026-03-02", 11, "x"),
    ]
