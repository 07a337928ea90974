"""Debezium's envelopes: a change with the row before and after it, and the place of the change in the database's log."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Debezium:
    """Each event is a change: op `c`, `u`, `r` (read by a snapshot) or `d`, with `before`, `after` and `source`.

    Envelopes with their schema (`{"schema": ..., "payload": ...}`) and without it are read. A field is one of the row;
    `@` before its path means the envelope (`@source.table`). `order` are the envelope's whole numbers by which the last
    change of a key is told, the greatest being the last, and then the order of arrival; those that are missing count
    for nothing. Tombstones, heartbeats, transaction marks and changes of the schema are left out. A truncation of the
    table cannot be replayed and is told as an event that is wrong.
    """

    order: tuple[str, ...] = ("source.lsn", "source.ts_ms")
    within: Literal["slice", "table"] = field(default="table", init=False)
    sees_changes: bool = field(default=True, init=False)

    def opened(self) -> str:
        """Return the parts of a WITH that end in `opened`, with the names of `Json.opened`, `__envelope` and the order."""
        order = "".join(
            f", TRY_CAST(json_extract_string(__envelope, '/{path.replace('.', '/')}') AS HUGEINT) AS __order_{n}"
            for n, path in enumerate(self.order)
        )
        row = "json_extract(__envelope, CASE WHEN __op = 'd' THEN '/before' ELSE '/after' END)"
        no_change = (
            "NOT json_exists(__envelope, '/after') AND NOT json_exists(__envelope, '/before')"
        )
        return f"""doc AS (SELECT *, CASE WHEN json_valid(__text) THEN CAST(__text AS JSON) END AS __doc FROM batch),
unwrapped AS (SELECT *, CASE WHEN json_exists(__doc, '/payload') THEN json_extract(__doc, '/payload') ELSE __doc END AS __envelope FROM doc),
changes AS (SELECT *, json_extract_string(__envelope, '/op') AS __op FROM unwrapped),
rows AS (SELECT *, {row} AS __row FROM changes),
opened AS (SELECT *, __op = 'd' AS __removed,
  __value IS NULL OR __op = 'm' OR (__envelope IS NOT NULL AND __op IS NULL AND {no_change}) AS __skipped,
  CASE WHEN json_type(__row) = 'OBJECT' THEN __row END AS __body{order},
  CASE WHEN __text IS NULL THEN 'it is not UTF-8 text'
    WHEN __doc IS NULL THEN 'it is no JSON'
    WHEN __op = 't' THEN 'the table was truncated, which no slice can repeat'
    WHEN __op IS NULL OR __op NOT IN ('c', 'u', 'r', 'd') THEN 'its op is ' || coalesce(__op, 'missing') || ', and not c, u, r or d'
    WHEN json_type(__row) IS DISTINCT FROM 'OBJECT' THEN 'its op is ' || __op || ' and it has no row ' || CASE WHEN __op = 'd' THEN 'before' ELSE 'after' END || ' the change'
  END AS __bad FROM rows)"""
