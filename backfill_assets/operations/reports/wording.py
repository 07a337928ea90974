"""How a report's values read, in Markdown and in HTML alike: columns of a line, numbers, how to resume."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from backfill_assets.operations.reports.values import Check, Line, Outcome, Report, Totals

UNKNOWN = "-"


def number(value: int | None, sign: str = "") -> str:
    """Return a count with thousands apart, `-` for one that nobody knows."""
    return UNKNOWN if value is None else format(value, f"{sign},")


def amount(value: float | None) -> str:
    """Return seconds or a cost."""
    return UNKNOWN if value is None else f"{value:,.3f}".rstrip("0").rstrip(".")


def checks(found: Sequence[Check]) -> str:
    """Return how many passed, and each of the others by its name."""
    passed = sum(check.result == "passed" for check in found)
    told = [f"{passed} passed"] if passed else []
    for check in found:
        if check.result != "passed":
            told.append(f"{check.name} {check.result}" + (f": {check.said}" if check.said else ""))
    return "; ".join(told) or UNKNOWN


# title, what stands there, and whether it is a number
COLUMNS: tuple[tuple[str, Callable[[Line], str], bool], ...] = (
    ("partition", lambda line: line.partition, False),
    ("before", lambda line: number(line.before), True),
    ("after", lambda line: number(line.after), True),
    ("difference", lambda line: number(line.difference, "+"), True),
    ("source", lambda line: number(line.source), True),
    ("explained", lambda line: ", ".join(line.explained) or UNKNOWN, False),
    ("checks", lambda line: checks(line.checks), False),
    ("seconds", lambda line: amount(line.seconds), True),
    ("cost", lambda line: amount(line.cost), True),
    ("outcome", lambda line: line.outcome, False),
    ("why", lambda line: line.why or UNKNOWN, False),
    ("run", lambda line: (line.run_id or UNKNOWN)[:8], False),
)


def totals(found: Totals) -> list[str]:
    """Return the cells of a line of totals, empty where there is none."""
    sums = (
        number(found.before),
        number(found.after),
        number(found.difference, "+"),
        number(found.source),
    )
    return ["total", *sums, "", "", amount(found.seconds), amount(found.cost), "", "", ""]


# what is listed apart, under which title
LISTS: tuple[tuple[str, tuple[Outcome, ...]], ...] = (
    ("Failed", ("failed",)),
    ("Refused", ("refused",)),
    ("Cancelled or not reached", ("cancelled", "not reached")),
    ("Left alone", ("skipped",)),
)


def grouped(report: Report, outcomes: Sequence[Outcome]) -> Iterator[tuple[str, str, str]]:
    """Yield table, partitions and why of lines that came to one of `outcomes`; neighbours of one reason are one."""
    for table in report.tables:
        by_why = groupby(table.lines, lambda line: (line.outcome in outcomes, line.why))
        for (is_wanted, why), group in by_why:
            if is_wanted:
                names = [line.partition for line in group]
                more = f" to {names[-1]} ({len(names):,})" if len(names) > 1 else ""
                yield table.name, names[0] + more, why


def facts(report: Report) -> list[tuple[str, str]]:
    """Return what there is to say of the backfill as a whole, by name."""
    known = [
        ("title", report.title),
        ("reason", report.reason),
        ("by", report.by),
        ("Dagster says", report.status),
        ("launched", _moment(report.created)),
        ("ended", _moment(report.ended)),
        ("runs", _counted(report.runs)),
        ("partitions", _counted(report.counted)),
        ("checks", _counted(report.checked)),
        ("paused", report.paused),
        ("cost by the warehouse's own books", _books(report)),
        ("this report", f"{_moment(report.made_at)}; source rows are those of that moment"),
    ]
    return [(name, told) for name, told in known if told]


def _books(report: Report) -> str:
    return "" if report.attributed is None else amount(report.attributed)


def how_to_resume(report: Report) -> list[tuple[str, str]]:
    """Return sentences, each with a command (or an empty text); the first says when nothing is left."""
    if not report.left:
        return [("Nothing is left to do.", "")]
    config = {"backfill": report.backfill, "by": "..."}
    given = json.dumps({"ops": {"resume_backfill_op": {"config": config}}})
    command = f"dagster job launch {report.launch_with} -j resume_backfill --config-json {shlex.quote(given)}"
    steps = [
        ("Mend the reason first; what is done is not done again. From a terminal:", command),
        (
            f"In the UI: on the page of backfill {report.backfill}, Re-execute, From failure.",
            "",
        ),
    ]
    if report.paused:
        steps.insert(0, (f"It is paused, and the resume ends that: {report.paused}", ""))
    return steps


def _counted(found) -> str:
    return ", ".join(f"{count:,} {name.lower()}" for name, count in found.most_common())


def _moment(value) -> str:
    return "" if value is None else f"{value:%Y-%m-%d %H:%M:%S} UTC"
