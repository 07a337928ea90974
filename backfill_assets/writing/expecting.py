"""What a slice is expected to hold, compared with what came, before anything is deleted.

Everything is read outside the transaction: the stage is what will be written, and that it was written is verified
there. The comparison itself is shared with the checks that look again after the commit.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any, cast

from backfill_assets.engines.protocol import Session
from backfill_assets.engines.sql import bound, first, predicate, quoted, summed
from backfill_assets.errors import BackfillError, DeclarationError, NotAsExpected
from backfill_assets.expectations import Expectation, NoRows, RowCount, Source, Totals, trimmed
from backfill_assets.slice import Slice
from backfill_assets.writing.fit import folded
from backfill_assets.writing.reference import reference
from backfill_assets.writing.run import Run

if TYPE_CHECKING:
    from backfill_assets.writing.audit import AuditTable

Number = int | float | Decimal

# the same floats added in another order differ by about this share
_FLOAT_NOISE = 1e-9


@dataclass(frozen=True)
class Finding:
    """What one rule found in one slice.

    `rule` is `row_count`, `totals`, `duplicate_keys` or the name of a `NoRows`; `about` is `rows`, `keys` or a column.
    `expected` is None where there is nothing to compare with yet, or where it could not be found out, which `why`
    then says and which never passes. `may_differ` is the largest difference that passes. `allowed` is set where the
    run was launched to pass it.
    """

    rule: str
    about: str
    expected: Number | None
    found: Number | None
    may_differ: float
    passed: bool
    severity: str
    why: str
    allowed: bool = False

    @property
    def stops(self) -> bool:
        """Whether the slice must not be written so."""
        return not self.passed and self.severity == "block" and not self.allowed

    def as_plain(self) -> dict[str, Any]:
        """Return the finding as JSON has it."""
        plain = asdict(self)
        for name in ("expected", "found"):
            if isinstance(plain[name], Decimal):
                plain[name] = str(plain[name])
        return plain


def refuse_unexpected(slice_: Slice, findings: Sequence[Finding]) -> None:
    """Raise when any of `findings` must stop the slice."""
    stopping = [finding for finding in findings if finding.stops]
    if stopping:
        names = ",".join(dict.fromkeys(allowance(finding.rule) for finding in stopping))
        raise NotAsExpected(
            f"{slice_.label} was left as it was",
            "; ".join(f"{finding.rule}: {finding.why}" for finding in stopping),
            _what_to_do(stopping, names),
        )


def _what_to_do(stopping: Sequence[Finding], names: str) -> str:
    if all(finding.found is None for finding in stopping):
        return "Correct what the table is declared to expect, or what it names"
    return (
        f"Look at the source and the transform; if this is right, launch with the run tags allow={names} and"
        " reason=..., or change what the table expects"
    )


def allowance(rule: str) -> str:
    """Return what a run's tag `allow` says to pass a rule."""
    return rule if rule in ("row_count", "totals", "duplicate_keys") else f"rule:{rule}"


def findings_of(
    session: Session, slice_: Slice, rows: str, staged: Staged, run: Run, audit: AuditTable
) -> list[Finding]:
    """Return what the table's rules find in `rows` (a SELECT of what will be written)."""
    found = [_twins(slice_, staged, run)] if staged.twins else []
    for rule in slice_.table.expects:
        try:
            if isinstance(rule, NoRows):
                found.append(_broken(session, rule, rows, run))
            else:
                found += _compared(session, slice_, rule, staged, run, audit)
        except BackfillError as error:  # a rule that cannot be asked has not passed
            found.append(
                Finding(
                    rule.name,
                    "rows",
                    None,
                    None,
                    0,
                    passed=False,
                    severity=rule.severity,
                    why=f"it could not be asked ({error.what}: {error.why})",
                    allowed=allowance(rule.name) in run.allows,
                )
            )
    return found


@dataclass(frozen=True)
class Staged:
    """What the one scan of the stage says beside its hash: rows, sums by column, keys that come more than once."""

    rows: int
    sums: dict[str, Number]
    twins: int = 0
    scales: dict[str, float] = field(default_factory=dict[str, float])


def summed_columns(expects: Sequence[Expectation]) -> list[str]:
    """Return the columns that a table's totals add up, each once."""
    return list(
        dict.fromkeys(
            name for rule in expects if isinstance(rule, Totals) for name in rule.measures
        )
    )


def compared(
    rule: RowCount | Totals,
    about: str,
    expected: Number | None,
    found: Number,
    whose: str,
    *,
    allowed: bool = False,
    scale: float = 0.0,
) -> Finding:
    """Return what comparing two numbers says; `whose` tells where the expected one comes from."""
    may_differ = 0.0
    passed, why = True, f"there is nothing to compare with yet ({whose})"
    if expected is not None:
        may_differ = _may_differ(rule, expected)
        passed = agree(expected, found, may_differ, scale)
        beyond = f"beyond {rule.tolerance:.4g} of it" + (
            f" and {rule.absolute:g}" if rule.absolute else ""
        )
        why = f"{about} {shown(found)}, and {whose} has {shown(expected)}"
        why += "" if passed else f", which differs {beyond}"
    return Finding(
        rule.name, about, expected, found, may_differ, passed, rule.severity, why, allowed
    )


def agree(expected: Number, found: Number, may_differ: float, scale: float = 0.0) -> bool:
    """Tell whether two sums differ by no more than `may_differ`; NaN agrees with NaN, infinity with itself.

    `scale` is the sum of the absolute values, which tells how much of a sum of floats is noise where it is near zero.
    """
    if _is_nan(expected) or _is_nan(found):
        return _is_nan(expected) and _is_nan(found)
    if expected == found:
        return True
    if isinstance(expected, float) or isinstance(found, float):
        gap = abs(float(expected) - float(found))
        noise = _FLOAT_NOISE * max(abs(float(expected)), abs(float(found)), scale)
        return math.isfinite(gap) and gap <= max(may_differ, noise)
    with exact_decimals():
        return abs(Decimal(expected) - Decimal(found)) <= Decimal(str(may_differ))


@contextlib.contextmanager
def exact_decimals() -> Generator[None, None, None]:
    """Let no sum or difference of decimals be rounded: with more digits than any engine's decimals have."""
    with localcontext() as exact:
        exact.prec = 200
        yield


def shown(number: Number) -> str:
    """Return a number as a sentence shows it."""
    return f"{number:,}"


def scale_of(value: Any) -> float:
    """Return a sum of absolute values that matters: that of floats, 0 for all others, which are exact."""
    return value if isinstance(value, float) and math.isfinite(value) else 0.0


def number(value: Any, whose: str) -> Number:
    """Return a value of the warehouse as a number, no value as 0; raise where it is something else."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise DeclarationError(
            "what was expected is not known",
            f"{whose} gave {value!r}, which is no number",
            "Correct it",
        )
    return value


def _may_differ(rule: RowCount | Totals, expected: Number) -> float:
    share = rule.tolerance * abs(float(expected)) if rule.tolerance else 0.0
    return max(share if math.isfinite(share) else 0.0, float(rule.absolute))


def _is_nan(value: Number) -> bool:
    return value != value


def _compared(
    session: Session,
    slice_: Slice,
    rule: RowCount | Totals,
    staged: Staged,
    run: Run,
    audit: AuditTable,
) -> list[Finding]:
    allowed = allowance(rule.name) in run.allows
    if isinstance(rule, Totals):
        measures, founds = rule.measures, [staged.sums[name] for name in rule.measures]
    else:
        measures, founds = ("rows",), [staged.rows]
    expected, whose = expected_of(session, slice_, rule, audit)
    return [
        compared(
            rule, about, wanted, found, whose, allowed=allowed, scale=staged.scales.get(about, 0.0)
        )
        for about, wanted, found in zip(measures, expected, founds, strict=True)
    ]


def expected_of(
    session: Session, slice_: Slice, rule: RowCount | Totals, audit: AuditTable
) -> tuple[list[Number | None], str]:
    """Return what `rule` expects of one slice, one number for each of its measures, and whose numbers they are."""
    against = slice_.table.source if rule.against == "source" else rule.against
    if isinstance(against, Source):
        measures = rule.measures if isinstance(rule, Totals) else ()
        return _of_source(session, slice_, against, measures), whose_of(slice_, rule)
    if isinstance(against, int):
        return [against], "its declaration"
    if against == "last_load":
        last = audit.last_of(session, slice_)
        return [last.rows_after if last else None], "the last load"
    query = filled(session, slice_, str(against))
    named = session.spelling.one_value.format(name="expected")
    found = session.fetch(first(session.spelling, 2, f"* FROM (\n{query}\n) {named}"))
    if len(found) != 1 or len(found[0]) != 1 or found[0][0] is None:
        raise DeclarationError(
            "what was expected is not known",
            "its query did not give one number",
            "Let it return one row of one number",
        )
    return [number(found[0][0], "its query")], "its query"


def whose_of(slice_: Slice, rule: RowCount | Totals) -> str:
    """Return what sentences call the other side of a comparison."""
    if rule.against == "source":
        return "the source"
    return f"{' '.join(cast('Source', rule.against).sql.split())[:60]}"


def filled(session: Session, slice_: Slice, sql: str) -> str:
    """Return a query with the slice's edges in it, as the slice column spells them."""
    column, window = slice_.table.slice_column, slice_.window
    sql = trimmed(sql)
    if column is None or window is None:
        return sql
    start, end = (bound(session.spelling, column, edge) for edge in column.bounds(window))
    return sql.replace("{start}", start).replace("{end}", end)


def _of_source(
    session: Session, slice_: Slice, source: Source, measures: Sequence[str]
) -> list[Number | None]:
    at = reference(session, slice_.table, source)
    (own,) = at.slices([slice_])
    spelling = session.spelling
    asked = [summed(spelling, quoted(spelling, name)) for name in measures] or ["count(*)"]
    (found,) = session.fetch(
        f"SELECT {', '.join(asked)} FROM {at.relation} WHERE {predicate(session.spelling, own)}"
    )
    return [number(value, "the source") for value in found]


def _broken(session: Session, rule: NoRows, rows: str, run: Run) -> Finding:
    count = broken_rows(session, rule, rows)
    why = f"{count} rows break the rule" if count else "no row breaks the rule"
    return Finding(
        rule.name,
        "rows",
        0,
        count,
        0,
        passed=count == 0,
        severity=rule.severity,
        why=why,
        allowed=allowance(rule.name) in run.allows,
    )


def broken_rows(session: Session, rule: NoRows, rows: str) -> int:
    """Return how many rows of `rows` (a SELECT) a rule of one's own finds."""
    return int(session.fetch(broken_by(rule, rows, "SELECT count(*)"))[0][0])


def broken_by(rule: NoRows, rows: str, select: str = "SELECT *") -> str:
    """Return the query for the rows of `rows` (a SELECT) that a rule of one's own finds, or what `select` makes of them."""
    return f"WITH slice_rows AS (\n{rows}\n) {select} FROM (\n{trimmed(rule.sql)}\n) AS broken_rows"


def _twins(slice_: Slice, staged: Staged, run: Run) -> Finding:
    key = ", ".join(slice_.table.unique_key)
    return Finding(
        "duplicate_keys",
        "keys",
        0,
        staged.twins,
        0,
        passed=False,
        severity=slice_.table.duplicate_keys,
        why=f"{staged.twins} values of the unique key ({key}) come more than once",
        allowed="duplicate_keys" in run.allows,
    )


def must_have_measures(slice_: Slice, names: Sequence[str], spelling: Any) -> None:
    """Raise unless the columns that the totals of a table add up are among `names`, which it will have."""
    there = {folded(name, spelling) for name in names}
    for measure in summed_columns(slice_.table.expects):
        if folded(measure, spelling) not in there:
            raise DeclarationError(
                f"{slice_.label} was left as it was",
                f"its totals add up {measure!r}, and the table has only {', '.join(map(repr, names))}",
                "Correct Totals, or add the column",
            )
