"""Which branches of the plugins the cases have reached."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from tests.parity.vocabulary import Json

Branch: TypeAlias = str

ENOUGH = 20
CASES_FOR_ENOUGH = 20_000

_FIT = ["cpu", "memory", "ephemeral-storage", "example.com/gpu", "hugepages-2Mi"]

REQUIRED: frozenset[Branch] = frozenset(
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


def branches_of(oracle: Json) -> Iterator[Branch]:
    """Yield what an answer of the oracle shows, each once."""
    seen: set[Branch] = set()
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
        yield f"{rejection['rejected']} {rejection['code']}: {reason}"


def too_seldom(counts: Counter[Branch]) -> dict[Branch, int]:
    """Return the required branches that were not reached often enough."""
    return {each: counts[each] for each in sorted(REQUIRED) if counts[each] < ENOUGH}
