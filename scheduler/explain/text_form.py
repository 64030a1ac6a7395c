"""The text form of an explanation: rejections with reasons, the ranking, and possible victims.

Lists are short: of 5 000 nodes the text contains their number and some examples.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from cache.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from plugins import names as plugin_names
from plugins.framework.status import Code
from scheduler.decision.decision import NO_NODES_AVAILABLE
from scheduler.explain.device_text import device_lines
from scheduler.explain.preemption_text import preemption_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from plugins.node_resources_fit import Shortfall
    from scheduler.explain.explanation import Explanation, Rejection
    from scheduler.explain.ranking import NodeScores

MAX_GROUPS: Final = 20
MAX_NAMES: Final = 8
MAX_LACKING: Final = 3
"""The number of nodes of a group whose shortfalls are listed."""
MAX_RANKED: Final = 10


def as_text(explanation: Explanation, lacks: Callable[[str], Sequence[Shortfall]]) -> str:
    """Return lines for a terminal.

    Parameters
    ----------
    explanation
        The explanation of one pod.
    lacks
        Returns the shortfalls of a node by its name; called for a few nodes only.
    """
    lines = [_headline(explanation)]
    if explanation.rejected:
        lines += ["", *_refusals(explanation, lacks)]
    if explanation.ranked:
        lines += ["", *_ranking(explanation)]
    if explanation.devices:
        lines += ["", *device_lines(explanation.devices)]
    if explanation.room_to_make is not None:
        lines += ["", *preemption_lines(explanation.room_to_make)]
    return "".join(f"{line}\n" for line in lines)


def _headline(explanation: Explanation) -> str:
    pod, refused = f"Pod {explanation.pod_key}", explanation.pre_filter
    if not explanation.num_nodes:
        return f"{pod}: {NO_NODES_AVAILABLE}"
    if refused is not None:
        return f"{pod}: no node of {explanation.num_nodes} can run it: {_why(refused)}"
    return f"{pod}: {len(explanation.ranked)} of {_nodes(explanation.num_nodes)} can run it"


def _refusals(
    explanation: Explanation, lacks: Callable[[str], Sequence[Shortfall]]
) -> Iterable[str]:
    groups: dict[Rejection, list[str]] = {}
    for name in sorted(explanation.rejected):
        groups.setdefault(explanation.rejected[name], []).append(name)
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0].reasons))
    yield f"{_nodes(len(explanation.rejected))} cannot:"
    for rejection, names in ordered[:MAX_GROUPS]:
        yield f"{len(names):7}  {_why(rejection)}"
        told = []
        if rejection.plugin == plugin_names.NODE_RESOURCES_FIT:
            told = [(name, lacking) for name in names[:MAX_LACKING] if (lacking := lacks(name))]
        if told:
            for name, lacking in told:
                yield f"{'':11}{name}: {'; '.join(map(_amounts, lacking))}"
            left = len(names) - len(told)
            if left:
                yield f"{'':11}and {left} more"
        else:
            yield f"{'':11}{_some(names)}"
    if len(ordered) > MAX_GROUPS:
        rest = sum(len(names) for _, names in ordered[MAX_GROUPS:])
        yield f"{rest:7}  for {len(ordered) - MAX_GROUPS} other reasons"


def _why(rejection: Rejection) -> str:
    who = f" [{rejection.plugin}]" if rejection.plugin else ""
    may_help = rejection.code is Code.UNSCHEDULABLE
    hint = "; other pods are in the way" if may_help else ""
    return f"{', '.join(rejection.reasons)}{who}{hint}"


def _some(names: Sequence[str]) -> str:
    left = len(names) - MAX_NAMES
    shown = ", ".join(names[:MAX_NAMES])
    return f"{shown} and {left} more" if left > 0 else shown


def _ranking(explanation: Explanation) -> Iterable[str]:
    totals = explanation.ranked.totals
    equals = int((totals == totals[0]).sum())
    yield "Ranking:" if equals == 1 else f"Ranking ({equals} nodes share the first place):"
    shown = list(islice(explanation.ranked.items(), MAX_RANKED))
    width = max(len(name) for name, _ in shown)
    for name, scores in shown:
        yield f"{scores.total:7}  {name:{width}}  {_breakdown(scores)}"
    left = len(totals) - len(shown)
    if left:
        yield f"{'':9}and {left} more, down to {totals[-1]}"


def _breakdown(scores: NodeScores) -> str:
    parts = [f"{plugin} {score}" for plugin, score in scores.scores.items() if score]
    return " + ".join(parts) or "no plugin gives it anything"


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


def _amounts(lack: Shortfall) -> str:
    show = _unit_of(lack.resource)
    free = max(lack.capacity - lack.used, 0)
    return (
        f"{lack.resource} {show(lack.requested)} wanted, {show(free)} of {show(lack.capacity)} free"
    )


def _unit_of(resource: str) -> Callable[[int], str]:
    if resource == CPU:
        return _cores
    if resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith("hugepages-"):
        return _bytes
    return str


def _cores(milli: int) -> str:
    return str(milli // 1000) if milli % 1000 == 0 else f"{milli}m"


def _bytes(amount: int) -> str:
    """Return an amount with the digits that suffice for a comparison."""
    unit, suffix = 1, ""
    for power, name in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1):
        if amount >= 1024**power:
            unit, suffix = 1024**power, name
    return f"{amount / unit:.4g}{suffix}" if amount % unit else f"{amount // unit}{suffix}"
