"""A warehouse URL that cannot be used is refused before anything is opened, and shows no password."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from backfill_assets.engines import open_engine
from backfill_assets.errors import DeclarationError, MissingTable, Unreachable


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("oracle://ana:s3cret@host/db", "begins with none of"),
        ("warehouse.duckdb", "begins with none of"),
        ("ana:s3cret@host/db", "begins with none of"),
        ("", "begins with none of"),
        ("duckdb://", "names no file"),
        ("duckdb:///", "names no file"),
        ("duckdb:///:memory:", "in memory"),
        ("duckdb://host/warehouse.duckdb", "names no file"),
        ("duckdb:///w.duckdb?colour=red", "'colour' is not known"),
        ("duckdb:///w.duckdb?lock_wait=soon", "no number of seconds"),
        ("duckdb:///w.duckdb?lock_wait=-1", "no number of seconds"),
    ],
)
def test_a_url_that_cannot_be_used_is_refused(url: str, said: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        open_engine(url)
    assert said in str(refused.value)
    assert "s3cret" not in str(refused.value)


def test_making_an_engine_opens_nothing_and_imports_no_driver(tmp_path: Path) -> None:
    code = (
        "import sys; from backfill_assets.engines import open_engine;"
        f"open_engine('duckdb:///{tmp_path}/w.duckdb'); open_engine('postgresql://ana@host/db');"
        "open_engine('bigquery://project/dataset');"
        "print([m for m in ('duckdb', 'psycopg', 'google.cloud.bigquery', 'pyarrow', 'sqlglot', 'pandas') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
    assert list(tmp_path.iterdir()) == []


def test_settings_of_the_url_reach_duckdb(tmp_path: Path) -> None:
    url = f"duckdb:///{tmp_path}/w.duckdb?threads=3&memory_limit=300MB"
    with open_engine(url).session() as session:
        session.stage_select("stage", "SELECT 1")
        assert session.fetch("SELECT current_setting('threads')") == [(3,)]
        assert session.fetch("SELECT current_setting('memory_limit')")[0][0].startswith("286")


def test_all_cores_work_on_a_query_and_one_on_the_next_small_frame(tmp_path: Path) -> None:
    engine, threads = (
        open_engine(f"duckdb:///{tmp_path}/w.duckdb"),
        "SELECT current_setting('threads')",
    )
    with duckdb.connect() as stock:
        cores = stock.execute(threads).fetchall()
    with engine.session() as session:
        assert session.fetch(threads) == [(1,)]
        session.stage_select("stage", "SELECT 1")
        assert session.fetch(threads) == cores
    with engine.session() as session:
        assert session.fetch(threads) == [(1,)]
        session.stage_arrow("stage", pa.table({"n": range(500_000)}))
        assert session.fetch(threads) == cores


def test_a_file_that_is_no_database_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "w.duckdb").write_text("these are not the bytes of a database" * 100)
    with pytest.raises(Unreachable), open_engine(f"duckdb:///{tmp_path}/w.duckdb").session():
        pass


def test_reading_a_file_that_is_not_there_makes_none(tmp_path: Path) -> None:
    with (
        pytest.raises(MissingTable),
        open_engine(f"duckdb:///{tmp_path}/w.duckdb").session(read_only=True),
    ):
        pass
    assert not (tmp_path / "w.duckdb").exists()


STEMS = [
    "memory",
    "temp",
    "system",
    "main",
    "MAIN",
    "pg_catalog",
    "information_schema",
    "public",
    "default",
    "order",
    "5_stars",
    "o'brien",
    'a"b',
]


@pytest.mark.parametrize("stem", [*STEMS, "wäre haus"])
def test_a_file_may_have_any_name(tmp_path: Path, stem: str) -> None:
    engine = open_engine(f"duckdb:///{tmp_path}/{stem}.duckdb")
    with engine.session() as session:
        session.execute("CREATE TABLE t AS SELECT 1 AS a")
        session.execute("CREATE SCHEMA mart")
        session.execute("CREATE TABLE mart.t AS SELECT 2 AS a")
    with engine.session(read_only=True) as session:
        assert session.fetch("SELECT a FROM t UNION ALL SELECT a FROM mart.t ORDER BY a") == [
            (1,),
            (2,),
        ]


def test_nothing_is_read_from_the_variables_of_the_code_that_asks(tmp_path: Path) -> None:
    hidden = pa.table({"a": [1]})  # a query that names it must not find it
    engine = open_engine(f"duckdb:///{tmp_path}/w.duckdb")
    with engine.session() as session:
        assert session.columns_of("hidden") is None
        with pytest.raises(MissingTable):
            session.fetch("SELECT * FROM hidden")
        assert session.fetch(f"SELECT a FROM {session.stage_arrow('hidden', hidden)}") == [(1,)]
    with (
        duckdb.connect(str(tmp_path / "w.duckdb")) as somebody,
        engine.session() as session,
    ):
        assert session.columns_of("hidden") is None
        assert somebody.execute("SELECT a FROM hidden").fetchall() == [(1,)]


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ana:s3@cret@127.0.0.1:1/db",
        "postgresql://ana:s3@cret@127.0.0.1:1/db?lock_wait=x",
        "postgresql://ana: s3cret@127.0.0.1:1/db",
        "postgresql://ana:s3 cret@127.0.0.1:1/db",
        "postgresql://ana:12/s3cret@127.0.0.1:1/db",
        "postgresql://ana:s3/cret@127.0.0.1:1/db",
        "postgresql://ana@127.0.0.1:1/db?password=s3 cret",
    ],
)
def test_a_password_that_was_not_percent_encoded_shows_no_part_of_itself(url: str) -> None:
    with pytest.raises(DeclarationError) as refused, open_engine(url).session():
        pass
    assert "cret" not in str(refused.value)
    assert "s3" not in str(refused.value)
    assert "percent-encoded" in str(refused.value)


def test_a_password_that_is_percent_encoded_reaches_the_server_and_nobody_else(
    postgres_server: str,
) -> None:
    head, _, query = postgres_server.partition("?")
    name = head.partition("://")[2].partition("@")[0].partition(":")[0]
    url = f"postgresql://{name}:s3%40c%20ret@/postgres?{query}"
    with open_engine(f"{url}\n").session() as session:
        assert session.fetch("SELECT 1") == [(1,)]
