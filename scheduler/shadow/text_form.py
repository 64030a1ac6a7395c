"""The text form of a shadow's report: how much would change, what, and because of which plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scheduler.shadow.report import (
        Cost,
        FeasibilitySample,
        PluginInfluence,
        ShadowReport,
        WinnerSample,
    )

_NOTHING = ("", "")


def as_text(report: ShadowReport) -> str:
    """Return lines for a terminal."""
    return "".join(f"{line}\n" for line in _lines(report))


def _lines(report: ShadowReport) -> Iterator[str]:
    yield f"{report.shadow} beside {report.live or 'nobody yet'}, pods of {report.scheduler_name}:"
    yield f"  {_count(report.compared, 'decision')} of {report.wanted} compared{_passed(report)}"
    if report.failures:
        share = _share(report.failures, report.compared)
        yield f"  in {report.failures} of them{share} the shadow failed: {report.failure}"
    if report.compared == report.failures:
        return
    yield ""
    yield f"Winners      {_winners(report)}"
    yield f"Feasibility  {_feasibility(report)}"
    yield f"Cost         live {_cost(report.live_cost)}, shadow {_cost(report.shadow_cost)}"
    if report.live_influence or report.shadow_influence:
        yield ""
        yield from _influence(report)
    if report.winner_samples:
        yield ""
        yield "Changed winners, for example:"
        for winner in report.winner_samples:
            yield f"  {_winner(winner)}"
    if report.feasibility_samples:
        yield ""
        yield "Changed feasibility, for example:"
        for sample in report.feasibility_samples:
            yield f"  {_node(sample)}"


def _passed(report: ShadowReport) -> str:
    passed = report.passed
    reasons = (
        (passed.budget, "no time"),
        (passed.volumes, "volumes came with the node"),
        (passed.failed, "failed"),
    )
    told = ", ".join(f"{count} ({why})" for count, why in reasons if count)
    return f"; passed over: {told}" if told else ""


def _winners(report: ShadowReport) -> str:
    if not report.both_placed:
        return "no decision in which both found a node"
    share = _share(report.changed_winners, report.both_placed)
    both = _count(report.both_placed, "decision")
    return f"{report.changed_winners}{share} of {both} in which both found a node would change"


def _feasibility(report: ShadowReport) -> str:
    if not (report.changed_feasibility or report.only_live or report.only_shadow):
        return "the same nodes in all decisions"
    share = _share(report.changed_feasibility, report.compared)
    text = (
        f"other nodes in {_count(report.changed_feasibility, 'decision')}{share}: "
        f"{report.nodes_lost} lost, {report.nodes_gained} gained"
    )
    if report.only_live:
        text += f"; {_count(report.only_live, 'pod')} would find no node any more"
    if report.only_shadow:
        text += f"; {_count(report.only_shadow, 'pod')} would find one"
    return text


def _cost(cost: Cost) -> str:
    return f"{_ms(cost.mean_s)} ms (p50 {_ms(cost.p50_s)}, p99 {_ms(cost.p99_s)})"


def _influence(report: ShadowReport) -> Iterator[str]:
    """Yield a table of each plugin's influence on the choice, live and in the shadow."""
    live = {each.plugin: _percent_and_points(each) for each in report.live_influence}
    shadow = {each.plugin: _percent_and_points(each) for each in report.shadow_influence}
    names = list(dict.fromkeys((*shadow, *live)))
    width = max(len("Without it another"), *(len(name) for name in names)) + 2
    yield f"{'Without it another':{width}}{'live':>16}{'shadow':>18}"
    yield f"{'node would win':{width}}{'share':>8}{'points':>8}{'share':>10}{'points':>8}"
    for name in names:
        here, there = live.get(name, _NOTHING), shadow.get(name, _NOTHING)
        yield f"{name:{width}}{here[0]:>8}{here[1]:>8}{there[0]:>10}{there[1]:>8}".rstrip()


def _percent_and_points(each: PluginInfluence) -> tuple[str, str]:
    return f"{100 * each.changes:.1f} %", f"{each.spread:.1f}"


def _winner(sample: WinnerSample) -> str:
    others = f" or {_count(sample.equals - 1, 'equal')}" if sample.equals > 1 else ""
    text = f"{sample.pod}: {sample.live} -> {sample.shadow}{others}"
    if sample.lead is None:
        return f"{text}; the shadow does not allow {sample.live}"
    return f"{text}, by {_count(sample.lead, 'point')}, most by {sample.decisive}"


def _node(sample: FeasibilitySample) -> str:
    refuses = "shadow" if sample.allowed_by == "live" else "live"
    who = f" [{sample.plugin}]" if sample.plugin else ""
    return f"{sample.pod}: {sample.node} refused by {refuses} alone: {sample.reason}{who}"


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _share(part: int, whole: int) -> str:
    return f" ({100 * part / whole:.1f} %)" if whole else ""


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.2f}"
