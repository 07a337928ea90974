"""What a backfill may spend: warehouse seconds, rows, cost, and until when. Spending is summed from the load audit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timezone
from functools import cache
from typing import Any

import dagster as dg

from backfill_assets.controls.family import Family, root_of
from backfill_assets.controls.gate import Control
from backfill_assets.controls.store import Document, Store, unreadable
from backfill_assets.engines import Session
from backfill_assets.errors import DeclarationError
from backfill_assets.slice import Slice
from backfill_assets.table import Table
from backfill_assets.writing import AuditTable, Spent

TAG = "budget/"
USED_UP = "is used up: "
_HOW_TABLE = "raise the table's budget where it is declared"


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

    def as_plain(self) -> dict[str, float | str]:
        """Return the caps that there are, as numbers and texts."""
        return {
            field.name: value.isoformat() if isinstance(value, datetime) else value
            for field in fields(self)
            if (value := getattr(self, field.name)) is not None
        }

    @property
    def told(self) -> str:
        """The caps in words."""
        return ", ".join(
            f"{field.name} {value}"
            for field in fields(self)
            if (value := getattr(self, field.name)) is not None
        )

    def cost_left(self, spent: Spent) -> list[float]:
        """Return what is left of the cost, where it is capped."""
        return [] if self.cost is None else [max(0.0, self.cost - spent.cost)]

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
    instance: dg.DagsterInstance,
    backfill: str,
    budget: Budget,
    by: str,
    reason: str,
    given: Budget | None = None,
) -> None:
    """Let `backfill`, and what executes it again, spend up to `budget` from now on, whatever its tags and settings say.

    A cap that is lower than the one that holds is refused; `given` are those of tags and settings.
    """
    _must_be_told(reason, by)
    if not budget.is_set:
        raise _wrong("none", "", "no cap is given", "Give seconds, rows, cost or deadline")
    caps = budget.as_plain()

    def add(document: Document) -> Document:
        _must_raise(budget, _caps_in(document).over(given or Budget()))
        line = {"caps": caps, "by": by.strip(), "reason": reason.strip()}
        line["at"] = datetime.now(timezone.utc).isoformat(timespec="seconds")
        raises = [*document.get("raises", []), line]
        return {"caps": {**document.get("caps", {}), **caps}, "raises": raises}

    Store(instance).change(_document(root_of(instance, backfill)), add)


def raises_of(instance: dg.DagsterInstance, backfill: str) -> list[Mapping[str, Any]]:
    """Return each raise of a backfill's budget, oldest first: `caps`, `by`, `reason`, `at`."""
    return Store(instance).read(_document(root_of(instance, backfill))).get("raises", [])


def within_budget(
    instance: dg.DagsterInstance,
    family: Family,
    given: Budget,
    by_table: Budget,
    session: Callable[[], Session],
    audit: AuditTable,
) -> Control:
    """Return the control that refuses the next slice once a cap of the backfill, or of its table in it, is reached.

    Where it lets a slice pass, no single statement of it may cost more than what is left, on engines that can cap that.
    """

    @cache
    def members() -> dict[str, tuple[str, ...]]:
        backfills = family.backfills(instance)
        return {"backfills": backfills, "runs": () if backfills else family.runs(instance)}

    def spent(table: Table | None) -> Spent:
        # summed for each slice: in a second, a run of quick slices spends many times its budget
        return audit.spent(session(), **members(), table=table)

    def why(slice_: Slice) -> str | None:
        total = _raised(instance, family).over(given)
        now, table = datetime.now(timezone.utc), slice_.table
        found, helps, left = list[str](), list[str](), list[float]()
        if total.is_set:
            all_of_it = spent(None)
            found += total.exceeded(all_of_it, now)
            helps += [_how(family)] if found else []
            left += total.cost_left(all_of_it)
        if by_table.is_set:
            of_table = spent(table)
            if over := by_table.exceeded(of_table, now):
                found += [f"{one} on {table.qualified}" for one in over]
                helps.append(_HOW_TABLE)
            left += by_table.cost_left(of_table)
        if not found:
            if (
                left
            ):  # without a cap nothing has opened the warehouse for this, and nothing needs to
                session().may_cost(min(left))
            return None
        how = f"{' and '.join(helps)}, then launch the rest"
        return f"the budget of {_whose(family)} {USED_UP}{', '.join(found)}; {how}"

    return why


@dataclass(frozen=True)
class Limits:
    """What a family may spend in all and on one table, for `within_budget` and for whoever asks the audit on its own."""

    family: Family
    given: Budget
    by_table: Budget

    def asked_elsewhere(self, instance: dg.DagsterInstance) -> dict[str, Any] | None:
        """Return caps, whose spending counts, and the words of a refusal, as plain values; None without any cap.

        For a program that asks before each of its slices, inside the warehouse, since nobody else can look meanwhile.
        """
        total = _raised(instance, self.family).over(self.given)
        if not total.is_set and not self.by_table.is_set:
            return None
        backfills = self.family.backfills(instance)
        return {
            "caps": total.as_plain(),
            "table_caps": self.by_table.as_plain(),
            "of": "backfill_id" if backfills else "run_id",
            "ids": list(backfills or self.family.runs(instance)),
            "used_up": f"the budget of {_whose(self.family)} {USED_UP}",
            "how": _how(self.family),
            "how_table": _HOW_TABLE,
        }


def _raised(instance: dg.DagsterInstance, family: Family) -> Budget:
    if family.backfill is None:
        return Budget()
    return _caps_in(Store(instance).read(_document(family.backfill)))


def _caps_in(document: Document) -> Budget:
    caps = document.get("caps", {})
    try:
        return Budget.of(caps)
    except (DeclarationError, TypeError, ValueError, LookupError, AttributeError) as error:
        why = f"what is stored is no budget ({type(error).__name__})"
        raise unreadable("raised budget", why) from error


def _must_raise(new: Budget, old: Budget) -> None:
    for field in fields(new):
        cap, there = getattr(new, field.name), getattr(old, field.name)
        if cap is not None and there is not None and cap < there:
            raise _wrong(
                field.name,
                cap,
                f"{there} is allowed already, and this is less",
                "Give more; to stop a backfill, run the job pause_backfills",
            )


def _must_be_told(reason: str, by: str) -> None:
    missing = [name for name, value in (("reason", reason), ("by", by)) if not value.strip()]
    if missing:
        raise DeclarationError(
            "the budget was left as it was",
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} empty",
            "Say why more may be spent, and who you are",
        )


def _whose(family: Family) -> str:
    return f"backfill {family.backfill}" if family.backfill else f"run {family.run[:8]}"


def _how(family: Family) -> str:
    if family.backfill is None:
        return f"give a larger tag {TAG}..., which counts what this run and those that it repeats have spent"
    return f"raise it with the job raise_budget for backfill {family.backfill}"


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
