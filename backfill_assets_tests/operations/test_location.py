"""A person's name for a table finds the asset that writes it, whatever its schema comes from."""

import dagster as dg
import pytest

from backfill_assets.errors import DeclarationError
from backfill_assets.io_managers import DeleteInsertIOManager
from backfill_assets.operations.location import asset_named

MANAGER = DeleteInsertIOManager(url=dg.EnvVar("LOCATION_TEST_URL"))
SCHEMAS = {
    "io_manager": MANAGER,
    "with_schema": DeleteInsertIOManager(url=dg.EnvVar("LOCATION_TEST_URL"), schema="marts"),
    "by_variable": DeleteInsertIOManager(
        url=dg.EnvVar("LOCATION_TEST_URL"), schema=dg.EnvVar("LOCATION_TEST_SCHEMA")
    ),
    "stock": dg.mem_io_manager,
}


def asset(key: str, io_manager: str = "io_manager", **metadata: object) -> dg.AssetsDefinition:
    *prefix, name = key.split("/")

    @dg.asset(name=name, key_prefix=prefix or None, metadata=metadata, io_manager_key=io_manager)
    def made() -> None: ...

    return made


LOCATION = dg.Definitions(
    assets=[
        asset("bare"),
        asset("deep/er/by_prefix"),
        asset("raw/renamed", table="fct", schema="analytics"),
        asset("raw/only_table", table="other"),
        asset("raw/configured", "with_schema"),
        asset("raw/variable", "by_variable"),
        asset("raw/in_a_database", schema="mart", database="wh"),
        asset("raw/elsewhere", "stock"),
        # its key is the table of the one above
        asset("analytics/fct", schema="old"),
        dg.AssetSpec("outside"),
    ],
    resources=SCHEMAS,
)


def found(name: str) -> str:
    return asset_named(LOCATION.get_repository_def(), name, "it was not found")[0].to_user_string()


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("bare", "bare"),
        ("public.bare", "bare"),
        ("er.by_prefix", "deep/er/by_prefix"),
        ("deep/er/by_prefix", "deep/er/by_prefix"),
        ("analytics.fct", "raw/renamed"),
        ("analytics/fct", "analytics/fct"),
        ("old.fct", "analytics/fct"),
        ("raw.other", "raw/only_table"),
        ("marts.configured", "raw/configured"),
        ("from_env.variable", "raw/variable"),
        ("mart.in_a_database", "raw/in_a_database"),
        ("wh.mart.in_a_database", "raw/in_a_database"),
        ("raw.elsewhere", "raw/elsewhere"),
        (' "Public"."Bare" ', "bare"),
        ("outside", "outside"),
    ],
)
def test_each_table_is_found_by_the_name_that_its_io_manager_writes_it_under(
    monkeypatch: pytest.MonkeyPatch, name: str, key: str
) -> None:
    monkeypatch.setenv("LOCATION_TEST_SCHEMA", "from_env")
    assert found(name) == key


@pytest.mark.parametrize("name", ["", " ", ".", '""', "/", "\t"])
def test_no_name_is_no_asset(name: str) -> None:
    with pytest.raises(DeclarationError, match="no name is given"):
        found(name)


@pytest.mark.parametrize("name", ["public.by_prefix", "nothing", "other", "old.by_prefix"])
def test_a_table_that_nobody_writes_is_no_asset(name: str) -> None:
    with pytest.raises(DeclarationError, match="no asset of this location has that key or writes"):
        found(name)
