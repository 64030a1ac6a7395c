"""The JSON form of an explanation.

The form is::

    {"pod": "ns/name",
     "prefilter": null | {"rejected": plugin, "code": c, "reasons": [...]},
     "nodes": {name: {"rejected": plugin, "code": c, "reasons": [...]}
                   | {"scores": {plugin: weighted score}, "total": n,
                      "allocations": [{"claim": name, "allocation": {...}}]}},
     "deallocation": message,
     "preemption": {"candidates": {name: {"victims": ["ns/name", ...], "pdbViolations": n}},
                    "chosen": name | null},
     "devices": [{"claim": "ns/name", "request": name, "matching": n, "free": n, ...}, ...],
     "relaxations": {...}}

The code is kube-scheduler's number: 2 Unschedulable, 3 UnschedulableAndUnresolvable.
``allocations`` is present if the pod has claims without an allocation. A claim that does not exist
yet, which stands for extended resources, also has ``requests``. ``deallocation`` is present if no
node is feasible and the pod has claims.
``preemption`` is present only if no node is feasible and the pod may preempt. Its candidates are
all nodes on which preemption would help, the least harm first, with the most important victims
first; if there are none, ``message`` contains the reason. ``devices`` is present only for a pod
whose claims have to be allocated; its fields are those of
:class:`plugins.dynamic_resources.device_report.DeviceReport`. ``relaxations`` has the form of
:mod:`scheduler.relaxations.forms`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from plugins.dynamic_resources import is_in_memory

if TYPE_CHECKING:
    from cache.device_objects import AllocationResult, ResourceClaim
    from scheduler.explain.explanation import Explanation, Rejection, RoomToMake
    from scheduler.relaxations import Relaxations


def as_json(explanation: Explanation, relaxations: Relaxations | None = None) -> bytes:
    """Return one line of JSON without a newline. Feasible nodes come first, in order of rank.

    Parameters
    ----------
    relaxations
        What would help, or what decided; None to leave that out.
    """
    nodes: dict[str, Any] = {}
    for name, scores, total, allocations in explanation.ranked.rows():
        nodes[name] = {"scores": scores, "total": total}
        if allocations:
            nodes[name]["allocations"] = [_allocation(*each) for each in allocations]
    for name in sorted(explanation.rejected):
        nodes[name] = _rejection(explanation.rejected[name])
    pre_filter = explanation.pre_filter
    answer: dict[str, Any] = {
        "pod": explanation.pod_key,
        "prefilter": None if pre_filter is None else _rejection(pre_filter),
        "nodes": nodes,
    }
    if explanation.deallocation:
        answer["deallocation"] = explanation.deallocation
    room = explanation.room_to_make
    if room is not None and not room.refusal:
        answer["preemption"] = _preemption(room)
    if explanation.devices:
        answer["devices"] = explanation.devices
    if relaxations is not None:
        from scheduler.relaxations import relaxations_data  # noqa: PLC0415 - as in the command

        answer["relaxations"] = relaxations_data(relaxations)
    return msgspec.json.encode(answer)


def _allocation(claim: ResourceClaim, allocation: AllocationResult) -> dict[str, Any]:
    answer: dict[str, Any] = {"claim": claim.metadata.name, "allocation": allocation}
    if is_in_memory(claim):
        answer["requests"] = claim.spec.devices.requests
    return answer


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
