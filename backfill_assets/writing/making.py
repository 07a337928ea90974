"""Making what is not there yet: schemas, tables and columns, outside any transaction, since DDL may commit one."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from backfill_assets.engines.protocol import Session
from backfill_assets.errors import MissingRight, MissingTable


def make(
    session: Session, what: str, statements: Sequence[str], *, schema: str | None = None
) -> None:
    """Run DDL of the `IF NOT EXISTS` kind; where the role may not, say what somebody else should run.

    `schema` is the statement that makes the schema of it all; `what` says what is missing.
    """
    try:
        if schema is not None:
            # some ask for the right to make a schema even where it is there; if it is not, the next one fails
            with contextlib.suppress(MissingRight):
                session.define(schema)
        session.define(*statements)
    except (MissingRight, MissingTable) as error:
        wanted = [schema, *statements] if schema else statements
        raise MissingRight(
            what, error.why, f"Let somebody with the right run once: {'; '.join(wanted)}"
        ) from error
