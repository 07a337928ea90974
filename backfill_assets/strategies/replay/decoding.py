"""SQL by which raw events become typed ones in the scratch database, and what is wrong with those that do not."""

from __future__ import annotations

from collections.abc import Sequence

from backfill_assets.strategies.replay.debezium import UNLOGGED, Debezium
from backfill_assets.strategies.replay.events import Events, Field, Json

_PER_SECOND = {"s": 1_000_000, "ms": 1_000, "us": 1}
# the years 1 to 9999, as days and microseconds of a day: what is outside is no time, and SQL would fail on some of it
_FIRST_DAY, _LAST_DAY, _DAY = -719_162, 2_932_896, 86_400_000_000
_WHOLE = r"-?[0-9]+(\.0*)?"
_DATE = r"-?[0-9]{4,6}-[0-9]{2}-[0-9]{2}"
_CLOCK = _DATE + r"[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?"
_ZONE = r" ?(Z|z|[+-][0-9]{2}(:?[0-9]{2})?)"


def quoted(name: str) -> str:
    """Return a name as DuckDB's SQL quotes it."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: str) -> str:
    """Return a text as DuckDB's SQL quotes it."""
    return "'" + value.replace("'", "''") + "'"


def pointer(path: str) -> str:
    """Return the JSON pointer of a dotted path."""
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in path.split("."))


def order_columns(events: Events) -> list[tuple[str, str]]:
    """Return name and type of what tells the last event of a key, beside its arrival."""
    if isinstance(events.decode, Debezium):
        return [(f"__order_{n}", "HUGEINT") for n in range(len(events.decode.order))]
    return []


def place_of(bounds: Sequence[tuple[str, str]], time: str) -> str:
    """Return the SQL for the number of the slice that `time` is in, NULL for none; `bounds` are literals, in order.

    A tree of comparisons: a join would carry every event through a sort.
    """
    if not bounds:
        return "NULL"

    def tree(first: int, end: int) -> str:
        if end - first == 1:
            return f"CASE WHEN {time} < {bounds[first][1]} THEN {first} END"
        middle = (first + end) // 2
        return f"CASE WHEN {time} < {bounds[middle][0]} THEN {tree(first, middle)} ELSE {tree(middle, end)} END"

    return f"CASE WHEN {time} >= {bounds[0][0]} THEN {tree(0, len(bounds))} END"


def table_of_events(events: Events) -> str:
    """Return the statement that makes the scratch table of decoded events."""
    own = ", ".join(f"{quoted(name)} {f.type}" for name, f in events.typed.items())
    order = "".join(f", {name} {kind}" for name, kind in order_columns(events))
    return (
        f"CREATE TABLE events (__shard INTEGER, __ordinal BIGINT, __at TIMESTAMPTZ, __slice INTEGER, __gone BOOLEAN{order},"
        f" {own}, __reason VARCHAR, __position VARCHAR, __raw BLOB)"
    )


def insert_events(
    events: Events, shard: int, batch_columns: Sequence[str], bounds: Sequence[tuple[str, str]]
) -> str:
    """Return the statement that decodes the registered view `batch`, whose columns are those of a source and their texts."""
    names = list(events.typed)
    own = ", ".join(map(quoted, names))
    order = "".join(f", {name}" for name, _ in order_columns(events))
    position = "__position" if "__position" in batch_columns else "CAST(__ordinal AS VARCHAR)"
    place = place_of(bounds, quoted(events.time))
    return f"""INSERT INTO events
WITH {_typed(events)},
judged AS (SELECT *, {_reason(events)} AS __why FROM typed)
SELECT {shard}, __ordinal, __at, CASE WHEN __why IS NULL THEN {place} END, coalesce(__gone, false){order},
  {own}, __why, CASE WHEN __why IS NOT NULL THEN {position} END, CASE WHEN __why IS NOT NULL THEN __value END
FROM judged
WHERE NOT coalesce(__skipped, false)"""


def _typed(events: Events) -> str:
    gone = f"({events.deleted})" if events.deleted else "false"
    if not isinstance(events.decode, (Json, Debezium)):
        values = ", ".join(
            f"{value_of(f, f'__x[{n}]')} AS {quoted(name)}"
            for n, (name, f) in enumerate(events.typed.items(), 1)
        )
        own = ", ".join(map(quoted, events.typed))
        texts = ", ".join(f"CAST({quoted(n)} AS VARCHAR)" for n in events.typed)
        return (
            f"cut AS (SELECT * EXCLUDE ({own}), [{texts}] AS __x FROM batch),\n"
            f"valued AS (SELECT *, {values} FROM cut),\n"
            f"typed AS (SELECT *, {gone} AS __gone, false AS __skipped FROM valued)"
        )
    paths = ", ".join(literal(pointer(f.path or n)) for n, f in events.typed.items())
    values = ", ".join(
        f"{value_of(f, f'__x[{n}]')} AS {quoted(name)}"
        for n, (name, f) in enumerate(events.typed.items(), 1)
    )
    if any((f.path or "").startswith("@") for f in events.typed.values()):
        row = [
            f"json_extract_string(__envelope, {literal(pointer(f.path[1:]))})"
            if f.path and f.path.startswith("@")
            else f"json_extract_string(__body, {literal(pointer(f.path or n))})"
            for n, f in events.typed.items()
        ]
        extracted = f"[{', '.join(row)}]"
    else:
        extracted = f"json_extract_string(__body, [{paths}])"
    return (
        f"{events.decode.opened()},\n"
        f"cut AS (SELECT *, CASE WHEN __body IS NOT NULL THEN {extracted} END AS __x FROM opened),\n"
        f"valued AS (SELECT *, {values} FROM cut),\n"
        f"typed AS (SELECT *, (__removed OR coalesce({gone}, false)) AS __gone FROM valued)"
    )


def value_of(field: Field, text: str) -> str:
    """Return the SQL of the text `text` as the field's type: NULL where it is none, and never rounded."""
    kind = field.type
    if field.unit is not None:
        return _counted(field, text)
    if kind in ("VARCHAR", "TEXT"):
        return text
    if field.is_whole:
        return (
            f"CASE WHEN regexp_full_match({text}, '{_WHOLE}') THEN TRY_CAST({text} AS {kind}) END"
        )
    if field.encoding == "base64":
        return f"TRY_CAST(unscaled({text}, {field.scale}) AS {kind})"
    if field.scale_known:
        places = rf"-?[0-9]+(\.[0-9]{{0,{field.scale}}}0*)?"
        return (
            f"CASE WHEN regexp_full_match({text}, '{places}') THEN TRY_CAST({text} AS {kind}) END"
        )
    if kind == "DATE":
        return f"CASE WHEN regexp_full_match({text}, '{_DATE}') THEN TRY_CAST({text} AS DATE) END"
    if kind == "TIMESTAMP":
        return f"CASE WHEN regexp_full_match({text}, '{_CLOCK}') THEN TRY_CAST({text} AS TIMESTAMP) END"
    if kind == "TIMESTAMPTZ":
        instant = f"WHEN regexp_full_match({text}, '{_CLOCK}{_ZONE}') THEN TRY_CAST({text} AS TIMESTAMPTZ)"
        local = (
            f" WHEN regexp_full_match({text}, '{_CLOCK}') THEN timezone({literal(field.zone)}, TRY_CAST({text} AS TIMESTAMP))"
            if field.zone
            else ""
        )
        return f"CASE {instant}{local} END"
    return f"TRY_CAST({text} AS {kind})"


def _counted(field: Field, text: str) -> str:
    """Return a time that is a number of `unit` since 1970; parts of a microsecond are cut off, as in a day's last one."""
    if field.unit == "days":
        days = (
            f"CASE WHEN regexp_full_match({text}, '{_WHOLE}') THEN TRY_CAST({text} AS INTEGER) END"
        )
        return f"(DATE '1970-01-01' + CASE WHEN ({days}) BETWEEN {_FIRST_DAY} AND {_LAST_DAY} THEN {days} END)"
    number = f"CASE WHEN regexp_full_match({text}, '-?[0-9]+(\\.[0-9]*)?') THEN TRY_CAST({text} AS DECIMAL(28, 9)) END"
    if field.unit == "ns":
        # in whole numbers: a division of decimals is one of floating points, which puts a day's last one on the next
        whole = (
            f"CASE WHEN regexp_full_match({text}, '{_WHOLE}') THEN TRY_CAST({text} AS HUGEINT) END"
        )
        micros = f"(({whole}) - ((({whole}) % 1000) + 1000) % 1000) // 1000"
    else:
        micros = f"floor(({number}) * {_PER_SECOND[str(field.unit)]})"
    held = f"CASE WHEN ({micros}) BETWEEN {_FIRST_DAY * _DAY} AND {(_LAST_DAY + 1) * _DAY - 1} THEN {micros} END"
    instant = f"make_timestamptz(CAST({held} AS BIGINT))"
    if field.type == "TIMESTAMPTZ":
        return instant
    clock = f"timezone('UTC', {instant})"
    return clock if field.type == "TIMESTAMP" else f"CAST({clock} AS DATE)"


def _reason(events: Events) -> str:
    cases = ["WHEN __bad IS NOT NULL THEN __bad"]
    changes = isinstance(events.decode, Debezium)
    for n, (name, f) in enumerate(events.typed.items(), 1):
        if changes and name not in events.key:
            shown = name.replace("'", "''")
            cases.append(
                f"WHEN __x[{n}] = {literal(UNLOGGED)} AND NOT coalesce(__gone, false) THEN 'field {shown} was not logged, since it"
                " is large and was not changed: set REPLICA IDENTITY FULL on its table'"
            )
        says = f"'field {name.replace(chr(39), chr(39) * 2)} holds ' || left(__x[{n}], 60) || ', which is no {f.type}'"
        # what else a deletion tells of its row is not used
        used = "true" if not changes or name in events.key else "NOT coalesce(__gone, false)"
        cases.append(f"WHEN __x[{n}] IS NOT NULL AND {quoted(name)} IS NULL AND {used} THEN {says}")
    for name in events.key:
        shown = name.replace("'", "''")
        cases.append(f"WHEN {quoted(name)} IS NULL THEN 'it has no {shown}, which is of its key'")
    for name in () if isinstance(events.decode, Debezium) else events.ordering:
        shown = name.replace("'", "''")
        cases.append(f"WHEN {quoted(name)} IS NULL THEN 'it has no {shown}, which orders it'")
    time, shown = quoted(events.time), events.time.replace("'", "''")
    timeless = "false" if events.within == "slice" else "__gone"
    cases.append(
        f"WHEN {time} IS NULL AND NOT {timeless} THEN 'it has no {shown}, which is its time'"
    )
    return f"CASE {' '.join(cases)} END"
