"""The write path: rows of a slice in, an audited load out. No Dagster and no pandas in this room."""

from backfill_assets.writing.audit import AuditTable, Load, Spent
from backfill_assets.writing.rewrite import rewrite
from backfill_assets.writing.run import Run
from backfill_assets.writing.select import Select

__all__ = ["AuditTable", "Load", "Run", "Select", "Spent", "rewrite"]
