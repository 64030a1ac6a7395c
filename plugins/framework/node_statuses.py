"""The results of one cycle's filters for the nodes, as PostFilter plugins see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from plugins.framework.results import RowArray
    from plugins.framework.status import Status


class NodeStatuses(Protocol):
    """The verdicts of one failed search over all nodes of the snapshot.

    *Source*: k8s.io/kube-scheduler framework/interface.go, NodeToStatusReader (1.36).
    """

    def helpable_rows(self) -> RowArray:
        """Return the rows of the nodes whose rejection may end when pods leave: Unschedulable.

        Rows of the snapshot, good for this cycle only, in ascending order.
        """
        ...

    def status_of(self, node_name: str) -> Status:
        """Return the status of a node; one that is not in the snapshot counts as narrowed away.

        *Cost*: asks a filter for its reasons; not for loops over all nodes.
        """
        ...
