"""Queueing hints of PodTopologySpread: changes that may bring a pod within its maximum skew.

*Source*: kube-scheduler 1.36, plugins/podtopologyspread/plugin.go, isSchedulableAfterPodChange and
isSchedulableAfterNodeChange.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cache.resources import MalformedObjectError
from plugins.framework.cluster_events import Action, EventRegistration, Resource
from plugins.framework.queueing_hints import (
    ANY,
    NO,
    GroupHint,
    Likeness,
    Question,
    for_the_pod_itself,
    is_nowhere,
    label_topics,
    selector_topics,
)
from plugins.pod_topology_spread.constraints import any_selects

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cache.objects import Node, Pod
    from cache.pod_info import PodInfo
    from plugins.framework.handle import Handle
    from plugins.framework.queueing_hints import Topic
    from plugins.pod_topology_spread.constraints import Constraint, ConstraintSource


class HardConstraints(NamedTuple):
    """The hard constraints of a waiting pod."""

    namespace: str
    compiled: tuple[Constraint, ...]
    asked_anew: PodInfo | None
    """The pod, if its constraints depend on current Services, or cannot be read."""

    def topics(self) -> Iterable[Topic]:
        """Return the topics of pods with such constraints."""
        if self.asked_anew is not None:
            yield ANY
        for constraint in self.compiled:
            topics = selector_topics(constraint.selector)
            for topic in ((),) if topics is None else topics:
                yield (self.namespace, *topic)


class SpreadHints:
    """The hints of PodTopologySpread.

    Parameters
    ----------
    source
        Returns the constraints of a pod.
    handle
        Gives access to the workloads; it is not used before the first event.

    Objects that cannot be read give Queue.
    """

    def __init__(self, source: ConstraintSource, handle: Handle) -> None:
        self._source = source
        self._handle = handle
        self._constraints = Likeness(self._constraints_of, HardConstraints.topics)

    def registrations(self) -> Sequence[EventRegistration]:
        """Return the events: changes of pods, their labels and tolerations; any change of nodes."""
        pods = Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE
        own = Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION
        nodes = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
        return (
            EventRegistration.on(Resource.POD, pods, GroupHint(self._constraints, self._about_pod)),
            EventRegistration.on(Resource.POD, own, for_the_pod_itself(self._after_own_update)),
            EventRegistration.on(
                Resource.NODE, nodes, GroupHint(self._constraints, self._about_node)
            ),
        )

    def _constraints_of(self, info: PodInfo) -> HardConstraints:
        namespace = info.namespace
        if not info.pod.spec.topology_spread_constraints and self._source.has_hard_defaults:
            return HardConstraints(namespace, (), info)
        try:
            hard = self._source.hard(info.pod, self._handle.workloads)
            return HardConstraints(namespace, hard, None)
        except MalformedObjectError:
            return HardConstraints(namespace, (), info)

    def _hard(self, constraints: HardConstraints) -> Sequence[Constraint] | None:
        """Return the current constraints; None if they cannot be read."""
        if constraints.asked_anew is None:
            return constraints.compiled
        try:
            return self._source.hard(constraints.asked_anew.pod, self._handle.workloads)
        except MalformedObjectError:
            return None

    def _about_pod(self, old: Pod | None, new: Pod | None) -> Question[HardConstraints]:
        """Return the hint for another pod that was added, deleted or relabelled."""
        there = old or new
        if there is None or is_nowhere(old) or is_nowhere(new):
            return NO
        namespace = there.metadata.namespace
        versions = [pod.metadata.labels for pod in (old, new) if pod is not None]

        def answer(constraints: HardConstraints) -> bool:
            if constraints.namespace != namespace:
                return False
            hard = self._hard(constraints)
            if hard is None:
                return True
            if len(versions) == 1:
                return any_selects(hard, versions[0])
            return _relabelled(hard, *versions)

        topics = label_topics(*(labels.items() for labels in versions))
        return Question(answer, {(namespace,), *((namespace, *topic) for topic in topics)})

    def _after_own_update(self, pod: Pod, old: Pod, new: Pod) -> bool:
        """Return the hint for new labels or tolerations of the pod itself."""
        try:
            hard = self._source.hard(pod, self._handle.workloads)
        except MalformedObjectError:
            return True
        if old.spec.tolerations != new.spec.tolerations and any(c.honors_taints for c in hard):
            return True
        return _relabelled(hard, old.metadata.labels, new.metadata.labels)

    def _about_node(self, old: Node | None, new: Node | None) -> Question[HardConstraints]:
        """Return the hint for a node that was added, deleted or relabelled, or has other taints."""

        def answer(constraints: HardConstraints) -> bool:
            hard = self._hard(constraints)
            return hard is None or _node_helps(hard, old, new)

        return Question(answer)


def _relabelled(
    constraints: Sequence[Constraint], before: Mapping[str, str], after: Mapping[str, str]
) -> bool:
    return before != after and any(
        each.selector.matches(before) != each.selector.matches(after) for each in constraints
    )


def _node_helps(constraints: Sequence[Constraint], old: Node | None, new: Node | None) -> bool:
    if old is None or new is None:
        there = old or new
        return there is not None and _has_all_labels(there.metadata.labels, constraints)
    before, after = old.metadata.labels, new.metadata.labels
    counts = _has_all_labels(after, constraints)
    if counts != _has_all_labels(before, constraints):
        return True
    moved = any(before.get(c.topology_key) != after.get(c.topology_key) for c in constraints)
    return counts and (moved or old.spec.taints != new.spec.taints)


def _has_all_labels(labels: Mapping[str, str], constraints: Sequence[Constraint]) -> bool:
    return all(each.topology_key in labels for each in constraints)
