"""The checks that a table has, asked of any slices of it: a verdict for each check and slice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from backfill_assets.checks.facts import (
    AT_ONCE,
    facts_of,
)
from backfill_assets.checks.looking import Look
from backfill_assets.checks.verdict import Verdict
from backfill_assets.engines import Session
from backfill_assets.expectations import NoRows, Totals
from backfill_assets.slice import Slice
from backfill_assets.table import Table
from backfill_assets.writing import AuditTable


def checks_of(table: Table) -> list[str]:
    """Return the names of the checks that a table has by its declaration."""
    found = ["row_count", "missing_partitions", "schema"]
    if table.unique_key:
        found.append("duplicate_keys")
    if any(isinstance(rule, Totals) for rule in table.expects):
        found.append("totals")
    if table.source is not None and table.source.ingested_at:
        found.append("late_rows")
    return found + [rule.name for rule in table.expects if isinstance(rule, NoRows)]


def verdicts(
    session: Session,
    table: Table,
    slices: Sequence[Slice],
    audit: AuditTable,
    now: datetime,
    wanted: Sequence[str] | None = None,
) -> Iterator[Verdict]:
    """Yield a verdict for each wanted check of each slice, slices in order; nothing is written.

    The number of statements does not grow with the slices, but by one handful for each 400 of them.
    """
    names = [name for name in checks_of(table) if wanted is None or name in wanted]
    for first in range(0, len(slices), AT_ONCE):
        chunk = slices[first : first + AT_ONCE]
        look = Look(session, table, chunk, facts_of(session, table, chunk, audit), now)
        found = {name: look.all(name) for name in names}
        for place in range(len(chunk)):
            yield from (found[name][place] for name in names)
