"""Filling a source table of an example, whole and only where it is not filled already. Not for slices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.engines.protocol import Session, replacing
from backfill_assets.engines.sql import create_schema, create_table

if TYPE_CHECKING:
    import pyarrow as pa


def replace_source(
    session: Session, name: str, columns: dict[str, str], data: pa.Table, proof: str
) -> None:
    """Fill the table `staging.<name>` with `data`, in one transaction, unless count and `proof` agree already."""
    stage = session.stage_arrow(f"source_of_{name}", data)
    session.define(create_schema(session.spelling, "staging"))
    listed = ", ".join(f"{column} {kind}" for column, kind in columns.items())
    session.define(create_table(session.spelling, f"staging.{name}", listed))
    is_, should_be = (
        session.fetch(f"SELECT count(*), {proof} FROM {place}")
        for place in (f"staging.{name}", stage)
    )
    names = ", ".join(columns)
    if is_ != should_be and replacing(session):
        query = f"SELECT {names} FROM {stage}"
        session.execute(session.spelling.replace_all.format(table=f"staging.{name}", query=query))
    elif is_ != should_be:
        with session.transaction():
            session.execute(f"DELETE FROM staging.{name}")
            session.execute(f"INSERT INTO staging.{name} ({names}) SELECT {names} FROM {stage}")
    session.drop_stage(f"source_of_{name}")
