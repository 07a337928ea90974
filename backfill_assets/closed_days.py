"""Days on which nothing is expected, by rule: weekdays, public holidays, days on which an exchange is closed.

Which days are a country's holidays is known to the packages `holidays` and `exchange_calendars`, an extra.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date
from functools import lru_cache
from importlib.util import find_spec

from backfill_assets.errors import DeclarationError, MissingDriver

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def is_closed(day: date, rules: Iterable[str]) -> bool:
    """Tell whether any of `rules` says that nothing is expected on `day`.

    A rule is a weekday (`sunday`), `holidays:US` or `holidays:US-NY` (a country and a part of it), or
    `exchange:XNYS` (the days on which that exchange has no session).
    """
    return any(_rule(rule)(day) for rule in rules)


def must_be_rules(rules: Iterable[str]) -> None:
    """Raise unless each of `rules` is one that `is_closed` knows and its package is there; looks no day up."""
    for rule in rules:
        kind, _, name = rule.partition(":")
        if rule not in WEEKDAYS and (kind not in ("holidays", "exchange") or not name):
            raise DeclarationError(
                "the days without rows cannot be declared so",
                f"{rule!r} is no weekday, holidays:COUNTRY or exchange:CODE",
                "Write for example 'sunday', 'holidays:US-NY' or 'exchange:XNYS'; name single days in allow_empty",
            )
        package = {"holidays": "holidays", "exchange": "exchange_calendars"}.get(kind)
        if package is not None and find_spec(package) is None:
            raise _missing(package)


@lru_cache(maxsize=64)
def _rule(rule: str) -> Callable[[date], bool]:
    kind, _, name = rule.partition(":")
    if rule in WEEKDAYS:
        return lambda day: day.weekday() == WEEKDAYS.index(rule)
    return _holidays(name) if kind == "holidays" else _exchange(name)


def _holidays(name: str) -> Callable[[date], bool]:
    try:
        import holidays
    except ImportError as error:
        raise _missing("holidays") from error
    country, _, part = name.partition("-")
    try:
        found = holidays.country_holidays(country, subdiv=part or None)
    except NotImplementedError as error:
        raise DeclarationError(
            f"the holidays of {name!r} are not known",
            str(error),
            "Give a country's code, as in US-NY",
        ) from None
    return lambda day: day in found


def _exchange(name: str) -> Callable[[date], bool]:
    try:
        import exchange_calendars
    except ImportError as error:
        raise _missing("exchange_calendars") from error

    def is_closed(day: date) -> bool:
        # a calendar covers twenty years unless it is told, and a year is made quickly
        return day not in _sessions(name, day.year)

    if name not in exchange_calendars.get_calendar_names():
        raise DeclarationError(
            f"the exchange {name!r} is not known",
            "exchange_calendars has no such calendar",
            "Give its code, as in XNYS",
        )
    return is_closed


@lru_cache(maxsize=256)
def _sessions(name: str, year: int) -> frozenset[date]:
    import exchange_calendars

    calendar = exchange_calendars.get_calendar(name, start=f"{year}-01-01", end=f"{year}-12-31")
    return frozenset(session.date() for session in calendar.sessions)


def _missing(package: str) -> MissingDriver:
    return MissingDriver(
        "the days without rows cannot be told",
        f"the package {package} is not installed",
        "pip install 'backfill-assets[calendars]'",
    )
