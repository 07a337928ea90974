"""The check of a replayed partition: were events put aside when it was loaded, and where are they?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from backfill_assets.checks.by_slice import Buckets
from backfill_assets.checks.verdict import Verdict
from backfill_assets.engines import Session
from backfill_assets.io_managers.declaration import plain
from backfill_assets.slice import Slice
from backfill_assets.strategies.replay.quarantine import QUARANTINE
from backfill_assets.table import Table
from backfill_assets.writing import AuditTable
from backfill_assets.writing.audit import key_of, last_loads
from backfill_assets.writing.expecting import Finding

POISON = "poison_events"


def replays(metadata: Mapping[str, Any]) -> bool:
    """Tell whether an asset with this metadata is made from events."""
    return bool(plain(metadata.get("replay")))


def poison_verdicts(
    session: Session, table: Table, slices: Sequence[Slice], audit: AuditTable
) -> Iterator[Verdict]:
    """Yield a verdict on each slice: how many events the run that loaded it put aside, by its audit row."""
    loads = last_loads(audit.newest(session, table, Buckets.of(slices).whole), slices)
    for slice_ in slices:
        load = loads.get(key_of(slice_))
        aside = load.source.get("events_quarantined", 0) if load is not None else 0
        schema = load.source.get("quarantine", audit.schema) if load is not None else audit.schema
        why = (
            f"{aside} events of the run that loaded it could not be read and were put aside"
            if aside
            else "no event was put aside"
        )
        yield Verdict(
            POISON,
            slice_,
            (Finding(POISON, "rows", 0, aside, 0, aside == 0, "warn", why),),
            f"SELECT * FROM {schema}.{QUARANTINE} WHERE table_name = '{table.qualified}'",
        )
