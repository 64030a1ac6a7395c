"""All nodes at once, as columns: what a user's vector plugin sees."""

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
    """The values of one label over the nodes of a view.

    ``labels == "text"``, ``labels != "text"``, :meth:`isin` and :meth:`exists` give masks; a node
    without the label is unequal to every text.
    """

    __slots__ = ("_column", "ids")

    def __init__(self, column: LabelColumn, ids: npt.NDArray[np.int32]) -> None:
        self._column = column
        self.ids = ids
        """int32 (n,), read-only: the same number for the same value, 0 where the label is absent.
        Good for ``np.bincount``: ``num_ids`` is one more than the largest. Another number may
        stand for the value in the next call."""

    @property
    def num_ids(self) -> int:
        """The length of an array that is indexed by ids."""
        return len(self._column.values)

    @property
    def values(self) -> npt.NDArray[np.object_]:
        """Object (n,): the texts, None where the label is absent."""
        return np.array(self._column.values, dtype=np.object_).take(self.ids)

    def id_of(self, value: str) -> int | None:
        """Return the id of a value, or None when no node has it."""
        return self._column.id_of(value)

    def exists(self) -> BoolArray:
        """Return bool (n,): where the label is."""
        there: BoolArray = self.ids != 0
        return there

    def isin(self, values: Iterable[str]) -> BoolArray:
        """Return bool (n,): where it has one of these values."""
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

    __hash__ = None  # type: ignore[assignment] # what gives a mask for == is no key

    def __len__(self) -> int:
        return len(self.ids)


class Nodes:
    """Nodes as columns: arrays with one entry for each node, in the same order everywhere.

    For ``filter`` these are all nodes that may still do, for ``score`` those that can run the pod;
    :attr:`all_nodes` are those of the whole cluster.

    Notes
    -----
    All arrays are read-only: what is worked out from them is a new array.

    *Cost*: a column is filled when it is asked for the first time and follows the nodes that
    change from then on; so an answer costs microseconds, whatever the number of nodes.
    """

    __slots__ = ("_own", "_view")

    def __init__(self, view: NodesView, own: OwnColumns) -> None:
        self._view = view
        self._own = own

    def __len__(self) -> int:
        return len(self._view)

    def __iter__(self) -> Iterator[Node]:
        """Iterate over single nodes: slow, for the few that an answer is about."""
        return (Node(info, self._own) for info in self._view.node_infos())

    def __getitem__(self, index: int) -> Node:
        """Return one node."""
        return Node(self._view.node_info(index), self._own)

    @property
    def all_nodes(self) -> Nodes:
        """Every node of the cluster, whether it can run the pod or not."""
        return self if self._view.rows is None else Nodes(NodesView(self._view.columns), self._own)

    @property
    def names(self) -> npt.NDArray[np.object_]:
        """Object (n,): the names."""
        return self._taken(self._own.names(self._view.columns))

    def index(self, name: str) -> int | None:
        """Return where a node stands, or None."""
        return self._view.row(name)

    # --- resources ----------------------------------------------------------------------------

    def allocatable(self, resource: str) -> IntArray:
        """Return int64 (n,): what each has for pods (``cpu`` in milli, bytes or counts)."""
        return _read_only(self._view.allocatable(resource))

    def requested(self, resource: str) -> IntArray:
        """Return int64 (n,): what the pods of each have asked for; of ``pods`` their number."""
        return _read_only(self._view.requested(resource))

    def free(self, resource: str) -> IntArray:
        """Return int64 (n,): what is left of each; negative on an overcommitted node."""
        return _read_only(self._view.allocatable(resource) - self._view.requested(resource))

    # --- labels, annotations, taints, zones ---------------------------------------------------

    def label(self, key: str) -> Labels:
        """Return the values of a label."""
        column, ids = self._view.label(key)
        return Labels(column, _read_only(ids))

    def label_number(self, key: str, default: float = math.nan) -> npt.NDArray[np.float64]:
        """Return float64 (n,): a label as a number, ``default`` where it is absent or none."""

        def fill(info: NodeInfo) -> float:
            return number_of(info.labels.get(key), math.nan)

        return self._numbers(("policy.label_number", key), fill, default)

    def annotation_number(self, key: str, default: float = math.nan) -> npt.NDArray[np.float64]:
        """Return float64 (n,): an annotation as a number, as :meth:`label_number`."""

        def fill(info: NodeInfo) -> float:
            node = info.node
            return number_of(None if node is None else node.metadata.annotations.get(key), math.nan)

        return self._numbers(("policy.annotation_number", key), fill, default)

    def has_taint(self, key: str, value: str | None = None, effect: str | None = None) -> BoolArray:
        """Return bool (n,): who has a taint; None stands for every value and every effect."""
        own = self._own

        def fill(info: NodeInfo) -> bool:
            return Node(info, own).has_taint(key, value, effect)

        spec = ColumnSpec(("policy.has_taint", key, value, effect), fill, np.bool_)
        return _read_only(self._view.derived(spec))

    @property
    def unschedulable(self) -> BoolArray:
        """Bool (n,): who is cordoned."""
        return _read_only(self._view.unschedulable)

    def zones(self) -> npt.NDArray[np.int32]:
        """Return int32 (n,): another number for each region and zone, 0 for nodes without."""
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
        """Return int64 (n,): how many pods of each node have all of these labels.

        Parameters
        ----------
        selector
            Labels, or a selector from :func:`cache.label_selectors.compile_label_selector`.
        namespaces
            Pods of these; None for pods of every namespace.

        *Cost*: the first time a look at every pod, later at those that came and went.
        """
        within = None if namespaces is None else frozenset(namespaces)
        query = PodQuery(within, selector_of(selector))
        return self._taken(self._view.columns.terms.count(query))

    # --- what the plugin brings itself --------------------------------------------------------

    def per_node(
        self, key: Hashable, function: Callable[[Node], float], *, of_pods: bool = False
    ) -> npt.NDArray[np.float64]:
        """Return float64 (n,): a function of one node, remembered.

        Parameters
        ----------
        key
            The column's name, for this plugin alone: the function must be the same for the same
            key.
        function
            Looks at nothing but the node that it is given.
        of_pods
            Whether it looks at the node's pods, or at what they request. If not, it is asked again
            only when the node object itself changed.

        Raises
        ------
        PolicyAnswerError
            When the function returns anything but a number; what it raises is raised.
        """
        own = self._own
        column = own.per_node(
            self._view.columns, key, lambda info: function(Node(info, own)), of_pods=of_pods
        )
        return self._taken(column)

    def metric(self, name: str) -> npt.NDArray[np.float64]:
        """Return float64 (n,): a measured metric, NaN where it is unknown or too old."""
        return self._taken(self._own.metric(self._view.columns, name))

    def _numbers(
        self, key: Hashable, fill: Callable[[NodeInfo], float], default: float
    ) -> npt.NDArray[np.float64]:
        numbers: npt.NDArray[np.float64] = self._view.derived(ColumnSpec(key, fill, np.float64))
        if not math.isnan(default):
            numbers = np.where(np.isnan(numbers), default, numbers)
        return _read_only(numbers)

    def _taken(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return _read_only(self._view.take(array))

    def __repr__(self) -> str:
        return f"Nodes({len(self)})"


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.flags.writeable = False
    return array
