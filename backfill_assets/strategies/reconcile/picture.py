"""The daily difference and the quiet streak as a picture: characters for the UI, an SVG for a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from backfill_assets.strategies.reconcile.day import DayCompared

_BAR = 40
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 960, 220, 64, 12, 28
_COLORS = {"equal": "#3a7d44", "within": "#a3b18a", "differs": "#c1121f", "missing": "#6a040f"}


def as_text(days: Sequence[DayCompared]) -> Iterator[str]:
    """Yield a line for each day: its verdict, the rows that differ, a bar of them, and the streak up to it."""
    most = max((_wrong(day) for day in days), default=0) or 1
    for day, streak in zip(days, streaks(days), strict=True):
        wrong = _wrong(day)
        bar = "█" * max(round(_BAR * wrong / most), 1 if wrong else 0)
        quiet = f"quiet for {streak}" if streak else "not quiet"
        yield f"{day.partition_key}  {day.verdict:<7} {wrong:>9,}  {bar:<{_BAR}}  {quiet}"


def as_svg(days: Sequence[DayCompared], needed: int) -> Iterator[str]:
    """Yield an SVG: a bar for the rows that differ on each day, and a line for the streak with the length it needs."""
    most = max((_wrong(day) for day in days), default=0) or 1
    run, room = streaks(days), _HEIGHT - _TOP - _BOTTOM
    longest = max([needed, *run])
    each = (_WIDTH - _LEFT) / max(len(days), 1)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img"'
        ' aria-label="Rows that differ on each day, and the quiet streak" font-family="sans-serif" font-size="11">'
    )
    for share in (0, 0.5, 1):
        y = _TOP + room * (1 - share)
        yield f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{most * share:,.0f}</text>'
    for number, (day, streak) in enumerate(zip(days, run, strict=True)):
        x, high = _LEFT + number * each, max(room * _wrong(day) / most, 3)
        told = f"{day.partition_key}: {day.verdict}, {_wrong(day):,} rows differ, quiet for {streak} days"
        yield (
            f'<g><title>{escape(told)}</title><rect x="{x + each * 0.1:.2f}" y="{_TOP + room - high:.2f}"'
            f' width="{each * 0.8:.2f}" height="{high:.2f}" fill="{_COLORS[day.verdict]}"/></g>'
        )
    points = " ".join(
        f"{_LEFT + (n + 0.5) * each:.1f},{_TOP + room * (1 - streak / longest):.1f}"
        for n, streak in enumerate(run)
    )
    yield f'<polyline points="{points}" fill="none" stroke="#1d3557" stroke-width="2"/>'
    y = _TOP + room * (1 - needed / longest)
    yield f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#1d3557" stroke-dasharray="4"/>'
    for number in sorted({0, len(days) - 1}) if days else []:
        x, anchor = (_LEFT, "start") if number == 0 else (_WIDTH, "end")
        yield f'<text x="{x}" y="{_HEIGHT - 6}" text-anchor="{anchor}">{escape(days[number].partition_key)}</text>'
    yield "</svg>"


def streaks(days: Sequence[DayCompared]) -> list[int]:
    """Return for each day how many quiet days in a row end with it; a day that is not there ends the row."""
    found: list[int] = []
    for at, day in enumerate(days):
        follows = at > 0 and days[at - 1].window_end == day.window_start
        found.append((found[-1] if follows else 0) + 1 if day.is_quiet else 0)
    return found


def _wrong(day: DayCompared) -> int:
    return day.only_old + day.only_new + day.differing
