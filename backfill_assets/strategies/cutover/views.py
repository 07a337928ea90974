"""The view that readers read: which table it reads now, what stands in the way of another one, and replacing it.

A view that does more than name the columns of one table is refused: what it does would be lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from backfill_assets.engines.protocol import Session, Spelling
from backfill_assets.engines.sql import qualified, quoted, stored, text
from backfill_assets.errors import Refused
from backfill_assets.table import Table

if TYPE_CHECKING:
    from sqlglot import exp

# what a SELECT and its table may have; whatever else they have is more than naming columns
_OF_A_SELECT = ("expressions", "from", "from_", "kind", "with", "with_")
_OF_A_TABLE = ("this", "db", "catalog", "alias")
_RIGHTS = {
    "owner": "{view} belongs to {who}, and this role may not replace it",
    "schema": "the role {who} may not make views in the schema of {view}, which replacing one asks for",
    "select": "{who}, to whom {view} belongs, may not SELECT from {table}, so no reader could",
    "reader": "{view} reads with its readers' own rights, and {who} may not SELECT from {table}",
}


@dataclass(frozen=True)
class View:
    """A view that names the columns of one table: `reads` is that table, `sources` the table's column of each of its own.

    `types` are the types that it has now, `options` what stands in its definition beside its query.
    """

    table: Table
    reads: Table
    sources: Mapping[str, str]
    types: Mapping[str, str]
    options: str

    def query(self, spelling: Spelling, target: Table, columns: Mapping[str, str]) -> str:
        """Return the query by which the view reads `target`, whose `columns` these are, and stays of the same types."""
        there = {folded(spelling, name): name for name in columns}
        listed = ", ".join(
            f"CAST({quoted(spelling, there[folded(spelling, self.sources[name])])} AS {kind})"
            f" AS {quoted(spelling, name)}"
            for name, kind in self.types.items()
        )
        return f"SELECT {listed} FROM {qualified(spelling, target)}"

    def replacement(self, spelling: Spelling, query: str) -> str:
        """Return the statement that lets readers read `query`."""
        return spelling.replace_view.format(
            view=qualified(spelling, self.table), options=self.options, query=query
        )

    def lacks(self, spelling: Spelling, columns: Mapping[str, str]) -> list[str]:
        """Return the columns that a table of `columns` would have to have and does not."""
        there = {folded(spelling, name) for name in columns}
        return [name for name in self.sources.values() if folded(spelling, name) not in there]

    def retyped(self, spelling: Spelling, columns: Mapping[str, str]) -> list[str]:
        """Return in words what of `columns` readers go on to see in another type."""
        kinds = {folded(spelling, name): kind for name, kind in columns.items()}
        told = [(n, kinds[folded(spelling, self.sources[n])], kind) for n, kind in self.types.items()]  # fmt: skip
        return [f"{name} is {new} and is shown as {kind}" for name, new, kind in told if new != kind]  # fmt: skip


def look(session: Session, view: Table) -> View:
    """Return the view; `Refused` where it is none, or does more than naming columns of one table.

    Not for the middle of a transaction, which would not survive the look at a view of what is not there any more.
    """
    spelling, what = session.spelling, _what(view)
    reads, sources, options = defined(session, view)
    types = session.columns_of(qualified(spelling, view))
    if types is None:
        raise Refused(
            what,
            f"it reads {reads.qualified}, and what it names is not there",
            "Let it read a table that is there first",
        )
    by_name = {folded(spelling, name): source for name, source in sources.items()}
    if strange := [name for name in types if by_name and folded(spelling, name) not in by_name]:
        raise Refused(what, f"its definition says nothing of its column {strange[0]}", _PLAIN)
    named = {name: by_name.get(folded(spelling, name), name) for name in types}
    return View(view, reads, named, types, options)


def defined(session: Session, view: Table) -> tuple[Table, dict[str, str], str]:
    """Return by the catalog which table the view reads, its column for each of the view's, and the view's options."""
    spelling, what = session.spelling, _what(view)
    found = session.fetch(_asked(session, spelling.view, view))
    if not found:
        raise Refused(
            what, "there is no such view", "Make it first, as SELECT * FROM the old table"
        )
    kind, definition, options = found[0]
    if kind != "view":
        raise Refused(
            what,
            f"it is a {kind} and no view",
            "Give readers a view of that name, which reads the old table, first",
        )
    if definition is None:
        raise Refused(
            what,
            "this role may not see its definition, so nobody can tell what it reads",
            "Run this as the role that owns it",
        )
    try:
        reads, sources = reading(spelling, str(definition), view)
    except ValueError as error:
        raise Refused(what, f"its definition {error}", _PLAIN) from None
    return reads, sources, str(options or "")


def is_there(session: Session, table: Table) -> bool:
    """Tell by the catalog whether there is a table or a view of that name, as one may ask inside a transaction."""
    return bool(session.fetch(_asked(session, session.spelling.view, table)))


def _what(view: Table) -> str:
    return f"readers of {view.qualified} were not moved"


_PLAIN = "Let it name columns of one table and do nothing else; put what it does into the table or into a view above it"


def reading(spelling: Spelling, definition: str, view: Table) -> tuple[Table, dict[str, str]]:
    """Return the table that a definition reads, and its column for each of the view's, without any for `*`.

    Raises `ValueError` with what else it does.
    """
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    try:
        parsed: Any = parse_one(definition, dialect=spelling.dialect)
    except SqlglotError:
        raise ValueError("cannot be read by us") from None
    names: list[str] = []
    if isinstance(parsed, exp.Create):
        if isinstance(parsed.this, exp.Schema):
            names = [column.name for column in parsed.this.expressions]
        parsed = parsed.expression
    elif isinstance(parsed, exp.Alter):  # as it was last written, where the catalog keeps that
        parsed = next(iter(parsed.args.get("actions") or ()), None)
    while isinstance(parsed, exp.Subquery) and not parsed.args.get("alias"):
        parsed = parsed.this
    if not isinstance(parsed, exp.Select):
        raise ValueError("is no single SELECT")
    more = [name for name, given in parsed.args.items() if given and name not in _OF_A_SELECT]
    if parsed.args.get("with") or parsed.args.get("with_"):
        more.append("with")
    if more:
        raise ValueError(f"has a clause beside SELECT and FROM ({', '.join(more)})")
    found = parsed.args.get("from") or parsed.args.get("from_")
    table: Any = found.this if found is not None else None
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise ValueError("reads no table by its name")
    alias = table.args.get("alias")
    if (alias is not None and alias.columns) or [
        name for name, given in table.args.items() if given and name not in _OF_A_TABLE
    ]:
        raise ValueError(f"reads {table.name} in a way of its own")
    return _named(table, view), _sources(parsed, names)


def _named(table: exp.Table, view: Table) -> Table:
    """Return the table of a definition; a name without a schema is one of the view's schema."""
    return Table(table.name, schema=table.db or view.schema, database=table.catalog or None)


def _sources(select: exp.Select, names: list[str]) -> dict[str, str]:
    """Return the table's column for each column of the view; none where it is `*`."""
    from sqlglot import exp

    shown: list[Any] = list(select.expressions)
    if len(shown) == 1 and _is_star(shown[0]):
        if names:
            raise ValueError("gives the columns of * other names")
        return {}
    sources: dict[str, str] = {}
    for place, one in enumerate(shown):
        value = one.this if isinstance(one, exp.Alias) else one
        # to the type that the view shows, and so nothing of its own; a cast of a cast may be something
        if type(value) is exp.Cast and not value.args.get("format"):
            value = value.this
        value = value.this if isinstance(value, exp.Paren) else value
        if not isinstance(value, exp.Column) or _is_star(value):
            raise ValueError(f"computes a column ({one.sql()[:60]})")
        sources[names[place] if names else one.alias_or_name or value.name] = value.name
    return sources


def _is_star(value: Any) -> bool:
    """Tell whether it is `*` or `t.*`, with nothing left out or replaced."""
    from sqlglot import exp

    star = value.this if isinstance(value, exp.Column) else value
    return isinstance(star, exp.Star) and not any(star.args.values())


def same(session: Session, a: Table, b: Table) -> bool:
    """Tell whether two names are one table's; a part that is left out is the one of the session."""
    spelling = session.spelling

    def parts(table: Table) -> list[str]:
        given = (table.database or session.database, table.schema or spelling.default_schema, table.name)  # fmt: skip
        return [folded(spelling, part) for part in given]

    return parts(a) == parts(b)


def folded(spelling: Spelling, name: str) -> str:
    """Return a name in the form in which two names of one thing are equal."""
    return name if spelling.case_sensitive else name.casefold()


def obstacles(session: Session, view: View, target: Table) -> list[str]:
    """Return in sentences what the roles lack for the view to read `target`."""
    asked = session.spelling.view_rights
    if asked is None:
        return []
    names = {
        "view_text": text(session.spelling, qualified(session.spelling, view.table)),
        "table_text": text(session.spelling, qualified(session.spelling, target)),
    }
    found = session.fetch(asked.format(**names))
    told = {"view": view.table.qualified, "table": target.qualified}
    return [_RIGHTS[str(which)].format(who=who, **told) for which, who in found]


def policies_differ(session: Session, old: Table, new: Table) -> str | None:
    """Return why readers might see other rows of one table than of the other; None where nothing decides that."""
    asked = session.spelling.row_policies
    if asked is None:
        return None
    seen = [sorted(map(str, session.fetch(_asked(session, asked, table)))) for table in (old, new)]
    if seen[0] == seen[1]:
        return None
    return (
        f"the row policies of {old.qualified} and {new.qualified} are not the same"
        f" ({len(seen[0])} and {len(seen[1])} lines in the catalog), so readers would see other rows than before"
    )


def dependents(session: Session, table: Table) -> list[str]:
    """Return the views that read `table`, or may: those whose definition names it in a way that we cannot read."""
    found: list[str] = []
    for schema, name, definition in session.fetch(_asked(session, session.spelling.views, table)):
        view = Table(str(name), schema=str(schema))
        if definition is None or _may_read(session, str(definition), view, table):
            found.append(view.qualified)
    return sorted(found)


def _may_read(session: Session, definition: str, view: Table, table: Table) -> bool:
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    try:
        parsed: Any = parse_one(definition, dialect=session.spelling.dialect)
    except SqlglotError:
        return True
    if isinstance(parsed, exp.Create):
        parsed = parsed.expression
    if parsed is None or isinstance(parsed, exp.Command):
        return True
    return any(same(session, _named(one, view), table) for one in parsed.find_all(exp.Table))


def _asked(session: Session, query: str, table: Table) -> str:
    """Return a query of the catalog with the names of `table` in it."""
    spelling = session.spelling
    database = table.database or session.database
    schema = table.schema or spelling.default_schema
    names = {
        "relation_text": text(spelling, qualified(spelling, table)),
        "database": quoted(spelling, database),
        "schema": quoted(spelling, schema),
    }
    for part, name in (("database", database), ("schema", schema), ("name", table.name)):
        names[f"{part}_text"] = text(spelling, stored(spelling, name))
    return query.format(**names)
