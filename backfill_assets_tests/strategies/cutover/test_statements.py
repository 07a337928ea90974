"""Every statement of a cutover and of a removal where no such warehouse runs here, word by word: `golden/*.sql`.

The files are for eyes: a change of them is read beside the warehouse's documentation before it is kept. Whoever has read
it writes them anew with `python -m backfill_assets_tests.strategies.cutover.test_statements`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from backfill_assets.engines import Spelling, open_engine
from backfill_assets.strategies.cutover import cutting
from backfill_assets.strategies.cutover.moves import Entry, Moves
from backfill_assets.strategies.cutover.retiring import retire
from backfill_assets.strategies.cutover.views import policies_differ
from backfill_assets_tests.strategies.cutover.conftest import NEW, OLD, ORDERS, WHO

GOLDEN = Path(__file__).parent / "golden"
# the URL, what its catalog says of the view, and how types are called there
PLACES = {
    "bigquery": ("bigquery://project/analytics", "SELECT * FROM `project.analytics.orders_legacy`", ("INT64", "DATE", "NUMERIC", "STRING")),
    "databricks": ("databricks://host/catalog?http_path=/sql/1.0/warehouses/1", "SELECT * FROM catalog.analytics.orders_legacy", ("BIGINT", "DATE", "DECIMAL(10,2)", "STRING")),
    "sqlserver": ("sqlserver://u:p@host/db", "CREATE VIEW analytics.orders WITH SCHEMABINDING AS SELECT order_id, order_date, amount, source FROM analytics.orders_legacy", ("bigint", "date", "decimal(10,2)", "nvarchar(10)")),
    "synapse": ("synapse://u:p@host/db", "CREATE VIEW analytics.orders AS SELECT * FROM analytics.orders_legacy", ("bigint", "date", "decimal(10,2)", "nvarchar(10)")),
    "fabric": ("fabric://u:p@host/db", "CREATE VIEW analytics.orders AS SELECT * FROM analytics.orders_legacy", ("bigint", "date", "decimal(10,2)", "varchar(10)")),
}  # fmt: skip
DATABASES = {"bigquery": "project", "databricks": "catalog"}
_CLAUSE = re.compile(
    r"(?<!LEFT) (?=(?:FROM|WHERE|LEFT JOIN|JOIN|UNION ALL|AND|AS SELECT|AS \(SELECT|VALUES)\b)"
)
_NOON = datetime(2026, 6, 1, 12, tzinfo=timezone.utc)


class Told:
    """A session that writes down what it is told, and answers as the catalog of a warehouse would."""

    lease_seconds = 1800.0

    def __init__(self, name: str) -> None:
        url, self._definition, kinds = PLACES[name]
        self.spelling: Spelling = open_engine(url).spelling
        self.database = DATABASES.get(name, "db")
        self._columns = dict(
            zip(("order_id", "order_date", "amount", "source"), kinds, strict=True)
        )
        self._reads, self.sent = OLD, list[str]()
        self._made, self._dropped = False, False

    def _say(self, sql: str) -> None:
        self.sent.append(sql)

    def execute(self, sql: str) -> int:
        self._say(sql)
        if "VIEW" in sql:
            self._reads = NEW
        self._dropped |= "DROP TABLE" in sql
        return -1

    def define(self, *statements: str) -> None:
        for statement in statements:
            self._say(statement)
        self._made = True

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        self._say(sql)
        lower = sql.lower()
        if "union all" in lower and "seen" in lower:
            return [(1, 2, "7"), (2, 2, "7")]
        if "select max(" in lower:
            return [(date(2026, 5, 12),)]
        if "security_predicates" in lower:
            return []
        if "view_definition is null" in lower or "o.type = 'v' and (" in lower:
            return []
        if "orders_legacy" in lower:
            return [] if self._dropped else [("table", None, "")]
        options = " WITH SCHEMABINDING" if "SCHEMABINDING" in self._definition else ""
        return [
            ("view", self._definition.replace("orders_legacy", self._reads.split(".")[1]), options)
        ]

    def columns_of(self, relation: str) -> dict[str, str] | None:
        if "migration_moves" in relation:
            return {} if self._made else None
        return None if self._dropped and "legacy" in relation else dict(self._columns)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        self._say("-- a transaction begins")
        yield
        self._say("-- it is committed")

    def prepare(self, claim: Any) -> None: ...

    def claim(self, claim: Any) -> None:
        self._say(f"-- {claim.label} is claimed by {claim.relation}")

    @contextlib.contextmanager
    def hold(self, claim: Any, *, wait: bool = True) -> Iterator[None]:
        self._say(f"-- {claim.label} is held by {claim.relation}")
        yield
        self._say("-- it is given back")

    def still_holds(self, claim: Any) -> None:
        self._say("-- enough of the lease is left")

    def clock(self) -> datetime:
        return _NOON


def spoken(name: str, patch: pytest.MonkeyPatch) -> str:
    """Return what is sent for a cutover, for the removal of the old table, and to compare row policies."""
    entries: list[Entry] = []
    real = Moves.enter

    def enter(self: Moves, session: Any, state: Any, move: Entry, **more: Any) -> Entry:
        entries.append(real(self, session, state, move, **more))
        return entries[-1]

    patch.setattr(Moves, "enter", enter)
    patch.setattr(Moves, "entries", lambda *_: list(entries))
    session: Any = Told(name)
    parts: list[str] = []

    def chapter(title: str) -> None:
        parts.append(f"-- {title}\n\n" + "\n\n".join(map(_plain, session.sent)))
        session.sent.clear()

    given: dict[str, Any] = {**WHO, "dry_run": False, "report": lambda _: None}
    cutting.cut_over(session, ORDERS, (), **given)
    chapter("readers are moved to the new table")
    policies_differ(session, ORDERS.old.table, ORDERS.new.table)
    chapter("who sees which rows")
    retire(session, replace(ORDERS, retire_after_days=0), drop_table=OLD, **given)
    chapter("the old table is dropped")
    return "\n\n\n".join(parts) + "\n"


def _plain(sql: str) -> str:
    return _CLAUSE.sub("\n    ", re.sub(r"'[0-9a-f]{32}'", "'move-id'", sql))


@pytest.mark.parametrize("name", PLACES)
def test_these_statements_are_sent_and_no_others(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spoken(name, monkeypatch) == (GOLDEN / f"{name}.sql").read_text()


if __name__ == "__main__":
    for place in PLACES:
        with pytest.MonkeyPatch.context() as patched:
            (GOLDEN / f"{place}.sql").write_text(spoken(place, patched))
