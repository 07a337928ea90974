"""A migration: two paths write a table each, until one of them is known to be right."""

from backfill_assets.strategies.dual_write.migration import Migration
from backfill_assets.strategies.dual_write.pair import dual_write_assets, report_external_load
from backfill_assets.strategies.dual_write.side import FileSide, Side
from backfill_assets.strategies.dual_write.tolerance import EXACT, Tolerance

__all__ = [
    "EXACT",
    "FileSide",
    "Migration",
    "Side",
    "Tolerance",
    "dual_write_assets",
    "report_external_load",
]
