"""What a backfill may spend: warehouse seconds, rows, cost, and until when. Spending is summed from the load audit."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timezone
from typing import Any

import dagster as dg

from backfill_assets.controls.gate import Control
from backfill_assets.controls.store import Document, Store
from backfill_assets.engines import Session
from backfill_assets.errors import DeclarationError
from backfill_assets.slice import Slice
from backfill_assets.table import Table
from backfill_assets.writing import AuditTable, Run, Spent

TAG = "budget/"
_FRESH_SECONDS = 1.0


@dataclass(frozen=True)
class Budget:
    """Caps; None is no cap. `cost` is in the engine's unit, where the engine tells one; `deadline` is aware."""

    seconds: float | None = None
    rows: float | None = None
    cost: float | None = None
    deadline: datetime | None = None

    def __post_init__(self) -> None:
        for name in ("seconds", "rows", "cost"):
            cap = getattr(self, name)
            if cap is not None and not cap > 0:
                raise _wrong(name, cap, "it should be more than 0", "Give a positive number")
        if self.deadline is not None and self.deadline.tzinfo is None:
            raise _wrong(
                "deadline",
                self.deadline.isoformat(),
                "it has no time zone",
                "Write it like 2026-12-02T06:00+00:00",
            )

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Budget:
        """Return the budget in `given` (numbers or texts); raise `DeclarationError` for what cannot be one."""
        names = [field.name for field in fields(cls)]
        if not isinstance(given, Mapping):
            raise DeclarationError(
                f"the budget {given!r} cannot be used",
                "it does not say what it caps",
                f"Give caps by name, as in {{'rows': 1000000}}, of {', '.join(names)}",
            )
        unknown = sorted(set(given) - set(names), key=str)
        if unknown:
            raise _wrong(
                unknown[0],
                given[unknown[0]],
                "nothing is measured so",
                f"Choose from {', '.join(names)}",
            )
        return cls(
            **{name: _value(name, value) for name, value in given.items() if value is not None}
        )

    @classmethod
    def of_tags(cls, tags: Mapping[str, str]) -> Budget:
        """Return the budget in the run tags `budget/seconds`, `budget/rows`, `budget/cost`, `budget/deadline`."""
        return cls.of(
            {key[len(TAG) :]: value for key, value in tags.items() if key.startswith(TAG)}
        )

    def over(self, other: Budget) -> Budget:
        """Return this budget, filled from `other` where it has no cap."""
        mine = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(other, **{name: cap for name, cap in mine.items() if cap is not None})

    @property
    def is_set(self) -> bool:
        """Whether there is any cap."""
        return any(getattr(self, field.name) is not None for field in fields(self))

    @property
    def told(self) -> str:
        """The caps in words."""
        return ", ".join(
            f"{field.name} {value}"
            for field in fields(self)
            if (value := getattr(self, field.name)) is not None
        )

    def exceeded(self, spent: Spent, now: datetime) -> list[str]:
        """Return in words each cap that is reached."""
        found = [
            f"{getattr(spent, name):g} of {cap:g} {what} are spent"
            for name, what in (("seconds", "warehouse seconds"), ("rows", "rows"), ("cost", "cost"))
            if (cap := getattr(self, name)) is not None and getattr(spent, name) >= cap
        ]
        if self.deadline is not None and now >= self.deadline:
            found.append(f"the deadline {self.deadline.isoformat(timespec='minutes')} has passed")
        return found


def raise_budget(
    instance: dg.DagsterInstance, backfill: str, budget: Budget, by: str, reason: str
) -> None:
    """Let `backfill` spend up to `budget` from now on, whatever its tags and the settings say."""
    caps = {
        field.name: value.isoformat() if isinstance(value, datetime) else value
        for field in fields(budget)
        if (value := getattr(budget, field.name)) is not None
    }
    if not caps:
        raise _wrong("none", "", "no cap is given", "Give seconds, rows, cost or deadline")

    def add(document: Document) -> Document:
        return {
            **document,
            "caps": {**document.get("caps", {}), **caps},
            "by": by,
            "reason": reason,
        }

    Store(instance).change(_document(backfill), add)


def within_budget(
    instance: dg.DagsterInstance,
    run: Run,
    given: Budget,
    by_table: Budget,
    session: Callable[[], Session],
    audit: AuditTable,
) -> Control:
    """Return the control that refuses the next slice once a cap of the backfill, or of its table in it, is reached."""
    seen: dict[Table | None, tuple[float, Spent]] = {}

    def spent(table: Table | None) -> Spent:
        at, found = seen.get(table, (float("-inf"), Spent()))
        if time.monotonic() - at >= _FRESH_SECONDS:
            found = audit.spent(
                session(), backfill_id=run.backfill_id, run_id=run.run_id, table=table
            )
            seen[table] = (time.monotonic(), found)
        return found

    def why(slice_: Slice) -> str | None:
        total = _raised(instance, run).over(given)
        now, table = datetime.now(timezone.utc), slice_.table
        found: list[str] = []
        if total.is_set:
            found += total.exceeded(spent(None), now)
        if by_table.is_set:
            found += [f"{why} on {table.qualified}" for why in by_table.exceeded(spent(table), now)]
        if not found:
            return None
        whose = f"backfill {run.backfill_id}" if run.backfill_id else f"run {run.run_id[:8]}"
        return f"the budget of {whose} is used up: {', '.join(found)}; {_how(run, by_table)}"

    return why


def _raised(instance: dg.DagsterInstance, run: Run) -> Budget:
    if run.backfill_id is None:
        return Budget()
    return Budget.of(Store(instance).read(_document(run.backfill_id)).get("caps", {}))


def _how(run: Run, by_table: Budget) -> str:
    table = ", or raise the table's budget where it is declared" if by_table.is_set else ""
    if run.backfill_id is None:
        return f"launch the rest with a larger tag {TAG}...{table}"
    return f"raise it with the job raise_budget for backfill {run.backfill_id}{table}, then launch the rest"


def _document(backfill: str) -> str:
    return f"budget/{backfill}"


def _value(name: str, value: object) -> Any:
    try:
        if name == "deadline":
            return (
                value
                if isinstance(value, datetime)
                else datetime.fromisoformat(str(value).replace("Z", "+00:00"))
            )
        return float(str(value))
    except ValueError:
        what = "a time like 2026-12-02T06:00+00:00" if name == "deadline" else "a number"
        raise _wrong(name, value, f"it is not {what}", f"Write {what}") from None


def _wrong(name: str, value: object, why: str, do: str) -> DeclarationError:
    return DeclarationError(f"the budget {name}={value!s} cannot be used", why, do)
