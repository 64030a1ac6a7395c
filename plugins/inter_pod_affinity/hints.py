"""Which changes of pods and nodes may bring a pod together with, or apart from, other pods.

Source: kube-scheduler 1.36, plugins/interpodaffinity/plugin.go, isSchedulableAfterPodChange and
isSchedulableAfterNodeChange.

# Differs: kube-scheduler's hints take a namespaceSelector for none unless it is empty; here it
# reaches the namespaces that it reaches in the filter, so that a pod does not sleep through what
# it waits for. For anti-affinity any of several terms counts, where kube-scheduler wakes the pod
# only when all of them do; and a pod that starts to differ from what its neighbours' terms avoid
# is reported by its own change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cache.affinity_terms import pod_terms
from plugins.framework.cluster_events import Hint
from plugins.inter_pod_affinity.pod_queries import query_of, query_of_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cache.affinity_terms import AffinityTerm
    from cache.namespaces import Namespaces
    from cache.objects import Node, Pod
    from plugins.framework.handle import Handle


class AffinityHints:
    """The hints of InterPodAffinity.

    Parameters
    ----------
    handle
        Lends the namespaces; not used before the first event.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def after_pod(self, pod: Pod, old: Any, new: Any) -> Hint:
        """Answer for a pod that came, went or was relabelled."""
        return Hint.QUEUE if self._pod_helps(pod, old, new) else Hint.SKIP

    def _pod_helps(self, pod: Pod, old: Pod | None, new: Pod | None) -> bool:
        if old is not None and new is not None and pod.metadata.uid == new.metadata.uid:
            return True
        if any(each is not None and _is_nowhere(each) for each in (old, new)):
            return False
        terms = pod_terms(pod)
        namespaces = self._handle.namespaces
        was_met = old is not None and _all_mean(terms.required_affinity, old, namespaces)
        if new is not None and not was_met and _all_mean(terms.required_affinity, new, namespaces):
            return True
        if old is None:
            return False
        for term in terms.required_anti_affinity:
            query = query_of(term, namespaces)
            if query.matches(old) and (new is None or not query.matches(new)):
                return True
        if new is not None:
            return False
        metadata = pod.metadata
        labels = namespaces.labels_of(metadata.namespace)
        return any(
            term.matches(metadata.namespace, metadata.labels, labels)
            for term in pod_terms(old).required_anti_affinity
        )

    def after_node(self, pod: Pod, old: Any, new: Any) -> Hint:
        """Answer for a node that came (``old`` is None) or was relabelled."""
        return Hint.QUEUE if self._node_helps(pod, old, new) else Hint.SKIP

    def _node_helps(self, pod: Pod, old: Node | None, new: Node | None) -> bool:
        if new is None:
            return False
        terms = pod_terms(pod)
        # A new node may have no label, or be the first of its domain: both suit anti-affinity.
        if old is None:
            return bool(terms.required_anti_affinity) or any(
                term.topology_key in new.metadata.labels for term in terms.required_affinity
            )
        before, after = old.metadata.labels, new.metadata.labels
        return any(
            term.topology_key in after and before.get(term.topology_key) != after[term.topology_key]
            for term in terms.required_affinity
        ) or any(
            term.topology_key in before
            and before[term.topology_key] != after.get(term.topology_key)
            for term in terms.required_anti_affinity
        )


def _is_nowhere(pod: Pod) -> bool:
    return not pod.spec.node_name and not pod.status.nominated_node_name


def _all_mean(terms: Sequence[AffinityTerm], other: Pod, namespaces: Namespaces) -> bool:
    return bool(terms) and query_of_all(terms, namespaces).matches(other)
