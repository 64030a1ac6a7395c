"""The outcome as a page for people: `rich` renderables, nothing printed here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tests.demo.outcome import RESOURCES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from tests.demo.outcome import NodeUsage, Outcome, Waiting

BAR_WIDTH: Final = 24
MAX_PROBLEMS: Final = 10

_UNITS: Final = {"cpu": (1, "cores"), "memory": (1 << 30, "GiB"), "pods": (1, "")}


def render(outcome: Outcome) -> RenderableType:
    """Return the page: what was placed, where, what waits and why, and the verdict."""
    return Group(
        _headline(outcome),
        _section("What was placed", _placed_table(outcome)),
        _section("Over the zones", _zone_table(outcome)),
        _section("Fullest and emptiest node that takes pods", _node_table(outcome)),
        _section("What waits, and what it says of itself", _waiting_table(outcome.waiting)),
        _section("What is left alone", _foreign(outcome)),
        _section("Checked against the API", _verdict(outcome.problems)),
    )


def bar(share: float, width: int = BAR_WIDTH) -> Text:
    """Return a bar of `width` cells, filled to `share` (0.0 to 1.0, anything above is full).

    A share above zero fills one cell at least, and one below 1.0 leaves one empty.
    """
    filled = round(share * width)
    if share > 0:
        filled = max(filled, 1)
    if share < 1:
        filled = min(filled, width - 1)
    filled = min(filled, width)
    style = "green" if share < 0.7 else "yellow" if share <= 1 else "bold red"
    return Text.assemble(("━" * filled, style), ("─" * (width - filled), "bright_black"))


def _section(title: str, content: RenderableType) -> RenderableType:
    return Group(
        Text(), Text(title, style="bold cyan"), Padding(content, (0, 0, 0, 2), expand=False)
    )


def _headline(outcome: Outcome) -> Text:
    style = "bold green" if outcome.bound == outcome.placeable else "bold red"
    return Text.assemble(
        (f"{outcome.bound} of {outcome.placeable} pods", style),
        " that can run somewhere are bound: ",
        (f"{outcome.pods_per_s:,.0f} pods/s".replace(",", " "), "bold"),
        f", {outcome.seconds:.2f} s from the first bind to the last",
    )


def _table() -> Table:
    return Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))


def _placed_table(outcome: Outcome) -> Table:
    table = _table()
    for placed in outcome.placed:
        kind = placed.kind
        complete = placed.bound == kind.count
        table.add_row(
            Text(kind.name, style="bold"),
            bar(placed.bound / kind.count),
            Text(f"{placed.bound} of {kind.count}", style="" if complete else "bold red"),
            f"on {placed.nodes} {'node' if placed.nodes == 1 else 'nodes'}",
            Text(f"want {kind.wants}", style="bright_black"),
        )
    return table


def _zone_table(outcome: Outcome) -> Table:
    table = _table()
    most = max((zone.pods for zone in outcome.zones), default=0) or 1
    for zone in outcome.zones:
        table.add_row(
            Text(zone.name, style="bold"),
            bar(zone.pods / most),
            f"{zone.pods} pods on {zone.nodes} nodes",
            f"{zone.cpu_share:.0%} of cpu requested",
        )
    return table


def _node_table(outcome: Outcome) -> Table:
    table = _table()
    for usage in (outcome.fullest, outcome.emptiest):
        for number, resource in enumerate(RESOURCES):
            table.add_row(
                Text(usage.name if number == 0 else "", style="bold"),
                resource,
                bar(usage.share(resource)),
                f"{usage.share(resource):.0%}",
                _amounts(usage, resource),
            )
    return table


def _amounts(usage: NodeUsage, resource: str) -> str:
    unit, word = _UNITS[resource]
    requested, allocatable = (
        float(each[resource] / unit) for each in (usage.requested, usage.allocatable)
    )
    return (
        f"{requested:.1f} of {allocatable:.0f} {word}"
        if word
        else (f"{requested:.0f} of {allocatable:.0f}")
    )


def _waiting_table(waiting: Sequence[Waiting]) -> RenderableType:
    if not waiting:
        return Text("nothing")
    table = _table()
    for pod in waiting:
        table.add_row(
            Text(pod.name, style="bold"),
            Text.assemble(
                f"wants {pod.wants}\n",
                (f"{pod.reason or 'no reason yet'}: ", "yellow"),
                f"{pod.message}\n",
                (_event(pod), "bright_black"),
            ),
        )
    return table


def _event(pod: Waiting) -> str:
    if pod.event_note is None:
        return "no FailedScheduling Event"
    if pod.event_note == pod.message:
        return "its FailedScheduling Event says the same"
    return f"its FailedScheduling Event says: {pod.event_note}"


def _foreign(outcome: Outcome) -> Text:
    return Text(
        f"{outcome.foreign} pods asked for default-scheduler, which does not run here: they stay "
        "pending, without a condition or an Event from berth"
    )


def _verdict(problems: Sequence[str]) -> Text:
    if not problems:
        return Text(
            "✓ all that should be bound is bound, nothing else is, and no node is overcommitted",
            style="green",
        )
    lines = [f"✗ {problem}" for problem in problems[:MAX_PROBLEMS]]
    if len(problems) > MAX_PROBLEMS:
        lines.append(f"✗ and {len(problems) - MAX_PROBLEMS} more")
    return Text("\n".join(lines), style="bold red")
