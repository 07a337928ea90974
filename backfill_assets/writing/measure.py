"""What is known of staged rows before anything is deleted, and the refusals that follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from backfill_assets.engines.protocol import Session, Spelling
from backfill_assets.engines.sql import (
    by_type,
    first,
    listed,
    predicate,
    qualified,
    quoted,
    same_text,
    summed,
)
from backfill_assets.errors import BadRows, EmptySlice, ShrunkSlice, WriteFailed
from backfill_assets.slice import Slice
from backfill_assets.writing.casts import refuse_lossy
from backfill_assets.writing.expecting import (
    Staged,
    must_have_measures,
    number,
    scale_of,
    summed_columns,
)
from backfill_assets.writing.fit import Fit
from backfill_assets.writing.run import Run

_SAMPLE = 5
_SHOWN = 80


@dataclass(frozen=True)
class Facts:
    """Rows of a slice and the sum of their hashes."""

    rows: int
    checksum: str


def facts_of_stage(
    session: Session, slice_: Slice, found: Fit, stage: str, run: Run
) -> tuple[Facts, Staged]:
    """Scan the stage once; raise unless every row belongs to the slice, fits its columns and is there once."""
    refuse_lossy(session, slice_, found, stage)
    spelling, rows = session.spelling, found.select(session.spelling, stage)
    columns = dict(zip(found.names, found.types, strict=True))
    belonging = f"count(CASE WHEN {predicate(spelling, slice_)} THEN 1 END)"
    key, measures = slice_.table.unique_key, summed_columns(slice_.table.expects)
    must_have_measures(slice_, found.names, spelling)
    keyed = (
        f"count(coalesce({', '.join(_present(spelling, name) for name in key)}, NULL))"
        if key
        else "count(*)"
    )
    sums = "".join(
        f", {summed(spelling, name)}, {summed(spelling, f'abs({name})')}"
        for name in (quoted(spelling, m) for m in measures)
    )
    total, inside, with_key, checksum, *added = session.fetch(
        f"SELECT count(*), {belonging}, {keyed}, {_checksum(session, columns)}{sums} FROM ({rows}) AS staged"
    )[0]
    if inside < total:
        raise _strangers(session, slice_, rows, total, total - inside)
    if with_key < total:
        raise BadRows(
            f"{slice_.label} was left as it was",
            f"{total - with_key} rows have no value in the unique key ({', '.join(key)})",
            "Give every row a key in the transform, or leave such rows out",
        )
    twins = _duplicates(session, slice_, rows, run)
    by_name = {m: number(v, f"sum({m})") for m, v in zip(measures, added[::2], strict=True)}
    scales = {m: scale_of(v) for m, v in zip(measures, added[1::2], strict=True)}
    return Facts(int(total), str(checksum)), Staged(int(total), by_name, twins, scales)


def _present(spelling: Spelling, name: str) -> str:
    """Return 1 where a column has a value, and nothing where it has none."""
    return f"CASE WHEN {quoted(spelling, name)} IS NOT NULL THEN 1 END"


def _strangers(session: Session, slice_: Slice, rows: str, total: int, outside: int) -> BadRows:
    """Say how many rows do not belong to the slice, and between what the slice column runs."""
    column, about = slice_.table.slice_column, ""
    if column is not None and slice_.window is not None:
        cut = quoted(session.spelling, column.name)
        nulls, lowest, highest = session.fetch(
            f"SELECT count(*) - count({cut}), CAST(min({cut}) AS {session.spelling.text_type}), CAST(max({cut}) AS {session.spelling.text_type})"
            f" FROM ({rows}) AS staged"
        )[0]
        about = (
            f", {nulls} of them without a value" if nulls else ""
        ) + f"; {cut} runs from {lowest} to {highest}"
    for dimension, wanted in slice_.fixed:
        name = quoted(session.spelling, dimension)
        others = session.fetch(
            first(
                session.spelling,
                _SAMPLE,
                f"CAST({name} AS {session.spelling.text_type}) FROM ({rows}) AS staged WHERE {name} IS NULL"
                f" OR NOT ({same_text(session.spelling, dimension, wanted)})",
                distinct=True,
            )
        )
        if others:
            about += f"; {name} holds {', '.join('no value' if v is None else _cut(repr(v)) for (v,) in others)}"
    return BadRows(
        f"{slice_.label} was left as it was",
        f"{outside} of {total} rows do not belong to it{about}, and the slice is {predicate(session.spelling, slice_)}",
        "Filter the source to the slice and give every row a value; where days are off by one, correct the time zone",
    )


def facts_of_table(session: Session, slice_: Slice, found: Fit) -> Facts:
    """Read the slice back from the table, in the transaction that wrote it."""
    return facts_of_columns(session, slice_, dict(zip(found.names, found.types, strict=True)))


def facts_of_columns(session: Session, slice_: Slice, columns: Mapping[str, str]) -> Facts:
    """Read the slice from the table, its hash taken over these columns of these types."""
    rows, checksum = session.fetch(
        f"SELECT count(*), {_checksum(session, columns)} FROM {qualified(session.spelling, slice_.table)}"
        f" WHERE {predicate(session.spelling, slice_)}"
    )[0]
    return Facts(int(rows), str(checksum))


def refuse_empty(slice_: Slice, staged: Facts, run: Run) -> None:
    """Raise when no rows came and neither the table's declaration nor the run says that this is right."""
    if staged.rows or "empty" in run.allows or slice_.table.empty_is_right(slice_.window):
        return
    raise EmptySlice(
        f"{slice_.label} was left as it was",
        "no rows came for it, and an empty slice is not declared to be right",
        "Load the source first; or declare allow_empty (True, or the days); or launch with the run tags allow=empty and reason=...",
    )


def refuse_shrunk(slice_: Slice, before: int, staged: Facts, run: Run) -> None:
    """Raise when a slice would lose more of its rows than its table tolerates."""
    table = slice_.table
    if before < table.shrink_floor or "shrink" in run.allows:
        return
    # nothing came: a day that is named, or the run, has said that this is right; `allow_empty=True` only of any day
    if staged.rows == 0 and ("empty" in run.allows or table.empty_is_expected(slice_.window)):
        return
    if staged.rows < before * (1 - table.max_shrink):
        raise ShrunkSlice(
            f"{slice_.label} was left as it was",
            f"it holds {before} rows and only {staged.rows} came, a loss beyond {table.max_shrink:.0%}",
            "Look at the source; if the loss is right, launch with the run tags allow=shrink and reason=..., or raise max_shrink",
        )


def must_agree(slice_: Slice, staged: Facts, inserted: int, written: Facts) -> None:
    """Raise unless the table now holds exactly what was staged."""
    if inserted not in (staged.rows, -1) or written != staged:
        raise WriteFailed(
            f"{slice_.label} was left as it was",
            f"{staged.rows} rows were staged, {inserted} inserted and {written.rows} found with"
            f" {'the same' if written.checksum == staged.checksum else 'another'} checksum",
            "Look for a trigger, a default or another writer that changes rows on their way, then launch this again",
        )


def _cut(value: object) -> str:
    """Return a value as a sentence shows it: a long one is cut off."""
    shown = str(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."


def _checksum(session: Session, names: Mapping[str, str]) -> str:
    spelling = session.spelling
    columns: list[str] = []
    for place, (name, kind) in enumerate(names.items(), 1):
        template = by_type(spelling.column_hash, kind)
        columns.append(template.format(column=quoted(spelling, name), place=place))
    joined = spelling.hash_joint.join(columns)
    return spelling.hash_sum.format(hash=spelling.row_hash.format(columns=joined))


def _duplicates(session: Session, slice_: Slice, rows: str, run: Run) -> int:
    """Return how many key values come more than once, NULL parts counting as equal; raise where that stops the slice."""
    if not slice_.table.unique_key:
        return 0
    spelling = session.spelling
    keys = listed(spelling, slice_.table.unique_key)
    twice = (
        f"{keys}, count(*) AS copies FROM ({rows}) AS staged GROUP BY {keys} HAVING count(*) > 1"
    )
    found = int(session.fetch(f"SELECT count(*) FROM (SELECT {twice}) AS twice")[0][0])
    passes = slice_.table.duplicate_keys == "warn" or "duplicate_keys" in run.allows
    if found and not passes:
        sample = session.fetch(first(spelling, _SAMPLE, f"{twice} ORDER BY {keys}"))
        raise BadRows(
            f"{slice_.label} was left as it was",
            f"{found} values of the unique key ({', '.join(slice_.table.unique_key)}) come more than once,"
            f" for example {'; '.join(', '.join(_cut(v) for v in row[:-1]) + f' x{row[-1]}' for row in sample)}",
            "Remove the duplicates in the transform, or correct unique_key; if they are right, launch with the run"
            " tags allow=duplicate_keys and reason=...",
        )
    return found
