"""Which changes of pods and nodes may let a pod keep within its skew.

Source: kube-scheduler 1.36, plugins/podtopologyspread/plugin.go, isSchedulableAfterPodChange and
isSchedulableAfterNodeChange.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cache.resources import MalformedObjectError
from plugins.framework.cluster_events import Hint
from plugins.pod_memo import PodMemo
from plugins.pod_topology_spread.constraints import any_selects

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cache.objects import Node, Pod
    from plugins.framework.handle import Handle
    from plugins.pod_topology_spread.constraints import Constraint, ConstraintSource


class SpreadHints:
    """The hints of PodTopologySpread.

    Parameters
    ----------
    source
        Says which constraints a pod has.
    handle
        Lends the workloads; not used before the first event.

    Whatever cannot be read is answered with ``QUEUE``.
    """

    def __init__(self, source: ConstraintSource, handle: Handle) -> None:
        self._source = source
        self._own = PodMemo(lambda pod: source.hard(pod, handle.workloads))
        self._handle = handle

    def _hard(self, pod: Pod) -> Sequence[Constraint]:
        # The constraints of others follow from the Services of the moment.
        own = pod.spec.topology_spread_constraints
        return self._own.of(pod) if own else self._source.hard(pod, self._handle.workloads)

    def after_pod(self, pod: Pod, old: Any, new: Any) -> Hint:
        """Answer for a pod that came, went, was relabelled or got a toleration."""
        try:
            return _hint(self._pod_helps(pod, old, new))
        except MalformedObjectError:
            return Hint.QUEUE

    def _pod_helps(self, pod: Pod, old: Pod | None, new: Pod | None) -> bool:
        if any(each is not None and not _is_involved(each, pod) for each in (old, new)):
            return False
        constraints = self._hard(pod)
        if old is None or new is None:
            there = old or new
            return there is not None and any_selects(constraints, there.metadata.labels)
        if (
            pod.metadata.uid == new.metadata.uid
            and old.spec.tolerations != new.spec.tolerations
            and any(each.honors_taints for each in constraints)
        ):
            return True
        before, after = old.metadata.labels, new.metadata.labels
        return before != after and any(
            each.selector.matches(before) != each.selector.matches(after) for each in constraints
        )

    def after_node(self, pod: Pod, old: Any, new: Any) -> Hint:
        """Answer for a node that came, went, was relabelled or has other taints."""
        try:
            constraints = self._hard(pod)
        except MalformedObjectError:
            return Hint.QUEUE
        return _hint(_node_helps(constraints, old, new))


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


def _is_involved(other: Pod, pod: Pod) -> bool:
    if other.metadata.uid == pod.metadata.uid:
        return True
    if not other.spec.node_name and not other.status.nominated_node_name:
        return False
    return other.metadata.namespace == pod.metadata.namespace


def _hint(worth_it: bool) -> Hint:
    return Hint.QUEUE if worth_it else Hint.SKIP
