"""Debezium's envelopes: a change with the row before and after it, and the place of the change in the database's log."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

# what stands where PostgreSQL logged no value, since it is large and an update left it as it was
UNLOGGED = "__debezium_unavailable_value"
# a change of the schema, the mark of a transaction, a heartbeat
_MARKS = """json_exists(__envelope, '/ddl') OR json_exists(__envelope, '/tableChanges')
    OR json_extract_string(__envelope, '/status') IN ('BEGIN', 'END')
    OR json_keys(__envelope) = ['ts_ms']"""


@dataclass(frozen=True)
class Debezium:
    """Each event is a change: op `c`, `u`, `r` (read by a snapshot) or `d`, with `before`, `after` and `source`.

    Envelopes with their schema (`{"schema": ..., "payload": ...}`) and without it are read. A field is one of the row;
    `@` before its path means the envelope (`@source.table`). `order` are the envelope's whole numbers by which the last
    change of a key is told, the greatest being the last, and then the order of arrival; those that are missing count
    for nothing. Of a deletion only the key is needed, from `before` or else from the message's own key. Tombstones,
    heartbeats, transaction marks and changes of the schema are left out. Told as events that are wrong are a truncation
    of the table, which cannot be replayed; a row without its envelope (declare `Json`); and a value that PostgreSQL did
    not log because it is large and was not changed.
    """

    order: tuple[str, ...] = ("source.lsn", "source.ts_ms")
    within: Literal["slice", "table"] = field(default="table", init=False)

    def __post_init__(self) -> None:
        order = (self.order,) if isinstance(self.order, str) else tuple(self.order)
        object.__setattr__(self, "order", order)

    def opened(self) -> str:
        """Return the parts of a WITH that end in `opened`, with the names of `Json.opened`, `__envelope` and the order."""
        order = "".join(
            f", TRY_CAST(json_extract_string(__envelope, '/{path.replace('.', '/')}') AS HUGEINT) AS __order_{n}"
            for n, path in enumerate(self.order)
        )
        return f"""doc AS (SELECT *, CASE WHEN json_valid(__text) THEN CAST(__text AS JSON) END AS __doc,
    CASE WHEN json_valid(__key_text) THEN CAST(__key_text AS JSON) END AS __key_doc FROM batch),
unwrapped AS (SELECT *, {_payload("__doc")} AS __envelope, {_payload("__key_doc")} AS __key_row FROM doc),
changes AS (SELECT *, json_extract_string(__envelope, '/op') AS __op FROM unwrapped),
imaged AS (SELECT *, CASE WHEN __op <> 'd' THEN json_extract(__envelope, '/after')
    WHEN json_type(__envelope, '/before') = 'OBJECT' THEN json_extract(__envelope, '/before')
    ELSE __key_row END AS __row FROM changes),
opened AS (SELECT *, __op = 'd' AS __removed,
  __value IS NULL OR json_type(__envelope) = 'NULL' OR __op = 'm' OR (__op IS NULL AND coalesce({_MARKS}, false)) AS __skipped,
  CASE WHEN json_type(__row) = 'OBJECT' THEN __row END AS __body{order},
  CASE WHEN __text IS NULL THEN 'it is not UTF-8 text'
    WHEN __doc IS NULL THEN 'it is no JSON'
    WHEN __op = 't' THEN 'the table was truncated, which no slice can repeat'
    WHEN __op IS NULL THEN 'it has no op, so it is no change but perhaps a row without its envelope'
    WHEN __op NOT IN ('c', 'u', 'r', 'd') THEN 'its op is ' || __op || ', and not c, u, r or d'
    WHEN json_type(__row) IS DISTINCT FROM 'OBJECT' THEN 'its op is ' || __op || ' and it has no row ' || CASE WHEN __op = 'd' THEN 'before' ELSE 'after' END || ' the change'
  END AS __bad FROM imaged)"""


def _payload(document: str) -> str:
    """Return the SQL of what a document holds beside its schema, or of all of it where it brings none."""
    return (
        f"CASE WHEN json_exists({document}, '/payload') AND json_exists({document}, '/schema')"
        f" THEN json_extract({document}, '/payload') ELSE {document} END"
    )
