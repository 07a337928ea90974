"""What the canonical texts of several engines have in common."""

from __future__ import annotations


def unpadded(text: str, trim_end: str = "rtrim({text}, {letter})", n: str = "") -> str:
    """Return the SQL of the text of a number or a time without zeros behind its last digit; `n` is before literals."""
    zeros = trim_end.format(text=text, letter=f"{n}'0'")
    short = trim_end.format(text=zeros, letter=f"{n}'.'")
    return f"CASE WHEN {text} LIKE {n}'%.%' THEN {short} ELSE {text} END"
