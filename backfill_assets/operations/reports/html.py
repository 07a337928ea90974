"""A report as one HTML file that needs nothing beside it: no script, no font, no address."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from backfill_assets.operations.reports import wording
from backfill_assets.operations.reports.plot import as_svg, each_bar
from backfill_assets.operations.reports.values import Line, Report, TableReport

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #5f6b7a; --line: #dfe3e8; --page: #fff; --card: #f6f7f9;
  --before: #a9b3bf; --after: #2f6fd6; --green: #1a7f45; --amber: #9a6700; --red: #c4302b; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaed; --soft: #9aa4b1; --line: #363c45; --page: #17191d;
  --card: #20242a; --before: #6b7683; --after: #6ea8ff; --green: #4cc07d; --amber: #e0b34a; --red: #ff7b72; } }
body { font: 14px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); margin: 0 auto;
  max-width: 1280px; padding: 24px; }
h1 { font-size: 22px; margin: 0 0 12px; } h2 { font-size: 17px; margin: 32px 0 8px; }
.headline { border-left: 6px solid; padding: 10px 16px; border-radius: 4px; background: var(--card); font-size: 16px;
  font-weight: 600; }
.green { border-color: var(--green); } .amber { border-color: var(--amber); } .red { border-color: var(--red); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; margin: 16px 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
.cards { display: flex; flex-wrap: wrap; gap: 12px; }
.card { background: var(--card); border-radius: 6px; padding: 8px 16px; min-width: 110px; }
.card b { display: block; font-size: 20px; font-variant-numeric: tabular-nums; } .card span { color: var(--soft); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
th, td { text-align: left; padding: 4px 14px 4px 0; border-bottom: 1px solid var(--line); vertical-align: top;
  overflow-wrap: break-word; max-width: 420px; }
th { color: var(--soft); font-weight: 600; position: sticky; top: 0; background: var(--page); }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td:first-child { white-space: nowrap; } tfoot td { font-weight: 600; border-bottom: 0; }
.o { font-weight: 600; white-space: nowrap; } .done .o { color: var(--green); }
.skipped .o, .running .o, .waiting .o { color: var(--soft); }
.wrong .o { color: var(--red); } .off .o { color: var(--amber); }
tr.wrong td:first-child { box-shadow: inset 3px 0 var(--red); padding-left: 8px; }
tr.off td:first-child { box-shadow: inset 3px 0 var(--amber); padding-left: 8px; }
code, pre { font: 12px/1.5 ui-monospace, monospace; } pre { background: var(--card); padding: 10px 14px;
  border-radius: 6px; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; }
svg { width: 100%; height: auto; } rect.before { fill: var(--before); } rect.after { fill: var(--after); }
rect.wrong { fill: var(--red); } .grid { stroke: var(--line); }
.axis { font-size: 11px; fill: var(--soft); } .end { text-anchor: end; } .middle { text-anchor: middle; }
.key i { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin: 0 4px 0 12px; }
.key { color: var(--soft); font-size: 12px; }
.note { color: var(--amber); }
"""


_WRONG = '<i style="background:var(--red)"></i>something went wrong'


def as_html(report: Report) -> Iterator[str]:
    """Yield the lines of the file."""
    title = escape(f"Backfill {report.backfill}")
    yield f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
    yield f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>'
    yield f"<h1>{title}</h1>"
    yield f'<p class="headline {report.level}">{escape(report.headline)}</p>'
    yield from _cards(report)
    yield "<dl>"
    for name, told in wording.facts(report):
        yield f"<dt>{escape(name)}</dt><dd>{escape(told)}</dd>"
    yield "</dl>"
    yield from _failed_runs(report)
    for name, outcomes in wording.LISTS:
        yield from _listed(name, wording.grouped(report, outcomes))
    yield from _resume(report)
    for table in report.tables:
        yield from _table(table)
    yield "</body></html>"


def _cards(report: Report) -> Iterator[str]:
    totals = report.totals
    shown = [
        ("partitions", f"{sum(report.counted.values()):,}"),
        ("done", f"{report.counted['done']:,}"),
        ("wrong", f"{report.wrong:,}"),
        ("rows before", wording.number(totals.before)),
        ("rows after", wording.number(totals.after)),
        ("difference", wording.number(totals.difference, "+")),
        ("source rows", wording.number(totals.source)),
        ("seconds", wording.amount(totals.seconds)),
    ]
    if totals.cost is not None:
        shown.append(("cost", wording.amount(totals.cost)))
    cards = (f'<div class="card"><b>{value}</b><span>{name}</span></div>' for name, value in shown)
    yield f'<div class="cards">{"".join(cards)}</div>'


def _failed_runs(report: Report) -> Iterator[str]:
    if report.failed_runs:
        yield "<h2>Failed runs</h2><ul>"
        for run in report.failed_runs:
            yield f"<li><code>{escape(run.run_id)}</code> {escape(run.partitions)}: {escape(run.why)}</li>"
        yield "</ul>"


def _listed(title: str, found: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    lines = [
        f"<li>{escape(table)} <b>{escape(names)}</b>: {escape(why)}</li>"
        for table, names, why in found
    ]
    if lines:
        yield from (f"<h2>{title}</h2><ul>", *lines, "</ul>")


def _resume(report: Report) -> Iterator[str]:
    yield "<h2>How to resume</h2>"
    for said, command in wording.how_to_resume(report):
        yield f"<p>{escape(said)}</p>"
        if command:
            yield f"<pre>{escape(command)}</pre>"


def _table(table: TableReport) -> Iterator[str]:
    yield f"<h2>{escape(table.name)}</h2>"
    yield from (f'<p class="note">{escape(note)}</p>' for note in table.notes)
    if table.checks:
        yield f"<p>Checks of the whole table: {escape(wording.checks(table.checks))}</p>"
    yield f'<p class="key">{each_bar(table.lines)}<i style="background:var(--before)"></i>before'
    yield '<i style="background:var(--after)"></i>after'
    wrong = any(line.is_wrong for line in table.lines)
    yield f"{_WRONG if wrong else ''}</p>"
    yield from as_svg(table.lines)
    yield '<div class="wide"><table><thead><tr>'
    for title, _, is_number in wording.COLUMNS:
        yield f"<th{_class(is_number)}>{title}</th>"
    yield "</tr></thead><tbody>"
    yield from (_row(line) for line in table.lines)
    yield "</tbody><tfoot><tr>"
    for cell, (_, _, is_number) in zip(wording.totals(table.totals), wording.COLUMNS, strict=True):
        yield f"<td{_class(is_number)}>{escape(cell)}</td>"
    yield "</tr></tfoot></table></div>"


def _row(line: Line) -> str:
    state = "wrong" if line.is_wrong else "off" if line.off else line.outcome
    cells: list[str] = []
    for title, show, is_number in wording.COLUMNS:
        kind = ' class="o"' if title == "outcome" else _class(is_number)
        cells.append(f"<td{kind}>{escape(show(line))}</td>")
    return f'<tr class="{state}">{"".join(cells)}</tr>'


def _class(is_number: bool) -> str:
    return ' class="n"' if is_number else ""
