"""What came of a comparison as the UI shows it: numbers as numbers, the worst keys as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import dagster as dg

from backfill_assets.strategies.dual_write.migration import Migration
from backfill_assets.strategies.reconcile.day import DayCompared, KeyFound
from backfill_assets.strategies.reconcile.streak import told

_SHOWN = 20
_WHERE = {
    "only_old": "only in the old table",
    "only_new": "only in the new table",
    "differs": "other values",
}


def metadata_of(day: DayCompared, keys: Sequence[KeyFound]) -> dict[str, Any]:
    """Return the metadata of a day's materialization."""
    found: dict[str, Any] = {
        "verdict": day.verdict,
        "rows_old": day.old.rows,
        "rows_new": day.new.rows,
        "equal": day.equal,
        "differing": day.differing,
        "only_old": day.only_old,
        "only_new": day.only_new,
        "share": day.share,
        "checksum_old": day.old.checksum,
        "checksum_new": day.new.checksum,
        "compared_at": day.compared_at.isoformat(),
    }
    for name, (old, new) in sums(day).items():
        found |= {f"{name}_old": _shown(old), f"{name}_new": _shown(new), f"{name}_difference": _shown(new - old)}  # fmt: skip
    if day.columns:
        found["differing_by_column"] = dg.MetadataValue.json(by_column(day))
    if keys:
        found["worst_keys"] = keys_table(keys)
    return found


def by_column(day: DayCompared) -> dict[str, int]:
    """Return in how many rows each column differs, the worst first."""
    return dict(sorted(day.columns.items(), key=lambda pair: (-pair[1], pair[0])))


def sums(day: DayCompared) -> dict[str, tuple[Decimal, Decimal]]:
    """Return the totals of each measure on both sides."""
    return {name: (total, day.new.sums[name]) for name, total in day.old.sums.items()}


def keys_table(keys: Sequence[KeyFound]) -> Any:
    """Return the keys that differ as a table: the key, where it is, and both values of each column that differs."""
    columns = ("key", "where", "column", "old", "new", "copies")
    records = [
        dg.TableRecord({name: line[name] for name in columns})
        for key in keys[:_SHOWN]
        for line in lines_of(key)
    ]
    schema = dg.TableSchema(columns=[dg.TableColumn(name, "string") for name in columns])
    return dg.MetadataValue.table(records=records, schema=schema)


def lines_of(key: KeyFound) -> list[dict[str, str]]:
    """Return a line for each column that differs; one for a row that is on one side only."""
    head = {
        "key": ", ".join(f"{name}={_text(value)}" for name, value in key.key.items()),
        "where": _WHERE[key.kind],
        "copies": str(key.copies),
    }
    if key.kind != "differs":
        return [head | {"column": "", "old": _whole(key.old), "new": _whole(key.new)}]
    return [
        head | {"column": name, "old": _text(key.old.get(name)), "new": _text(key.new.get(name))}
        for name in key.columns
    ]


def within_threshold(migration: Migration, day: DayCompared) -> tuple[bool, str]:
    """Tell whether few enough rows of a day differ, and how many."""
    limit = f"{migration.threshold:.2%} may" if migration.threshold else "none may"
    return day.is_quiet, f"{told(day)}; {limit}"


def keys_match(_: Migration, day: DayCompared) -> tuple[bool, str]:
    """Tell whether every row has its like on the other side."""
    wrong = day.only_old + day.only_new + day.differing
    return not wrong, told(day) if wrong else f"all {day.equal:,} rows are the same on both sides"


def totals_match(migration: Migration, day: DayCompared) -> tuple[bool, str]:
    """Tell whether the totals of the measures differ by no more than the tolerances of all rows and the threshold allow."""
    wrong = {
        name: (old, new)
        for name, (old, new) in sums(day).items()
        if not _near(migration, name, day, old, new)
    }
    if not wrong:
        return True, "the totals agree" if day.old.sums else "no measure is declared"
    return False, "; ".join(
        f"{name} is {_plain(old)} in the old table and {_plain(new)} in the new one, {_plain(new - old)} apart"
        for name, (old, new) in wrong.items()
    )


CHECKS = {
    "within_threshold": (within_threshold, True, "Few enough rows differ for the day to be quiet."),
    "keys_match": (keys_match, False, "Every row has its like on the other side."),
    "totals_match": (totals_match, False, "The totals of the measures agree."),
}


def _near(migration: Migration, name: str, day: DayCompared, old: Decimal, new: Decimal) -> bool:
    if old == new or (old.is_nan() and new.is_nan()):
        return True
    if not (old.is_finite() and new.is_finite()):
        return False
    rule = migration.tolerance_of(name)
    size = max(abs(old), abs(new))
    share = Decimal(str(rule.relative)) + Decimal(str(migration.threshold))
    # floats are added up in any order
    share += Decimal("1e-9") if rule.as_float else 0
    allowed = Decimal(str(rule.absolute)) * max(day.old.rows, day.new.rows) + share * size
    return abs(new - old) <= allowed


def _whole(values: Mapping[str, str | None]) -> str:
    return ", ".join(f"{name}={_text(value)}" for name, value in values.items())


def _text(value: str | None) -> str:
    return "NULL" if value is None else value


def _shown(value: Decimal) -> float | str:
    return float(value) if value.is_finite() else str(value)


def _plain(value: Decimal) -> str:
    return f"{value:,f}" if value.is_finite() else str(value)
