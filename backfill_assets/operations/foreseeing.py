"""What the write path would refuse, as far as counts can tell beforehand: empty, shrunk, twins, not as expected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from backfill_assets.checks.by_slice import Buckets, Number, measured
from backfill_assets.checks.facts import Facts, against, count_apart, facts_of
from backfill_assets.engines import Session
from backfill_assets.engines.sql import quoted, summed
from backfill_assets.errors import BackfillError, Refused
from backfill_assets.expectations import NoRows, RowCount, Totals
from backfill_assets.operations.source_rows import relation_of
from backfill_assets.slice import Slice
from backfill_assets.writing import AuditTable, Run, Select
from backfill_assets.writing import measure as measuring
from backfill_assets.writing.expecting import (
    compared,
    refuse_unexpected,
    scale_of,
    summed_columns,
)
from backfill_assets.writing.fit import folded


@dataclass(frozen=True)
class Coming:
    """What a query would bring for one slice: rows, how many of them repeat a unique key, sums by column."""

    rows: int
    repeated: int = 0
    sums: Mapping[str, Number] = field(default_factory=dict[str, Number])
    scales: Mapping[str, float] = field(default_factory=dict[str, float])


def coming(session: Session, slices: Sequence[Slice], select: Select) -> list[Coming]:
    """Return what `select` holds now for each of `slices`, read in one scan."""
    table, spelling = slices[0].table, session.spelling
    buckets = Buckets.of(slices, apart=bool(table.unique_key))
    relation = relation_of(session, table, buckets, select)
    wanted = [*table.unique_key, *summed_columns(table.expects)]
    there = session.columns_of(relation) if wanted else None
    named = {folded(name, spelling) for name in there or ()}
    measures = {"rows": "count(*)"}
    if table.unique_key and all(folded(name, spelling) in named for name in table.unique_key):
        measures["keys"] = count_apart(spelling, table.unique_key, there or {})
    sums = [name for name in summed_columns(table.expects) if folded(name, spelling) in named]
    measures |= {f"sum {name}": summed(spelling, quoted(spelling, name)) for name in sums}
    measures |= {f"abs {name}": summed(spelling, f"abs({quoted(spelling, name)})") for name in sums}
    return [
        Coming(
            int(one["rows"]),
            int(one["rows"]) - int(one.get("keys", one["rows"])),
            {name: one[f"sum {name}"] for name in sums},
            {name: scale_of(one[f"abs {name}"]) for name in sums},
        )
        for one in measured(session, buckets, relation, measures)
    ]


def foreseen(
    session: Session,
    slices: Sequence[Slice],
    rows: Sequence[int],
    found: Sequence[Coming],
    audit: AuditTable,
) -> list[list[str]]:
    """Return for each slice why its rows would be refused; `rows` are those that are there now."""
    table = slices[0].table
    facts = facts_of(session, table, slices, audit) if table.expects else None
    return [
        list(_refused(slice_, rows[place], found[place], facts, place))
        for place, slice_ in enumerate(slices)
    ]


def _refused(
    slice_: Slice, before: int, found: Coming, facts: Facts | None, place: int
) -> Iterator[str]:
    staged, run = measuring.Facts(found.rows, ""), Run("preview", lane="backfill")
    try:
        measuring.refuse_empty(slice_, staged, run)
        measuring.refuse_shrunk(slice_, before, staged, run)
    except Refused as error:
        yield f"{error.why}; {error.do}"
    if found.repeated and slice_.table.duplicate_keys == "block":
        key = ", ".join(slice_.table.unique_key)
        yield f"{found.repeated} of its rows repeat a value of the unique key ({key})"
    if facts is not None:
        try:
            _refuse_unexpected(slice_, found, facts, place)
        except Refused as error:
            yield f"{error.why}; {error.do}"


def _refuse_unexpected(slice_: Slice, found: Coming, facts: Facts, place: int) -> None:
    """Raise when a count or a total differs from the source or from a number that is declared."""
    findings = []
    for rule in slice_.table.expects:
        if isinstance(rule, NoRows) or rule.against == "last_load" or _asks(rule):
            continue
        for about, number in _numbers(rule, found):
            try:
                expected, whose = against(facts, slice_, place, rule, about)
            except BackfillError:
                continue
            scale = found.scales.get(about, 0.0)
            findings.append(compared(rule, about, expected, number, whose, scale=scale))
    refuse_unexpected(slice_, findings)


def _asks(rule: RowCount | Totals) -> bool:
    return isinstance(rule, RowCount) and rule.query is not None


def _numbers(rule: RowCount | Totals, found: Coming) -> list[tuple[str, Number]]:
    if isinstance(rule, RowCount):
        return [("rows", found.rows)]
    return [(name, found.sums[name]) for name in rule.measures if name in found.sums]
