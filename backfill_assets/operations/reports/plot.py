"""Rows before and after as bars: of each partition, or of groups of them, so that ten years fit on a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from backfill_assets.operations.reports.values import Line

_BARS_OF_TEXT = 40
_BARS = 92
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 960, 220, 64, 12, 28


@dataclass(frozen=True)
class Bar:
    """A partition, or the average of several in a row: rows before and after, and how many of them went wrong."""

    first: str
    last: str
    before: int
    after: int
    wrong: int

    @property
    def told(self) -> str:
        """The bar in words."""
        one = self.first == self.last
        name = self.first if one else f"{self.first} to {self.last}, on average"
        wrong = f"; {self.wrong:,} not as they should be" if self.wrong else ""
        return f"{name}: {self.before:,} rows before, {self.after:,} after{wrong}"


def bars(lines: Sequence[Line], most: int) -> list[Bar]:
    """Return at most `most` bars, each of as many partitions, but for the last."""
    step = _step(lines, most)
    groups = (lines[at : at + step] for at in range(0, len(lines), step))
    return [
        Bar(
            group[0].partition,
            group[-1].partition,
            # a sum would make the last bar, of fewer partitions, look like a loss
            round(sum(line.before or 0 for line in group) / len(group)),
            round(sum(line.after or 0 for line in group) / len(group)),
            sum(line.is_wrong for line in group),
        )
        for group in groups
    ]


def each_bar(lines: Sequence[Line]) -> str:
    """Return what a bar of the picture is, in words."""
    step = _step(lines, _BARS)
    return "rows of each partition" if step == 1 else f"rows, on average of {step} partitions a bar"


def _step(lines: Sequence[Line], most: int) -> int:
    return -(-len(lines) // most) or 1


def as_text(lines: Sequence[Line]) -> Iterator[str]:
    """Yield two lines of characters for each bar, for places that show no pictures."""
    found = bars(lines, _BARS_OF_TEXT)
    most = _most(found)
    wide = max((len(_short(bar.first)) for bar in found), default=0)
    for bar in found:
        mark = "!" if bar.wrong else " "
        yield f"{_short(bar.first):>{wide}} {mark} before {bar.before:>12,} {_blocks(bar.before, most)}"
        yield f"{'':>{wide}}   after  {bar.after:>12,} {_blocks(bar.after, most)}"


def as_svg(lines: Sequence[Line]) -> Iterator[str]:
    """Yield an SVG picture: grey bars for before, blue for after, a red mark where something went wrong."""
    found = bars(lines, _BARS)
    most, room = _most(found), _HEIGHT - _TOP - _BOTTOM
    each = (_WIDTH - _LEFT) / max(len(found), 1)
    yield f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="Rows before and after">'
    for share in (0, 0.5, 1):
        y = _TOP + room * (1 - share)
        yield f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>'
        yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" class="axis end">{_rows(most * share)}</text>'
    for number, bar in enumerate(found):
        x, wide = _LEFT + number * each + each * 0.1, each * 0.4
        yield f"<g><title>{escape(bar.told)}</title>"
        for offset, rows, kind in ((0.0, bar.before, "before"), (wide, bar.after, "after")):
            high = room * rows / most
            yield (
                f'<rect x="{x + offset:.2f}" y="{_TOP + room - high:.2f}" width="{wide:.2f}"'
                f' height="{high:.2f}" class="{kind}"/>'
            )
        if bar.wrong:
            y = _HEIGHT - _BOTTOM + 3
            yield f'<rect x="{x:.2f}" y="{y}" width="{2 * wide:.2f}" height="4" class="wrong"/>'
        yield "</g>"
    yield from _names(found, each)
    yield "</svg>"


def _names(found: Sequence[Bar], each: float) -> Iterator[str]:
    """Name the first bar, the last one, and as many between them as have room."""
    shown = sorted({round(n * (len(found) - 1) / 5) for n in range(6)}) if found else []
    for number in shown:
        x = _LEFT + (number + 0.5) * each
        where = "start" if x < _LEFT + 40 else "end" if x > _WIDTH - 40 else "middle"
        x = {"start": _LEFT, "end": _WIDTH}.get(where, x)
        name = escape(_short(found[number].first))
        yield f'<text x="{x:.1f}" y="{_HEIGHT - 6}" class="axis {where}">{name}</text>'


def _rows(value: float) -> str:
    return f"{value:,.1f}" if value < 10 and value % 1 else f"{value:,.0f}"


def _most(found: Sequence[Bar]) -> int:
    return max((max(bar.before, bar.after) for bar in found), default=0) or 1


def _blocks(value: int, most: int) -> str:
    return "█" * round(40 * value / most)


def _short(name: str) -> str:
    name = " ".join(name.split()).replace("`", "'")
    return name if len(name) <= 24 else f"{name[:23]}…"
