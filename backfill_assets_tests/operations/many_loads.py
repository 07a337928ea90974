"""An audit with thousands of loads, without thousands of transactions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from backfill_assets.slice import Slice
from backfill_assets.table import Table
from backfill_assets.writing import AuditTable, Load
from backfill_assets_tests.warehouses import Warehouse


def load_every_day(warehouse: Warehouse, table: Table, slices: Sequence[Slice]) -> None:
    """Record a load of each slice, its source read two hours after the window's end."""
    audit = AuditTable()
    with warehouse.session() as session:
        audit.ensure(session)
        with session.transaction():
            for number, slice_ in enumerate(slices):
                assert slice_.window is not None
                read = slice_.window.end + timedelta(hours=2)
                audit.record(session, _load(number, table, slice_, read))


def _load(number: int, table: Table, slice_: Slice, read) -> Load:
    assert slice_.window is not None
    return Load(
        audit_id=str(number),
        table_name=table.qualified,
        partition_key=slice_.name,
        window_start=slice_.window.start,
        window_end=slice_.window.end,
        dimensions="{}",
        outcome="committed",
        strategy="recompute",
        lane="live",
        rows_before=0,
        rows_after=1,
        checksum="0",
        reason=None,
        ticket=None,
        launched_by=None,
        run_id="a-run",
        backfill_id=None,
        code_version=None,
        source_read_at=read,
        started_at=read,
        committed_at=read,
        seconds=1.0,
    )
