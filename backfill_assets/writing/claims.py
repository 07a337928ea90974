"""What a writer claims: the UTC days that its slice touches, or the whole table."""

from __future__ import annotations

import contextlib
from collections.abc import Generator

from backfill_assets.engines.protocol import Claim, Session, Spelling, replacing
from backfill_assets.engines.sql import qualified
from backfill_assets.slice import Slice

# a longer window claims the whole table: cheaper than naming every day, and just as safe
_MOST_DAYS = 400


def claim_of(spelling: Spelling, slice_: Slice, holder: str, backfill: str | None = None) -> Claim:
    """Return the claim of a slice; slices that share an instant always share a part of their claims.

    Windows of different length (an hour and its month) meet on the days they touch; dimensions are left
    out, so two regions of a day take turns, which costs little since a transaction is short.
    """
    days = slice_.window.days("UTC") if slice_.window else None
    if days is not None and len(days) > _MOST_DAYS:
        days = None
    return Claim(qualified(spelling, slice_.table), days, slice_.label, holder, backfill)


@contextlib.contextmanager
def alone(session: Session, claim: Claim) -> Generator[None, None, None]:
    """Be the only writer of `claim` until the end of the body: all or nothing, where the engine has transactions."""
    if held := replacing(session):
        with held.hold(claim):
            yield
    else:
        with session.transaction():
            session.claim(claim)
            yield
