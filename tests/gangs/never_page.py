"""The page about a gang that can never fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.console import Group
from rich.text import Text

from tests.devices.summary import section, table
from tests.gangs.contenders import BERTH
from tests.gangs.never import AFTER, BEFORE, BUSY, IDLE
from tests.gangs.writes import EVENTS, GROUP_STATUS, POD_STATUS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from tests.gangs.never import Part, Wait, Waited

_MOST_LOST: Final = 0.1
_WRITTEN: Final = (EVENTS, POD_STATUS, GROUP_STATUS)


def page(size: Wait, waited: Sequence[Waited]) -> RenderableType:
    """Return the page."""
    return Group(
        Text.assemble(
            (f"\nA gang of {size.members}", "bold"),
            f" on {size.nodes} nodes with room for {size.room} of them. Each part lasts "
            f"{size.minutes:g} min; while it is busy, {size.rate} single pods/s come and go.",
        ),
        section("What the gang costs, per minute", _costs(waited)),
        section(
            "What single pods get, from the moment when one is due to its bind", _times(waited)
        ),
        *[_verdict(each) for each in waited],
    )


def problems(waited: Waited) -> list[str]:
    """Return what a scheduler has not kept of the goals; empty when all is well."""
    found = []
    if waited.bound_members:
        found.append(f"{waited.bound_members} members of the gang were bound")
    if waited.loss > _MOST_LOST:
        times = f"{1 + waited.loss:.1f} times"
        found.append(f"the p99 of single pods is {times} as long while the gang waits")
    missing = sum(part.missing for part in waited.parts.values())
    if missing:
        found.append(f"{missing} single pods were not bound")
    return found


def _costs(waited: Sequence[Waited]) -> RenderableType:
    made = table(right=(2, 3, 4, 5, 6, 7))
    head = ("attempts", "mean, ms", *_WRITTEN, "CPU")
    made.add_row("", "", *head, style="bright_black")
    for each in waited:
        for name in (IDLE, BUSY):
            part = each.parts[name]
            made.add_row(
                each.name,
                name,
                f"{part.per_minute(part.attempts.total):.1f}",
                f"{part.attempts.mean_ms:.1f}",
                *(f"{part.per_minute(part.gang_writes[kind]):.1f}" for kind in _WRITTEN),
                f"{part.cpu_share:.0%}",
            )
    return made


def _times(waited: Sequence[Waited]) -> RenderableType:
    made = table(right=(2, 3, 4, 5, 6))
    made.add_row(
        "", "", "pods", "median, ms", "p99, ms", "longest, ms", "CPU", style="bright_black"
    )
    for each in waited:
        for name in (BEFORE, BUSY, AFTER):
            made.add_row(each.name, name, *_row(each.parts[name]))
    return made


def _row(part: Part) -> list[str]:
    if not part.times_ms:
        return ["0", "", "", "", f"{part.cpu_share:.0%}"]
    times = (f"{part.p(share):.1f}" for share in (0.5, 0.99, 1.0))
    return [str(len(part.times_ms)), *times, f"{part.cpu_share:.0%}"]


def _verdict(waited: Waited) -> RenderableType:
    found = problems(waited)
    if not found:
        return Text(
            f"\n✓ {waited.name}: single pods' p99 changes by {waited.loss:+.1%} while it waits",
            style="green",
        )
    mark, style = ("✗", "bold red") if waited.name == BERTH else ("·", "yellow")
    return Text(f"\n{mark} {waited.name}: " + "; ".join(found), style=style)
