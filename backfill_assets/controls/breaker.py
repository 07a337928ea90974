"""The circuit breaker: a failure in a backfill pauses that backfill, no other and no live run, and alerts.

In a run that can still speak, the executor reports the failed step at once (`instance/executor.py`); for one
that died, a sensor does (`sensors.py`). Both may, and each run counts once.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg

from backfill_assets.controls.alerts import Alert, Send
from backfill_assets.controls.family import root_backfill
from backfill_assets.controls.lanes import BACKFILL, lane_by_tags, partitions_of
from backfill_assets.controls.store import Document, Store
from backfill_assets.controls.switch import AlreadyPaused, Scope, Switch
from backfill_assets.errors import BackfillError, DeclarationError, without_secrets
from backfill_assets.settings import settings
from backfill_assets.writing.run import Lane

BY = "the circuit breaker"
METADATA = "on_failure"


@dataclass(frozen=True)
class Failure:
    """What failed in a run: the assets of the step (none for a run that died), and why, in words.

    `lane` is the run's, as whoever reports it found out; without it, its tags tell.
    """

    run: dg.DagsterRun
    assets: Sequence[str]
    why: str
    lane: Lane | None = None

    @property
    def where(self) -> str:
        """Assets and partitions in words."""
        what = ", ".join(self.assets) or ", ".join(
            sorted(key.to_user_string() for key in self.run.asset_selection or ())
        )
        return " ".join(part for part in (what, "...".join(partitions_of(self.run.tags))) if part)


def failures_before_pause(policy: object) -> int | None:
    """Return after how many failed runs a backfill is paused: `pause` is 1, `continue` never (None)."""
    if policy == "pause":
        return 1
    if policy == "continue":
        return None
    if isinstance(policy, int) and not isinstance(policy, bool) and policy >= 1:
        return policy
    raise DeclarationError(
        f"the failure policy {policy!r} cannot be used",
        "it is neither pause, nor continue, nor a number of failures from 1 on",
        f"Correct the metadata {METADATA} of the asset",
    )


def policies_of(graph: Any, keys: Iterable[dg.AssetKey], default: object) -> list[object]:
    """Return the failure policy of each asset: what its metadata declares, the default where it declares none."""
    found: list[object] = []
    for key in keys:
        declared = graph.get(key).metadata.get(METADATA) if graph.has(key) else None
        found.append(default if declared is None else getattr(declared, "value", declared))
    return found


def strictest(policies: Sequence[object], default: object) -> int | None:
    """Return the smallest number of failures that pauses, among the assets of one step."""
    found = [failures_before_pause(policy) for policy in policies or [default]]
    return min((number for number in found if number is not None), default=None)


def pauses_after(policies: Sequence[object], default: object) -> int | None:
    """Return the same; a policy that there is not pauses at the first failure, since nobody can say what it allows."""
    try:
        return strictest(policies, default)
    except DeclarationError:
        return 1


def report_failure(
    instance: dg.DagsterInstance, failure: Failure, after: int | None, send: Send
) -> str | None:
    """Count the failure, pause its backfill when it is the `after`th, alert, and return what was done.

    Returns None for a live run, and for a run that was dealt with before. A run whose pause failed was not: whoever
    reports it next tries again.
    """
    tags = failure.run.tags
    if (failure.lane or lane_by_tags(tags, settings().live_days)) != "backfill":
        return None
    # what executes a backfill again is stopped with it, and counted with it
    backfill = root_backfill(tags)
    counted = "not known"
    try:
        failed = _count(instance, backfill or failure.run.run_id, failure.run.run_id)
        if failed is None:
            return None
        counted = str(failed)
        done = _act(instance, backfill, failure, failed, after)
    except BackfillError as error:
        done = f"it could NOT be paused, since {error.what}: {error.why}"
    else:
        with contextlib.suppress(BackfillError):  # told twice, then, rather than not as it is
            _settle(instance, backfill or failure.run.run_id, failure.run.run_id)
    send(_alert(tags.get(BACKFILL), failure, counted, done))
    return done


def _act(
    instance: dg.DagsterInstance,
    backfill: str | None,
    failure: Failure,
    failed: int,
    after: int | None,
) -> str:
    if backfill is None:
        return "it was a single run"
    if after is None or failed < after:
        return "it goes on"
    nth = "" if failed == 1 else f", failure {failed} of this backfill"
    reason = f"run {failure.run.run_id[:8]} failed at {failure.where}{nth}: {failure.why}"
    try:
        Switch(instance).pause(Scope(backfill=backfill), without_secrets(reason)[:1000], BY)
    except AlreadyPaused:  # and the first reason stays
        return "it was paused already"
    return "it is paused"


def _count(instance: dg.DagsterInstance, group: str, run_id: str) -> int | None:
    """Return how many runs of `group` have failed, this one included; None when it was dealt with before."""

    def add(document: Document) -> Document:
        runs: list[str] = document.get("runs", [])
        known = run_id in runs or run_id in document.get("settled", [])
        return {**document, "runs": runs if known else [*runs, run_id]}

    document = Store(instance).change(_document(group), add)
    return None if run_id in document.get("settled", []) else len(document["runs"])


def _settle(instance: dg.DagsterInstance, group: str, run_id: str) -> None:
    """Remember that the run was dealt with: only now, since a pause that fails is to be tried again."""

    def add(document: Document) -> Document:
        return {**document, "settled": [*document.get("settled", []), run_id]}

    Store(instance).change(_document(group), add)


def forgive(instance: dg.DagsterInstance, backfill: str) -> None:
    """Count the failures of a backfill from none again, since somebody has mended what made it fail."""
    Store(instance).change(
        _document(backfill), lambda document: {**document, "runs": []} if document else {}
    )


def _document(group: str) -> str:
    return f"failures/{group}"


def _alert(backfill: str | None, failure: Failure, counted: str, done: str) -> Alert:
    return Alert(
        title=f"Backfill {backfill or failure.run.run_id[:8]} failed at {failure.where}",
        lines=(
            without_secrets(failure.why),
            f"Run {failure.run.run_id}; failed runs of this backfill so far: {counted}; {done}.",
            _resume(root_backfill(failure.run.tags)),
        ),
    )


def _resume(backfill: str | None) -> str:
    if backfill is None:
        return "To run what is left: 'Re-execute from failure' on the run's page."
    config = {"backfill": backfill, "reason": "...", "by": "..."}
    told = json.dumps({"ops": {"resume_backfills_op": {"config": config}}})
    return f"To resume: dagster job launch -j resume_backfills --config-json '{told}'"
