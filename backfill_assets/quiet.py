"""The one place that silences warnings: of Dagster features that are used here on purpose, and no others.

Backfill policies are in beta and partitioned asset checks in preview, and both are what this project is
about; every process of a run would repeat that.
"""

from __future__ import annotations

import warnings

# by their words and not by their classes: importing those would import Dagster
_KNOWN = (
    r"(?s)Parameter `backfill_policy` of .* is currently in beta",
    r"Specifying a partitions_def on an AssetCheckSpec is currently in preview",
)


def quiet_known_warnings() -> None:
    """Silence them in this process, whatever filters are set before."""
    for message in _KNOWN:
        warnings.filterwarnings("ignore", message=message)
