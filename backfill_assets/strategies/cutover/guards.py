"""Guards: named functions that say why readers must not be moved now, or nothing; those that ask the warehouse."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from backfill_assets.errors import BackfillError, DeclarationError

Guard = Callable[[], "str | None"]


def named(name: str, guard: Guard) -> Guard:
    """Return the guard under the name by which it is told and overridden."""

    def asked() -> str | None:
        return guard()

    asked.__name__ = name
    return asked


def must_know(override: Sequence[str], guards: Sequence[Guard], what: str) -> None:
    known = [guard.__name__ for guard in guards]
    if unknown := [name for name in override if name not in known]:
        raise DeclarationError(
            what,
            f"there is no guard {unknown[0]!r} to override",
            f"Choose from {', '.join(known) or 'none'}",
        )


def asked(guard: Guard) -> str | None:
    """Return why not; a guard that cannot be asked says no."""
    try:
        return guard()
    except BackfillError as error:
        return f"it could not be asked: {error}"


def together(refusals: Sequence[str]) -> str:
    return "; ".join(one.rstrip(".") for one in refusals)
