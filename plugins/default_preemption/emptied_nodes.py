"""The nodes without their pods below a priority, as columns.

With these columns, the vector forms of filters compute for all nodes at once whether a pod could
fit there at all. The columns are kept and follow the nodes that changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from cache.columns import Columns, ColumnSpec, NodesView
from cache.quantity import INT64_MAX
from plugins.default_preemption.node_memory import NodeMemory
from plugins.framework.attempt_budget import UNLIMITED

if TYPE_CHECKING:
    import numpy.typing as npt

    from cache.node_info import NodeInfo
    from plugins.framework.attempt_budget import AttemptBudget
    from plugins.framework.results import RowArray


def _lowest_priority(node_info: NodeInfo) -> int:
    return min((info.priority for info in node_info.pods.values()), default=INT64_MAX)


LOWEST_PRIORITY: Final = ColumnSpec(("lowest priority",), _lowest_priority, np.int64, of_pods=True)
"""int64: the lowest priority of the pods of each node; the largest number for an empty node."""


class EmptiedNodes:
    """Clones of nodes without their pods below a priority, and columns of them.

    Parameters
    ----------
    priority
        Pods of this priority and above stay.

    Notes
    -----
    *Concurrency*: confined to the thread of the columns.

    *Cost*: some 20 us for each requested node that has changed since it was last requested;
    for all other nodes a pass over a column.
    """

    def __init__(self, priority: int) -> None:
        self.priority = priority
        self._columns = Columns()
        self._memory = NodeMemory[int]()
        self._at: npt.NDArray[np.intp] = np.empty(0, dtype=np.intp)

    def follow(self, columns: Columns) -> None:
        """Update the set of nodes."""
        if not self._memory.follow(columns):
            return
        own = self._columns
        for name in [name for name in own.row_of if name not in columns.row_of]:
            own.remove(name)
        # New nodes are filled in before their positions are read.
        self._at = np.array(
            [own.row_of.get(node_info.name, 0) for node_info in columns.node_infos], dtype=np.intp
        )

    def num_stale(self, rows: RowArray) -> int:
        """Return how many of the rows have to be computed again."""
        return int(np.count_nonzero(~self._memory.known(rows)))

    def view(
        self, columns: Columns, rows: RowArray, budget: AttemptBudget = UNLIMITED
    ) -> NodesView:
        """Return the emptied nodes of some rows, in the same order; call :meth:`follow` first.

        Rows that are computed before ``budget`` is used up are available to the next attempt.
        """
        for row in rows[~self._memory.known(rows)].tolist():
            budget.check()
            self._at[row] = self._columns.put(self._emptied(columns.node_infos[row]))
            self._memory.put(row, 1)
        return NodesView(self._columns, self._at[rows])

    def _emptied(self, node_info: NodeInfo) -> NodeInfo:
        twin = node_info.clone()
        for uid in [uid for uid, info in twin.pods.items() if info.priority < self.priority]:
            twin.remove_pod(uid)
        return twin
