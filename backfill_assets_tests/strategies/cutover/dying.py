"""A run that is killed right after one of its writes: `python -m ...dying URL move number steps|transaction`.

The writes are counted from 1; 0 kills nothing. A run that gets to its end writes so.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from dataclasses import replace
from typing import Any

from backfill_assets.engines import Session, open_engine
from backfill_assets.strategies.cutover import cutting, status
from backfill_assets_tests.strategies.cutover.conftest import OLD, ORDERS, WHO

_READS = re.compile(r"\s*(SELECT|WITH)\b(?!.*pg_advisory)", re.DOTALL)


def dies_after(session: Any, number: int) -> None:
    """Let the process end by SIGKILL right after the session's write of that number."""
    name = (
        "_run" if hasattr(session, "_run") else "execute"
    )  # PostgreSQL's COMMIT goes through `_run`
    real, seen = getattr(session, name), list[str]()

    def call(sql: str) -> Any:
        result = real(sql)
        if not _READS.match(sql):
            seen.append(sql)
            if len(seen) == number:
                os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(session, name, call)


def in_steps(session: Any) -> Session:
    """Let a session count as one of a warehouse that does not undo a replaced view."""
    session.spelling = replace(session.spelling, view_rolls_back=False)
    return session


def main(url: str, move: str, number: str, how: str) -> None:
    status.PATIENCE_SECONDS = 0
    with open_engine(url).session(who="a run that dies") as session:
        if how == "steps":
            in_steps(session)
        dies_after(session, int(number))
        given: dict[str, Any] = {**WHO, "dry_run": False, "report": lambda _: None}
        if move == "retire":
            cutting.retire(session, ORDERS, drop_table=OLD, **given)
        else:
            getattr(cutting, move)(session, ORDERS, (), **given)
    print("came to its end")


if __name__ == "__main__":
    main(*sys.argv[1:])
