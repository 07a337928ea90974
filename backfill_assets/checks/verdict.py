"""What one check says of one slice."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from backfill_assets.expectations import Severity
from backfill_assets.slice import Slice
from backfill_assets.writing.expecting import (
    Finding,
)


@dataclass(frozen=True)
class Verdict:
    """What one check says of one slice. `findings` are its parts, `sample` some offending rows, `sql` shows them all.

    `since` is when the source of the slice was read last, where that matters.
    """

    check: str
    slice: Slice
    findings: tuple[Finding, ...]
    sql: str
    sample: tuple[str, ...] = ()
    since: datetime | None = None

    @property
    def passed(self) -> bool:
        """Whether nothing was found wrong."""
        return all(finding.passed for finding in self.findings)

    @property
    def severity(self) -> Severity:
        """`block` if anything that was found wrong blocks."""
        wrong = [finding for finding in self.findings if not finding.passed]
        return "block" if any(f.severity == "block" for f in wrong or self.findings) else "warn"

    @property
    def why(self) -> str:
        """What was found, what is wrong first."""
        order = sorted(self.findings, key=lambda finding: finding.passed)
        return "; ".join(finding.why for finding in order)

    @property
    def worst(self) -> Finding:
        """The finding whose numbers are shown."""
        return min(self.findings, key=lambda finding: finding.passed)
