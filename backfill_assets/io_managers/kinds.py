"""Which kind a slice column is, where the asset's metadata does not say: asked of the table, then of the rows."""

from __future__ import annotations

import uuid
from typing import Any

from backfill_assets.engines import Session
from backfill_assets.engines.sql import first, qualified
from backfill_assets.errors import DeclarationError, MissingTable
from backfill_assets.io_managers.frames import is_arrow
from backfill_assets.io_managers.partitions import kind_by_family
from backfill_assets.slice import Slice
from backfill_assets.table import SliceKind, Table
from backfill_assets.writing import Select
from backfill_assets.writing.arrow import plain
from backfill_assets.writing.fit import family


def kind_of(session: Session, table: Table, column: str, rows: Any) -> SliceKind:
    """Return the kind of `column`, or raise a sentence that says what is missing."""
    spelling = session.spelling
    types = (
        session.columns_of(qualified(spelling, table))
        or table.columns
        or _types_of(session, table, rows)
    )
    for name, actual in types.items():
        if name == column or (not spelling.case_sensitive and name.lower() == column.lower()):
            return kind_by_family(column, family(actual, spelling), actual)
    if rows is None and not types:
        raise MissingTable(
            f"{table.qualified} cannot be read",
            "the table is not there",
            "Materialize the upstream asset first",
        )
    if not types:
        raise DeclarationError(
            f"{table.qualified} cannot be written by partition",
            "the table is not there yet, and what the asset returned does not tell the type of its column"
            f" {column!r} before its rows are made",
            "Declare partition_kind ('date', 'timestamptz' ...) in the asset's metadata",
        )
    raise DeclarationError(
        f"{table.qualified} cannot be written by partition",
        f"neither the table nor the rows have a column {column!r}, only {', '.join(map(repr, types))}",
        "Correct partition_expr, which takes a column's name and not SQL, or declare partition_kind",
    )


def _types_of(session: Session, table: Table, rows: Any) -> dict[str, str]:
    """Return the columns that rows would have in this warehouse."""
    if isinstance(rows, Select):
        whole = Slice(table, None, tuple((name, "") for name in table.dimensions))
        query = f"(\n{rows.for_slice(session.spelling, whole)}\n) AS shape"
        found = session.columns_of(query)
        if found is None:
            # a query always has columns: let the engine say what it names that is not there
            session.fetch(first(session.spelling, 0, f"* FROM {query}"))
        return found or {}
    if not is_arrow(type(rows)) or rows.num_columns == 0:
        return {}
    name = f"backfill_stage_{uuid.uuid4().hex}"
    try:
        return (
            session.columns_of(session.stage_arrow(name, plain(rows.slice(0, 0), table.qualified)))
            or {}
        )
    finally:
        session.drop_stage(name)
