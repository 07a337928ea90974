"""How a column of each type enters the hash of its row: the hash that PostgreSQL itself has for the type.

Hashing column by column takes half the time of `hash_record_extended(ROW(...))`, which looks every type up
for every row, and refuses json. Types without a hash that SQL can call are hashed as text.
"""

from __future__ import annotations

# in UTC, which every session of ours is in, casts to timestamp are exact; infinite dates and times stay so
_FUNCTIONS = {
    "hashint2extended({column}, {place})": ("smallint", "int2"),
    "hashint4extended({column}, {place})": ("integer", "int", "int4"),
    "hashint8extended({column}, {place})": ("bigint", "int8"),
    "hashint4extended(CAST({column} AS integer), {place})": ("boolean", "bool"),
    "hash_numeric_extended({column}, {place})": ("numeric", "decimal"),
    "hashfloat4extended({column}, {place})": ("real", "float4"),
    "hashfloat8extended({column}, {place})": ("double precision", "float8"),
    "hashtextextended({column}, {place})": ("text", "character varying", "varchar"),
    "time_hash_extended({column}, {place})": ("time without time zone", "time"),
    "timestamp_hash_extended({column}, {place})": ("timestamp without time zone", "timestamp"),
    "timestamp_hash_extended(CAST({column} AS timestamp), {place})": (
        "date",
        "timestamp with time zone",
        "timestamptz",
    ),
    "uuid_hash_extended({column}, {place})": ("uuid",),
    "jsonb_hash_extended({column}, {place})": ("jsonb",),
    "hashtextextended(CAST({column} AS text), {place})": ("",),
}
COLUMN_HASH = {
    kind: f"coalesce({function}, {{place}})"
    for function, kinds in _FUNCTIONS.items()
    for kind in kinds
}
