"""Results as pages for people: `rich` renderables, nothing printed here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from tests.devices.summary import section, table
from tests.gangs.contenders import BERTH, KUBE_SCHEDULER
from tests.gangs.writes import BINDS, EVENTS, GROUP_STATUS, POD_STATUS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from tests.gangs.competing import Rest, Result

_GOAL = 0.95


def page_of_contest(result: Result) -> RenderableType:
    """Return the page of a contest of gangs."""
    names = [rest.name for rest in result.rests]
    return Group(
        _headline(result),
        section("At rest", _rows(names, _at_rest(result))),
        section("On the way", _rows(names, _on_the_way(result.rests))),
        section("Written to the API server", _rows(names, _written(result.rests))),
        *[_verdict(result, rest) for rest in result.rests],
    )


def _headline(result: Result) -> RenderableType:
    sizes = f"{result.contest.smallest} to {result.contest.largest} pods"
    pods = sum(gang.members for gang in result.gangs)
    best = result.best_milli / 1000
    return Text.assemble(
        (f"\n{len(result.gangs)} gangs", "bold"),
        f" of {sizes} compete ({pods} pods, seed {result.contest.seed}); "
        f"{result.nodes} nodes have room for {result.contest.share:.0%} of them.\n",
        f"The best of first-fit-decreasing and {result.contest.orders} random orders uses "
        f"{best:.0f} CPUs.",
    )


def _rows(names: Sequence[str], rows: Sequence[Sequence[str]]) -> RenderableType:
    made = table(right=tuple(range(1, len(names) + 1)))
    made.add_row("", *names, style="bright_black")
    for row in rows:
        made.add_row(*row)
    return made


def _at_rest(result: Result) -> list[list[str]]:
    rests = result.rests
    return [
        ["gangs whole", *(f"{len(x.whole)}" for x in rests)],
        ["gangs partial", *(f"{len(x.partial)}" for x in rests)],
        ["gangs waiting", *(f"{len(x.waiting)}" for x in rests)],
        ["waiting ones that would fit", *(f"{len(x.would_fit)}" for x in rests)],
        ["room used, CPUs", *(f"{x.used_milli / 1000:.0f}" for x in rests)],
        ["room used, of the best", *(f"{result.share_of_best(x):.1%}" for x in rests)],
        ["pods that hold room without a bind", *(f"{x.assumed}" for x in rests)],
    ]


def _on_the_way(rests: Sequence[Rest]) -> list[list[str]]:
    return [
        ["from the start to the last bind, s", *(f"{x.seconds:.1f}" for x in rests)],
        ["gangs/s, first bind to last", *(_rate(len(x.whole), x.binding_s) for x in rests)],
        ["pods/s, first bind to last", *(_rate(_pods(x), x.binding_s) for x in rests)],
        ["longest time of a gang between binds, s", *(_seconds(x) for x in rests)],
        ["attempts for groups", *(f"{x.attempts.total:.0f}" for x in rests)],
        ["of them successful", *(f"{x.attempts.scheduled:.0f}" for x in rests)],
        ["mean attempt, ms", *(f"{x.attempts.mean_ms:.1f}" for x in rests)],
        ["CPU of the scheduler, s", *(f"{x.cpu_s:.1f}" for x in rests)],
    ]


def _written(rests: Sequence[Rest]) -> list[list[str]]:
    kinds = [BINDS, EVENTS, POD_STATUS, GROUP_STATUS]
    return [[kind, *(str(x.written.get(kind, 0)) for x in rests)] for kind in kinds]


def _seconds(rest: Rest) -> str:
    return f"{rest.longest_partial_s:.2f}"


def _pods(rest: Rest) -> int:
    return sum(gang.members for gang in rest.whole)


def _rate(count: int, seconds: float) -> str:
    return f"{count / seconds:.1f}" if seconds > 0 else ""


def problems(result: Result, rest: Rest) -> list[str]:
    """Return what a scheduler has not kept of the goals; empty when all is well."""
    found = [f"{gang.name} is partial" for gang in rest.partial]
    if not rest.is_quiet:
        found.append("it did not come to rest")
    if rest.assumed:
        found.append(f"{rest.assumed} pods hold room without a bind")
    found += [f"{gang.name} waits although it would fit" for gang in rest.would_fit]
    if result.share_of_best(rest) < _GOAL:
        found.append(f"less than {_GOAL:.0%} of the room that the best order uses")
    return found


def _verdict(result: Result, rest: Rest) -> RenderableType:
    found = problems(result, rest)
    if not found:
        text = "only whole gangs, none waits that would fit, nothing is held"
        return Text(f"\n✓ {rest.name}: {text}", style="green")
    style = "bold red" if rest.name == BERTH else "yellow"
    shown = found[:5] + ([f"and {len(found) - 5} more"] if len(found) > 5 else [])
    mark = "✗" if rest.name != KUBE_SCHEDULER else "·"
    return Text(f"\n{mark} {rest.name}: " + "; ".join(shown), style=style)
