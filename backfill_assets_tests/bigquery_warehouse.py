"""A fresh project of the BigQuery emulator for tests; what tests say in PostgreSQL's SQL is said in BigQuery's."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, field
from typing import Any

import pytest

from backfill_assets.engines import Session, bigquery_jobs, bigquery_session
from backfill_assets.engines.bigquery import SPELLING
from backfill_assets_tests.warehouses import Warehouse

_SERIES = re.compile(r"generate_series\((\d+), (\d+)\) AS (?:\w+\()?(\w+)\)?")
# digits that a number without a type would lose
_LONG_DECIMAL = re.compile(r"(?<![\w'.])(\d{10,}\.\d+)(?![\w'])")
_LACKING = {
    "SMALLINT": "BigQuery has one type of whole numbers",
    "REAL": "BigQuery has one type of floating numbers",
    "NUMERIC(18, 2)": "the emulator forgets how many digits a column has",
}
_MARKED = re.compile(r"series_(\d+)_(\d+) AS")


@dataclass(frozen=True)
class BigQueryWarehouse(Warehouse):
    """One project; its URL names the dataset `public`."""

    waits: list[float] = field(default_factory=list[float])

    @classmethod
    def fresh(cls, address: str, monkeypatch: pytest.MonkeyPatch) -> BigQueryWarehouse:
        waits: list[float] = []
        pause = bigquery_session._pause  # pyright: ignore[reportPrivateUsage]
        monkeypatch.setattr(
            bigquery_session,
            "_pause",
            lambda seconds: (waits.append(seconds), pause(min(seconds, 0.1))),
        )
        # where the emulator fails, it fails again
        monkeypatch.setattr(bigquery_jobs, "PATIENCE_SECONDS", 1.0)
        project = f"w{uuid.uuid4().hex[:12]}"
        made = cls(f"bigquery://{project}/public?endpoint={address}", waits)
        with made.session() as session:
            session.define("CREATE SCHEMA IF NOT EXISTS `public`")
        return made

    @property
    def tells_case_apart(self) -> bool:
        return True

    def execute(self, *statements: str) -> None:
        super().execute(*map(translated, statements))

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return super().rows(translated(sql))

    def columns(self, relation: str) -> dict[str, str] | None:
        relation = relation.replace('"', "`")
        if super().columns(relation) is None:
            return None
        # the emulator's API does not hear of columns that SQL has added
        return super().columns(f"(SELECT * FROM {relation}) AS now")

    def seen_from_outside(self, session: Session, sql: str) -> list[tuple[Any, ...]]:
        return self.rows(sql)

    def somebody_waits(self) -> bool:
        return bool(self.waits)

    def quoted(self, name: str) -> str:
        return f'"{name}"'  # a test's SQL is PostgreSQL's until it is `spoken`

    def spoken(self, sql: str) -> str:
        return translated(sql)

    def type_of(self, kind: str) -> str:
        from sqlglot import exp

        return exp.DataType.build(kind, dialect="postgres").sql(dialect="bigquery")

    def lacks(self, kind: str) -> str | None:
        return _LACKING.get(kind)

    def takes_schema(self, name: str) -> bool:
        return re.fullmatch(r"\w+", name, re.ASCII) is not None

    def takes(self, name: str) -> bool:
        return not any(letter in SPELLING.forbidden for letter in name)

    def leftovers(self) -> list[str]:
        with self.session() as session:
            client = session._open_jobs.client  # type: ignore[attr-defined]
            return [
                f"{dataset.dataset_id}.{table.table_id}"
                for dataset in client.list_datasets()
                for table in client.list_tables(dataset.reference)
                if table.table_id.startswith("backfill_stage")
            ]


def translated(sql: str) -> str:
    """Return what is meant, in BigQuery's SQL."""
    import sqlglot

    marked = _SERIES.sub(r"series_\1_\2 AS \3", sql)
    said = sqlglot.transpile(marked, read="postgres", write="bigquery")[0]
    said = _MARKED.sub(r"UNNEST(GENERATE_ARRAY(\1, \2)) AS", said)
    return _LONG_DECIMAL.sub(r"SAFE_CAST('\1' AS NUMERIC(38,9))", said)
