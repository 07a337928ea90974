"""A query that never leaves the warehouse, with the window predicate added by us and not by its author."""

from __future__ import annotations

from dataclasses import dataclass

from backfill_assets.engines.protocol import Spelling
from backfill_assets.engines.sql import predicate, quoted, same_text, within
from backfill_assets.errors import DeclarationError
from backfill_assets.slice import Slice
from backfill_assets.table import SliceColumn, SliceKind

PLACE = "{window}"
_MARK = "backfill_window_goes_here"


@dataclass(frozen=True)
class Select:
    """One SELECT that yields the rows of any slice.

    `on` names the column of the source (`event_at`, or `alias.event_at`) that the window is compared with,
    so that one day reads one day of the source; its kind and zone are `on_kind` and `on_zone`. Without `on_kind` the
    column's type tells (a date, a timestamp with or without a zone; integers and text have to be declared), and an
    instant is assumed where the query cannot be read; without `on_zone` it is the table's zone. The condition goes
    into the outermost WHERE, or wherever the text says `{window}`. Without `on` the slice column of the result is compared instead, which is right and may read all of the source.
    """

    sql: str
    on: str | None = None
    on_kind: SliceKind | None = None
    on_zone: str | None = None

    def __post_init__(self) -> None:
        if PLACE in self.sql and self.on is None:
            raise DeclarationError(
                "the SELECT cannot be cut into slices",
                f"it says {PLACE} without naming the source's column to compare",
                "Give on='the_time_column'",
            )
        if self.on is not None:
            self._source_column("UTC")  # refuses an unknown kind or zone here and not in a run

    def _source_column(self, zone: str) -> tuple[str, SliceColumn]:
        alias, _, name = (self.on or "").rpartition(".")
        return alias, SliceColumn(name, self.on_kind or "timestamptz", self.on_zone or zone)

    def for_slice(self, spelling: Spelling, slice_: Slice) -> str:
        """Return the query for the rows of `slice_` alone."""
        sql = self.sql.strip().rstrip(";")
        column = slice_.table.slice_column
        if slice_.window is None or column is None:
            return _outside(sql.replace(PLACE, "1 = 1"), spelling, slice_)
        if self.on is None:
            return f"SELECT * FROM (\n{sql}\n) AS slice_rows WHERE {predicate(spelling, slice_)}"
        alias, source = self._source_column(column.zone)
        prefix = f"{quoted(spelling, alias)}." if alias else ""
        condition = within(spelling, source, slice_.window, prefix=prefix)
        if PLACE in sql:
            return _outside(sql.replace(PLACE, f"({condition})"), spelling, slice_)
        return _outside(_with_condition(sql, condition, spelling), spelling, slice_)

    def probe(self, spelling: Spelling) -> str | None:
        """Return a query for the source's column `on` alone, to see its type; None where the text cannot be read."""
        import sqlglot
        from sqlglot import exp
        from sqlglot.errors import SqlglotError

        if self.on is None:
            return None
        marked = self.sql.strip().rstrip(";").replace(PLACE, f"({_MARK} IS NULL)")
        try:
            tree = sqlglot.parse_one(marked, read=spelling.dialect)
        except SqlglotError:
            return None
        mark = next((c for c in tree.find_all(exp.Column) if c.name == _MARK), None)
        chosen = mark.find_ancestor(exp.Select) if mark is not None else tree
        if not isinstance(chosen, exp.Select):
            return None
        # sqlglot has renamed both
        sources = chosen.args.get("from_") or chosen.args.get("from")
        ctes = tree.args.get("with_") or tree.args.get("with")
        if sources is None:
            return None
        alias, source = self._source_column("UTC")
        column = exp.column(source.name, table=alias or None, quoted=True)
        if alias:
            column.args["table"].set("quoted", True)
        # it is described and never run, and a table may ask for a condition on the column of its partitions
        bare = exp.select(column).from_(sources.this.copy()).where(column.copy().is_(exp.null()))
        for join in chosen.args.get("joins") or ():
            bare.append("joins", join.copy())
        text = bare.sql(dialect=spelling.dialect)
        return f"{ctes.sql(dialect=spelling.dialect)} {text}" if ctes is not None else text


def _outside(sql: str, spelling: Spelling, slice_: Slice) -> str:
    """Add the static dimensions, which the result itself holds."""
    if not slice_.fixed:
        return sql
    fixed = " AND ".join(same_text(spelling, column, value) for column, value in slice_.fixed)
    return f"SELECT * FROM (\n{sql}\n) AS slice_rows WHERE {fixed}"


def _with_condition(sql: str, condition: str, spelling: Spelling) -> str:
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(sql, read=spelling.dialect)
    except SqlglotError:
        tree = None
    if not isinstance(tree, exp.Select):
        raise DeclarationError(
            "the window cannot be added to the SELECT",
            "it is not one plain SELECT that we can read",
            f"Write {PLACE} where the condition belongs, for example WHERE {PLACE} AND status = 'confirmed'",
        )
    return tree.where(condition, dialect=spelling.dialect, copy=False).sql(dialect=spelling.dialect)
