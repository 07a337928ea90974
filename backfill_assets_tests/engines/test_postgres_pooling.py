"""A pooler that lends connections for one transaction is refused before anything is set; one of sessions is not noticed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from backfill_assets.engines import postgres_pooling
from backfill_assets.errors import Unreachable
from backfill_assets.table import SliceColumn, Table
from backfill_assets_tests.warehouses import Warehouse, until

T = Table("mart.t", SliceColumn("day", "date"))
ROWS = {"day": [date(2026, 5, 12)], "id": [1]}


def test_behind_a_pooler_of_sessions_a_slice_is_written(
    postgres: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_pooling, "process_told", lambda _: 0)
    assert postgres.write(T, "2026-05-12", ROWS).rows_after == 1


@pytest.mark.parametrize("answers", [[7] * 20, [7, 7, 8, 7, 9, *[8] * 15]], ids=["idle", "busy"])
def test_connections_that_take_turns_at_one_process_are_refused(
    postgres: Warehouse, monkeypatch: pytest.MonkeyPatch, answers: list[int]
) -> None:
    left = list(answers)
    monkeypatch.setattr(postgres_pooling, "process_told", lambda _: 0)
    monkeypatch.setattr(postgres_pooling, "process_asked", lambda _: left.pop(0))
    with (
        pytest.raises(Unreachable, match=r"one transaction only.*pool_mode = session"),
        postgres.session(),
    ):
        pass


def test_a_connection_without_a_pooler_asks_once_and_opens_no_second_one(
    postgres: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, opened = psycopg.connect, list[int]()

    def counted(*given: object, **more: object) -> object:
        opened.append(1)
        return real(*given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(psycopg, "connect", counted)
    with postgres.session():
        assert len(opened) == 1


SETTINGS = """
[databases]
warehouse = host={host} dbname=warehouse user=postgres
[pgbouncer]
listen_addr =
unix_socket_dir = {folder}
listen_port = 6432
auth_type = any
pool_mode = {mode}
"""


@pytest.fixture(params=["transaction", "session"])
def pooled(request: pytest.FixtureRequest, postgres: Warehouse) -> Iterator[tuple[str, Warehouse]]:
    """A real PgBouncer in each mode, where the machine has one."""
    program = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin")
    if program is None:
        pytest.skip("this machine has no PgBouncer")
    host = Path(postgres.url.partition("host=")[2].partition("&")[0])
    with TemporaryDirectory(prefix="pgb") as name:
        folder = Path(name)
        (folder / "ini").write_text(SETTINGS.format(host=host, folder=folder, mode=request.param))
        owner = host.stat().st_uid
        for path in (folder, folder / "ini"):
            path.chmod(0o755)
        shutil.chown(folder, owner)
        # it refuses to run as root
        process = subprocess.Popen([program, str(folder / "ini")], user=owner)
        try:
            until((folder / ".s.PGSQL.6432").exists)
            url = f"postgresql://postgres@/warehouse?host={folder}&port=6432"
            yield request.param, Warehouse(url)
        finally:
            process.terminate()
            process.wait(20)


def test_a_real_pooler_is_refused_or_not_by_its_mode(pooled: tuple[str, Warehouse]) -> None:
    mode, warehouse = pooled
    if mode == "session":
        assert warehouse.write(T, "2026-05-12", ROWS).rows_after == 1
        return
    with pytest.raises(Unreachable, match="one transaction only"):
        warehouse.write(T, "2026-05-12", ROWS)
