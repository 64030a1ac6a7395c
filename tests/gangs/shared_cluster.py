"""Random cases side by side in one cluster, each as if it were alone there.

A case has a namespace, its nodes have a label of their own and its pods select that label. So
another case's nodes are no candidates; spread leaves them out too, since it honors node selectors,
and terms among pods look into one namespace. A required topology gets a label key of its own:
kube-scheduler tries the group once for each value of its key in the whole cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.controlplane.objects import make_namespace
from tests.controlplane.pod_groups import by_field, make_pod_group
from tests.gangs.gangs import SCHEDULER_NAME
from tests.gangs.random_gangs import HOST, RACK, ZONE
from tests.scheduler.explain.cluster_files import as_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tests.builders import NodeBuilder, PodBuilder
    from tests.gangs.random_gangs import Case

GROUP: Final = "gang"
"""The name of each group in its namespace."""

_CASE: Final = "case"


class Tried(NamedTuple):
    """A case that all schedulers get, and whether its gang fits."""

    name: str
    case: Case
    fits: bool

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield the case as objects of the API: the namespace, then what is in the cluster."""
        yield make_namespace(self.name)
        for node, pods in zip(self.case.nodes, self.case.running, strict=True):
            yield self._node(node)
            for pod in pods:
                made = self._pod(pod)
                made["spec"]["nodeName"] = self._own(node.build().metadata.name)
                yield made
        key = self.case.rules.topology_key
        constraint = {"schedulingConstraints": {"topology": [{"key": self._key}]}} if key else {}
        minimum = self.case.rules.minimum
        yield make_pod_group(GROUP, minimum, namespace=self.name, **constraint)
        for member in self.case.members:
            made = self._pod(member)
            made["spec"]["schedulerName"] = SCHEDULER_NAME
            made["spec"].setdefault("nodeSelector", {})[_CASE] = self.name
            yield by_field(made, GROUP)

    def _node(self, node: NodeBuilder) -> dict[str, Any]:
        made = as_object(node)
        labels = made["metadata"]["labels"]
        own = {key: self._own(labels[key]) for key in (ZONE, RACK, HOST) if key in labels}
        if self.case.rules.topology_key in labels:
            own[self._key] = own[self.case.rules.topology_key]
        name = self._own(made["metadata"]["name"])
        made["metadata"] = {"name": name, "labels": {**labels, **own, _CASE: self.name}}
        return made

    def _pod(self, pod: PodBuilder) -> dict[str, Any]:
        made = as_object(pod)
        made["metadata"]["namespace"] = self.name
        del made["metadata"]["uid"]
        for constraint in made["spec"].get("topologySpreadConstraints", ()):
            # The builders leave out what Berth reads as the default; the API has none for these.
            constraint.setdefault("maxSkew", 1)
            constraint.setdefault("whenUnsatisfiable", "DoNotSchedule")
        return made

    def _own(self, name: str) -> str:
        return f"{self.name}-{name}"

    @property
    def _key(self) -> str:
        return f"{self.name}.topology"


class Verdicts(NamedTuple):
    """What a scheduler did with each case that it was given.

    Attributes
    ----------
    whole
        Gangs that fit and have their minimum.
    missed
        Gangs that fit and have no member on a node.
    partial
        Gangs with some members on nodes, but fewer than their minimum.
    impossible
        Gangs that do not fit and have their minimum.
    scattered
        Gangs with a required topology in two domains or outside of all.
    """

    whole: list[Tried]
    missed: list[Tried]
    partial: list[Tried]
    impossible: list[Tried]
    scattered: list[Tried]


def judge(tried: Iterable[Tried], members: Iterable[Mapping[str, Any]]) -> Verdicts:
    """Return what became of the cases, by the pods that the API server has.

    Parameters
    ----------
    members
        The members of all gangs; those without a node do not count.
    """
    nodes: dict[str, list[str]] = {}
    for pod in members:
        if pod["spec"].get("nodeName"):
            nodes.setdefault(pod["metadata"]["namespace"], []).append(pod["spec"]["nodeName"])
    verdicts = Verdicts([], [], [], [], [])
    for each in tried:
        bound = nodes.get(each.name, [])
        if len(bound) >= each.case.rules.minimum:
            (verdicts.whole if each.fits else verdicts.impossible).append(each)
        elif bound:
            verdicts.partial.append(each)
        elif each.fits:
            verdicts.missed.append(each)
        if bound and each.case.rules.topology_key and not _in_one_domain(each, bound):
            verdicts.scattered.append(each)
    return verdicts


def _in_one_domain(tried: Tried, bound: Iterable[str]) -> bool:
    key = tried.case.rules.topology_key
    builds = [node.build() for node in tried.case.nodes]
    values = {f"{tried.name}-{x.metadata.name}": x.metadata.labels.get(key) for x in builds}
    seen = {values.get(name) for name in bound}
    return len(seen) == 1 and None not in seen
