"""What kinds of tables and columns PostgreSQL has, and that each is replaced rightly or refused in a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest

from backfill_assets.errors import (
    BackfillError,
    BadRows,
    DeclarationError,
    HiddenRows,
    SchemaMismatch,
    SliceBusy,
    WriteFailed,
)
from backfill_assets.table import SliceColumn, Table
from backfill_assets.writing import Select
from backfill_assets_tests.interruptions import after_statement
from backfill_assets_tests.warehouses import Warehouse

DAY = date(2026, 5, 12)
T = Table("mart.t", SliceColumn("day", "date"))
ROWS = {"day": [DAY, DAY], "id": [1, 2]}


@pytest.fixture
def mart(postgres: Warehouse) -> Warehouse:
    postgres.execute("CREATE SCHEMA mart")
    return postgres


# partitioned tables

BY_DAY = (
    "CREATE TABLE mart.t_12 PARTITION OF mart.t FOR VALUES FROM ('2026-05-12') TO ('2026-05-13')"
)
BY_MONTH = (
    "CREATE TABLE mart.t_05 PARTITION OF mart.t FOR VALUES FROM ('2026-05-01') TO ('2026-06-01')"
)
BY_DEFAULT = "CREATE TABLE mart.t_rest PARTITION OF mart.t DEFAULT"


@pytest.fixture
def partitioned(mart: Warehouse) -> Warehouse:
    mart.execute("CREATE TABLE mart.t (day date, id bigint) PARTITION BY RANGE (day)")
    return mart


@pytest.mark.parametrize("partition", [BY_DAY, BY_MONTH, BY_DEFAULT])
def test_a_day_of_a_partitioned_table_is_replaced_in_whatever_partition_it_is(
    partitioned: Warehouse, partition: str
) -> None:
    partitioned.execute(partition)
    assert partitioned.write(T, "2026-05-12", ROWS).rows_after == 2
    assert partitioned.write(T, "2026-05-12", {"day": [DAY], "id": [3]}).rows_before == 2
    assert partitioned.rows("SELECT * FROM mart.t") == [(DAY, 3)]


def test_a_partition_that_is_missing_is_one_sentence_and_nothing_changes(
    partitioned: Warehouse,
) -> None:
    partitioned.execute(BY_DAY)
    with pytest.raises(BadRows, match=r"no partition for some of the rows.*Create that partition"):
        partitioned.write(T, "2026-05-13", {"day": [date(2026, 5, 13)], "id": [1]})
    assert partitioned.count("mart.t") == 0
    assert partitioned.leftovers() == []


def test_a_partition_by_its_own_name_is_claimed_with_its_table(partitioned: Warehouse) -> None:
    partitioned.execute(BY_DAY)
    own, said = Table("mart.t_12", SliceColumn("day", "date")), list[str]()

    def second() -> None:
        with pytest.raises(SliceBusy) as busy, partitioned.session(lock_wait=0.1) as session:
            partitioned.write(own, "2026-05-12", ROWS, session=session)
        said.append(str(busy.value))

    with partitioned.session() as session:
        after_statement(session, "DELETE", second)
        partitioned.write(T, "2026-05-12", ROWS, session=session, run_id="4f1c")
    assert "is being rewritten by run 4f1c" in said[0]
    assert partitioned.count("mart.t") == 2


# columns

COMPUTED = (
    "twice bigint GENERATED ALWAYS AS (id * 2) STORED",
    "number bigint GENERATED ALWAYS AS IDENTITY",
)


@pytest.mark.parametrize("column", COMPUTED)
def test_a_column_that_the_table_computes_is_no_column_that_the_rows_lack(
    mart: Warehouse, column: str
) -> None:
    mart.execute(f"CREATE TABLE mart.t (day date, {column}, id bigint)")
    for _ in range(2):
        mart.write(T, "2026-05-12", ROWS)
    assert mart.rows("SELECT id FROM mart.t ORDER BY id") == [(1,), (2,)]
    name = column.split()[0]
    with pytest.raises(SchemaMismatch, match="computes a column itself.*Leave that column out"):
        mart.write(T, "2026-05-12", {**ROWS, name: [2, 4]})
    assert mart.count("mart.t", f"{name} IS NOT NULL") == 2


def test_domains_are_what_they_are_made_of_and_keep_their_rule(mart: Warehouse) -> None:
    mart.execute(
        "CREATE DOMAIN mart.price AS numeric(10, 2) CHECK (VALUE >= 0)",
        "CREATE DOMAIN mart.list_price AS mart.price CHECK (VALUE < 1000)",
        "CREATE DOMAIN mart.business_day AS date",
        "CREATE TABLE mart.t (day mart.business_day, id bigint, price mart.list_price)",
    )
    assert mart.columns("mart.t") == {"day": "date", "id": "bigint", "price": "numeric(10,2)"}
    for _ in range(2):
        mart.write(T, "2026-05-12", {**ROWS, "price": [1.5, 2.25]})
    for broken in (-1.0, 1000.0):
        with pytest.raises(BadRows, match="violates check constraint"):
            mart.write(T, "2026-05-12", {**ROWS, "price": [1.5, broken]})
    with pytest.raises(BackfillError, match="price"):
        mart.write(T, "2026-05-12", {**ROWS, "price": [1.5, 2.125]})
    assert mart.count("mart.t", "price IN (1.5, 2.25)") == 2


def test_enums_and_arrays_come_from_texts_and_from_queries(mart: Warehouse) -> None:
    mart.execute(
        "CREATE TYPE mart.mood AS ENUM ('low', 'high')",
        "CREATE TABLE mart.t (day date, mood mart.mood, tags bigint[])",
    )
    mart.write(T, "2026-05-12", {"day": [DAY], "mood": ["low"], "tags": ["{1,2}"]})
    assert mart.rows("SELECT mood, tags FROM mart.t") == [("low", [1, 2])]
    query = "SELECT DATE '2026-05-12' AS day, CAST('high' AS mart.mood) AS mood, ARRAY[3::bigint] AS tags"
    mart.write(T, "2026-05-12", Select(query))
    with pytest.raises(SchemaMismatch, match="invalid input value for enum"):
        mart.write(T, "2026-05-12", {"day": [DAY], "mood": ["odd"], "tags": ["{}"]})
    assert mart.rows("SELECT mood, tags FROM mart.t") == [("high", [3])]


# what is no table

FOREIGN = (
    "CREATE EXTENSION IF NOT EXISTS file_fdw WITH SCHEMA mart",
    "CREATE SERVER files FOREIGN DATA WRAPPER file_fdw",
)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (["CREATE VIEW mart.t AS SELECT * FROM mart.beneath"], "it is a view"),
        (["CREATE MATERIALIZED VIEW mart.t AS TABLE mart.beneath"], "it is a materialized view"),
        (
            [*FOREIGN, "CREATE FOREIGN TABLE mart.t (day date, id bigint) SERVER files OPTIONS (filename '/dev/null')"],
            "it is a foreign table",
        ),
        (
            [
                *FOREIGN,
                "CREATE TABLE mart.t (day date, id bigint) PARTITION BY RANGE (day)",
                "CREATE FOREIGN TABLE mart.old PARTITION OF mart.t FOR VALUES FROM ('2026-05-12') TO ('2026-05-13')"
                " SERVER files OPTIONS (filename '/dev/null')",
            ],
            "has a foreign partition",
        ),
    ],
    ids=["view", "materialized view", "foreign table", "foreign partition"],
)  # fmt: skip
def test_what_a_claim_could_not_protect_is_refused_before_a_row_is_touched(
    mart: Warehouse, made: list[str], said: str
) -> None:
    mart.execute("CREATE TABLE mart.beneath (day date, id bigint)")
    if "file_fdw" in made[0] and not mart.count("pg_available_extensions", "name = 'file_fdw'"):
        pytest.skip("this server comes without foreign data wrappers")
    mart.execute("INSERT INTO mart.beneath VALUES ('2026-05-12', 7)", *made)
    with pytest.raises(DeclarationError, match=said):
        mart.write(T, "2026-05-12", ROWS)
    assert mart.rows("SELECT id FROM mart.beneath") == [(7,)]


# row level security


@pytest.fixture
def tenant(mart: Warehouse) -> Iterator[Warehouse]:
    """A role that may do everything with a table, of whose rows a policy hides some."""
    mart.write(T, "2026-05-12", ROWS)
    mart.execute(
        "CREATE ROLE tenant LOGIN",
        "GRANT USAGE ON SCHEMA mart, backfill TO tenant",
        "GRANT SELECT, INSERT, DELETE ON mart.t, backfill.load_audit TO tenant",
        "CREATE POLICY own ON mart.t USING (id = 1) WITH CHECK (true)",
        "ALTER TABLE mart.t ENABLE ROW LEVEL SECURITY",
    )
    yield Warehouse(mart.url.replace("//postgres:", "//tenant:"))
    mart.execute("DROP OWNED BY tenant CASCADE", "DROP ROLE tenant")


def test_rows_that_a_policy_hides_are_not_doubled_but_refused(
    tenant: Warehouse, mart: Warehouse
) -> None:
    assert tenant.count("mart.t") == 1
    with pytest.raises(HiddenRows, match=r"a policy may hide rows from the role.*BYPASSRLS"):
        tenant.write(T, "2026-05-12", ROWS)
    assert mart.rows("SELECT id FROM mart.t ORDER BY id") == [(1,), (2,)]
    mart.execute("ALTER ROLE tenant BYPASSRLS")
    assert tenant.write(T, "2026-05-12", ROWS).rows_before == 2
    assert mart.count("mart.t") == 2


def test_the_owner_of_a_table_sees_past_its_policies_unless_they_are_forced(
    tenant: Warehouse, mart: Warehouse
) -> None:
    mart.execute("ALTER TABLE mart.t OWNER TO tenant")
    assert tenant.write(T, "2026-05-12", ROWS).rows_before == 2
    mart.execute("ALTER TABLE mart.t FORCE ROW LEVEL SECURITY")
    with pytest.raises(HiddenRows):
        tenant.write(T, "2026-05-12", ROWS)


def test_a_source_with_policies_is_read_as_the_role_sees_it(
    tenant: Warehouse, mart: Warehouse
) -> None:
    mart.execute("CREATE TABLE mart.own (day date, id bigint)", "GRANT ALL ON mart.own TO tenant")
    own = Table("mart.own", SliceColumn("day", "date"))
    assert tenant.write(own, "2026-05-12", Select("SELECT * FROM mart.t")).rows_after == 1


# triggers and owners

TRIGGERS: dict[str, tuple[str, str, str]] = {
    "changes rows": ("INSERT", "NEW.id := 9; RETURN NEW", "with another checksum"),
    "leaves rows out": ("INSERT", "RETURN NULL", "0 inserted"),
    "keeps old rows": ("DELETE", "RETURN NULL", "with another checksum"),
    "refuses": ("INSERT", "RAISE EXCEPTION 'the books are closed'", "the books are closed"),
}


@pytest.mark.parametrize("does", TRIGGERS)
def test_a_trigger_that_changes_what_is_written_is_found_and_nothing_is_committed(
    mart: Warehouse, does: str
) -> None:
    when, body, said = TRIGGERS[does]
    mart.execute(
        "CREATE TABLE mart.t (day date, id bigint)",
        "INSERT INTO mart.t VALUES ('2026-05-12', 7)",
        f"CREATE FUNCTION mart.f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body}; END $$",
        f"CREATE TRIGGER f BEFORE {when} ON mart.t FOR EACH ROW EXECUTE FUNCTION mart.f()",
    )
    with pytest.raises(WriteFailed, match=said):
        mart.write(T, "2026-05-12", ROWS)
    assert mart.rows("SELECT id FROM mart.t") == [(7,)]


def test_a_trigger_that_notes_each_change_is_none_of_our_business(mart: Warehouse) -> None:
    mart.execute(
        "CREATE TABLE mart.t (day date, id bigint)",
        "CREATE TABLE mart.notes (what text)",
        "CREATE FUNCTION mart.f() RETURNS trigger LANGUAGE plpgsql"
        " AS $$ BEGIN INSERT INTO mart.notes VALUES (TG_OP); RETURN NULL; END $$",
        "CREATE TRIGGER f AFTER INSERT OR DELETE ON mart.t FOR EACH ROW EXECUTE FUNCTION mart.f()",
    )
    for _ in range(2):
        mart.write(T, "2026-05-12", ROWS)
    counted: list[tuple[Any, ...]] = mart.rows("SELECT what, count(*) FROM mart.notes GROUP BY 1")
    assert sorted(counted) == [("DELETE", 2), ("INSERT", 4)]
