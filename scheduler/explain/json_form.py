"""The JSON form of an explanation.

The form is::

    {"pod": "ns/name",
     "prefilter": null | {"rejected": plugin, "code": c, "reasons": [...]},
     "nodes": {name: {"rejected": plugin, "code": c, "reasons": [...]}
                   | {"scores": {plugin: weighted score}, "total": n}},
     "preemption": {"candidates": {name: {"victims": ["ns/name", ...], "pdbViolations": n}},
                    "chosen": name | null},
     "devices": [{"claim": "ns/name", "request": name, "matching": n, "free": n, ...}, ...]}

The code is kube-scheduler's number: 2 Unschedulable, 3 UnschedulableAndUnresolvable.
``preemption`` is present only if no node is feasible and the pod may preempt. Its candidates are
all nodes on which preemption would help, the least harm first, with the most important victims
first; if there are none, ``message`` contains the reason. ``devices`` is present only for a pod
whose claims have to be allocated; its fields are those of
:class:`plugins.dynamic_resources.device_report.DeviceReport`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from scheduler.explain.explanation import Explanation, Rejection, RoomToMake


def as_json(explanation: Explanation) -> bytes:
    """Return one line of JSON without a newline. Feasible nodes come first, in order of rank."""
    nodes: dict[str, Any] = dict(explanation.ranked)
    for name in sorted(explanation.rejected):
        nodes[name] = _rejection(explanation.rejected[name])
    pre_filter = explanation.pre_filter
    answer: dict[str, Any] = {
        "pod": explanation.pod_key,
        "prefilter": None if pre_filter is None else _rejection(pre_filter),
        "nodes": nodes,
    }
    room = explanation.room_to_make
    if room is not None and not room.refusal:
        answer["preemption"] = _preemption(room)
    if explanation.devices:
        answer["devices"] = explanation.devices
    return msgspec.json.encode(answer)


def _preemption(room: RoomToMake) -> dict[str, Any]:
    candidates = {
        name: {
            "victims": [info.key for info in victims.pods],
            "pdbViolations": victims.pdb_violations,
        }
        for name, (victims, _) in room.candidates.items()
    }
    answer: dict[str, Any] = {"candidates": candidates, "chosen": room.chosen}
    if room.message:
        answer["message"] = room.message
    return answer


def _rejection(rejection: Rejection) -> dict[str, Any]:
    return {
        "rejected": rejection.plugin,
        "code": int(rejection.code),
        "reasons": rejection.reasons,
    }
