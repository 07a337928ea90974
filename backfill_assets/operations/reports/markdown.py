"""A report as Markdown, line by line; whatever names and reasons hold, a cell stays one cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from backfill_assets.operations.reports import wording
from backfill_assets.operations.reports.plot import as_text
from backfill_assets.operations.reports.values import Line, Report, TableReport

_MARKS = {"green": "🟢", "amber": "🟡", "red": "🔴"}
_SPECIAL = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    "\\": "&#92;",
    "`": "&#96;",
    "*": "&#42;",
    "[": "&#91;",
    "]": "&#93;",
    "|": "\\|",
}
_ESCAPES = str.maketrans(_SPECIAL)


def escaped(text: str) -> str:
    """Return text that reads the same in a cell or a paragraph, on one line."""
    return " ".join(text.split()).translate(_ESCAPES)


def as_markdown(report: Report) -> Iterator[str]:
    """Yield the lines of the file."""
    yield f"# Backfill {escaped(report.backfill)}"
    yield ""
    yield summary(report)
    yield ""
    yield from (f"- {name}: {escaped(told)}" for name, told in wording.facts(report))
    yield ""
    yield from _totals(report)
    yield from _failed_runs(report)
    for title, outcomes in wording.LISTS:
        yield from _listed(title, wording.grouped(report, outcomes))
    yield from _resume(report)
    for table in report.tables:
        yield from _table(table)


def summary(report: Report) -> str:
    """Return the headline with its colour."""
    return f"{_MARKS[report.level]} **{escaped(report.headline)}**"


def plot(lines: Sequence[Line]) -> str:
    """Return the rows of the partitions as bars of text."""
    return "\n".join(["```text", *as_text(lines), "```"])


def _totals(report: Report) -> Iterator[str]:
    titles = [title for title, _, _ in wording.COLUMNS]
    shown = [n for n, title in enumerate(titles) if title in _SUMMED]
    yield _row(["table", "partitions", *(titles[n] for n in shown)])
    yield _rule([False, *[True] * (len(shown) + 1)])
    for table in report.tables:
        cells = wording.totals(table.totals)
        yield _row([table.name, f"{len(table.lines):,}", *(cells[n] for n in shown)])
    cells = wording.totals(report.totals)
    lines = sum(report.counted.values())
    yield _row(["total", f"{lines:,}", *(cells[n] for n in shown)])
    yield ""


_SUMMED = ("before", "after", "difference", "source", "seconds", "cost")


def _failed_runs(report: Report) -> Iterator[str]:
    if report.failed_runs:
        yield from ("## Failed runs", "")
        for run in report.failed_runs:
            yield f"- {escaped(run.run_id)} {escaped(run.partitions)}: {escaped(run.why)}"
        yield ""


def _listed(title: str, found: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    lines = [f"- {escaped(table)} {escaped(names)}: {escaped(why)}" for table, names, why in found]
    if lines:
        yield from (f"## {title}", "", *lines, "")


def _resume(report: Report) -> Iterator[str]:
    yield from ("## How to resume", "")
    for said, command in wording.how_to_resume(report):
        yield escaped(said)
        yield ""
        if command:
            yield from ("```sh", command, "```", "")


def _table(table: TableReport) -> Iterator[str]:
    yield f"## {escaped(table.name)}"
    yield ""
    if table.name != table.asset:
        yield from (f"Asset {escaped(table.asset)}.", "")
    yield from (f"{escaped(note)}\n" for note in table.notes)
    if table.checks:
        yield from (f"Checks of the whole table: {escaped(wording.checks(table.checks))}", "")
    yield from (plot(table.lines), "")
    yield _row([title for title, _, _ in wording.COLUMNS])
    yield _rule([is_number for _, _, is_number in wording.COLUMNS])
    for line in table.lines:
        yield _row([show(line) for _, show, _ in wording.COLUMNS])
    yield _row(wording.totals(table.totals))
    yield ""


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(escaped(cell) for cell in cells)} |"


def _rule(numbers: Sequence[bool]) -> str:
    return f"|{'|'.join('---:' if is_number else '---' for is_number in numbers)}|"
