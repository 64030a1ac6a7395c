"""The text form of a forecast: what would be placed, what not, and what stands in the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scheduler.what_if.result import CONFIG, DRAINED, GROUP, PENDING, PODS, PREEMPTED, REMOVED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from scheduler.what_if.result import BudgetUse, Forecast, NodeDrain, Part

MAX_NODES: Final = 10
"""Nodes that the text lists for a part; JSON has all of them."""

MAX_PLACEMENTS: Final = 20
"""Pods of which the text says from where to where they go."""

MAX_REASONS: Final = 5

MAX_SHOWN: Final = 3
"""Names in a sentence."""

_TITLES: Final = {
    PENDING: "Pending pods",
    REMOVED: "Pods of removed nodes",
    DRAINED: "Pods evicted from",
    PODS: "Pods",
    GROUP: "Pod group",
    PREEMPTED: "Successors of preempted pods",
    CONFIG: "Running pods by the new configuration",
}


def as_text(forecast: Forecast) -> str:
    """Return lines for a terminal."""
    return "".join(f"{line}\n" for line in _lines(forecast))


def _lines(forecast: Forecast) -> Iterator[str]:
    if not forecast.parts:
        yield "Nothing would be placed: the change concerns no pod."
    for number, part in enumerate(forecast.parts):
        if number:
            yield ""
        yield from _part_lines(part)
        if part.kind == DRAINED:
            yield from _drain_lines(forecast)
    if forecast.budgets and not any(part.kind == DRAINED for part in forecast.parts):
        yield from _budget_lines(forecast)
    if forecast.preempted:
        yield ""
        yield from _preempted_lines(forecast)
    if len(forecast.parts) > 1:
        yield ""
        yield f"In all: {_summary(forecast.placed, forecast.refused, forecast.undecided)}."
    for note in forecast.notes:
        yield ""
        yield f"Note: {note}"
    if forecast.out_of_time:
        yield ""
        yield "The time for this question was used up; what is undecided may fit or not."


def _part_lines(part: Part) -> Iterator[str]:
    title = f"{_TITLES[part.kind]} {part.subject}".rstrip()
    if part.kind == CONFIG:
        total = part.placed + part.refused + part.stayed
        yield f"{title}: {part.placed} of {total} would move, {part.stayed} would stay."
        if part.refused:
            yield f"  {_pods(part.refused)} would find no node any more."
        if part.undecided:
            yield f"  {_pods(part.undecided)} undecided."
    else:
        yield f"{title}: {_summary(part.placed, part.refused, part.undecided)}."
    moves = [each for each in part.placements if each.from_node]
    if moves:
        for move in moves[:MAX_PLACEMENTS]:
            yield f"  {move.pod}: {move.from_node} -> {move.node}"
        left = part.placed - min(len(moves), MAX_PLACEMENTS)
        if left:
            yield f"  and {left} more; by node:"
    if part.nodes and (not moves or left):
        yield from _node_lines(part.nodes)
    for refusal in part.refusals[:MAX_REASONS]:
        names = ", ".join(refusal.sample[:MAX_SHOWN])
        more = " ..." if refusal.pods > min(len(refusal.sample), MAX_SHOWN) else ""
        whose = f" ({names}{more})" if names else ""
        yield f"  {_pods(refusal.pods)} not placed{whose}: {refusal.reason.strip()}"
    if len(part.refusals) > MAX_REASONS:
        yield f"  and {len(part.refusals) - MAX_REASONS} more reasons"
    if part.kind in (PODS, GROUP) and not part.refused and not part.undecided and part.placed:
        what = "group" if part.kind == GROUP else "pod"
        if part.next:
            yield f"  One more {what} would not fit: {part.next.strip()}"
        elif part.one_more_fits:
            yield f"  One more {what} would fit."


def _node_lines(nodes: Mapping[str, int]) -> Iterator[str]:
    shown = list(nodes.items())[:MAX_NODES]
    width = max(len(name) for name, _ in shown)
    for name, count in shown:
        yield f"  {name:{width}}  {_pods(count)}"
    left = len(nodes) - len(shown)
    if left:
        pods = sum(nodes.values()) - sum(count for _, count in shown)
        yield f"  {_count(left, 'more node')}: {_pods(pods)}"


def _drain_lines(forecast: Forecast) -> Iterator[str]:
    yield ""
    for drain in forecast.drains:
        yield f"Drain of {drain.node}: {_drain_summary(drain)}."
        for blocked in drain.blocked[:MAX_PLACEMENTS]:
            by = f" [{', '.join(blocked.budgets)}]" if blocked.budgets else ""
            yield f"  cannot be evicted: {blocked.pod}: {blocked.reason}{by}"
        left = len(drain.blocked) - MAX_PLACEMENTS
        if left > 0:
            yield f"  and {left} more"
        if drain.unmanaged:
            names = ", ".join(drain.unmanaged[:MAX_SHOWN])
            more = " ..." if len(drain.unmanaged) > MAX_SHOWN else ""
            yield f"  lost, for no controller replaces them (--force is needed): {names}{more}"
    yield from _budget_lines(forecast)


def _drain_summary(drain: NodeDrain) -> str:
    text = f"{_pods(drain.evicted)} evicted"
    if drain.blocked:
        text += f", {_pods(len(drain.blocked))} blocked, so that it does not end"
    counts = (drain.daemon_set_pods, "DaemonSet pod"), (drain.mirror_pods, "static pod")
    ignored = [_count(count, noun) for count, noun in counts if count]
    return f"{text}; {' and '.join(ignored)} ignored" if ignored else text


def _budget_lines(forecast: Forecast) -> Iterator[str]:
    for use in forecast.budgets:
        yield f"PodDisruptionBudget {use.budget}: {_budget_summary(use)}."


def _budget_summary(use: BudgetUse) -> str:
    text = f"allows {_count(use.allowed, 'disruption')}, {_pods(use.evicted)} evicted"
    if use.waited:
        text += f", {use.waited} of them only after others ran elsewhere"
    if use.blocked:
        text += f", {use.blocked} cannot be evicted"
    return text


def _preempted_lines(forecast: Forecast) -> Iterator[str]:
    count = _pods(len(forecast.preempted))
    if not forecast.preempted[0].pod:  # the reader may not see it
        yield f"{count} would be preempted."
        return
    yield f"{count} would be preempted:"
    for each in forecast.preempted[:MAX_PLACEMENTS]:
        yield f"  {each.pod} on {each.node}, for {each.by}"
    left = len(forecast.preempted) - MAX_PLACEMENTS
    if left > 0:
        yield f"  and {left} more"


def _summary(placed: int, refused: int, undecided: int) -> str:
    total = placed + refused + undecided
    if not total:
        return "none"
    text = f"{placed} of {total} would be placed"
    if refused:
        text += f", {refused} would wait"
    if undecided:
        text += f", {undecided} undecided"
    return text


def _pods(count: int) -> str:
    return _count(count, "pod")


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
