"""Ways to get between two statements of a session: to look, to fail, to die."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from backfill_assets.engines import Session

# `_run` is where PostgreSQL's COMMIT goes through
_CALLS = (
    "execute", "define", "fetch", "columns_of", "stage_arrow", "stage_select", "drop_stage", "claim", "clock", "_run",
)  # fmt: skip


class Broken(Exception):
    """The failure that a test injects."""


def before_call(session: Session, number: int, do: Callable[[], Any]) -> list[str]:
    """Call `do` right before the session's call `number` (from 1); return the list that calls are noted in."""
    return _watch(session, number, do, lambda: None)


def after_call(session: Session, number: int, do: Callable[[], Any]) -> list[str]:
    """Call `do` right after the session's call `number` did its work, before anybody hears of it."""
    return _watch(session, number, lambda: None, do)


def _watch(
    session: Session, number: int, before: Callable[[], Any], after: Callable[[], Any]
) -> list[str]:
    seen: list[str] = []
    for name in _CALLS:
        real = getattr(session, name, None)
        if real is not None:
            setattr(session, name, _watched(name, real, seen, number, before, after))
    return seen


def _watched(
    name: str,
    real: Callable[..., Any],
    seen: list[str],
    number: int,
    before: Callable[[], Any],
    after: Callable[[], Any],
) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        seen.append(f"{name} {arguments[0] if arguments else ''}")
        mine = len(seen)
        if mine == number:
            before()
        result = real(*arguments)
        if mine == number:
            after()
        return result

    return call


def after_statement(session: Session, beginning: str, do: Callable[[], Any]) -> None:
    """Call `do` after each statement that starts so."""
    _around(session, beginning, lambda execute, sql: (execute(sql), do())[0])


def instead_of_statement(session: Session, beginning: str, do: Callable[[], Any]) -> None:
    """Call `do` instead of each statement that starts so."""
    _around(session, beginning, lambda execute, sql: do())


def _around(
    session: Session, beginning: str, act: Callable[[Callable[[str], int], str], Any]
) -> None:
    def begins(sql: str) -> bool:
        # an engine may quote names otherwise, or fold them
        return re.sub(r"[`\[\]]", '"', sql).lower().startswith(beginning.lower())

    # PostgreSQL's COMMIT is looked at more closely than execute() does
    name = "_run" if beginning == "COMMIT" and hasattr(session, "_run") else "execute"
    real = getattr(session, name)
    setattr(session, name, lambda sql: act(real, sql) if begins(sql) else real(sql))


def undisturbed(session: Session) -> Session:
    """Take back every interruption of `session`."""
    for name in _CALLS:
        vars(session).pop(name, None)
    return session


def fails(session: Session) -> Callable[[], None]:
    """Return an action that is an error of the warehouse itself, in whatever transaction is open."""
    real = session.fetch
    return lambda: real("SELECT * FROM there_is_no_such_table") and None


def once(act: Callable[[], Any]) -> Callable[[], None]:
    """Return an action that is `act` the first time, and nothing after that."""
    left = [act]
    return lambda: (left.pop()() if left else None) and None


def raises(error: BaseException) -> Callable[[], None]:
    """Return an action that raises `error`."""

    def act() -> None:
        raise error

    return act
