"""An explanation without names, for users who may not see nodes: counts in their place."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scheduler.explain import Explanation, NodeScores, Rejection
    from scheduler.relaxations import Relaxations

VICTIMS_HIDDEN = "Victims of preemption are shown to users who may list pods in all namespaces."


def without_victims(found: Relaxations) -> Relaxations:
    """Return what would help without the names of other pods."""
    groups = tuple(
        replace(group, relaxations=tuple(replace(each, victims=()) for each in group.relaxations))
        for group in found.groups
    )
    return replace(found, groups=groups)


def counts_data(explanation: Explanation) -> dict[str, Any]:
    """Return what the JSON form tells, without the names of nodes.

    The form is that of :mod:`scheduler.explain.json_form` with ``counts`` in place of ``nodes``::

        {"pod": "ns/name", "prefilter": ..., "nodes": {}, "num_nodes": n,
         "counts": {"feasible": n,
                    "rejected": [{"rejected": plugin, "code": c, "reasons": [...], "nodes": n}]},
         "preemption": {"nodes": n}}
    """
    refused = explanation.pre_filter
    data: dict[str, Any] = {
        "pod": explanation.pod_key,
        "prefilter": None if refused is None else _rejection(refused),
        "nodes": {},
        "num_nodes": explanation.num_nodes,
        "counts": {
            "feasible": len(explanation.ranked),
            "rejected": [
                {**_rejection(rejection), "nodes": count}
                for rejection, count in _by_number(explanation)
            ],
        },
    }
    if explanation.room_to_make is not None:
        data["preemption"] = {"nodes": len(explanation.room_to_make.candidates)}
    return data


def counts_text(explanation: Explanation) -> str:
    """Return lines for a terminal."""
    return "".join(f"{line}\n" for line in _lines(explanation))


def _lines(explanation: Explanation) -> Iterable[str]:
    pod, count = f"Pod {explanation.pod_key}", explanation.num_nodes
    nodes = "1 node" if count == 1 else f"{count} nodes"
    if not count:
        yield f"{pod}: no nodes available to schedule pods"
    elif explanation.pre_filter is not None:
        yield f"{pod}: no node of {count} can run it: {_why(explanation.pre_filter)}"
    else:
        yield f"{pod}: {len(explanation.ranked)} of {nodes} can run it"
    if explanation.rejected:
        yield ""
        yield f"{len(explanation.rejected)} of {nodes} cannot:"
    for rejection, number in _by_number(explanation):
        yield f"{number:7}  {_why(rejection)}"
    if explanation.ranked:
        best = next(iter(explanation.ranked.values()))
        yield ""
        yield f"The best node has {best.total} points: {_breakdown(best)}"
    room = explanation.room_to_make
    if room is not None and room.candidates:
        yield ""
        yield f"Preemption would help on {len(room.candidates)} of {nodes}."


def _breakdown(scores: NodeScores) -> str:
    parts = [f"{plugin} {score}" for plugin, score in scores.scores.items() if score]
    return " + ".join(parts) or "no plugin gives it anything"


def _by_number(explanation: Explanation) -> list[tuple[Rejection, int]]:
    counts = Counter(explanation.rejected.values())
    return sorted(counts.items(), key=lambda item: (-item[1], item[0].reasons))


def _why(rejection: Rejection) -> str:
    by = f" [{rejection.plugin}]" if rejection.plugin else ""
    return f"{', '.join(rejection.reasons)}{by}"


def _rejection(rejection: Rejection) -> dict[str, Any]:
    return {
        "rejected": rejection.plugin,
        "code": int(rejection.code),
        "reasons": rejection.reasons,
    }
