"""What the role may do with each table: every right is tried on no row, in a transaction that is rolled back."""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Generator, Sequence
from dataclasses import replace
from datetime import date

from backfill_assets.engines import Claim, Session
from backfill_assets.engines.protocol import replacing
from backfill_assets.engines.sql import listed, qualified, quoted, text
from backfill_assets.errors import BackfillError, MissingRight, MissingTable
from backfill_assets.operations.doctor.points import Points
from backfill_assets.table import Table
from backfill_assets.writing.fit import filled_by_the_table

# no slice of anybody's is that old, so that nobody waits for us
DAY = date(1900, 1, 1)
_NAME = re.compile(r"[\w$]+(\.[\w$]+){0,2}$")
_NOBODY = "(SELECT 1 AS one) AS nothing WHERE 1 = 0"


class Told(MissingRight):
    """A right that is missing, with the statement that grants it."""


class _Undo(Exception):
    """Rolls a transaction back on purpose."""


@contextlib.contextmanager
def undone(session: Session, claim: Claim | None = None) -> Generator[None, None, None]:
    """Run the body in a transaction, with a claim where one is given, and roll it back.

    Where there are no transactions, it is run with the claim alone: what it tries there touches no row.
    """
    if (without := replacing(session)) is not None:
        with without.hold(claim) if claim is not None else contextlib.nullcontext():
            yield
        return
    with contextlib.suppress(_Undo), session.transaction():
        if claim is not None:
            session.claim(claim)
        yield
        raise _Undo


class Rights:
    """Tries the rights of one session's role, and knows the statement that grants each."""

    def __init__(self, session: Session, points: Points, role: str | None) -> None:
        self._session, self._points, self._role = session, points, role

    def of(self, table: Table, rights: tuple[str, ...], *, ddl: bool, whose: str = "") -> None:
        """Try `rights` (SELECT, DELETE, INSERT) on a table; where it is not there, making it if `ddl`.

        A table that is somebody's (`whose`) and holds no slices is not claimed, as nobody ever claims it.
        """
        spelling, name = self._session.spelling, whose + table.qualified
        relation = qualified(spelling, table)
        try:
            columns = self._session.columns_of(relation)
        except BackfillError as error:
            do = self._grant("rows", table, ", ".join(rights), error) or error.do
            self._points.fails(name, error.why, do)
            return
        if columns is None:
            self._absent(table, name, ddl)
            return
        for right in rights:
            with self._points.tried(
                f"{right} on {name}",
                "granted",
                lambda error, right=right: self._grant("rows", table, right, error),
            ):
                self._try(right, table, relation, columns, claimed=not whose)

    def of_source(self, table: Table) -> None:
        """Try to read what a table is declared to be made from."""
        source = table.source
        if source is None:
            return
        what = f"SELECT on the source of {table.qualified}"
        name = source.sql.strip()

        def grant(error: BackfillError) -> str | None:
            # of a query nobody knows which of its tables is meant
            return self._grant("rows", Table(name), "SELECT", error) if _NAME.match(name) else None

        try:
            with self._points.tried(what, "granted", grant, but=MissingTable):
                nothing = _nothing(self._session, [source.on])
                self._session.fetch(
                    f"SELECT 1 FROM (\n{source.query}\n) AS source_rows WHERE {nothing}"
                )
        except MissingTable as error:
            self._points.note(what, error.why, "Load the source before the table")

    def _try(
        self, right: str, table: Table, relation: str, columns: dict[str, str], *, claimed: bool
    ) -> None:
        session = self._session
        cut_by = [table.slice_column.name] if table.slice_column is not None else []
        nothing = _nothing(session, [*cut_by, *table.dimensions])
        if right == "SELECT":
            session.fetch(f"SELECT * FROM {relation} WHERE {nothing}")
            return
        # what a claim refuses (a view, rows that are hidden from the role) would fail there
        claim = Claim(relation, (DAY,), table.qualified, "doctor") if claimed else None
        with undone(session, claim):
            if right == "DELETE":
                session.execute(f"DELETE FROM {relation} WHERE {nothing}")
            else:
                session.execute(_insertion(session, table, relation, columns))

    def _absent(self, table: Table, name: str, ddl: bool) -> None:
        what = f"making {name}"
        if not ddl:
            self._points.note(
                name,
                "it is not there, and the first load makes it",
                "Ask with ddl to know whether the role may",
            )
            return
        with self._points.tried(
            what, "the role may", lambda error: self._grant("make", table, "CREATE", error)
        ):
            self._make(table)

    def _make(self, table: Table) -> None:
        """Make a table like it, and its schema where that is not there, and take both back."""
        session, spelling = self._session, self._session.spelling
        probe = replace(table, name=f"backfill_doctor_{uuid.uuid4().hex[:12]}")
        relation = qualified(spelling, probe)
        schema = ".".join(quoted(spelling, part) for part in (table.database, table.schema) if part)
        making = f"CREATE TABLE {relation} (one INTEGER)"
        # where a transaction takes no table back, some take none in it either
        trying = undone(session) if spelling.ddl_rolls_back else contextlib.nullcontext()
        try:
            with trying:
                session.execute(making)
        except MissingTable as error:
            # a schema that could not be taken back is not made for a try
            if not (schema and spelling.ddl_rolls_back):
                raise
            with self._needing("schema", table, error), undone(session):
                session.execute(f"CREATE SCHEMA {schema}")
                session.execute(making)
        finally:
            if not spelling.ddl_rolls_back:
                with contextlib.suppress(BackfillError):
                    session.execute(
                        spelling.drop_table.format(
                            name=relation, name_text=text(spelling, relation)
                        )
                    )

    @contextlib.contextmanager
    def _needing(
        self, kind: str, table: Table, first: BackfillError
    ) -> Generator[None, None, None]:
        """Say of a right that is missing in the body that it is `kind`, because of `first`."""
        try:
            yield
        except MissingRight as error:
            grant = self._grant(kind, table, "CREATE", error)
            raise Told(error.what, f"{first.why}, and {error.why}", grant or error.do) from error

    def staging(self, error: BackfillError) -> str | None:
        """Return the statement that lets the role make stages; None where that is not why."""
        return self._grant("stage", Table("stage"), "TEMPORARY", error)

    def _grant(self, kind: str, table: Table, right: str, error: BackfillError) -> str | None:
        """Return what grants a right that is missing, ready to be run by whoever may; None where that is not why."""
        spelling = self._session.spelling
        if type(error) is not MissingRight or self._role is None or kind not in spelling.grants:
            return None
        schema = table.schema or spelling.default_schema
        if right == "SELECT" and "read" in spelling.grants:
            kind = "read"
        return spelling.grants[kind].format(
            right=right,
            table=qualified(spelling, table),
            schema=quoted(spelling, schema),
            database=quoted(spelling, table.database or self._session.database),
            role=(text if spelling.grants_to_text else quoted)(spelling, self._role),
        )


def _nothing(session: Session, columns: Sequence[str]) -> str:
    """Return a condition that no row meets; it names the partition columns where a table may ask for them."""
    spelling = session.spelling
    # elsewhere a column that is named takes a right of its own, and DELETE would fail for want of SELECT
    named = columns if spelling.asks_for_partitions else ()
    return " AND ".join([*(f"{quoted(spelling, name)} IS NULL" for name in named), "1 = 0"])


def _insertion(session: Session, table: Table, relation: str, columns: dict[str, str]) -> str:
    spelling = session.spelling
    filled = filled_by_the_table(session, relation)
    plain = {name: kind for name, kind in columns.items() if name not in filled}
    values = ", ".join(
        f"CAST(NULL AS {kind}) AS {quoted(spelling, name)}" for name, kind in plain.items()
    )
    return f"INSERT INTO {relation} ({listed(spelling, plain)}) SELECT {values} FROM {_NOBODY}"
