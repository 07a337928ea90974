"""Both doors of the warehouse's URLs reach dbt whole: each with its own user, key and limits, and nobody else's."""

from __future__ import annotations

import os
from typing import Any

import pytest
import yaml

from backfill_assets.dbt.environment import dbt_environment
from backfill_assets.dbt.invoking import reaching
from backfill_assets.dbt.place import PROJECT
from backfill_assets.errors import DeclarationError
from backfill_assets.io_managers import DeleteInsertIOManager
from backfill_assets_tests.dbt.conftest import model
from backfill_assets_tests.dbt.projects import Project
from backfill_assets_tests.warehouses import Warehouse, with_options


def profile(kind: str, target: str, environment: dict[str, str]) -> dict[str, Any]:
    """Return a target of profiles.yml as dbt reads it with these variables."""
    from jinja2 import Environment

    jinja = Environment()
    jinja.filters["as_number"] = int
    jinja.globals["env_var"] = environment.get
    text = yaml.safe_load((PROJECT / "profiles.yml").read_text())[kind]["outputs"][target]
    return {name: jinja.from_string(str(value)).render() for name, value in text.items()}


def test_keys_certificates_and_addresses_of_both_urls_are_in_the_profile_of_each_lane() -> None:
    found = dbt_environment(
        "postgresql://live:pw@one:6001/shop?sslmode=verify-full&sslrootcert=/ca.pem",
        "postgresql://lane@two/shop?sslmode=require&sslcert=/lane.crt&sslkey=/lane.key",
    )
    live, lane = (profile("postgres", target, found) for target in ("live", "backfill"))
    names = ("host", "port", "user", "password", "sslmode", "sslrootcert", "sslcert", "sslkey")
    assert [live[name] for name in names] == [
        "one", "6001", "live", "pw", "verify-full", "/ca.pem", "", "",
    ]  # fmt: skip
    # nothing of the live door is taken where the lane's says nothing
    assert [lane[name] for name in names] == [
        "two", "5432", "lane", "", "require", "", "/lane.crt", "/lane.key",
    ]  # fmt: skip

    found = dbt_environment(
        "snowflake://ana:pw@acme/shop?warehouse=WH&role=R&host=acme.local&port=444",
        "snowflake://bot@acme/shop?warehouse=SLOW&authenticator=SNOWFLAKE_JWT&private_key_file=/bot.p8"
        "&private_key_password=open&stage_schema=stages&lock_wait=30&statement_timeout=900",
    )
    live, lane = (profile("snowflake", target, found) for target in ("live", "backfill"))
    names = (
        "user", "password", "role", "warehouse", "authenticator", "private_key_path",
        "private_key_passphrase", "host", "port",
    )  # fmt: skip
    assert [live[name] for name in names] == [
        "ana", "pw", "R", "WH", "", "", "", "acme.local", "444",
    ]  # fmt: skip
    assert [lane[name] for name in names] == [
        "bot", "", "", "SLOW", "snowflake_jwt", "/bot.p8", "open", "", "443",
    ]  # fmt: skip
    limits = ("STAGE_SCHEMA", "LOCK_WAIT", "STATEMENT_TIMEOUT")
    assert [found[f"BACKFILL_DBT_{name}"] for name in limits] == ["backfill", "600", "0"]
    assert [found[f"BACKFILL_DBT_LANE_{name}"] for name in limits] == ["stages", "30", "900"]


def test_what_dbt_has_no_field_for_is_refused_instead_of_being_left_out() -> None:
    with pytest.raises(DeclarationError, match="has no field for channel_binding"):
        dbt_environment("postgresql://u:secret@h/d?channel_binding=require")
    with pytest.raises(DeclarationError, match="has no field for token_file_path") as refused:
        dbt_environment("snowflake://u:secret@a/d?token_file_path=/t")
    assert "secret" not in str(refused.value)


def test_a_variable_that_somebody_else_has_set_leads_no_run_elsewhere_and_is_as_it_was_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BACKFILL_DBT_LANE_HOST", "elsewhere")
    monkeypatch.setenv("BACKFILL_DBT_ROLE", "somebody")
    monkeypatch.setenv("DBT_ENV_SECRET_BACKFILL_LANE_PASSWORD", "theirs")
    before = dict(os.environ)
    with reaching(DeleteInsertIOManager(url="postgresql://me@here/shop")):
        assert os.environ["BACKFILL_DBT_LANE_HOST"] == "here"
        assert os.environ["DBT_ENV_SECRET_BACKFILL_LANE_PASSWORD"] == ""
        assert "BACKFILL_DBT_ROLE" not in os.environ
    assert dict(os.environ) == before


def test_each_lane_waits_as_long_as_its_own_door_says(
    project: Project, warehouse: Warehouse
) -> None:
    project.write("models/analytics/fct.sql", model())
    project.write(
        "macros/told.sql",
        "{% macro told() %}{% do log('WAITS ' ~ backfill_run_vars().lock_wait, info=true) %}{% endmacro %}",
    )
    doors = dbt_environment(
        with_options(warehouse.url, lock_wait=11), with_options(warehouse.url, lock_wait=22)
    )
    mine = Project(warehouse, project.folder, project.work, doors)
    for target, seconds in (("live", "11.0"), ("backfill", "22.0")):
        assert f"WAITS {seconds}" in mine.dbt("run-operation", "told", "--target", target).words
    for target in ("live", "backfill"):
        said = mine.dbt(
            "run", "--target", target, start="2026-03-01", end="2026-03-02", reason="both doors"
        )
        assert said.code == 0, said.text
    assert warehouse.count("analytics.fct") == 2
