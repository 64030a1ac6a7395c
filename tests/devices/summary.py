"""What happened, as a page for people: `rich` renderables, nothing printed here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tests.bench.statistics_of import quantile
from tests.controlplane.failing_proxy import BINDS, CLAIMS, UNSEEN_OR_REFUSED
from tests.controlplane.metrics import metric_sum
from tests.devices.overlaps import most_held
from tests.devices.promises import MAX_SHOWN
from tests.devices.rival_life import BERTH, KUBE_SCHEDULER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from tests.devices.faulty_life import Life
    from tests.devices.promises import Promise
    from tests.devices.rival_life import Rivalry
    from tests.devices.rivalry import Findings

_WIDTH: Final = 68
_COLLISIONS: Final = "berth_device_collisions_total"
_ATTEMPTS: Final = "scheduler_schedule_attempts_total"


def page_of_faults(life: Life, promises: Sequence[Promise]) -> RenderableType:
    """Return the page of a life with faults."""
    return Group(
        _headline(life),
        section("What failed between Berth and the API server", _faults(life)),
        section("What was promised", promises_table(promises)),
        verdict(promises),
    )


def section(title: str, content: RenderableType) -> RenderableType:
    """Return content under a title."""
    return Group(
        Text(), Text(title, style="bold cyan"), Padding(content, (0, 0, 0, 2), expand=False)
    )


def table(*, right: Sequence[int] = ()) -> Table:
    """Return an empty table without lines.

    Parameters
    ----------
    right
        The columns with numbers.
    """
    made = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for column in range(max(right, default=-1) + 1):
        made.add_column(justify="right" if column in right else "left")
    return made


def promises_table(promises: Sequence[Promise]) -> RenderableType:
    """Return one line for each promise, and the first cases that break it."""
    lines = []
    for each in promises:
        mark = ("✗ ", "bold red") if each.broken else ("✓ ", "green")
        lines.append(Text.assemble(mark, f"{each.text:<{_WIDTH}}", (each.figures, "bright_black")))
        lines += [Text(f"  {case}", style="red") for case in each.broken[:MAX_SHOWN]]
        if len(each.broken) > MAX_SHOWN:
            lines.append(Text(f"  and {len(each.broken) - MAX_SHOWN} more", style="red"))
    return Group(*lines)


def verdict(promises: Sequence[Promise]) -> RenderableType:
    """Return one line: whether everything was kept."""
    broken = sum(bool(each.broken) for each in promises)
    if broken:
        return Text(f"\n✗ {broken} of {len(promises)} promises are broken", style="bold red")
    return Text(f"\n✓ all {len(promises)} promises are kept", style="bold green")


def _headline(life: Life) -> RenderableType:
    size = life.size
    total = size.nodes * size.devices
    rate = size.pods / life.bound_in_s
    return Text.assemble(
        (f"\n{size.pods} pods", "bold"),
        f" with {size.count} devices each on {size.nodes} nodes of {size.devices}: bound in "
        f"{life.bound_in_s:.1f} s ({rate:.0f} pods/s), freed in {life.freed_in_s:.1f} s.\n"
        f"At most {most_held(life.claims)} of {total} devices were in use.\n"
        f"The leader was killed after {life.bound_by_the_killed} pods; the standby bound its first "
        f"after {life.took_over_s:.1f} s.",
    )


def _faults(life: Life) -> RenderableType:
    made = table(right=(1, 2))
    made.add_row("", "binds", "claim writes", style="bright_black")
    made.add_row("requests", *(str(life.requests.get(kind, 0)) for kind in (BINDS, CLAIMS)))
    for fault in UNSEEN_OR_REFUSED:
        counts = (str(life.failed.get((kind, fault), 0)) for kind in (BINDS, CLAIMS))
        made.add_row(fault.value, *counts)
    return made


# --- two schedulers ---------------------------------------------------------------------------


def page_of_rivals(
    rivalry: Rivalry, findings: Findings, promises: Sequence[Promise]
) -> RenderableType:
    """Return the page of two schedulers with one pool."""
    contest = rivalry.contest
    total = contest.nodes * contest.devices
    headline = Text.assemble(
        (f"\n{total} devices", "bold"),
        f", {contest.seconds:g} s, {contest.pods} pods of each scheduler at any time: "
        f"{rivalry.in_use:.0%} of the devices were in use on average.",
    )
    return Group(
        headline,
        section("What each scheduler did", _schedulers(rivalry, findings)),
        section("Devices that two claims had", _collisions(findings)),
        section("How long it took", _times(findings)),
        section("Errors of Berth", _errors(rivalry.errors)),
        section("What was promised", promises_table(promises)),
        verdict(promises),
    )


def _schedulers(rivalry: Rivalry, findings: Findings) -> RenderableType:
    made = table(right=(1, 2, 3, 4, 5, 6))
    attempts = ("pods bound", "attempts", "unschedulable", "error")
    head = ("", *attempts, "collisions found", "after the write")
    made.add_row(*head, style="bright_black")
    for name in (BERTH, KUBE_SCHEDULER):
        text = rivalry.metrics[name]
        counts = {
            result: metric_sum(text, _ATTEMPTS, result=result)
            for result in ("scheduled", "unschedulable", "error")
        }
        made.add_row(
            name,
            str(findings.bound[name]),
            f"{sum(counts.values()):.0f}",
            f"{counts['unschedulable']:.0f}",
            f"{counts['error']:.0f}",
            f"{metric_sum(text, _COLLISIONS):.0f}" if name == BERTH else "",
            str(findings.withdrawals) if name == BERTH else "",
        )
    return made


def _collisions(findings: Findings) -> RenderableType:
    made = table(right=(2, 3, 4, 5))
    head = ("first", "second", "devices", "withdrawn by Berth", "both bound", "taken for free")
    made.add_row(*head, style="bright_black")
    for first in (BERTH, KUBE_SCHEDULER):
        for second in (BERTH, KUBE_SCHEDULER):
            found = findings.between(first, second)
            counts = (
                len(found),
                sum(each.is_withdrawn for each in found),
                sum(each.both_bound for each in found),
                sum(each.is_forgotten for each in found),
            )
            made.add_row(first, second, *map(str, counts))
    return made


def _times(findings: Findings) -> RenderableType:
    made = table(right=(1, 2, 3))
    made.add_row("", "median", "99 %", "longest", style="bright_black")
    raced = [x for x in findings.between(BERTH, KUBE_SCHEDULER) if not x.is_forgotten]
    late = [x.gap_s for x in raced if x.both_bound]
    for what, seconds in (
        ("from Berth's allocation to its bind", findings.checks_s),
        ("from Berth's allocation to kube-scheduler's, where both raced and bound", sorted(late)),
    ):
        if seconds:
            shown = (quantile(seconds, 0.5), quantile(seconds, 0.99), seconds[-1])
            made.add_row(what, *(f"{1000 * each:.0f} ms" for each in shown))
    return made


def _errors(errors: Sequence[str]) -> RenderableType:
    if not errors:
        return Text("none")
    lines = list(errors[:MAX_SHOWN])
    if len(errors) > MAX_SHOWN:
        lines.append(f"and {len(errors) - MAX_SHOWN} more")
    return Text("\n".join(lines))
