"""Changes of a snapshot that can be taken back: where pods would go, and what would be free."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cache.node_info import NodeInfo
    from cache.pod_info import PodInfo
    from cache.snapshot import Snapshot


class Trial:
    """Put pods on nodes of a snapshot, or take pods off them, and undo it.

    The snapshot and all that follows its columns see each change as if the cache had brought it.

    Parameters
    ----------
    snapshot
        It must not be updated from the cache before everything is undone, or before the cache
        has all the same changes.

    Notes
    -----
    *Concurrency*: confined to the scheduling thread. *Cost*: a change costs a copy of its node.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._before: list[NodeInfo] = []

    def add_pod(self, info: PodInfo, node_name: str) -> None:
        """Put a pod on a node.

        Raises
        ------
        KeyError
            When there is no such node.
        ValueError
            When the pod is on the node already.
        """
        changed = self._copy(node_name)
        changed.add_pod(info)
        self._put(changed)

    def remove_pod(self, uid: str, node_name: str) -> None:
        """Take a pod off a node.

        Raises
        ------
        KeyError
            When there is no such node or no such pod.
        """
        changed = self._copy(node_name)
        changed.remove_pod(uid)
        self._put(changed)

    @property
    def mark(self) -> int:
        """The changes so far, for :meth:`undo`."""
        return len(self._before)

    def undo(self, mark: int = 0) -> None:
        """Take back the changes since a mark; all of them by default."""
        while len(self._before) > mark:
            self._snapshot.put(self._before.pop())

    def _copy(self, node_name: str) -> NodeInfo:
        info = self._snapshot.get(node_name)
        if info is None:
            raise KeyError(node_name)
        return info.clone()

    def _put(self, changed: NodeInfo) -> None:
        before = self._snapshot.get(changed.name)
        if before is not None:
            self._before.append(before)
            self._snapshot.put(changed)
