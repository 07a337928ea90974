"""Runs that were refused, and runs that a pause has stopped: marked, so that nobody takes them for failed ones, and put back into the queue.

Dagster's own run retries put them back: the daemon repeats a run whose tags allow it, from where it failed, and the
repetition waits in the queue until the pause ends.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping

import dagster as dg

from backfill_assets.controls.gate import Held
from backfill_assets.controls.tables import table_tags

HELD = "held"
REFUSED = "refused"
_RETRIES = "dagster/max_retries"
_OWN_RETRIES = "held/max_retries"
_ALWAYS = "100000"


def is_held(run: dg.DagsterRun) -> bool:
    """Tell whether a pause has stopped the run."""
    return run.tags.get(HELD) == "yes"


def is_refused(run: dg.DagsterRun) -> bool:
    """Tell whether the run was refused before it was queued, and its launcher told why."""
    return run.tags.get(REFUSED) == "yes"


@contextlib.contextmanager
def marking_held(
    instance: dg.DagsterInstance, run: dg.DagsterRun, tables: Iterable[str] = ()
) -> Iterator[None]:
    """Mark the run where a pause stops it in the body, so that the daemon puts it back into the queue.

    Its repetition waits there under any name of its `tables`, of which the queue may have known fewer.
    """
    try:
        yield
    except Held:
        own = run.tags.get(_RETRIES)
        marks = {HELD: "yes", _RETRIES: _ALWAYS, **table_tags(tables)}
        instance.add_run_tags(run.run_id, marks | ({_OWN_RETRIES: own} if own else {}))
        raise


def unmarked(tags: Mapping[str, str], retries: int) -> dict[str, str]:
    """Return the tags that make the repetition of a held run an ordinary run again; none for any other.

    `retries` is what the instance grants a run without a tag of its own.
    """
    if tags.get(HELD) != "yes":
        return {}
    return {HELD: "no", _RETRIES: tags.get(_OWN_RETRIES, str(retries))}
