"""What only BigQuery does: jobs with labels and limits, a transaction carried by a session, partition filters, errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from backfill_assets.checks.facts import facts_of
from backfill_assets.engines import bigquery_claims, bigquery_jobs, open_engine
from backfill_assets.engines.bigquery import SPELLING
from backfill_assets.engines.bigquery_errors import told
from backfill_assets.engines.bigquery_types import loadable
from backfill_assets.engines.doors import must_be_one, must_be_one_inside
from backfill_assets.engines.protocol import Estimating
from backfill_assets.errors import (
    Away,
    BackfillError,
    DeclarationError,
    LimitReached,
    MissingRight,
    MissingTable,
    OutcomeUnknown,
    QuotaExceeded,
    SchemaMismatch,
    SliceBusy,
    Unreachable,
    WriteFailed,
)
from backfill_assets.expectations import Source
from backfill_assets.operations.doctor.examine import examined
from backfill_assets.operations.doctor.points import failed
from backfill_assets.operations.previewing import Asked, preview
from backfill_assets.slice import Slice
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import UTC, Window
from backfill_assets.writing import Select
from backfill_assets_tests.interruptions import after_statement
from backfill_assets_tests.warehouses import AUDIT, Warehouse, at

DAY = date(2026, 5, 12)
SALES = Table("mart.fct_sales", SliceColumn("day", "date"), unique_key=("id",))
ROWS = {"day": [DAY, DAY], "id": [1, 2]}
BARE = "`day` >= DATE '2026-05-12' AND `day` < DATE '2026-05-13'"


class Jobs:
    """Every job of a session in the order in which it was sent: its SQL and its configuration."""

    def __init__(self, session: Any) -> None:
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self._client = session._open_jobs.client
        self._query, self._load = self._client.query, self._client.load_table_from_file
        self._client.query = self.query
        self._client.load_table_from_file = self.load

    def query(self, sql: str, *, job_config: Any, **options: Any) -> Any:
        self.sent.append((sql, job_config.to_api_repr()))
        return self._query(sql, job_config=job_config, **options)

    def load(self, file: Any, place: Any, *, job_config: Any, **options: Any) -> Any:
        self.sent.append(("LOAD", job_config.to_api_repr()))
        return self._load(file, place, job_config=job_config, **options)

    @property
    def statements(self) -> list[str]:
        return [sql for sql, _ in self.sent]

    @property
    def transaction(self) -> list[str]:
        """The statements of the BigQuery session, from BEGIN to COMMIT."""
        queries = [(sql, config.get("query", {})) for sql, config in self.sent]
        inside = [
            sql for sql, q in queries if q.get("createSession") or q.get("connectionProperties")
        ]
        first = inside.index("BEGIN TRANSACTION")
        return inside[first : inside.index("COMMIT TRANSACTION") + 1]


@pytest.fixture
def loaded(bigquery: Warehouse) -> Warehouse:
    """Two rows of 12 May."""
    bigquery.write(SALES, "2026-05-12", ROWS)
    return bigquery


# jobs


def test_a_slice_is_replaced_between_one_begin_and_one_commit_without_ddl(
    loaded: Warehouse,
) -> None:
    with loaded.session() as session:
        jobs = Jobs(session)
        loaded.write(SALES, "2026-05-12", ROWS, session=session)
    words = [re.match(r"[A-Z]+", sql)[0] for sql in jobs.transaction]  # type: ignore[index]
    assert words == ["BEGIN", "UPDATE", "SELECT", "DELETE", "INSERT", "SELECT", "INSERT", "COMMIT"]
    assert jobs.transaction[3].startswith("DELETE FROM `mart`.`fct_sales` WHERE")
    assert jobs.transaction[4].startswith("INSERT INTO `mart`.`fct_sales`")
    assert jobs.transaction[6].startswith("INSERT INTO `backfill`.`load_audit`")
    assert jobs.statements.index("LOAD") < jobs.statements.index("BEGIN TRANSACTION")
    assert not [sql for sql in jobs.statements if sql.startswith(("CREATE", "ALTER", "DROP"))]


def test_a_slice_of_a_query_is_staged_before_the_transaction_begins(loaded: Warehouse) -> None:
    query = Select("SELECT DATE '2026-05-12' AS day, 7 AS id")
    with loaded.session() as session:
        jobs = Jobs(session)
        loaded.write(SALES, "2026-05-12", query, session=session)
    made = [n for n, sql in enumerate(jobs.statements) if sql.startswith("CREATE TABLE")]
    assert made
    assert max(made) < jobs.statements.index("BEGIN TRANSACTION")
    assert "expiration_timestamp" in jobs.statements[made[0]]
    assert loaded.rows("SELECT id FROM mart.fct_sales") == [(7,)]
    assert loaded.leftovers() == []


def test_few_jobs_make_a_slice(loaded: Warehouse) -> None:
    """A job more for every slice is noticed here; on BigQuery each takes about a second."""
    with loaded.session() as session:
        jobs = Jobs(session)
        loaded.write(SALES, "2026-05-12", ROWS, session=session)
    assert len(jobs.sent) <= 16


def test_every_job_says_for_which_table_partition_run_and_backfill_it_is(loaded: Warehouse) -> None:
    with loaded.session(who="run 4F1C") as session:
        jobs = Jobs(session)
        loaded.write(
            SALES, "2026-05-12", ROWS, session=session, run_id="4F1C", backfill_id="Back.Fill"
        )
    (first, config), *others = jobs.sent
    assert (first, config["labels"]) == ("SELECT CURRENT_TIMESTAMP()", {"run": "4f1c"})
    for _, config in others:
        assert config["labels"] == {
            "table": "mart-fct_sales",
            "partition": "2026-05-12",
            "run": "4f1c",
            "backfill": "back-fill",
        }


def test_every_query_has_the_limits_of_the_url(loaded: Warehouse) -> None:
    limits = {"maximum_bytes_billed": 10**9, "statement_timeout": 90}
    with loaded.session(**limits) as session:
        jobs = Jobs(session)
        loaded.write(SALES, "2026-05-12", ROWS, session=session)
    for sql, config in jobs.sent:
        assert config["jobTimeoutMs"] == "90000"
        if sql != "LOAD":
            assert config["query"]["maximumBytesBilled"] == "1000000000"
            assert config["query"]["defaultDataset"]["datasetId"] == "public"


def test_no_query_may_be_billed_more_than_what_a_budget_has_left_or_the_url_allows(
    loaded: Warehouse,
) -> None:
    with loaded.session(maximum_bytes_billed=10**9) as session:
        jobs = Jobs(session)
        for left in (5e8, 5e9, 1.0, None):
            session.may_cost(left)
            loaded.write(SALES, "2026-05-12", ROWS, session=session)
            billed = {
                config["query"]["maximumBytesBilled"] for sql, config in jobs.sent if sql != "LOAD"
            }
            assert billed == {str(int(min(max(left or 1e9, 20 * 2**20), 1e9)))}
            jobs.sent.clear()


def test_a_source_that_asks_for_a_filter_gets_one_also_where_only_its_columns_are_asked(
    loaded: Warehouse,
) -> None:
    with loaded.session() as session:
        jobs = Jobs(session)
        day = Select("SELECT day, id FROM mart.fct_sales", on="day")
        loaded.write(SALES, "2026-05-12", day, session=session)
    readers = [sql for sql, _ in jobs.sent if "FROM mart.fct_sales" in sql]
    assert len(readers) == 2
    assert all("WHERE" in sql and "`day`" in sql.split("WHERE")[1] for sql in readers), readers


def test_no_job_of_a_transaction_is_run_again_by_the_client(loaded: Warehouse) -> None:
    retries: list[Any] = []
    with loaded.session() as session:
        client = session._open_jobs.client  # type: ignore[attr-defined]
        query = client.query

        def seen(sql: str, **options: Any) -> Any:
            retries.append(options["job_retry"])
            return query(sql, **options)

        client.query = seen
        loaded.write(SALES, "2026-05-12", ROWS, session=session)
    assert set(retries) == {None}


# partitions


@pytest.mark.parametrize("clustering", ["", "CLUSTER BY id "])
def test_every_statement_on_a_table_that_asks_for_a_partition_filter_has_the_bare_one(
    bigquery: Warehouse, clustering: str
) -> None:
    with bigquery.session() as session:
        session.define(
            "CREATE SCHEMA `mart`",
            "CREATE TABLE `mart`.`fct_sales` (day DATE, id INT64) PARTITION BY day"
            f" {clustering}OPTIONS (require_partition_filter = TRUE)",
        )
        jobs = Jobs(session)
        for ids in ([1, 2], [3]):
            bigquery.write(
                SALES, "2026-05-12", {"day": [DAY] * len(ids), "id": ids}, session=session
            )
        with pytest.raises(BackfillError):
            bigquery.write(SALES, "2026-05-12", {"day": [DAY, DAY], "id": [4, 4]}, session=session)
    touching = [
        sql for sql in jobs.statements if re.search(r"(FROM|UPDATE) `mart`\.`fct_sales`", sql)
    ]
    assert len(touching) >= 5
    for sql in touching:
        assert f"WHERE {BARE}" in sql
        assert not re.search(r"CAST\(`?day", sql)
    assert bigquery.rows("SELECT id FROM mart.fct_sales WHERE day = DATE '2026-05-12'") == [(3,)]


def test_the_doctor_names_the_partition_column_of_a_table_that_asks_for_it(
    loaded: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    query = bigquery_jobs.Jobs.query
    monkeypatch.setattr(
        bigquery_jobs.Jobs,
        "query",
        lambda jobs, sql, **options: (asked.append(sql), query(jobs, sql, **options))[1],
    )
    sales = replace(SALES, source=Source("mart.fct_sales", on="day"))
    found = examined({"live": loaded.engine}, [sales], AUDIT)
    assert failed(found) == []
    touching = [sql for sql in asked if re.search("FROM (`mart`.`fct_sales`|mart.fct_sales)", sql)]
    assert [sql.split()[0] for sql in touching] == ["SELECT", "DELETE", "SELECT"]
    assert all("WHERE `day` IS NULL AND 1 = 0" in sql for sql in touching)


@pytest.mark.parametrize(
    ("beginning", "grant"),
    [
        ("DELETE FROM `mart`.`fct_sales`", "GRANT `roles/bigquery.dataEditor` ON TABLE `mart`.`fct_sales` TO 'user:"),
        ("SELECT * FROM `mart`.`fct_sales`", "GRANT `roles/bigquery.dataViewer` ON TABLE `mart`.`fct_sales` TO 'user:"),
        ("CREATE TABLE `", "GRANT `roles/bigquery.dataEditor` ON SCHEMA `"),
    ],
)  # fmt: skip
def test_the_doctor_prints_the_role_that_is_missing(
    loaded: Warehouse, monkeypatch: pytest.MonkeyPatch, beginning: str, grant: str
) -> None:
    from google.api_core.exceptions import Forbidden

    query = bigquery_jobs.Jobs.query

    def refused(jobs: bigquery_jobs.Jobs, sql: str, **options: Any) -> Any:
        if sql.startswith(beginning) and not options.get("dry_run"):
            raise Forbidden("Access Denied: Permission bigquery.tables.updateData denied")
        return query(jobs, sql, **options)

    monkeypatch.setattr(bigquery_jobs.Jobs, "query", refused)
    found = failed(examined({"live": loaded.engine}, [SALES], AUDIT))
    assert found
    assert found[0].do.startswith(grant)


FILTERED = re.compile(r"`(?:day|at)` >= ")


@pytest.mark.parametrize(
    ("column", "windows"),
    [
        (SliceColumn("day", "date"), [Window.day("2026-05-12"), Window.day("2026-05-13")]),
        (SliceColumn("at"), [Window.day("2026-05-12"), Window.day("2026-05-13")]),
        (
            SliceColumn("at", zone="America/New_York"),
            [Window.day(d, "America/New_York") for d in ("2026-05-11", "2026-05-12")],
        ),
        (
            SliceColumn("at"),
            [Window(at(f"2026-05-12 0{n}:00"), at(f"2026-05-12 0{n + 1}:00")) for n in range(2)],
        ),
    ],
    ids=["days", "instants", "local_days", "hours"],
)
def test_a_preview_and_checks_read_no_partition_that_they_need_not(
    bigquery: Warehouse, column: SliceColumn, windows: list[Window]
) -> None:
    table = Table("mart.fct", column, unique_key=("id",), source=Source("raw.events", on="at"))
    slices = [Slice(table, window) for window in windows]
    select = Select("SELECT at, DATE(at) AS day, id FROM `raw`.`events`", on="at")
    shape = "(at TIMESTAMP, day DATE, id INT64)"
    with bigquery.session() as session:
        session.define("CREATE SCHEMA `raw`", "CREATE SCHEMA `mart`")
        for name in ("`raw`.`events`", "`mart`.`fct`"):
            session.define(f"CREATE TABLE {name} {shape}")
            for hour, number in (("00:30:00", 1), ("01:30:00", 2)):
                session.execute(
                    f"INSERT INTO {name} VALUES (TIMESTAMP '2026-05-12 {hour}+00', DATE '2026-05-12', {number})"
                )
        AUDIT.ensure(session)
        jobs = Jobs(session)
        found = preview(session, table, slices, select, Asked(), {}, AUDIT)
        facts = facts_of(session, table, slices, AUDIT)
    assert sum(line.rows for line in found.lines) == 2
    assert [line.source_rows for line in found.lines] == [line.rows for line in found.lines]
    assert found.source_bytes == 0
    assert facts is not None
    reads = [
        sql
        for sql, config in jobs.sent
        if re.search(r"FROM\s+`(raw|mart)`", sql) and not config.get("dryRun")
    ]
    assert len(reads) >= 3
    for sql in reads:
        assert FILTERED.search(sql), sql


def test_the_source_of_a_select_is_compared_by_its_bare_column(bigquery: Warehouse) -> None:
    bigquery.execute(
        "CREATE SCHEMA raw", "CREATE TABLE raw.events (at TIMESTAMP WITH TIME ZONE, id BIGINT)"
    )
    with bigquery.session() as session:
        session.execute("INSERT INTO `raw`.`events` VALUES (TIMESTAMP '2026-05-12 10:00:00+00', 1)")
        jobs = Jobs(session)
        select = Select("SELECT DATE(at) AS day, id FROM `raw`.`events`", on="at")
        bigquery.write(SALES, "2026-05-12", select, session=session)
    (staged,) = [sql for sql in jobs.statements if "backfill_stage" in sql and "CREATE" in sql]
    assert "`at` >= CAST('2026-05-12 00:00:00+00:00' AS TIMESTAMP)" in staged
    assert "CAST(`at`" not in staged


# claims


def test_the_second_writer_is_told_how_to_end_the_session_of_a_writer_that_was_killed(
    loaded: Warehouse,
) -> None:
    said: list[str] = []

    def second() -> None:
        with pytest.raises(SliceBusy) as busy, loaded.session(lock_wait=0.2) as session:
            loaded.write(SALES, "2026-05-12", ROWS, session=session, run_id="second")
        said.append(str(busy.value))

    with loaded.session() as first:
        after_statement(first, "DELETE", second)
        loaded.write(SALES, "2026-05-12", ROWS, session=first, run_id="first")
        token = first._session  # type: ignore[attr-defined]
    assert "is being rewritten by run first (mart.fct_sales 2026-05-12)" in said[0]
    assert f"CALL BQ.ABORT_SESSION('{token}')" in said[0]


def test_writers_of_two_days_of_one_table_take_turns_and_both_write(loaded: Warehouse) -> None:
    """BigQuery compares tables and not days: the second is aborted, and tries until the first is through."""
    import threading

    next_day = date(2026, 5, 13)
    writer = threading.Thread(
        target=lambda: loaded.write(SALES, "2026-05-13", {"day": [next_day], "id": [9]})
    )
    begun: list[bool] = []

    def start() -> None:
        writer.start()
        for _ in range(600):
            if loaded.somebody_waits():
                begun.append(True)
                return
            threading.Event().wait(0.05)

    with loaded.session() as first:
        after_statement(first, "DELETE", start)
        loaded.write(SALES, "2026-05-12", ROWS, session=first)
    writer.join(60)
    assert begun == [True]
    assert loaded.rows("SELECT day, count(*) FROM mart.fct_sales GROUP BY day ORDER BY day") == [
        (DAY, 2),
        (next_day, 1),
    ]


def test_writers_of_two_tables_do_not_wait_for_each_other(loaded: Warehouse) -> None:
    other = Table("mart.fct_other", SliceColumn("day", "date"))
    with loaded.session() as first:
        after_statement(
            first,
            "DELETE",
            lambda: loaded.write(other, "2026-05-12", ROWS),
        )
        loaded.write(SALES, "2026-05-12", ROWS, session=first)
    assert loaded.count("mart.fct_other") == 2


@pytest.mark.parametrize("first", ["whole", "day"])
def test_a_whole_table_and_a_day_of_it_exclude_each_other(loaded: Warehouse, first: str) -> None:
    windows: list[Any] = [None, "2026-05-12"] if first == "whole" else ["2026-05-12", None]
    refused: list[str] = []

    def second() -> None:
        with pytest.raises(SliceBusy) as busy, loaded.session(lock_wait=0.2) as session:
            loaded.write(SALES, windows[1], ROWS, session=session, run_id="second")
        refused.append(str(busy.value))

    with loaded.session() as session:
        after_statement(session, "DELETE", second)
        loaded.write(SALES, windows[0], ROWS, session=session, run_id="first")
    assert "run first" in refused[0]
    assert loaded.count("mart.fct_sales") == 2


def test_a_claim_table_without_its_row_claims_nothing_and_says_so(loaded: Warehouse) -> None:
    loaded.execute("DELETE FROM mart.backfill_claim_fct_sales WHERE TRUE")
    with pytest.raises(WriteFailed, match="holds no row, so no claim can be made"):
        loaded.write(SALES, "2026-05-12", {"day": [DAY], "id": [3]})
    assert loaded.count("mart.fct_sales") == 2


def test_two_names_of_one_table_have_one_claim_table() -> None:
    names = ["`t`", "`d`.`t`", "`p`.`d`.`t`"]
    assert {bigquery_claims.parts_of(name, "p", "d") for name in names} == {("p", "d", "t")}


def test_a_dead_writer_of_the_emulator_leaves_the_slice_as_it_was(loaded: Warehouse) -> None:
    engine = loaded.engine()
    with pytest.raises(KeyboardInterrupt), engine.session() as session:

        def die() -> None:
            raise KeyboardInterrupt

        after_statement(session, "DELETE", die)
        loaded.write(SALES, "2026-05-12", {"day": [DAY], "id": [3]}, session=session)
    assert loaded.count("mart.fct_sales") == 2
    assert loaded.write(SALES, "2026-05-12", ROWS).rows_before == 2


def test_a_session_that_somebody_has_ended_keeps_no_later_slice_from_being_written(
    loaded: Warehouse,
) -> None:
    from google.api_core.exceptions import BadRequest

    with loaded.session() as session:
        loaded.write(SALES, "2026-05-12", {"day": [DAY], "id": [3]}, session=session)
        client, ended = session._open_jobs.client, session._session  # type: ignore[attr-defined]
        query = client.query

        def refused(sql: str, *, job_config: Any, **options: Any) -> Any:
            if ended in str(job_config.to_api_repr()):
                raise BadRequest(f"Session {ended} is already terminated")
            return query(sql, job_config=job_config, **options)

        client.query = refused
        loaded.write(SALES, "2026-05-12", {"day": [DAY], "id": [4]}, session=session)
    assert loaded.rows("SELECT id FROM mart.fct_sales") == [(4,)]


def test_a_transaction_runs_where_its_dataset_is(bigquery: Warehouse) -> None:
    with bigquery.session() as session:
        client = session._open_jobs.client  # type: ignore[attr-defined]
        get_dataset, request = client.get_dataset, client._connection.api_request
        where: dict[str, Any] = {}

        def elsewhere(*asked: Any, **options: Any) -> Any:
            dataset = get_dataset(*asked, **options)
            dataset._properties["location"] = "europe-west3"
            return dataset

        def noted(**asked: Any) -> Any:
            data = asked.get("data") or {}
            sql = data.get("configuration", {}).get("query", {}).get("query", "")
            where[sql.split(" ")[0]] = data.get("jobReference", {}).get("location")
            return request(**asked)

        client.get_dataset, client._connection.api_request = elsewhere, noted
        bigquery.write(SALES, "2026-05-12", ROWS, session=session)
    assert {where[word] for word in ("BEGIN", "UPDATE", "DELETE", "COMMIT")} == {"europe-west3"}


# the outcome of a COMMIT


@pytest.fixture
def unanswered(loaded: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A session whose COMMIT is carried out, or not, without an answer."""
    from google.api_core.exceptions import ServiceUnavailable

    monkeypatch.setattr(bigquery_jobs, "PATIENCE_SECONDS", 0.1)
    with loaded.session() as session:
        client = session._open_jobs.client  # type: ignore[attr-defined]
        query = client.query

        def arrange(*, arrives: bool) -> Any:
            def lost(sql: str, **options: Any) -> Any:
                if sql != "COMMIT TRANSACTION":
                    return query(sql, **options)
                if arrives:
                    query(sql, **options)
                raise ServiceUnavailable("connection reset")

            client.query = lost
            return session

        yield arrange


def test_a_commit_whose_answer_is_lost_is_asked_after_by_its_name(
    loaded: Warehouse, unanswered: Any
) -> None:
    loaded.write(SALES, "2026-05-12", {"day": [DAY], "id": [3]}, session=unanswered(arrives=True))
    assert loaded.rows("SELECT id FROM mart.fct_sales") == [(3,)]


def test_a_commit_of_which_nobody_knows_has_an_unknown_outcome(
    loaded: Warehouse, unanswered: Any
) -> None:
    with pytest.raises(OutcomeUnknown, match="whole, old or new"):
        loaded.write(
            SALES, "2026-05-12", {"day": [DAY], "id": [3]}, session=unanswered(arrives=False)
        )
    assert loaded.count("mart.fct_sales") == 2


@pytest.mark.parametrize("word", ["BEGIN", "DELETE", "INSERT INTO `mart`", "COMMIT"])
def test_a_statement_whose_first_answer_is_lost_is_carried_out_once_and_told_as_what_it_was(
    loaded: Warehouse, word: str
) -> None:
    from google.api_core.exceptions import Conflict
    from requests.exceptions import ConnectionError as Cut

    with loaded.session() as session:
        client = session._open_jobs.client  # type: ignore[attr-defined]
        request, lost = client._connection.api_request, list[str]()

        def cut_once(**asked: Any) -> Any:
            query = (asked.get("data") or {}).get("configuration", {}).get("query", {}).get("query")
            if asked["method"] != "POST" or not (query or "").startswith(word):
                return request(**asked)
            job = asked["data"]["jobReference"]["jobId"]
            if (
                job in lost
            ):  # what BigQuery says of a name that it has seen, and the emulator does not
                raise Conflict(f"Already Exists: Job {client.project}:US.{job}")
            lost.append(job)
            request(**asked)
            raise Cut("Connection aborted.")

        client._connection.api_request = cut_once
        loaded.write(SALES, "2026-05-12", {"day": [DAY], "id": [3]}, session=session)
    assert len(lost) == 1
    assert loaded.rows("SELECT id FROM mart.fct_sales") == [(3,)]


# errors


def _error(code: int, reason: str, message: str) -> Exception:
    from google.api_core.exceptions import from_http_status

    return from_http_status(code, message, errors=[{"reason": reason, "message": message}])


ERRORS = {
    "no_right": (403, "accessDenied", "Access Denied: Table p:d.t: User may not", MissingRight),
    "no_right_or_no_table": (403, "accessDenied", "Access Denied: Table p:d.t: User does not have permission to query table p:d.t, or perhaps it does not exist in location EU.", MissingRight),
    "streamed": (400, "invalidQuery", "UPDATE or DELETE statement over table p.d.t would affect rows in the streaming buffer, which is not supported", SliceBusy),
    "no_table": (404, "notFound", "Not found: Table p:d.t", MissingTable),
    "no_column": (400, "invalidQuery", "Unrecognized name: nope at [1:8]", MissingTable),
    "quota": (403, "quotaExceeded", "Quota exceeded: Your project exceeded", QuotaExceeded),
    "rate": (403, "rateLimitExceeded", "Exceeded rate limits: too many", QuotaExceeded),
    "too_many_jobs": (400, "jobRateLimitExceeded", "Job exceeded rate limits", QuotaExceeded),
    "backend": (503, "backendError", "Backend error. Try again", Away),
    "internal": (500, "internalError", "An internal error occurred", Away),
    "bad_sql": (400, "invalidQuery", "Syntax error: Unexpected end of script", WriteFailed),
    "billed": (400, "bytesBilledLimitExceeded", "Query exceeded limit for bytes billed: 1", LimitReached),
    "stopped": (400, "stopped", "Job execution was cancelled: User requested", LimitReached),
    "timed_out": (400, "timeout", "Job timed out after 60 sec", LimitReached),
    "too_much": (400, "resourcesExceeded", "Resources exceeded during query execution", LimitReached),
    "unfiltered": (400, "invalidQuery", "Cannot query over table 'p.d.t' without a filter over column(s) 'day' that can be used for partition elimination", WriteFailed),
    "conflict": (400, "invalidQuery", "Transaction is aborted due to concurrent update against table p:d.t", SliceBusy),
    "serialise": (400, "invalidQuery", "Could not serialize access to table p:d.t due to concurrent update", SliceBusy),
    "bad_value": (400, "invalidQuery", "Bad int64 value: x", SchemaMismatch),
    "overflow": (400, "invalidQuery", "Invalid NUMERIC value: 1e40", SchemaMismatch),
    "no_login": (401, "authError", "Request had invalid authentication credentials", Unreachable),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_an_error_of_bigquery_is_one_sentence_of_the_right_kind(case: str) -> None:
    code, reason, message, kind = ERRORS[case]
    ours = told(_error(code, reason, message))
    assert type(ours) is kind
    assert message in ours.why
    assert ours.do


def test_credentials_that_have_expired_and_a_network_that_is_gone_are_told_apart() -> None:
    from google.auth.exceptions import RefreshError, TransportError
    from requests.exceptions import ConnectionError as Cut

    assert type(told(RefreshError("invalid_grant: Token has been expired"))) is Unreachable
    assert "Renew the credentials" in told(RefreshError("invalid_grant")).do
    assert type(told(TransportError("no route"))) is Away
    assert type(told(Cut("Connection aborted."))) is Away


def test_an_address_where_nobody_answers_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bigquery_jobs, "PATIENCE_SECONDS", 0.1)
    with (
        open_engine("bigquery://p/d?endpoint=http://127.0.0.1:9").session() as session,
        pytest.raises(Away),
    ):
        session.fetch("SELECT 1")


@pytest.mark.parametrize("content", [None, "{}", "no json"])
def test_a_file_that_holds_no_credentials_is_one_sentence(tmp_path: Any, content: Any) -> None:
    file = tmp_path / "key.json"
    if content is not None:
        file.write_text(content)
    engine = open_engine(f"bigquery://p/d?credentials_path={file}")
    with pytest.raises(Unreachable), engine.session():
        pass


# the URL


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("bigquery://", "names no project"),
        ("bigquery://p", "does not name one dataset"),
        ("bigquery://p/d/t", "does not name one dataset"),
        ("bigquery://ana:s3cret@p/d", "with a user, a password"),
        ("bigquery://p/d?colour=red", "'colour' is not known"),
        ("bigquery://p/d?lock_wait=soon", "no number of seconds"),
        ("bigquery://p/d?maximum_bytes_billed=much", "no number of bytes"),
    ],
)
def test_a_url_that_cannot_be_used_is_refused(url: str, said: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        open_engine(url)
    assert said in str(refused.value)
    assert "s3cret" not in str(refused.value)


def test_a_lane_may_be_paid_by_another_project_and_be_a_door_of_the_same_warehouse() -> None:
    live = open_engine("bigquery://shop/mart?location=EU")
    must_be_one_inside(live, open_engine("bigquery://shop/mart?billing_project=backfills"))
    for other in ("bigquery://other/mart", "bigquery://shop/elsewhere"):
        with pytest.raises(DeclarationError):
            must_be_one(live, open_engine(other))


# types


def test_every_type_has_its_column_and_comes_back_as_arrow_has_it(bigquery: Warehouse) -> None:
    columns = {
        "whole": (pa.array([7], pa.int64()), "INT64", "int64"),
        "real": (pa.array([0.5]), "FLOAT64", "double"),
        "money": (pa.array([Decimal("1.10")]), "NUMERIC(38,9)", "decimal128(38, 9)"),
        "truth": (pa.array([True]), "BOOL", "bool"),
        "text": (pa.array(["x"]), "STRING", "string"),
        "raw": (pa.array([b"\x00\xff"]), "BYTES", "binary"),
        "day": (pa.array([DAY]), "DATE", "date32[day]"),
        "clock": (pa.array([datetime(2026, 5, 12)]), "DATETIME", "timestamp[us]"),
        "instant": (
            pa.array([datetime(2026, 5, 12, tzinfo=UTC)], pa.timestamp("us", tz="Asia/Tokyo")),
            "TIMESTAMP",
            "timestamp[us, tz=UTC]",
        ),
    }
    data = pa.table({name: array for name, (array, _, _) in columns.items()})
    with bigquery.session() as session:
        stage = session.stage_arrow("backfill_stage_types", data)
        assert session.columns_of(stage) == {n: kind for n, (_, kind, _) in columns.items()}
        back = session.fetch_arrow(f"SELECT * FROM {stage}")
        session.drop_stage("backfill_stage_types")
    assert [str(t) for t in back.schema.types] == [arrow for _, _, arrow in columns.values()]
    assert back.to_pylist() == data.to_pylist()
    assert bigquery.leftovers() == []


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([Decimal("1.5")], pa.decimal128(38, 9)), "NUMERIC"),
        (pa.array([Decimal(10**28)], pa.decimal128(38, 2)), "NUMERIC"),
        (pa.array([Decimal(10**29)], pa.decimal128(38, 2)), "BIGNUMERIC"),
        (pa.array([Decimal("1.5")], pa.decimal128(38, 10)), "BIGNUMERIC"),
        (pa.array([2**64 - 1], pa.uint64()), "NUMERIC"),
        (pa.array(["{}"]), "STRING"),
        (pa.array([None], pa.null()), "STRING"),
    ],
    ids=str,
)
def test_a_decimal_gets_the_type_that_holds_all_its_digits(values: Any, kind: str) -> None:
    _, types = loadable(pa.table({"x": values}))
    assert types == [("x", kind)]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([[1, 2]]),
        pa.array([{"a": 1}]),
        pa.array([5], pa.duration("us")),
        pa.array([1], pa.timestamp("ns")),
        pa.array([Decimal(10**40)], pa.decimal256(60, 2)),
    ],
    ids=lambda v: str(v.type),
)
def test_a_type_without_a_column_here_is_refused_by_name(bigquery: Warehouse, values: Any) -> None:
    with pytest.raises(SchemaMismatch, match="column 'x' of type"):
        bigquery.write(
            Table("t", SliceColumn("day", "date")),
            "2026-05-12",
            pa.table({"day": [DAY], "x": values}),
        )
    assert bigquery.columns("t") is None


# capabilities


def test_the_bytes_billed_for_an_attempt_are_its_cost(loaded: Warehouse) -> None:
    with loaded.session() as session:
        jobs = session._open_jobs  # type: ignore[attr-defined]
        jobs.billed = 7
        after_statement(session, "DELETE", lambda: setattr(jobs, "billed", jobs.billed + 1000))
        load = loaded.write(SALES, "2026-05-12", ROWS, session=session)
    assert load.cost == 1000
    assert loaded.rows("SELECT cost FROM backfill.load_audit WHERE cost > 0") == [(1000.0,)]


def test_the_page_makes_by_hand_what_a_claim_makes() -> None:
    page = (Path(__file__).parents[2] / "docs" / "engines" / "bigquery.md").read_text()
    (script,) = re.findall(
        r"```sql\n(CREATE TABLE IF NOT EXISTS mart\.backfill_claim.*?)```", page, re.DOTALL
    )
    made = "; ".join(bigquery_claims.making(SPELLING, ("p", "mart", "fct_sales"))).replace(
        "`p`.", ""
    )
    assert [" ".join(s.split()) for s in script.split(";") if s.strip()] == [
        " ".join(s.replace("`", "").split()) for s in made.split(";")
    ]


def test_a_query_is_estimated_without_being_run(loaded: Warehouse) -> None:
    with loaded.session() as session:
        assert isinstance(session, Estimating)
        # the emulator estimates everything as nothing
        assert session.bytes_of("SELECT * FROM mart.fct_sales") == 0


def test_a_reader_changes_nothing(loaded: Warehouse) -> None:
    with loaded.session(read_only=True) as session:
        assert session.fetch("SELECT count(*) FROM mart.fct_sales") == [(2,)]
        with pytest.raises(MissingRight):
            session.execute("DELETE FROM mart.fct_sales WHERE TRUE")
        with pytest.raises(MissingRight):
            session.define("CREATE SCHEMA x")
    assert loaded.count("mart.fct_sales") == 2


def test_the_clock_is_bigquery_s_and_aware(bigquery: Warehouse) -> None:
    with bigquery.session() as session:
        first, second = session.clock(), session.clock()
    assert first < second
    assert first.utcoffset() == at("2026-01-01 00:00").utcoffset()


def test_two_days_are_one_window_and_one_delete(loaded: Warehouse) -> None:
    both = Window(at("2026-05-12 00:00"), at("2026-05-14 00:00"))
    load = loaded.write(SALES, both, {"day": [DAY, date(2026, 5, 13)], "id": [1, 2]})
    assert (load.rows_before, load.rows_after) == (2, 2)
