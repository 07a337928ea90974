"""The SQL that dbt's macros share with `writing`, generated from it: claims, audit, hashes and literals.

`python -m backfill_assets.dbt.spelled` writes `macros/backfill_slices/spelled.sql`; a test compares the two. Words in
`<<...>>` are put in by the macros.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any, cast

from backfill_assets.engines import (
    claim_rows,
    duckdb,
    postgres,
    postgres_claims,
    snowflake,
    snowflake_claims,
)
from backfill_assets.engines.postgres_errors import lost_race
from backfill_assets.engines.protocol import Claim, Session, Spelling
from backfill_assets.engines.sql import create_schema, instant, text
from backfill_assets.slice import Slice
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import Window
from backfill_assets.writing import audit
from backfill_assets.writing.audit import AuditTable, Load

FILE = Path(__file__).parents[1] / "dbt_project" / "macros" / "backfill_slices" / "spelled.sql"

# plain names, so that an engine that folds names folds them too
_SCHEMA, _TABLE, _AUDIT = "schema_goes_here", "table_goes_here", "audit_goes_here"
_START, _END, _READ = (datetime(year, 1, 1, tzinfo=timezone.utc) for year in (1901, 1902, 1903))
_DAY = date(1904, 1, 1)
_SLICE = Slice(Table(f"{_SCHEMA}.{_TABLE}", SliceColumn("at")), Window(_START, _END))
_AUDITED = AuditTable(schema=_AUDIT)
# names for the columns of the question who wrote a slice from a later look
_RIVAL = " (run_id, read_at, dimensions)"
_SPELLINGS = {
    "duckdb": duckdb.SPELLING,
    "postgres": postgres.SPELLING,
    "snowflake": snowflake.SPELLING,
}


class _Listening:
    """A session that runs nothing and remembers what it was asked to run."""

    database = "database_goes_here"

    def __init__(self, spelling: Spelling) -> None:
        self.spelling = spelling
        self.heard: list[str] = []

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        self.heard.append(sql)
        return []

    def columns_of(self, relation: str) -> dict[str, str]:
        return {relation: ""}  # whatever is asked for is there


def spelled(adapter: str) -> dict[str, Any]:
    """Return what the macros need to know of the warehouse behind dbt's `adapter`."""
    spelling = _SPELLINGS[adapter]
    return {
        "dialect": spelling.dialect,
        "literals": dict(spelling.literals),
        "text_type": spelling.text_type,
        "case_sensitive": spelling.case_sensitive,
        "folds_upper": spelling.folds_upper,
        "escapes_backslashes": "\\\\" in text(spelling, "\\"),
        "default_schema": spelling.default_schema,
        "create_schema": create_schema(spelling, _SCHEMA).replace(
            _quoted(spelling, _SCHEMA), "<<schema>>"
        ),
        "row_hash": spelling.row_hash,
        "column_hash": dict(spelling.column_hash),
        "hash_joint": spelling.hash_joint,
        "hash_sum": spelling.hash_sum,
        "day_of_instant": spelling.day_of_instant,
        "audit": _audit(spelling),
        **_OWN[adapter](spelling),
    }


def _audit(spelling: Spelling) -> dict[str, Any]:
    newer = _heard(spelling, lambda session: _AUDITED.newer_read(session, _SLICE, _READ))
    loaded = _heard(spelling, lambda session: _AUDITED.was_loaded(session, _SLICE))
    stored = audit._ASKED if spelling.log_field else [field.name for field in fields(Load)]
    return {
        "definition": [_in_place(spelling, part) for part in _AUDITED.definition(spelling)],
        "relation": _in_place(spelling, _AUDITED.relation(spelling)),
        "stored": _in_place(spelling, _AUDITED.stored(spelling)),
        # the columns of a row, and whether the other fields stand in `entry` as JSON
        "columns": list(stored),
        "entry": spelling.log_field is not None,
        "fields": {field.name: str(field.type).split(" ")[0] for field in fields(Load)},
        "newer_read": _in_place(spelling, newer),
        "was_loaded": _in_place(spelling, loaded),
        "table_name": "table_name" if spelling.case_sensitive else "lower(table_name)",
    }


def _heard(spelling: Spelling, ask: Callable[[Session], object]) -> str:
    session = _Listening(spelling)
    ask(cast("Session", session))
    return session.heard[-1]


def _in_place(spelling: Spelling, sql: str) -> str:
    """Put the words that macros replace where the made-up values stand."""
    names = audit.names_of(cast("Session", _Listening(spelling)), _SLICE.table)
    pairs = {
        names: "<<names>>",
        instant(spelling, _START): "<<start>>",
        instant(spelling, _END): "<<end>>",
        instant(spelling, _READ): "<<read_at>>",
        _quoted(spelling, _AUDIT): "<<audit>>",
        # texts of names, as an index is looked for by
        _AUDIT: "<<audit>>",
    }
    for value, word in pairs.items():
        sql = sql.replace(value, word)
    return sql


def _quoted(spelling: Spelling, name: str) -> str:
    return f'"{name.upper() if spelling.folds_upper else name}"'


def _duckdb(_: Spelling) -> dict[str, Any]:
    return {
        "settings": ["SET TimeZone = 'UTC'"],
        "columns_of": "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = <<name>>"
        " AND <<where>> ORDER BY column_index",
        "there": "database_name = current_database() AND schema_name = <<schema>>",
        "staged": "database_name = 'temp'",
        # a number that is another one as soon as a statement commits by itself
        "transaction": "CAST(txid_current() AS VARCHAR)",
        # dbt begins and commits, and the clock is that of this process
        "begin_aside": "",
        "clock": "''",
        "rival": _RIVAL,
    }


def _postgres(spelling: Spelling) -> dict[str, Any]:
    patience, after = 1904, "1905"
    claims = {}
    for days in (None, (_DAY,)):
        claim = Claim("<<relation>>", days, "", "<<run>>")
        who, _, policies, locks, _ = (
            part.strip()
            for part in postgres_claims.claiming(spelling, claim, patience, after).split(";")
        )
        claims["table" if days is None else "day"] = locks.removeprefix("SELECT ")
        claims["who"], claims["policies"] = who, policies
    one = f"pg_advisory_xact_lock(hashtextextended(t || '|{_DAY}', 0))"
    every_day = claims["day"].replace(one, "<<days>>")
    assert every_day != claims["day"]
    holding = postgres_claims.holding(spelling, Claim("<<relation>>", (_DAY,), "", ""))
    key = f"(hashtextextended(t || '|{_DAY}', 0))"
    table_key = "(hashtextextended(t, 0)), "
    assert key in holding
    assert table_key in holding
    columns = _Columns(spelling)
    postgres.PostgresSession.columns_of(cast("Any", columns), "<<relation>>")
    return {
        "settings": [f"SET {name} = {value}" for name, value in postgres._SETTINGS.items()],
        "columns_of": columns.heard[0],
        # the time at which the transaction began: another one as soon as a statement commits by itself
        "transaction": "CAST(now() AS TEXT)",
        # dbt leaves BEGIN to its driver, which says it once: after a COMMIT every statement would commit by itself
        "begin_aside": "BEGIN ISOLATION LEVEL READ COMMITTED;\n",
        "clock": "to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')",
        "rival": _RIVAL,
        "ddl": {
            "lost_race": [error.sqlstate for error in lost_race()],
            "patience": postgres._DDL_PATIENCE_SECONDS,
            "pause": postgres._DDL_PAUSE_SECONDS,
        },
        "claim": {
            "who": claims["who"],
            "policies": claims["policies"],
            "days": every_day,
            "day": one.replace(str(_DAY), "<<day>>"),
            "table": claims["table"],
            "holding": holding.replace(key, "<<keys>>"),
            "key": key.replace(str(_DAY), "<<day>>"),
            "kind": f"SELECT kind FROM ({postgres_claims._resolved(spelling, Claim('<<relation>>', None, '', ''))}) AS claimed",
            "beyond": {
                kind: list(told) for kind, told in postgres_claims.KINDS_BEYOND_A_CLAIM.items()
            },
        },
    }


class _Columns(_Listening):
    """Hears what a session asks for the columns of a table."""

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        self.heard.append(sql)
        return [("one", "text", False)]


def _snowflake(spelling: Spelling) -> dict[str, Any]:
    table = "<<table>>"
    claims = '"<<claims>>"'
    claim = Claim("", (_DAY,), "", "<<run>>")
    update = snowflake_claims.claiming(spelling, claims, claim)
    bucket = str(_DAY.toordinal() % claim_rows.BUCKETS)
    making = snowflake_claims.making(spelling, claims, table).replace(claims, "<<claims>>")
    settings = {k: v for k, v in snowflake._SETTINGS.items() if k != "AUTOCOMMIT"}
    shown = " ".join(
        f"{k} = {repr(v).upper() if isinstance(v, bool) else repr(v)}" for k, v in settings.items()
    )
    return {
        "settings": [f"ALTER SESSION SET {shown}"],
        # dbt on Snowflake begins no transaction and commits none: without one this is NULL
        "transaction": "CURRENT_TRANSACTION()",
        "begin_aside": "",
        "clock": "to_char(SYSDATE(), 'YYYY-MM-DD HH24:MI:SS.FF6')",
        "rival": "",
        "unset": list(settings),
        "claim": {
            "making": making.replace(
                text(spelling, json.dumps({"claims_of": table})), "<<comment>>"
            ),
            "update": update.replace(claims, "<<claims>>").replace(
                f"IN ({bucket})", "IN (<<buckets>>)"
            ),
            "buckets": claim_rows.BUCKETS,
            "prefix": claim_rows.claims_table(spelling, "x", table).split('"')[3][
                : len("slice_claims_")
            ],
        },
    }


_OWN: dict[str, Callable[[Spelling], dict[str, Any]]] = {
    "duckdb": _duckdb,
    "postgres": _postgres,
    "snowflake": _snowflake,
}


def file_text() -> str:
    """Return the macro file as it should be."""
    head = (
        "{# Generated from backfill_assets/writing and engines by `make dbt`; what is changed here is lost. #}\n"
        "{% macro backfill_spelled() %}{% do return(adapter.dispatch('backfill_spelled')()) %}{% endmacro %}\n"
    )
    return head + "".join(_macro(adapter) for adapter in _SPELLINGS)


def _macro(adapter: str) -> str:
    told = json.dumps(spelled(adapter), indent=2, ensure_ascii=True)
    return (
        f"\n{{% macro {adapter}__backfill_spelled() %}}{{% do return({told}) %}}{{% endmacro %}}\n"
    )


if __name__ == "__main__":
    FILE.write_text(file_text())
