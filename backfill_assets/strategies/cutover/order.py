"""Who wants readers moved, why, in which run, what is passed by order, and whether it is only tried."""

from __future__ import annotations

from dataclasses import dataclass

from backfill_assets.engines.protocol import Report
from backfill_assets.errors import DeclarationError


@dataclass(frozen=True)
class Order:
    """Who wants it, why, in which run, what is passed, and whether it is only tried."""

    by: str
    reason: str
    run_id: str
    override: tuple[str, ...]
    dry_run: bool
    report: Report
    schema: str = "backfill"

    def must_be_told(self, what: str) -> None:
        """Raise unless it says who and why; a dry run needs neither, unless it passes a guard."""
        needed = [("reason", self.reason), ("by", self.by)]
        missing = [name for name, value in needed if not value.strip()]
        if missing and (self.override or not self.dry_run):
            passing = f" to pass {', '.join(self.override)}" if self.override else ""
            raise DeclarationError(
                what,
                f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} empty{passing}",
                "Say why in a sentence that still makes sense in a year, and who you are",
            )
