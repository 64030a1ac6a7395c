"""The cluster as one scheduling cycle sees it: a copy that does not change with the cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cache.columns import Columns, NodesView
from cache.node_tree import NodeTree

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from cache.node_info import NodeInfo


class Snapshot:
    """Clones of the cache's nodes, and their columns.

    Made empty; :meth:`cache.scheduler_cache.SchedulerCache.update_snapshot` brings it up to date
    at the cost of what changed.

    Notes
    -----
    *Concurrency*: confined to the scheduling thread.

    *Source*: pkg/scheduler/backend/cache/snapshot.go (1.36).
    """

    def __init__(self) -> None:
        self.columns = Columns()
        self.generation = 0
        """The newest generation that has been taken over."""
        self.tree_version = 0
        """The version of the cache's node tree that the visiting order was made from."""
        self._order: npt.NDArray[np.intp] | None = None
        self._names_in_order: list[str] = []

    @classmethod
    def of(cls, infos: Iterable[NodeInfo]) -> Snapshot:
        """Return a snapshot of only these nodes, for tests and what-ifs."""
        snapshot = cls()
        tree = NodeTree()
        for info in infos:
            snapshot.put(info)
            tree.add_node(info.name, info.labels)
        snapshot.set_order(tree.names())
        return snapshot

    def __len__(self) -> int:
        return len(self.columns)

    def __contains__(self, name: str) -> bool:
        return name in self.columns.row_of

    def get(self, name: str) -> NodeInfo | None:
        """Return a node by name, or None."""
        row = self.columns.row_of.get(name)
        return None if row is None else self.columns.node_infos[row]

    def names(self) -> list[str]:
        """Return the names of all nodes, in the order of their rows."""
        return [info.name for info in self.columns.node_infos]

    def all_nodes(self) -> NodesView:
        """Return all nodes as columns, in the order of their rows."""
        return NodesView(self.columns)

    def put(self, info: NodeInfo) -> None:
        """Store one node; the snapshot owns ``info`` from then on."""
        epoch = self.columns.epoch
        self.columns.put(info)
        if self.columns.epoch != epoch:
            self._order = None

    def put_all(self, infos: Sequence[NodeInfo]) -> None:
        """Store nodes; the snapshot owns them from then on."""
        epoch = self.columns.epoch
        self.columns.put_all(infos)
        if self.columns.epoch != epoch:
            self._order = None

    def remove(self, name: str) -> None:
        """Remove one node.

        Raises
        ------
        KeyError
            When it is not there.
        """
        self.columns.remove(name)
        self._order = None

    def set_order(self, names: list[str], tree_version: int = 0) -> None:
        """Set the order in which a partial search visits nodes: round robin over zones."""
        self.tree_version = tree_version
        self._names_in_order = names
        self._order = None

    def order(self) -> npt.NDArray[np.intp]:
        """Return the rows in visiting order, intp of shape (n_nodes,).

        *Cost*: constant, but proportional to the nodes after nodes came or went.
        """
        if self._order is None:
            rows = self.columns.row_of
            self._order = np.fromiter(
                (rows[name] for name in self._names_in_order), np.intp, len(self._names_in_order)
            )
        return self._order
