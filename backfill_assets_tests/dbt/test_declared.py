"""What a model, its tests and an invocation declare is done, or refused in one sentence; nothing of it is passed over."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

import pytest

from backfill_assets.dbt import raw
from backfill_assets.window import midnight
from backfill_assets_tests.dbt.conftest import model
from backfill_assets_tests.dbt.projects import Project
from backfill_assets_tests.warehouses import Warehouse

ONE_DAY = {"start": "2026-03-01", "end": "2026-03-02"}


def test_hooks_before_and_after_the_days_are_kept_inside_a_transaction_and_outside(
    project: Project, warehouse: Warehouse
) -> None:
    warehouse.execute("CREATE TABLE raw.hooks (said TEXT)")
    say = "INSERT INTO raw.hooks VALUES (''{}'')"
    hooks = "'" + say.format("{0} inside") + "', {1}('" + say.format("{0} outside") + "')"
    project.write(
        "models/analytics/fct.sql",
        model(
            f", pre_hook=[{hooks.format('before', 'before_begin')}]"
            f", post_hook=[{hooks.format('after', 'after_commit')}]"
        ).replace("''", "\\'"),
    )
    project.write(
        "models/analytics/inside.sql",
        model(f", post_hook='{say.format('alone inside')}'").replace("''", "\\'"),
    )
    said = project.dbt("run", **ONE_DAY)
    assert said.code == 0, said.text
    assert [row[0] for row in warehouse.rows("SELECT said FROM raw.hooks ORDER BY 1")] == [
        "after inside",
        "after outside",
        "alone inside",
        "before inside",
        "before outside",
    ]


@pytest.mark.only("duckdb", why="dbt itself refuses another database on PostgreSQL")
def test_another_database_is_refused_since_the_audit_could_not_be_committed_with_the_day(
    project: Project, warehouse: Warehouse
) -> None:
    project.write("models/analytics/fct.sql", model(", database='elsewhere'"))
    profile = project.folder / "profiles.yml"
    other = project.work / "elsewhere.duckdb"
    profile.write_text(
        profile.read_text().replace(
            "      type: duckdb\n", f"      type: duckdb\n      attach: [{{path: '{other}'}}]\n"
        )
    )
    said = project.dbt("run", **ONE_DAY)
    assert said.code == 1
    assert (
        "analytics.fct was left as it was: its config names the database 'elsewhere'" in said.words
    )
    assert warehouse.columns("analytics.fct") is None


@pytest.mark.only("postgres", why="names whose case counts")
@pytest.mark.parametrize(("quoted", "name"), [("false", "fct"), ("true", '"Fct"')])
def test_a_name_is_quoted_where_quoting_says_so(
    project: Project, warehouse: Warehouse, quoted: str, name: str
) -> None:
    config = project.folder / "dbt_project.yml"
    config.write_text(config.read_text() + f"\nquoting: {{identifier: {quoted}}}\n")
    project.write("models/analytics/fct.sql", model(", alias='Fct'"))
    said = project.dbt("run", **ONE_DAY)
    assert said.code == 0, said.text
    assert warehouse.count(f"analytics.{name}") == 2
    table = "analytics." + name.strip('"')
    assert warehouse.rows("SELECT table_name FROM backfill.load_audit") == [(table,)]


def test_a_test_counts_and_judges_before_the_commit_as_dbt_does_afterwards(
    project: Project, warehouse: Warehouse
) -> None:
    """Two notes of the day are missing; whether that stops it is what `where`, thresholds and the others say."""
    warehouse.execute("UPDATE raw.events SET note = NULL WHERE id < 2")
    stops = {
        "plain": "{}",
        "few_more": "{error_if: '> 1'}",
        "calculated": "{fail_calc: 'count(*) - 1', error_if: '= 1'}",
        "rest": "{where: 'id > 0'}",
    }
    passes = {
        "elsewhere": "{where: 'id > 9'}",
        "tolerant": "{error_if: '> 2', warn_if: '> 2'}",
        "warning": "{error_if: '> 2'}",
        "mild": "{severity: warn}",
        "capped": "{limit: 1, error_if: '> 1'}",
        "summed": "{fail_calc: 'count(*) - 2'}",
    }
    models = []
    for name, config in {**stops, **passes}.items():
        project.write(f"models/analytics/{name}.sql", model())
        models.append(
            f"  - {{name: {name}, columns: [{{name: note, data_tests: [{{not_null: {{config: {config}}}}}]}}]}}"
        )
    project.write("models/analytics/schema.yml", "\n".join(["models:", *models]))
    said = project.dbt("run", **ONE_DAY)
    assert said.code == 1
    tables = {
        outcome: {
            row[0].removeprefix("analytics.")
            for row in warehouse.rows(
                f"SELECT table_name FROM backfill.load_audit WHERE outcome = '{outcome}'"
            )
        }
        for outcome in ("refused", "committed")
    }
    assert tables == {"refused": set(stops), "committed": set(passes)}, said.text
    warned = {
        row[0].removeprefix("analytics.")
        for row in warehouse.rows(
            """SELECT table_name FROM backfill.load_audit WHERE detail LIKE '%"passed": false%' AND outcome = 'committed'"""
        )
    }
    assert warned == {"warning", "mild", "capped"}


@pytest.mark.only("duckdb", why="words of the invocation, which are the same on every engine")
def test_vars_that_are_mistaken_are_told_instead_of_counting_for_nothing(
    project: Project, warehouse: Warehouse
) -> None:
    project.write("models/analytics/fct.sql", model())
    mistaken = {
        "the var 'only_days' is '2026-03-01', which is no list": {"only_days": "2026-03-01"},
        "the var 'only_days' names '2026-03-02', which is no day of the window": {
            "only_days": ["2026-03-01", "2026-03-02"]
        },
        "the var 'only_days' names '1 March', which is no day": {"only_days": ["1 March"]},
        "the var 'only_days' names the days of analytics.facts alone": {
            "only_days": {"analytics.facts": ["2026-03-01"]}
        },
        "the var 'lock_wait' is 'a while', which is no number": {"lock_wait": "a while"},
        "the var 'live_days' is 'three', which is no number": {"live_days": "three"},
        "the var 'lane' is 'slow', and there are live and backfill alone": {"lane": "slow"},
        "the var 'require_reason' is 'no', and there are": {"require_reason": "no"},
    }
    for sentence, given in mistaken.items():
        said = project.dbt("run", **ONE_DAY, **given)
        assert said.code == 1, sentence
        assert sentence in said.words, said.text
    assert warehouse.columns("analytics.fct") is None
    none_of_it = project.dbt("run", **ONE_DAY, only_days={"analytics.fct": []})
    assert none_of_it.code == 0, none_of_it.text


@pytest.mark.only("duckdb", why="words of the compilation, which are the same on every engine")
def test_a_view_or_table_that_would_keep_one_window_for_good_is_refused(
    project: Project, warehouse: Warehouse
) -> None:
    for kind in ("view", "table", "ephemeral"):
        project.write(
            f"models/as_{kind}.sql",
            f"{{{{ config(materialized='{kind}') }}}} SELECT * FROM {{{{ source('raw', 'events') }}}} WHERE {{{{ in_slice('happened') }}}}",
        )
    project.write(
        "models/analytics/fct.sql", model(source="{{ ref('as_ephemeral') }}", where="1 = 1")
    )
    said = project.dbt("run", **ONE_DAY)
    for kind in ("view", "table"):
        assert (
            f"as_{kind} was left as it was: it says in_slice(), and its materialization '{kind}' would keep"
            in said.words
        )
    assert warehouse.count("analytics.fct") == 2


@pytest.mark.only("duckdb", why="the clock of Python's pytz, the same on every engine")
def test_a_day_begins_where_rewrites_does_also_at_a_midnight_that_is_skipped_or_comes_twice(
    project: Project,
) -> None:
    zones = (
        "Atlantic/Azores", "America/Havana", "Africa/Cairo", "America/Santiago", "Asia/Beirut",
        "Europe/Berlin", "America/New_York", "UTC",
    )  # fmt: skip
    project.write(
        "macros/told.sql",
        """{% macro told(zones) %}{% for zone in zones %}{% for n in range(365) %}
        {%- set day = (modules.datetime.date(2025, 1, 1) + modules.datetime.timedelta(days=n)) | string -%}
        {%- do log('BEGINS ' ~ zone ~ ' ' ~ day ~ ' ' ~ backfill_midnight(day, zone).isoformat(), info=true) -%}
        {% endfor %}{% endfor %}{% endmacro %}""",
    )
    said = project.dbt("run-operation", "told", "--args", str({"zones": list(zones)}))
    found = [
        line.split("BEGINS ")[1].split() for line in said.text.splitlines() if "BEGINS" in line
    ]
    assert len(found) == 365 * len(zones), said.text
    for zone, day, begins in found:
        assert begins == midnight(date.fromisoformat(day), zone).isoformat(), (zone, day)


@pytest.mark.only("duckdb", why="dbt's graph, which is the same on every engine")
def test_a_source_that_is_changed_in_place_is_found_behind_any_number_of_models(
    project: Project, warehouse: Warehouse
) -> None:
    """Forty models that each read the same forty: 1,600 edges are followed before the one to the source."""
    ephemeral = "{{ config(materialized='ephemeral') }} "
    upper = "\n".join(f"-- {{{{ ref('upper_{n}') }}}}" for n in range(40))
    lower = "\n".join(f"-- {{{{ ref('lower_{n}') }}}}" for n in range(40))
    for n in range(40):
        project.write(f"models/lower_{n}.sql", ephemeral + "SELECT 1 AS one")
        project.write(f"models/upper_{n}.sql", f"{ephemeral}{lower}\nSELECT 1 AS one")
    project.write("models/last.sql", ephemeral + "SELECT * FROM {{ source('raw', 'changing') }}")
    project.write("models/through.sql", ephemeral + "SELECT * FROM {{ ref('last') }}")
    project.write("models/analytics/fct.sql", upper + "\n" + model(source="{{ ref('through') }}"))
    said = project.dbt("run", "--select", "fct", **ONE_DAY)
    assert said.code == 1, said.text
    assert "its source raw.changing is changed in place" in said.words


def test_a_nightly_copy_is_not_written_over_by_the_live_lane_once_its_day_has_ended(
    sample_project: Project, warehouse: Warehouse
) -> None:
    raw.prepare(warehouse.engine())
    today = datetime.now(timezone.utc).date()
    yesterday = today - timedelta(days=1)
    night = ("build", "--select", "customers_nightly", "--target", "live")
    window = {"start": str(yesterday), "end": str(today)}
    assert sample_project.dbt(*night, **window).code == 0
    copy = "SELECT customer_id, country FROM analytics.customers_nightly ORDER BY 1"
    before = warehouse.rows(copy)
    raw.set_customers(warehouse.engine(), datetime(2026, 6, 1, tzinfo=timezone.utc))
    again = sample_project.dbt(*night, **window, lane="live", reason="again")
    assert again.code == 1, again.text
    assert (
        "it was loaded before and has ended, and its source raw.customers is changed in place"
        in again.words
    )
    assert warehouse.rows(copy) == before
    meant = sample_project.dbt(*night, **window, lane="live", reason="yes", allow="retention")
    assert meant.code == 0, meant.text
    assert warehouse.rows(copy) != before


@pytest.mark.only("duckdb", why="dbt's configs, which are the same on every engine")
def test_a_config_that_slices_do_not_apply_is_refused_by_name(
    project: Project, warehouse: Warehouse
) -> None:
    configs = {
        "grants": "grants={'select': ['reader']}",
        "persist_docs": "persist_docs={'relation': true}",
        "contract": "contract={'enforced': true}",
        "indexes": "indexes=[{'columns': ['id']}]",
    }
    for name, config in configs.items():
        project.write(f"models/analytics/with_{name}.sql", model(f", {config}"))
    project.write(
        "models/analytics/without.sql",
        model(", grants={}, persist_docs={'relation': false}, contract={'enforced': false}"),
    )
    columns = "[{name: day, data_type: date}, {name: id, data_type: bigint}, {name: amount, data_type: 'decimal(18,2)'}, {name: note, data_type: text}]"
    project.write(
        "models/analytics/schema.yml", f"models: [{{name: with_contract, columns: {columns}}}]"
    )
    said = project.dbt("run", **ONE_DAY)
    assert said.code == 1
    for name in configs:
        assert (
            f"analytics.with_{name} was left as it was: its config has {name}, which is not applied"
            in said.words
        ), said.text
        assert warehouse.columns(f"analytics.with_{name}") is None
    assert warehouse.count("analytics.without") == 2


@pytest.mark.only("duckdb", why="a file in which one transaction makes tables")
def test_several_threads_on_one_file_are_refused_before_they_meet(
    project: Project, warehouse: Warehouse
) -> None:
    project.write("models/analytics/fct.sql", model())
    said = project.dbt("run", "--threads", "4", **ONE_DAY)
    assert said.code == 1
    assert "analytics.fct was left as it was: the profile has 4 threads" in said.words
    assert warehouse.columns("analytics.fct") is None
