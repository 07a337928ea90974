"""`make doctor`: the same from a terminal, without a daemon and without a word in Dagster's storage.

Looks at the warehouse that the environment names; ends with 1 where something would fail, with 2 where it cannot be asked.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from backfill_assets.errors import BackfillError
from backfill_assets.operations.doctor.points import Point, failed


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one line for each point; return what the process ends with."""
    parser = argparse.ArgumentParser(
        prog="python -m backfill_assets.operations.doctor", description=__doc__
    )
    parser.add_argument("tables", nargs="*", help="tables or assets' keys; without any, all")
    parser.add_argument("--ddl", action="store_true", help="try to make tables that are not there")
    parser.add_argument("-m", "--module", default="backfill_assets.definitions")
    parser.add_argument("-a", "--attribute", default="defs")
    chosen = parser.parse_args(arguments)
    try:
        import_module(chosen.module)  # what is wrong with its settings is said as that
        found = _asked(chosen.module, chosen.attribute, chosen.tables, chosen.ddl)
    except BackfillError as error:
        print(f"✗ {error}")
        return 2
    for point in found:
        print(point.line)
    wrong = failed(found)
    print(f"{len(wrong)} of {len(found)} points would fail. No row was changed.")
    return 1 if wrong else 0


def _asked(module: str, attribute: str, tables: Sequence[str], ddl: bool) -> list[Point]:
    """Run the location's own job `doctor` here and now, in an instance that is forgotten."""
    import dagster as dg
    from dagster._core.definitions.reconstruct import ReconstructableRepository

    location = ReconstructableRepository.for_module(module, attribute, os.getcwd())
    config = {"tables": list(tables), "ddl": ddl, "fail": False}
    quietly = {"console": {"config": {"log_level": "CRITICAL"}}}
    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.execute_job(
            location.get_reconstructable_job("doctor"),
            run_config={"ops": {"doctor_op": {"config": config}}, "loggers": quietly},
            instance=instance,
            raise_on_error=True,
        )
        (made,) = [e for e in result.all_events if e.event_type_value == "STEP_OUTPUT"]
    found: Any = made.step_output_data.metadata["json"].value
    return [Point(**point) for point in found]


if __name__ == "__main__":
    sys.exit(main())
