"""Small documents in the storage of Dagster's instance, where webserver, daemon and every run see them at once.

A change is made only to the document that was read: of two people who change one at the same moment, the
second reads what the first has written and decides again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import dagster as dg

from backfill_assets.errors import BackfillError, Unreachable

Document = dict[str, Any]
Change = Callable[[Document], Document]

_PREFIX = "backfill_assets/"
_TRIES = 100


class Store:
    """Documents by name. Reading raises `Unreachable` when the storage does not answer or holds no document."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self._storage = instance.run_storage

    def read(self, name: str) -> Document:
        """Return the document, empty when nobody has written it yet."""
        return _parsed(name, self._raw(name))

    def change(self, name: str, change: Change) -> Document:
        """Replace the document by what `change` makes of it; errors of `change` leave it as it was."""
        for _ in range(_TRIES):
            found = self._raw(name)
            new = change(_parsed(name, found))
            if self._swap(name, found, json.dumps(new)):
                return new
        raise BackfillError(
            f"the {name} could not be written",
            f"others changed it {_TRIES} times meanwhile",
            "Try again",
        )

    def _raw(self, name: str) -> str | None:
        key = _PREFIX + name
        try:
            return self._storage.get_cursor_values({key}).get(key)
        except Exception as error:
            raise unreadable(name, f"{type(error).__name__}: {error}") from error

    def _swap(self, name: str, old: str | None, new: str) -> bool:
        """Write `new` if the document still is `old`; the storage has no public way to do so in one step."""
        from dagster._core.storage.runs.schema import KeyValueStoreTable as Kvs
        from sqlalchemy.exc import IntegrityError

        key = _PREFIX + name
        same = (Kvs.c.key == key) & (Kvs.c.value == old)
        try:
            with self._storage.connect() as connection:  # pyright: ignore[reportAttributeAccessIssue]
                if old is None:
                    connection.execute(Kvs.insert().values(key=key, value=new))
                    return True
                return connection.execute(Kvs.update().where(same).values(value=new)).rowcount == 1
        except IntegrityError:  # somebody was first
            return False
        except Exception as error:
            raise Unreachable(
                f"the {name} cannot be written to Dagster's storage",
                f"{type(error).__name__}: {error}",
                "Bring it back, then try again",
            ) from error


def _parsed(name: str, text: str | None) -> Document:
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except ValueError as error:
        raise unreadable(name, str(error)) from error
    if not isinstance(found, Mapping):
        raise unreadable(name, "it is no document")
    return dict(found)


def unreadable(name: str, why: str) -> Unreachable:
    """Return the error of a document that cannot be read, or holds something else."""
    return Unreachable(
        f"the {name} cannot be read from Dagster's storage",
        why,
        "Bring it back, or repair what is stored; until then backfills count as paused",
    )
