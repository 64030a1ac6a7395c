"""Which branches of the plugins the cases have reached."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from tests.parity.device_branches import DEVICES, device_branches
from tests.parity.preemption_branches import PREEMPTION, preemption_branches

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Mapping

    from tests.parity.vocabulary import Json

Branch: TypeAlias = str

ENOUGH = 20
ENOUGH_OF: Final[Mapping[str, int]] = MappingProxyType({"devices": 50})
"""Where it is not that many."""
CASES_FOR_ENOUGH = 20_000

_FIT = ["cpu", "memory", "ephemeral-storage", "example.com/gpu", "hugepages-2Mi"]

_VERDICTS: frozenset[Branch] = frozenset(
    [
        "no nodes",
        "some node is feasible",
        "prefilter NodeAffinity 3: pod affinity terms conflict",
        "NodeAffinity 3: node(s) didn't match Pod's node affinity/selector",
        "NodeAffinity 3: node(s) didn't match scheduler-enforced node affinity",
        "NodeAffinity 3: node(s) didn't satisfy plugin(s) [NodeAffinity]",
        "NodeDeclaredFeatures 3: node(s) didn't match Pod's required features",
        "NodeName 3: node(s) didn't match the requested node name",
        "NodePorts 2: node(s) didn't have free ports for the requested pod ports",
        "NodeUnschedulable 3: node(s) were unschedulable",
        "TaintToleration 3: node(s) had untolerated taint(s)",
        "PodTopologySpread 2: node(s) didn't match pod topology spread constraints",
        "PodTopologySpread 3: node(s) didn't match pod topology spread constraints "
        "(missing required label)",
        "InterPodAffinity 3: node(s) didn't match pod affinity rules",
        "InterPodAffinity 2: node(s) didn't match pod anti-affinity rules",
        "InterPodAffinity 2: node(s) didn't satisfy existing pods anti-affinity rules",
        "NodeResourcesFit 2: Too many pods",
        *(f"NodeResourcesFit {code}: Insufficient {name}" for code in (2, 3) for name in _FIT),
        *(
            f"score {name}"
            for name in (
                "ImageLocality",
                "InterPodAffinity",
                "NodeAffinity",
                "NodeResourcesBalancedAllocation",
                "NodeResourcesFit",
                "PodTopologySpread",
                "TaintToleration",
            )
        ),
    ]
)
"""Every reason of every plugin with its code, every score above 0."""

_VOLUMES: frozenset[Branch] = frozenset(
    [
        "error",
        "prefilter VolumeBinding 3: PVC _ was not created for pod _ (pod is not owner)",
        "prefilter VolumeBinding 3: persistentvolumeclaim _ bound to non-existent "
        "persistentvolume _",
        "prefilter VolumeBinding 3: persistentvolumeclaim _ is being deleted",
        "prefilter VolumeBinding 3: pod has unbound immediate PersistentVolumeClaims",
        "prefilter VolumeBinding 3: waiting for ephemeral volume controller to create the "
        "persistentvolumeclaim _",
        "prefilter VolumeRestrictions 3: persistentvolumeclaim _ not found",
        "prefilter VolumeZone 3: persistentvolume _ not found",
        "NodeVolumeLimits 2: node(s) exceed max volume count",
        "VolumeBinding 3: node(s) did not have enough free storage",
        "VolumeBinding 3: node(s) didn't find available persistent volumes to bind",
        "VolumeBinding 3: node(s) didn't match PersistentVolume's node affinity",
        "VolumeBinding 3: node(s) unavailable due to one or more pvc(s) bound to non-existent "
        "pv(s)",
        "VolumeRestrictions 2: node(s) had no available disk",
        "VolumeRestrictions 2: node(s) unavailable due to PersistentVolumeClaim with "
        "ReadWriteOncePod access mode already in-use by another pod",
        "VolumeZone 3: node(s) had no available volume zone",
        "some node is feasible",
        "preemption: victims",
    ]
)
"""Every reason of the plugins that look at volumes."""

REQUIRED: Final[Mapping[str, frozenset[Branch]]] = MappingProxyType(
    {"verdicts": _VERDICTS, "volumes": _VOLUMES, "preemption": PREEMPTION, "devices": DEVICES}
)
"""What cases of each kind must have reached."""


def branches_of(question: Json, oracle: Json) -> Iterator[Branch]:
    """Yield what an answer of the oracle shows, each once."""
    seen: set[Branch] = set(device_branches(question, oracle))
    if "error" in oracle:
        yield "error"
        yield from seen
        return
    if oracle.get("preemption") is not None:
        seen |= set(preemption_branches(question, oracle["preemption"]))
    pre_filter = oracle["prefilter"]
    if pre_filter is not None:
        seen |= {f"prefilter {each}" for each in _reasons(pre_filter)}
    elif not oracle["nodes"]:
        seen.add("no nodes")
    for verdict in oracle["nodes"].values():
        if "rejected" in verdict:
            seen |= set(_reasons(verdict))
        else:
            seen.add("some node is feasible")
            seen |= {f"score {name}" for name, score in verdict["scores"].items() if score}
    yield from seen


def _reasons(rejection: Json) -> Iterator[Branch]:
    for reason in rejection["reasons"] or ():
        yield f"{rejection['rejected']} {rejection['code']}: {_NAMES.sub('_', reason)}"


_NAMES: Final = re.compile(r'"[^"]*"|\bdefault/\S+|(?<=\brequest )\S+|(?<=device class )\S+')
"""What differs from case to case in a reason."""


def too_seldom(counts: Counter[Branch], kind: str) -> dict[Branch, int]:
    """Return the branches required of a kind that were not reached often enough."""
    enough = ENOUGH_OF.get(kind, ENOUGH)
    return {each: counts[each] for each in sorted(REQUIRED[kind]) if counts[each] < enough}
