"""An explanation as JSON, for programs.

Its form is::

    {"pod": "ns/name",
     "prefilter": null | {"rejected": plugin, "code": c, "reasons": [...]},
     "nodes": {name: {"rejected": plugin, "code": c, "reasons": [...]}
                   | {"scores": {plugin: weighted score}, "total": n}}}

The code is kube-scheduler's number: 2 Unschedulable, 3 UnschedulableAndUnresolvable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from scheduler.explain.explanation import Explanation, Rejection


def as_json(explanation: Explanation) -> bytes:
    """Return one line of JSON without its end. Nodes with a rank come first, the best one first."""
    nodes: dict[str, Any] = {
        name: {"scores": ranked.scores, "total": ranked.total}
        for name, ranked in explanation.ranked.items()
    }
    for name in sorted(explanation.rejected):
        nodes[name] = _rejection(explanation.rejected[name])
    pre_filter = explanation.pre_filter
    return msgspec.json.encode(
        {
            "pod": explanation.pod_key,
            "prefilter": None if pre_filter is None else _rejection(pre_filter),
            "nodes": nodes,
        }
    )


def _rejection(rejection: Rejection) -> dict[str, Any]:
    return {
        "rejected": rejection.plugin,
        "code": int(rejection.code),
        "reasons": rejection.reasons,
    }
