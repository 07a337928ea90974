"""Bytes of events as text, before SQL reads them: what is no UTF-8 has none, and no digit of a decimal is lost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from backfill_assets.errors import DeclarationError
from backfill_assets.strategies.replay.debezium import Debezium
from backfill_assets.strategies.replay.events import Events, Json

if TYPE_CHECKING:
    import pyarrow as pa

# more digits than a JSON reader's floating point keeps
_LONG_NUMBER = r"[:\[,]\s*-?[0-9][0-9.]{16,}"


def with_texts(batch: pa.Table, events: Events) -> pa.Table:
    """Return the batch with `__` before its names, `__text` and `__key_text`; or with the fields that a decoder of one's own makes of it."""
    if not isinstance(events.decode, (Json, Debezium)):
        return _by_own(batch, events)
    text = _text(batch["value"])
    if any(f.scale_known for f in events.typed.values()):
        text = _exact(text)
    own = batch.rename_columns([f"__{name}" for name in batch.column_names])
    return own.append_column("__text", text).append_column("__key_text", _text(batch["key"]))


def _text(column: Any) -> Any:
    """Return bytes as text; NULL for what is no UTF-8."""
    import pyarrow as pa

    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.chunked_array([pa.array([_decoded(v) for v in column.to_pylist()], pa.string())])


def _decoded(value: bytes | None) -> str | None:
    try:
        return value.decode() if value is not None else None
    except UnicodeDecodeError:
        return None


def _exact(text: Any) -> Any:
    """Return the texts with long numbers as JSON strings, which SQL reads to the last digit."""
    import pyarrow as pa
    import pyarrow.compute as pc

    long: Any = pc.match_substring_regex(text, _LONG_NUMBER)
    if not pc.any(long).as_py():
        return text
    pairs = zip(text.to_pylist(), long.to_pylist(), strict=True)
    return pa.chunked_array([pa.array([_quoting(t) if is_long else t for t, is_long in pairs])])


def _quoting(text: str) -> str:
    try:
        return json.dumps(json.loads(text, parse_float=str))
    except (ValueError, RecursionError):
        return text  # SQL says what is wrong with it


def _by_own(batch: pa.Table, events: Events) -> pa.Table:
    import pyarrow as pa

    made = events.decode(batch)
    if not isinstance(made, pa.Table) or made.num_rows != batch.num_rows:
        raise DeclarationError(
            "the events were not decoded",
            f"the decoder returned {made.num_rows if isinstance(made, pa.Table) else type(made).__name__} for {batch.num_rows} events",
            "Return an Arrow table with a row for each event, in order",
        )
    missing = [name for name in events.typed if name not in made.column_names]
    if missing:
        raise DeclarationError(
            "the events were not decoded",
            f"the decoder returned no {', '.join(missing)}",
            "Return every declared field",
        )
    kept = [c for c in ("ordinal", "at", "value", "position") if c in batch.column_names]
    error = made["error"] if "error" in made.column_names else pa.nulls(made.num_rows, pa.string())
    columns: dict[str, Any] = {f"__{name}": batch[name] for name in kept}
    columns |= {"__bad": error, **{name: made[name] for name in events.typed}}
    return pa.table(columns)
