"""Plots as SVG that reads well on a light and on a dark page: bars and lines, nothing more.

Small and without dependencies: a plot that is made of the same figures is the same bytes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

COLORS = ("#3b82c4", "#e08a2b", "#5aa469", "#a770b8", "#c4554d", "#7d8793")
"""Told apart by people who see colours differently; the same series has the same everywhere."""

_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#333}"
    ".b{fill:#fff}.t{font-size:15px;font-weight:600}.n{font-size:11px;fill:#667}"
    ".g{stroke:#ccd;stroke-width:1}.a{stroke:#667;stroke-width:1}"
    ".m{stroke:#c4554d;stroke-width:1.5;stroke-dasharray:5 4}"
    ".w{stroke:#333;stroke-width:1.2}"
    "@media(prefers-color-scheme:dark){text{fill:#dde}.b{fill:#14181e}.n{fill:#99a}"
    ".g{stroke:#334}.a{stroke:#99a}.w{stroke:#dde}}"
)


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar with its spread; None for `value` leaves its place empty."""

    value: float | None
    low: float = 0.0
    high: float = 0.0


@dataclass(frozen=True)
class BarPlot:
    """Horizontal bars in groups.

    Parameters
    ----------
    title, unit
        Above and below.
    series
        Names, one for each bar of a group.
    groups
        Name and bars, from top to bottom.
    mark
        Where a line stands across all groups.
    """

    title: str
    unit: str
    series: Sequence[str]
    groups: Sequence[tuple[str, Sequence[Bar]]]
    mark: float | None = None

    def render(self) -> str:
        """Return the SVG."""
        thick, gap, left, width, top = 11, 9, 190, 520, 62
        group_height = thick * len(self.series) + gap
        height = top + group_height * len(self.groups) + 42
        largest = max(
            (max(bar.value, bar.high) for _, bars in self.groups for bar in bars if bar.value),
            default=1.0,
        )
        steps = ticks(max(largest, self.mark or 0.0))

        def x(value: float) -> float:
            return left + width * value / steps[-1]

        page = _Page(left + width + 70, height, self.title)
        page.legend(self.series, left)
        bottom = height - 38
        for step in steps:
            page.line(x(step), top - 4, x(step), bottom, "g")
            page.text(x(step), bottom + 15, short(step), anchor="middle", kind="n")
        page.text(left + width / 2, bottom + 31, self.unit, anchor="middle", kind="n")
        for number, (name, bars) in enumerate(self.groups):
            y = top + number * group_height
            page.text(left - 8, y + thick * len(bars) / 2 + 4, name, anchor="end")
            for place, bar in enumerate(bars):
                if bar.value is None:
                    continue
                at = y + place * thick
                page.rect(left, at, x(bar.value) - left, thick - 2, COLORS[place % len(COLORS)])
                end = x(max(bar.value, bar.high))
                if bar.high > bar.low:
                    middle = at + (thick - 2) / 2
                    page.line(x(bar.low), middle, x(bar.high), middle, "w")
                page.text(end + 5, at + thick - 3, short(bar.value), kind="n")
        page.line(left, top - 4, left, bottom, "a")
        if self.mark is not None:
            page.line(x(self.mark), top - 4, x(self.mark), bottom, "m")
        return page.render()


@dataclass(frozen=True)
class LinePlot:
    """Lines over a linear or a logarithmic ground.

    Parameters
    ----------
    title, x_unit, y_unit
        Above, below and beside.
    lines
        Name and points.
    log_x, log_y
        Whether equal steps are equal factors; points that are not positive are left out there.
    dots
        Whether each point is marked.
    """

    title: str
    x_unit: str
    y_unit: str
    lines: Sequence[tuple[str, Sequence[tuple[float, float]]]]
    log_x: bool = False
    log_y: bool = False
    dots: bool = False

    def render(self) -> str:
        """Return the SVG."""
        left, width, top, height = 70, 600, 70, 330
        points = [point for _, line in self.lines for point in line if self._has(point)]
        xs, x = _scale([point[0] for point in points], left, left + width, log=self.log_x)
        ys, y = _scale([point[1] for point in points], top + height, top, log=self.log_y)
        page = _Page(left + width + 40, top + height + 44, self.title)
        page.legend([name for name, _ in self.lines], left)
        for step in xs:
            page.line(x(step), top, x(step), top + height, "g")
            page.text(x(step), top + height + 16, short(step), anchor="middle", kind="n")
        for step in ys:
            page.line(left, y(step), left + width, y(step), "g")
            page.text(left - 6, y(step) + 4, short(step), anchor="end", kind="n")
        page.text(left + width / 2, top + height + 33, self.x_unit, anchor="middle", kind="n")
        page.text(left, top - 8, self.y_unit, kind="n")
        for number, (_, line) in enumerate(self.lines):
            color = COLORS[number % len(COLORS)]
            at = [(x(point[0]), y(point[1])) for point in line if self._has(point)]
            page.path(at, color)
            if self.dots:
                for point in at:
                    page.dot(*point, color)
        return page.render()

    def _has(self, point: tuple[float, float]) -> bool:
        return (point[0] > 0 or not self.log_x) and (point[1] > 0 or not self.log_y)


def ticks(largest: float, most: int = 6) -> list[float]:
    """Return round steps from 0 to at least `largest`, about `most` of them."""
    if not largest > 0:
        return [0.0, 1.0]
    rough = largest / most
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * each for each in (1, 2, 2.5, 5, 10) if size * each >= rough * (1 - 1e-9))
    return [step * number for number in range(math.ceil(largest / step * (1 - 1e-9)) + 1)]


def log_ticks(smallest: float, largest: float) -> list[float]:
    """Return powers of ten, and 2 and 5 times them where they are few, that enclose both."""
    low, high = math.floor(math.log10(smallest)), math.ceil(math.log10(largest))
    # Logarithms are rounded: next to a power of ten they may be off by one.
    low -= 10.0**low > smallest
    high = max(high + (10.0**high < largest), low + 1)
    factors = (1, 2, 5) if high - low <= 2 else (1,)
    steps = [factor * 10.0**power for power in range(low, high) for factor in factors]
    steps.append(10.0**high)
    below = max(step for step in steps if step <= smallest)
    above = min(step for step in steps if step >= largest)
    return [step for step in steps if below <= step <= above] if below < above else steps


def short(value: float) -> str:
    """Return a number with three digits that count, and ``k`` or ``M`` where it is large."""
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size * 10 or (abs(value) >= size and value % (size / 10) == 0):
            return f"{value / size:.3g}{unit}"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"


def _scale(
    values: Sequence[float], start: float, end: float, *, log: bool
) -> tuple[list[float], Callable[[float], float]]:
    if log:
        steps = log_ticks(min(values, default=1.0), max(values, default=10.0))
        first, last = math.log10(steps[0]), math.log10(steps[-1])
        return steps, lambda v: start + (end - start) * (math.log10(v) - first) / (last - first)
    steps = ticks(max(values, default=1.0))
    return steps, lambda v: start + (end - start) * v / steps[-1]


class _Page:
    def __init__(self, width: float, height: float, title: str) -> None:
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" height="{height:.0f}" role="img">',
            f"<title>{escape(title)}</title><style>{_STYLE}</style>",
            '<rect width="100%" height="100%" class="b"/>',
        ]
        self.text(12, 22, title, kind="t")

    def legend(self, names: Sequence[str], left: float) -> None:
        at = left
        for number, name in enumerate(names):
            self.rect(at, 34, 10, 10, COLORS[number % len(COLORS)])
            self.text(at + 14, 43, name)
            at += 26 + 7 * len(name)

    def text(self, x: float, y: float, text: str, *, anchor: str = "", kind: str = "") -> None:
        more = (f' text-anchor="{anchor}"' if anchor else "") + (f' class="{kind}"' if kind else "")
        self._parts.append(f'<text x="{x:.1f}" y="{y:.1f}"{more}>{escape(text)}</text>')

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        self._parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'
        )

    def rect(self, x: float, y: float, width: float, height: float, color: str) -> None:
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{height:.1f}" '
            f'fill="{color}"/>'
        )

    def dot(self, x: float, y: float, color: str) -> None:
        self._parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>')

    def path(self, points: Sequence[tuple[float, float]], color: str) -> None:
        if points:
            drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            self._parts.append(
                f'<polyline points="{drawn}" fill="none" stroke="{color}" stroke-width="2"/>'
            )

    def render(self) -> str:
        return "\n".join([*self._parts, "</svg>"]) + "\n"
