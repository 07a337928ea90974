"""A claim that lives as long as its holder: while a replacement takes long, a thread renews the lease.

Nothing is opened before a third of the lease is over, so that the many that are short pay nothing. A process that dies
takes the thread with it, and the lease ends by the clock.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager

from backfill_assets.errors import BackfillError

# renews once, and tells whether the claim is still ours
Renewal = Callable[[], bool]

_SHARE = 3
_GOODBYE_SECONDS = 5.0


@contextlib.contextmanager
def kept(
    lease: float, renewing: Callable[[], AbstractContextManager[Renewal]]
) -> Generator[None, None, None]:
    """Renew each third of a lease of `lease` seconds during the body; `renewing` opens a session of its own for that."""
    over = threading.Event()

    def renew() -> None:
        while not over.wait(lease / _SHARE):
            # where it cannot be renewed it is tried again, and the holder finds out when it looks at its time
            with contextlib.suppress(BackfillError), renewing() as renewed:
                while renewed():
                    if over.wait(lease / _SHARE):
                        return
                return

    keeper = threading.Thread(target=renew, name="backfill lease", daemon=True)
    keeper.start()
    try:
        yield
    finally:
        over.set()
        keeper.join(_GOODBYE_SECONDS)
