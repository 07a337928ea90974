"""What makes two values the same, as SQL: each type's family, its one text in every engine, tolerances that are part of it.

Decimals have no zeros at their end and no exponent, floats one spelling, instants are UTC's clock, texts their letters.
What numbers may differ by is no part of a value: `differing.py` applies it.
"""

from __future__ import annotations

import re

from backfill_assets.engines.protocol import Spelling
from backfill_assets.engines.sql import text
from backfill_assets.strategies.dual_write.tolerance import Tolerance
from backfill_assets.writing.fit import family

EXACT_NUMBERS = ("integer", "decimal")
NUMBERS = (*EXACT_NUMBERS, "float")
MOMENTS = ("timestamp", "timestamptz")
_PLAIN = {
    "bool": "boolean",
    "bytea": "binary",
    "blob": "binary",
    "bytes": "binary",
    "varbinary": "binary",
    "uniqueidentifier": "uuid",
    "time without time zone": "time",
}
_WORDS = re.compile(r"\s*\(.*?\)")
_SIZE = re.compile(r"\((\d+)(?:\s*,\s*(-?\d+))?\)")
# letters of `2026-05-01 00:00:00.000`
_LETTERS = {"microsecond": 26, "millisecond": 23, "second": 19, "minute": 16, "hour": 13, "day": 10}
_MOST_DIGITS = 38
_DIGITS_OF_64_BITS = 18
# all whole numbers below are spelled as such, and halves to eighths above 2 ** 49 by a whole number
_WHOLE, _FINE = "1e18", "1e15"


def family_of(kind: str, spelling: Spelling) -> str:
    """Return the family of a type: integer, decimal, float, text, date, timestamp, timestamptz, time, boolean, uuid, binary, or the type."""
    found = family(kind, spelling)
    plain = _WORDS.sub("", found).strip()
    plain = spelling.families.get(plain, _PLAIN.get(plain, plain))
    return plain if plain in ("boolean", "binary", "uuid", "time") else found


def digits_of(kind: str) -> tuple[int, int] | None:
    """Return how many digits before and behind the point a number's type has; None where it does not say."""
    plain = kind.strip().lower()
    if size := _SIZE.search(plain):
        scale = int(size[2] or 0)
        return int(size[1]) - scale, scale
    if plain.startswith(("decimal", "numeric", "number", "bignumeric")):
        return None
    return (_MOST_DIGITS if "huge" in plain or "128" in plain else 20), 0


def is_long(kind: str) -> bool:
    """Tell whether a number's type holds more than 18 digits, and so more than 64 bits."""
    plain, size = kind.strip().lower(), digits_of(kind)
    if plain.startswith(("hugeint", "uhugeint")):
        return True
    exact = plain.startswith(("decimal", "numeric", "number"))
    return exact and (size is None or sum(size) > _DIGITS_OF_64_BITS)


def common_scale(spelling: Spelling, *kinds: str) -> int | None:
    """Return the scale of the one decimal that holds the values of both types; None where there is no such."""
    found = [digits_of(kind) for kind in kinds]
    if "{scale}" not in spelling.wide["decimal"]:
        return 0  # it has as many places as a value needs
    sizes = [size for size in found if size is not None]
    if len(sizes) < len(found):
        return None
    whole, scale = max(size[0] for size in sizes), max(size[1] for size in sizes)
    return scale if whole + scale <= _MOST_DIGITS else None


def has_text(spelling: Spelling, family: str) -> bool:
    """Tell whether the values of a family have the text that other engines give them."""
    return bool(spelling.text_number) and family in spelling.canonical


def as_text(spelling: Spelling, family: str, kind: str, value: str) -> str:
    """Return the text of a value: that of every engine where there is one, else this engine's own."""
    if family == "float":
        return _float_text(spelling, value)
    size = digits_of(kind) if family == "decimal" else None
    if size is not None and size[1] <= 0:
        family = "integer"
    elif size is not None and size[0] == 0 and size[1] < _MOST_DIGITS:
        # some write no zero before the point
        value = f"CAST({value} AS {spelling.wide['decimal'].format(scale=size[1])})"
    template = spelling.canonical.get(family, f"CAST({{column}} AS {spelling.text_type})")
    return template.format(column=value)


def _float_text(spelling: Spelling, value: str) -> str:
    template = spelling.canonical.get("float", f"CAST({{column}} AS {spelling.text_type})")
    text_type, whole = spelling.text_type, spelling.wide["integer"]

    def spelled(number: str) -> str:
        return f"CAST(CAST({number} AS {whole}) AS {text_type})"

    eighths = f"{spelled(f'{value} * 8')}{spelling.joint}{text(spelling, '/8')}"
    return (
        f"CASE WHEN abs({value}) < {_WHOLE} AND floor({value}) = {value} THEN {spelled(value)}"
        f" WHEN abs({value}) < {_WHOLE} AND abs({value}) >= {_FINE} THEN {eighths}"
        f" ELSE {template.format(column=value)} END"
    )


def as_float(spelling: Spelling, family: str, value: str) -> str:
    """Return a number as a float of 64 bits, minus nothing being nothing."""
    wide = spelling.wide["float"]
    if family == "decimal":  # digit by digit: dividing by a power of ten would round twice
        value = f"CAST({value} AS {spelling.text_type})"
    return f"(CAST({value} AS {wide}) + 0)"


def tolerant_text(spelling: Spelling, tolerance: Tolerance, value: str) -> str:
    """Return a text without what its tolerance passes over."""
    if tolerance.ignore_case:
        value = f"lower({value})"
    if tolerance.ignore_trailing_space:
        value = spelling.trim_blanks.format(text=value)
    if tolerance.null_is_empty:
        value = f"coalesce({value}, {text(spelling, '')})"
    return value


def trimmed(spelling: Spelling, value: str, letter: str) -> str:
    """Return a text without some letter at its end."""
    return spelling.trim_end.format(text=value, letter=text(spelling, letter))


def cut_off(spelling: Spelling, tolerance: Tolerance, value: str) -> str:
    """Return the text of a time without what is finer than its tolerance."""
    letters = _LETTERS[tolerance.time or "microsecond"]
    short = f"substring({value}, 1, {letters})"
    if letters > _LETTERS["second"]:
        ended = trimmed(spelling, trimmed(spelling, short, "0"), ".")
        return f"CASE WHEN {value} LIKE {text(spelling, '%.%')} THEN {ended} ELSE {value} END"
    return short


def row_text(spelling: Spelling, values: list[tuple[str, str]]) -> str:
    """Return the one text of a row of (family, text) that no other row has: NULL apart from every text."""
    parts: list[str] = []
    for kind, value in values:
        if kind not in (*NUMBERS, *MOMENTS, "date", "time", "boolean", "uuid", "binary"):
            escaped = f"replace(replace({value}, {text(spelling, '^')}, {text(spelling, '^^')})"
            value = f"{text(spelling, '=')}{spelling.joint}{escaped}, {text(spelling, '|')}, {text(spelling, '^!')})"
        parts.append(f"coalesce({value}, {text(spelling, '~')})")
    return f"{spelling.joint}{text(spelling, '|')}{spelling.joint}".join(parts)
