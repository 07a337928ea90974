"""The one place that silences warnings: of Dagster features that are used here on purpose, and no others.

Backfill policies are in beta and partitioned asset checks in preview, and both are what this project is
about; every process of a run would repeat that.
"""

from __future__ import annotations

import warnings

_KNOWN = (
    r"(?s)Parameter `backfill_policy` of .* is currently in beta",
    r"(?s)Parameter `partitions_def` of .* is currently in preview",
    r"(?s)Class `BackfillPolicy` is currently in beta",
)


def quiet_known_warnings() -> None:
    """Silence them in this process, whatever filters are set before."""
    for message in _KNOWN:
        warnings.filterwarnings("ignore", message=message)
