"""What only PostgreSQL has: grants, options and views above the view, roles, row policies, and readers at the same time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from backfill_assets.errors import Refused
from backfill_assets.strategies.cutover import cutting
from backfill_assets.strategies.cutover.guards import policies_alike
from backfill_assets_tests.strategies.cutover.conftest import (
    NEW,
    OLD,
    ORDERS,
    SAID,
    VIEW,
    Operator,
    make,
)
from backfill_assets_tests.warehouses import Warehouse

OPTIONS = "SELECT reloptions FROM pg_class WHERE oid = 'analytics.orders'::regclass"


@pytest.fixture
def role(postgres: Warehouse) -> Iterator[str]:
    """A role that may make tables of its own and owns nothing of the migration."""
    postgres.execute("DROP ROLE IF EXISTS mover", "CREATE ROLE mover LOGIN PASSWORD 'mover'")
    yield "mover"
    postgres.execute("DROP OWNED BY mover CASCADE", "DROP ROLE mover")


def as_role(warehouse: Warehouse, role: str) -> Warehouse:
    parts = urlsplit(warehouse.url)
    return Warehouse(
        parts._replace(netloc=f"{role}:{role}@{parts.netloc.rpartition('@')[2]}").geturl()
    )


def test_grants_options_comments_and_views_above_it_survive(postgres: Warehouse, role: str) -> None:
    make(postgres)
    postgres.execute(
        f"ALTER VIEW {VIEW} SET (security_barrier = true)",
        f"GRANT SELECT ON {VIEW} TO {role}",
        f"COMMENT ON VIEW {VIEW} IS 'what everybody reads'",
        f"CREATE VIEW analytics.totals AS SELECT sum(amount) AS total, max(source) AS source FROM {VIEW}",
        f"CREATE MATERIALIZED VIEW analytics.kept AS SELECT * FROM {VIEW}",
    )
    before = postgres.rows(OPTIONS)
    privileges = "SELECT relacl::text, oid, obj_description(oid) FROM pg_class WHERE oid = 'analytics.orders'::regclass"
    granted = postgres.rows(privileges)
    ann = Operator(postgres)
    ann.cut_over()
    assert postgres.rows("SELECT source FROM analytics.totals") == [("new",)]
    assert postgres.rows(OPTIONS) == before == [(["security_barrier=true"],)]
    assert postgres.rows(privileges) == granted
    ann.roll_back()
    assert postgres.rows("SELECT source FROM analytics.totals") == [("old",)]
    assert (postgres.rows(privileges), postgres.rows(OPTIONS)) == (granted, before)


def test_a_view_in_the_search_path_is_understood_as_well(postgres: Warehouse) -> None:
    make(postgres)
    postgres.execute("ALTER DATABASE warehouse SET search_path = analytics, public")
    ann = Operator(postgres)
    assert ann.status().reads == "old"
    ann.cut_over()
    assert ann.reads == {"new"}


def test_a_materialized_view_is_none_that_can_be_replaced(postgres: Warehouse) -> None:
    make(postgres, f"CREATE MATERIALIZED VIEW {VIEW} AS SELECT * FROM {OLD}")
    with pytest.raises(Refused, match="it is a materialized view and no view"):
        Operator(postgres).cut_over()


def test_a_role_that_may_not_replace_the_view_is_told_so_before_anything_is_done(
    postgres: Warehouse, role: str
) -> None:
    make(postgres)
    postgres.execute(
        f"GRANT USAGE ON SCHEMA analytics TO {role}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA analytics TO {role}",
        f"GRANT CREATE ON DATABASE warehouse TO {role}",
    )
    mover = Operator(as_role(postgres, role))
    (owner, schema) = mover.cut_over(dry_run=True).refusals
    assert owner.startswith(f"rights: {VIEW} belongs to postgres, and this role may not replace it")
    assert "may not make views in the schema" in schema
    with pytest.raises(Refused, match="this role may not replace it"):
        mover.cut_over()
    assert (Operator(postgres).reads, mover.log) == ({"old"}, [])


def test_the_owner_of_the_view_has_to_be_able_to_read_the_new_table(
    postgres: Warehouse, role: str
) -> None:
    make(postgres)
    postgres.execute(
        f"GRANT USAGE, CREATE ON SCHEMA analytics TO {role}",
        f"GRANT SELECT ON {OLD} TO {role}",
        f"ALTER VIEW {VIEW} OWNER TO {role}",
    )
    ann = Operator(postgres)
    with pytest.raises(Refused, match=f"mover, to whom {VIEW} belongs, may not SELECT from {NEW}"):
        ann.cut_over()
    assert ann.reads == {"old"}
    postgres.execute(f"GRANT SELECT ON {NEW} TO {role}")
    ann.cut_over()
    assert ann.reads == {"new"}


def test_readers_of_a_view_with_their_own_rights_need_them_on_the_new_table(
    postgres: Warehouse, role: str
) -> None:
    make(postgres)
    postgres.execute(
        f"ALTER VIEW {VIEW} SET (security_invoker = true)",
        f"GRANT SELECT ON {VIEW} TO {role}",
        f"GRANT SELECT ON {OLD} TO {role}",
    )
    with pytest.raises(Refused, match=f"and mover may not SELECT from {NEW}"):
        Operator(postgres).cut_over()
    postgres.execute(f"GRANT SELECT ON {NEW} TO {role}")
    Operator(postgres).cut_over()
    assert postgres.rows(OPTIONS) == [(["security_invoker=true"],)]


def test_row_policies_on_one_side_only_are_refused_and_may_be_passed(
    postgres: Warehouse, role: str
) -> None:
    make(postgres)
    hides = "USING (order_id < 2)"
    postgres.execute(
        f"ALTER TABLE {OLD} ENABLE ROW LEVEL SECURITY",
        f"CREATE POLICY few ON {OLD} TO {role} {hides}",
    )
    with postgres.session() as session:
        guard = policies_alike(session, ORDERS)
        ann = Operator(postgres)
        with pytest.raises(Refused, match="row_policies: the row policies of .* are not the same"):
            ann.cut_over(guard)
        assert ann.reads == {"old"}
        postgres.execute(
            f"ALTER TABLE {NEW} ENABLE ROW LEVEL SECURITY",
            f"CREATE POLICY few ON {NEW} TO {role} USING (order_id < 3)",
        )
        assert ann.cut_over(guard, dry_run=True).refusals  # others are hidden
        postgres.execute(
            f"DROP POLICY few ON {NEW}", f"CREATE POLICY lower_ids ON {NEW} TO {role} {hides}"
        )
        assert not ann.cut_over(guard, dry_run=True).refusals
        postgres.execute(f"DROP POLICY lower_ids ON {NEW}")
        done = ann.cut_over(guard, override=("row_policies",), reason="they come tomorrow")
        assert "are not the same" in str(done.overridden)


class Reader(threading.Thread):
    """Reads through the view until it is stopped; keeps what it saw and what failed."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.url, self.over = url, threading.Event()
        self.seen, self.errors, self.slowest = list[Any](), list[str](), 0.0

    def run(self) -> None:
        with psycopg.connect(self.url, autocommit=True, prepare_threshold=2) as connection:
            while not self.over.is_set():
                began = time.monotonic()
                try:
                    self.seen.append(tuple(connection.execute(SAID).fetchall()))
                except psycopg.Error as error:
                    self.errors.append(str(error))
                self.slowest = max(self.slowest, time.monotonic() - began)

    def stop(self) -> None:
        self.over.set()
        self.join(30)


def test_readers_see_wholly_old_or_wholly_new_rows_and_never_an_error(postgres: Warehouse) -> None:
    make(postgres)
    ann, readers = Operator(postgres), [Reader(postgres.url) for _ in range(3)]
    for reader in readers:
        reader.start()
    for _ in range(5):
        ann.cut_over()
        ann.roll_back()
    for reader in readers:
        reader.stop()
    old, new = ((1, "old"), (2, "old")), ((1, "new"), (2, "new"))
    assert [reader.errors for reader in readers] == [[], [], []]
    assert {rows for reader in readers for rows in reader.seen} == {old, new}


def test_a_reader_who_holds_the_view_for_long_keeps_no_others_waiting(
    postgres: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(postgres)
    monkeypatch.setattr(cutting, "_LOCK_MILLISECONDS", 100)
    monkeypatch.setattr(cutting, "_PAUSE_SECONDS", 0.05)
    ann, reader = Operator(postgres), Reader(postgres.url)
    with psycopg.connect(postgres.url) as report:
        report.execute(SAID)
        assert "wait for those who read the view now" in ann.cut_over(dry_run=True).plan[-1]
        mover = threading.Thread(target=ann.cut_over)
        mover.start()
        reader.start()
        time.sleep(1)
        assert mover.is_alive()
        report.execute(SAID)
    mover.join(30)
    reader.stop()
    assert (ann.reads, reader.errors) == ({"new"}, [])
    assert reader.slowest < 2
    assert any("Somebody reads analytics.orders" in line for line in ann.told)


def test_the_old_table_stays_while_anything_in_the_server_depends_on_it(
    postgres: Warehouse,
) -> None:
    make(postgres)
    ann = Operator(postgres)
    ann.cut_over()
    postgres.execute(f"CREATE MATERIALIZED VIEW analytics.kept AS SELECT * FROM {OLD}")
    with pytest.raises(Refused, match="analytics.kept reads"):
        ann.retire()
    assert postgres.count(OLD) == 2
