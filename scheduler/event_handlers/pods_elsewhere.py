"""Remember the pods on nodes that are not sent to us, until one of these nodes is.

With ``--node-selector`` the API server sends the nodes of one pool, but the pods of all: pods can
be selected by the name of one node, not by a set of names. A pod on a node that is not known here
takes part in no decision, so it is not in the cache. It is kept here by the name of its node: a
node that enters the pool is counted with all its pods at once, and one that leaves takes them out
of the cache.

# Differs: kube-scheduler's cache keeps such pods on a node without a Node object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cache.pod_info import is_terminal

if TYPE_CHECKING:
    from cache.objects import Pod


class PodsElsewhere:
    """The pods on unknown nodes, by node.

    Notes
    -----
    *Concurrency*: loop-confined.

    *Cost*: an entry of two references for each pod, whose object the informer's store has anyway.
    """

    def __init__(self) -> None:
        self._known_nodes: set[str] = set()
        self._pods: dict[str, dict[str, Pod]] = {}

    def __contains__(self, pod: Pod) -> bool:
        """Return whether a pod is kept here."""
        return pod.metadata.uid in self._pods.get(pod.spec.node_name, ())

    def __len__(self) -> int:
        return sum(map(len, self._pods.values()))

    def knows(self, node_name: str) -> bool:
        """Return whether a node is one of the pool's."""
        return node_name in self._known_nodes

    def sort_out(self, old: Pod | None, new: Pod | None) -> tuple[Pod | None, Pod | None]:
        """Return a change as this pool sees it: a pod on an unknown node does not exist for it."""
        if old is not None and self._removed(old):
            old = None
        if new is not None and new.spec.node_name and not is_terminal(new):
            name = new.spec.node_name
            if name not in self._known_nodes:
                self._pods.setdefault(name, {})[new.metadata.uid] = new
                new = None
        return old, new

    def keep(self, pod: Pod) -> None:
        """Keep a pod whose node has left."""
        self._pods.setdefault(pod.spec.node_name, {})[pod.metadata.uid] = pod

    def node_entered(self, name: str) -> list[Pod]:
        """Record that a node is known from now on, and return its pods, which are not kept now."""
        self._known_nodes.add(name)
        return list(self._pods.pop(name, {}).values())

    def node_left(self, name: str) -> None:
        """Record that a node is unknown from now on."""
        self._known_nodes.discard(name)

    def _removed(self, pod: Pod) -> bool:
        name = pod.spec.node_name
        kept = self._pods.get(name)
        if kept is None or kept.pop(pod.metadata.uid, None) is None:
            return False
        if not kept:
            del self._pods[name]
        return True
