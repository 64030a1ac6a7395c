"""The read-only view of many nodes as columns that a user's vector plugin receives."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from cache.columns import ColumnSpec, NodesView
from cache.node_tree import zone_key
from cache.pod_table import PodQuery
from plugins.authoring.node import Node
from plugins.authoring.view_readings import number_of, selector_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping

    import numpy.typing as npt

    from cache.label_columns import LabelColumn
    from cache.label_selectors import Selector
    from cache.node_info import NodeInfo
    from plugins.authoring.own_columns import OwnColumns
    from plugins.framework.results import BoolArray, IntArray


class Labels:
    """The values of one label for the nodes of a view.

    ``labels == "text"``, ``labels != "text"``, :meth:`isin` and :meth:`exists` return masks; a node
    without the label is unequal to every string.
    """

    __slots__ = ("_column", "ids")

    def __init__(self, column: LabelColumn, ids: npt.NDArray[np.int32]) -> None:
        self._column = column
        self.ids = ids
        """int32 (n,), read-only: equal numbers for equal values, 0 where the label is absent. They
        suit ``np.bincount``: ``num_ids`` is one more than the largest. The number of a value may
        differ in the next call."""

    @property
    def num_ids(self) -> int:
        """The length of an array that is indexed by ids."""
        return len(self._column.values)

    @property
    def values(self) -> npt.NDArray[np.object_]:
        """Object (n,): the values as strings, None where the label is absent."""
        return np.array(self._column.values, dtype=np.object_).take(self.ids)

    def id_of(self, value: str) -> int | None:
        """Return the id of a value, or None if no node has it."""
        return self._column.id_of(value)

    def exists(self) -> BoolArray:
        """Return bool (n,): whether each node has the label."""
        there: BoolArray = self.ids != 0
        return there

    def isin(self, values: Iterable[str]) -> BoolArray:
        """Return bool (n,): whether the label of each node has one of these values."""
        wanted = np.zeros(self.num_ids, dtype=np.bool_)
        for value in values:
            at = self._column.id_of(value)
            if at is not None:
                wanted[at] = True
        return wanted.take(self.ids)

    def __eq__(self, text: object) -> BoolArray:  # type: ignore[override] # as numpy's arrays do
        at = self._column.id_of(text) if isinstance(text, str) else None
        mask: BoolArray = np.zeros(len(self.ids), np.bool_) if at is None else self.ids == at
        return mask

    def __ne__(self, text: object) -> BoolArray:  # type: ignore[override] # as numpy's arrays do
        differs: BoolArray = ~(self == text)
        return differs

    __hash__ = None  # type: ignore[assignment] # == returns a mask, so it cannot be a key

    def __len__(self) -> int:
        return len(self.ids)


class Nodes:
    """Nodes as columns: arrays with one element for each node, all in the same order.

    For ``filter`` these are the nodes that no earlier filter rejected, for ``score`` the feasible
    nodes; :attr:`all_nodes` are the nodes of the whole cluster.

    Notes
    -----
    All arrays are read-only; operations on them return new arrays.

    *Cost*: a column is computed on its first use, and updated for the nodes that change from then
    on; so a result costs microseconds, whatever the number of nodes.
    """

    __slots__ = ("_own", "_view")

    def __init__(self, view: NodesView, own: OwnColumns) -> None:
        self._view = view
        self._own = own

    def __len__(self) -> int:
        return len(self._view)

    def __iter__(self) -> Iterator[Node]:
        """Iterate over single nodes: slow, meant for a few nodes."""
        return (Node(info, self._own) for info in self._view.node_infos())

    def __getitem__(self, index: int) -> Node:
        """Return the node at an index."""
        return Node(self._view.node_info(index), self._own)

    @property
    def all_nodes(self) -> Nodes:
        """Every node of the cluster, whether it can run the pod or not."""
        return self if self._view.rows is None else Nodes(NodesView(self._view.columns), self._own)

    @property
    def names(self) -> npt.NDArray[np.object_]:
        """Object (n,): the names of the nodes."""
        return self._take(self._own.names(self._view.columns))

    def index(self, name: str) -> int | None:
        """Return the index of a node, or None if it is not in the view."""
        return self._view.row(name)

    # --- resources ----------------------------------------------------------------------------

    def allocatable(self, resource: str) -> IntArray:
        """Return int64 (n,): the allocatable amount (``cpu`` in milli, bytes or counts)."""
        return _read_only(self._view.allocatable(resource))

    def requested(self, resource: str) -> IntArray:
        """Return int64 (n,): the sum of the pods' requests; for ``pods``, their number."""
        return _read_only(self._view.requested(resource))

    def free(self, resource: str) -> IntArray:
        """Return int64 (n,): the allocatable amount not requested; negative if overcommitted."""
        return _read_only(self._view.allocatable(resource) - self._view.requested(resource))

    # --- labels, annotations, taints, zones ---------------------------------------------------

    def label(self, key: str) -> Labels:
        """Return the values of a label."""
        column, ids = self._view.label(key)
        return Labels(column, _read_only(ids))

    def label_number(self, key: str, default: float = math.nan) -> npt.NDArray[np.float64]:
        """Return float64 (n,): a label as a number, ``default`` if absent or not a number."""

        def fill(info: NodeInfo) -> float:
            return number_of(info.labels.get(key), math.nan)

        return self._numbers(("policy.label_number", key), fill, default)

    def annotation_number(self, key: str, default: float = math.nan) -> npt.NDArray[np.float64]:
        """Return float64 (n,): an annotation as a number, like :meth:`label_number`."""

        def fill(info: NodeInfo) -> float:
            node = info.node
            return number_of(None if node is None else node.metadata.annotations.get(key), math.nan)

        return self._numbers(("policy.annotation_number", key), fill, default)

    def has_taint(self, key: str, value: str | None = None, effect: str | None = None) -> BoolArray:
        """Return bool (n,): which nodes have a taint; None matches every value and effect."""
        own = self._own

        def fill(info: NodeInfo) -> bool:
            return Node(info, own).has_taint(key, value, effect)

        spec = ColumnSpec(("policy.has_taint", key, value, effect), fill, np.bool_)
        return _read_only(self._view.derived(spec))

    @property
    def unschedulable(self) -> BoolArray:
        """Bool (n,): which nodes are cordoned."""
        return _read_only(self._view.unschedulable)

    def zones(self) -> npt.NDArray[np.int32]:
        """Return int32 (n,): a number for each region and zone, 0 for nodes without them."""
        ids: dict[str, int] = {"": 0}

        def fill(info: NodeInfo) -> int:
            return ids.setdefault(zone_key(info.labels), len(ids))

        return _read_only(self._view.derived(ColumnSpec("policy.zones", fill, np.int32)))

    # --- pods ---------------------------------------------------------------------------------

    def matching_pods(
        self,
        selector: Mapping[str, str] | Selector,
        namespaces: Collection[str] | None = None,
    ) -> IntArray:
        """Return int64 (n,): the number of pods on each node that have all these labels.

        Parameters
        ----------
        selector
            Labels, or a selector from :func:`cache.label_selectors.compile_label_selector`.
        namespaces
            The namespaces of the pods; None for all namespaces.

        *Cost*: proportional to all pods on the first call, later to the pods that changed.
        """
        within = None if namespaces is None else frozenset(namespaces)
        query = PodQuery(within, selector_of(selector))
        return self._take(self._view.columns.terms.count(query))

    # --- the plugin's own values --------------------------------------------------------------

    def per_node(
        self, key: Hashable, function: Callable[[Node], float], *, of_pods: bool = False
    ) -> npt.NDArray[np.float64]:
        """Return float64 (n,): the cached values of a function of one node.

        Parameters
        ----------
        key
            The name of the column within this plugin: the function must be the same for the same
            key.
        function
            Computes the value from its argument only.
        of_pods
            Whether it depends on the node's pods or on their requests. If not, it is called again
            only after the node object itself has changed.

        Raises
        ------
        PolicyAnswerError
            When the function does not return a number. Its own exceptions propagate.
        """
        own = self._own
        column = own.per_node(
            self._view.columns, key, lambda info: function(Node(info, own)), of_pods=of_pods
        )
        return self._take(column)

    def metric(self, name: str) -> npt.NDArray[np.float64]:
        """Return float64 (n,): a node metric, NaN where it is unknown or too old."""
        return self._take(self._own.metric(self._view.columns, name))

    def _numbers(
        self, key: Hashable, fill: Callable[[NodeInfo], float], default: float
    ) -> npt.NDArray[np.float64]:
        numbers: npt.NDArray[np.float64] = self._view.derived(ColumnSpec(key, fill, np.float64))
        if not math.isnan(default):
            numbers = np.where(np.isnan(numbers), default, numbers)
        return _read_only(numbers)

    def _take(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return _read_only(self._view.take(array))

    def __repr__(self) -> str:
        return f"Nodes({len(self)})"


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.flags.writeable = False
    return array
