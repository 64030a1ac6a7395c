"""The nodes of the snapshot as columns: one contiguous numpy array for each quantity.

A cycle over columns is much faster than a cycle over Python objects. The same fit check over 5 000
nodes is an order of magnitude faster on ``(n_resources, n_nodes)`` than on ``(n_nodes, 4)``,
because the values of each quantity are then contiguous.

Rows are dense: when a node is removed, the last node moves into its row. A row number is therefore
valid only until the next update; data that is kept longer stores the node's name and its UID.

Besides the fixed columns there are columns of labels (:mod:`cache.label_columns`) and *derived*
columns, which plugins request by a spec: the nodes that have one image, the host ports in use. A
derived column is filled on first use, updated on later use, and kept within a limit in bytes.

All data that is computed from the rows follows them in one way: it keeps a cursor, and calls
:meth:`Columns.follow` for the rows that have changed since. A change costs the same for any number
of followers, and a follower that is dropped leaves no state behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cache.byte_bounded import ByteBounded
from cache.change_journal import RowChanges
from cache.interning import Interner
from cache.label_columns import LabelColumns
from cache.node_info import NO_IMAGES, NO_LABELS
from cache.quantity import INT64_MAX
from cache.ref_counts import RefCounts
from cache.resource_table import ResourceTable
from cache.term_index import TermIndex
from cache.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence

    import numpy.typing as npt

    from cache.image_states import ImageState
    from cache.label_columns import LabelColumn
    from cache.node_info import NodeInfo
    from cache.objects import Node, Taint
    from cache.pod_info import PodInfo

NONZERO_CPU: Final = 0
NONZERO_MEMORY: Final = 1

MAX_DERIVED_BYTES: Final = 1 << 25
"""32 MiB: 250 columns of 15 000 nodes, more than the images and ports that pods ask for at one
time."""

_FIRST_CAPACITY: Final = 64

_LEAST_BYTES: Final = 1 << 15
"""What a derived column counts for at least, since its key and its objects take bytes, too: there
are a thousand at most."""


class ColumnSpec(Value, frozen=True):
    """How to fill a derived column.

    Parameters
    ----------
    key
        Identifies the column for all its users, for example ``("image", name)``.
    fill
        Returns the value of one node. Must not raise.
    dtype
        The numpy dtype of the column.
    of_pods
        Whether the value depends on the node's pods. If not, it is read again only when the
        node object itself changed.
    """

    key: Hashable
    fill: Callable[[NodeInfo], Any]
    dtype: Any = np.int64
    of_pods: bool = False


class _Derived:
    """A derived column, and the cursor up to which it has followed the rows."""

    __slots__ = ("array", "cursor", "spec")

    def __init__(self, spec: ColumnSpec, array: npt.NDArray[Any], cursor: int) -> None:
        self.spec = spec
        self.array = array
        self.cursor = cursor


class Columns:
    """All columns over one set of nodes.

    Notes
    -----
    *Concurrency*: confined to one thread, the scheduling thread for the snapshot's.

    Invariants: row ``r`` of every array describes ``node_infos[r]``; ``row_of`` is the inverse
    of the names of ``node_infos``; no imaginary node has a row.
    """

    def __init__(self) -> None:
        self.node_infos: list[NodeInfo] = []
        self.row_of: dict[str, int] = {}
        self.epoch = 0
        """Grows whenever a row starts to mean another node: cached masks die with it."""
        self.taint_sets: Interner[tuple[Taint, ...]] = Interner()
        self.claim_ref_counts: dict[str, int] = {}
        """How often the nodes' pods mount a claim, by ``namespace/claim``."""
        self._capacity = _FIRST_CAPACITY
        self._resources = ResourceTable(_FIRST_CAPACITY)
        self.resource_row = self._resources.line_of
        """The row of each resource that some node reports; what nobody reports has none."""
        self._nonzero = np.zeros((2, _FIRST_CAPACITY), dtype=np.int64)
        self._unschedulable = np.zeros(_FIRST_CAPACITY, dtype=np.bool_)
        self._taint_set_ids = np.zeros(_FIRST_CAPACITY, dtype=np.int32)
        self._nodes: list[Node | None] = []
        self._derived: ByteBounded[Hashable, _Derived] = ByteBounded(MAX_DERIVED_BYTES, _weight)
        self.labels = LabelColumns(self.node_infos, _FIRST_CAPACITY)
        """The label keys of all nodes, and the columns of some."""
        self.label_keys = self.labels.num_nodes_with
        """The label keys of the nodes, and how many nodes have each."""
        self._images: list[Mapping[str, ImageState]] = []
        self.num_nodes_with_image = RefCounts()
        """How many nodes hold each image, by name; images that no node holds are left out."""
        self._changes = RowChanges()
        self._node_changes = RowChanges()
        self.terms = TermIndex(self.node_infos, self._changes)
        """Counts of pods by selector, and the affinity terms of the pods that run."""
        self._refresh_views()

    def __len__(self) -> int:
        return len(self.node_infos)

    # --- changing rows ------------------------------------------------------------------------

    def put(self, info: NodeInfo) -> int:
        """Store a new or changed node, and return its row.

        Raises
        ------
        ValueError
            When the node is imaginary.

        *Cost*: a few microseconds.
        """
        row = self._put(info)
        if row == len(self.unschedulable):
            self._refresh_views()
        return row

    def put_all(self, infos: Iterable[NodeInfo]) -> None:
        """Store new or changed nodes; raises as :meth:`put`."""
        for info in infos:
            self._put(info)
        if len(self.unschedulable) != len(self.node_infos):
            self._refresh_views()

    def _put(self, info: NodeInfo) -> int:
        if info.node is None:
            raise ValueError(f"{info!r} is imaginary and has no row")
        row = self.row_of.get(info.name)
        if row is None:
            row = len(self.node_infos)
            if row == self._capacity:
                self._grow()
            self.row_of[info.name] = row
            self.node_infos.append(info)
            self._nodes.append(None)
            self._images.append(NO_IMAGES)
            self._resources.append()
            self._taint_set_ids[row] = self.taint_sets.acquire(())
            self.epoch += 1
            self._count_claims(info.pvc_ref_counts, 1)
        else:
            before = self.node_infos[row]
            if before.uid != info.uid:
                self.epoch += 1
            self.node_infos[row] = info
            if info.pvc_ref_counts or before.pvc_ref_counts:
                self._count_claims(info.pvc_ref_counts, 1)
                self._count_claims(before.pvc_ref_counts, -1)
        self._changes.record(row)
        self._write_row(row, info)
        return row

    def add_amounts(self, rows: npt.NDArray[np.intp], info: PodInfo) -> None:
        """Count one pod like ``info`` more on each of some nodes, in the amounts alone.

        The NodeInfos and what is derived from their pods stay as they are until the nodes are put
        again, pods included. So this is for pods of which nothing but amounts matters.

        Parameters
        ----------
        rows
            intp, without duplicates.
        """
        self._resources.add_requested(rows, info)
        for line, amount in (
            (NONZERO_CPU, info.nonzero_milli_cpu),
            (NONZERO_MEMORY, info.nonzero_memory_bytes),
        ):
            now = self._nonzero[line, rows]
            self._nonzero[line, rows] = now + np.minimum(amount, INT64_MAX - now)
        for row in rows.tolist():
            self._changes.record(row)

    def remove(self, name: str) -> None:
        """Remove a node. The last node moves into its row.

        Raises
        ------
        KeyError
            When there is no such node.
        """
        row = self.row_of.pop(name)
        last = len(self.node_infos) - 1
        self._count_claims(self.node_infos[row].pvc_ref_counts, -1)
        for changes in (self._changes, self._node_changes):
            changes.record(row)
            changes.record(last)
        self.taint_sets.release(int(self._taint_set_ids[row]))
        self.labels.remove(row, last, _labels(self._nodes[row]))
        self.num_nodes_with_image.replace(self._images[row], NO_IMAGES)
        if row != last:
            moved = self.node_infos[last]
            self.node_infos[row] = moved
            self._nodes[row] = self._nodes[last]
            self._images[row] = self._images[last]
            self.row_of[moved.name] = row
            for array in (self._nonzero, self._unschedulable, self._taint_set_ids):
                array[..., row] = array[..., last]
        self._resources.remove(row, last)
        self.node_infos.pop()
        self._nodes.pop()
        self._images.pop()
        self._nonzero[:, last] = 0
        self.epoch += 1
        self._refresh_views()

    @property
    def basic_bounds(self) -> tuple[int, int]:
        """No row has less allocatable CPU or memory than the first, or more than the second.

        The bounds are those of all nodes that ever had a row, so that they cost no search.
        """
        return self._resources.basic_bounds

    # --- following the rows -------------------------------------------------------------------

    @property
    def cursor(self) -> int:
        """The cursor of a follower that has read all rows as they are now."""
        return self._changes.cursor

    @property
    def node_cursor(self) -> int:
        """The cursor of a follower that has read all Node objects as they are now."""
        return self._node_changes.cursor

    def follow(self, cursor: int, *, of_pods: bool = True) -> tuple[int, Collection[int]]:
        """Return the rows that have changed since a cursor, and the current cursor.

        A row has changed when its node or the pods on it changed, when it stands for another node,
        and when it stands for none any more: then it is behind the last row, see :meth:`info_at`.

        Parameters
        ----------
        cursor
            The cursor that the last call returned; 0 for all rows.
        of_pods
            Whether changes of pods count. Cursors with and without them are not comparable.

        *Cost*: proportional to the changes since. After too many changes all rows are returned.
        """
        changes = self._changes if of_pods else self._node_changes
        return changes.cursor, changes.since(cursor)

    def changed_rows(self, cursor: int, *, of_pods: bool = True) -> npt.NDArray[np.intp]:
        """Return the rows in use that have changed since a cursor, ascending: see :meth:`follow`.

        *Cost*: one pass over the rows; meant for followers that are many changes behind.
        """
        rows = (self._changes if of_pods else self._node_changes).rows_since(cursor)
        return rows[: int(rows.searchsorted(len(self.node_infos)))]

    def info_at(self, row: int) -> NodeInfo | None:
        """Return the node of a row, or None behind the last row."""
        return self.node_infos[row] if row < len(self.node_infos) else None

    def _count_claims(self, ref_counts: Mapping[str, int], sign: int) -> None:
        for claim, count in ref_counts.items():
            now = self.claim_ref_counts.get(claim, 0) + sign * count
            if now:
                self.claim_ref_counts[claim] = now
            else:
                del self.claim_ref_counts[claim]

    def _write_row(self, row: int, info: NodeInfo) -> None:
        node_changed = self._nodes[row] is not info.node
        self._resources.write_requested(row, info)
        self._nonzero[NONZERO_CPU, row] = min(info.nonzero_milli_cpu, INT64_MAX)
        self._nonzero[NONZERO_MEMORY, row] = min(info.nonzero_memory_bytes, INT64_MAX)
        if node_changed and info.node is not None:
            self._write_node(row, info, info.node)

    def _write_node(self, row: int, info: NodeInfo, node: Node) -> None:
        self.labels.write(row, _labels(self._nodes[row]), node.metadata.labels)
        self.num_nodes_with_image.replace(self._images[row], info.image_states)
        self._images[row] = info.image_states
        self._nodes[row] = node
        self._node_changes.record(row)
        if self._resources.write_allocatable(row, info.allocatable, self.node_infos):
            self._refresh_views()
        self._unschedulable[row] = node.spec.unschedulable
        before = int(self._taint_set_ids[row])
        self._taint_set_ids[row] = self.taint_sets.acquire(node.spec.taints)
        self.taint_sets.release(before)

    def _grow(self) -> None:
        extra = self._capacity

        def longer(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
            width = [(0, 0)] * (array.ndim - 1) + [(0, extra)]
            return np.pad(array, width)

        self._capacity += extra
        self._resources.grow(extra)
        self._nonzero = longer(self._nonzero)
        self._unschedulable = longer(self._unschedulable)
        self._taint_set_ids = longer(self._taint_set_ids)
        for derived in self._derived.values():
            derived.array = longer(derived.array)
        self._derived.weigh_again()
        self.labels.grow(self._capacity)

    def _refresh_views(self) -> None:
        n = len(self.node_infos)

        def view(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
            part = array[..., :n]
            part.flags.writeable = False
            return part

        self.allocatable: npt.NDArray[np.int64]
        """int64 (n_resources, n_nodes), read-only."""
        self.requested: npt.NDArray[np.int64]
        """int64 (n_resources, n_nodes), read-only; the row of ``pods`` counts pods."""
        self.allocatable, self.requested = self._resources.views(n)
        self.nonzero_requested: npt.NDArray[np.int64] = view(self._nonzero)
        """int64 (2, n_nodes), read-only: milli-CPU, then bytes of memory."""
        self.unschedulable: npt.NDArray[np.bool_] = view(self._unschedulable)
        """bool (n_nodes,), read-only: ``spec.unschedulable``."""
        self.taint_set_ids: npt.NDArray[np.int32] = view(self._taint_set_ids)
        """int32 (n_nodes,), read-only: ids in ``taint_sets``."""

    # --- derived columns ----------------------------------------------------------------------

    def derived(self, spec: ColumnSpec) -> npt.NDArray[Any]:
        """Return the derived column of a spec.

        Returns
        -------
        shape (n_nodes,), ``spec.dtype``, read-only; good until the rows change.

        *Cost*: the first time proportional to the nodes, later to the rows that have changed since
        it was asked for last.
        """
        known = self._derived.get(spec.key)
        n = len(self.node_infos)
        if known is None:
            array = np.zeros(self._capacity, dtype=spec.dtype)
            fill = spec.fill
            array[:n] = [fill(info) for info in self.node_infos]
            known = _Derived(spec, array, self.cursor if spec.of_pods else self.node_cursor)
            self._derived.put(spec.key, known)
        else:
            cursor, rows = self.follow(known.cursor, of_pods=spec.of_pods)
            fill = known.spec.fill
            for row in rows:
                if row < n:
                    known.array[row] = fill(self.node_infos[row])
            known.cursor = cursor
        view = known.array[:n]
        view.flags.writeable = False
        return view


def _weight(_key: Hashable, derived: _Derived) -> int:
    return max(derived.array.nbytes, _LEAST_BYTES)


def _labels(node: Node | None) -> Mapping[str, str]:
    return NO_LABELS if node is None else node.metadata.labels


FEW_ROWS: Final = 400
"""Up to so many rows indexing picks them: ``np.take`` lets another thread have the interpreter even
for one row, and gets it back when that thread has to wait, milliseconds later. Indexing does so for
more than 500 only."""


class NodesView:
    """Columns restricted to some rows: the view that plugins receive.

    Parameters
    ----------
    columns
        The columns.
    rows
        intp, shape (n,): the selected rows, in this order; None for all rows in their order.
    """

    __slots__ = ("columns", "rows")

    def __init__(self, columns: Columns, rows: npt.NDArray[np.intp] | None = None) -> None:
        self.columns = columns
        self.rows = rows

    @classmethod
    def of(cls, infos: Sequence[NodeInfo]) -> NodesView:
        """Return a view over new columns of only these nodes.

        *Cost*: proportional to the nodes; meant for what-if questions about few of them.
        """
        columns = Columns()
        columns.put_all(infos)
        return cls(columns)

    def __len__(self) -> int:
        return len(self.columns) if self.rows is None else len(self.rows)

    def take(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Restrict an array whose last axis runs over all rows to the rows of this view."""
        rows = self.rows
        if rows is None:
            return array
        picked: npt.NDArray[Any]
        are_few = len(rows) <= FEW_ROWS
        if array.ndim == 2:
            # Line by line: of a table with room for more rows, np.take copies everything first.
            picked = np.empty((len(array), len(rows)), dtype=array.dtype)
            for line, into in zip(array, picked, strict=True):
                into[:] = line[rows] if are_few else np.take(line, rows)
            return picked
        if are_few and array.ndim == 1:
            picked = array[rows]
            return picked
        # Indexing with ``...`` takes three to four times as long.
        return np.take(array, rows, axis=-1)

    def allocatable(self, resource: str) -> npt.NDArray[np.int64]:
        """Return int64 (n,): allocatable of a resource by node (milli-CPU, bytes or counts)."""
        row = self.columns.resource_row.get(resource)
        if row is None:
            return np.zeros(len(self), dtype=np.int64)
        return self.take(self.columns.allocatable[row])

    def requested(self, resource: str) -> npt.NDArray[np.int64]:
        """Return int64 (n,): the amount that the pods of each node request.

        *Cost*: proportional to the nodes, in Python, for a resource that no node reports.
        """
        row = self.columns.resource_row.get(resource)
        if row is not None:
            return self.take(self.columns.requested[row])
        amounts = (min(info.requested.get(resource, 0), INT64_MAX) for info in self.node_infos())
        return np.fromiter(amounts, np.int64, len(self))

    def nonzero_requested(self, which: int) -> npt.NDArray[np.int64]:
        """Return int64 (n,): assumed use, ``NONZERO_CPU`` in milli, ``NONZERO_MEMORY`` in bytes."""
        return self.take(self.columns.nonzero_requested[which])

    @property
    def unschedulable(self) -> npt.NDArray[np.bool_]:
        """Return bool (n,): ``spec.unschedulable``."""
        return self.take(self.columns.unschedulable)

    @property
    def taint_set_ids(self) -> npt.NDArray[np.int32]:
        """Return int32 (n,): ids in ``columns.taint_sets``."""
        return self.take(self.columns.taint_set_ids)

    def derived(self, spec: ColumnSpec) -> npt.NDArray[Any]:
        """Return the column of a spec, shape (n,)."""
        return self.take(self.columns.derived(spec))

    def label(self, key: str) -> tuple[LabelColumn, npt.NDArray[np.int32]]:
        """Return a label key's table of values and int32 (n,) ids into it."""
        column, ids = self.columns.labels.get(key)
        return column, self.take(ids)

    def row(self, name: str) -> int | None:
        """Return the index of a node in this view, or None."""
        row = self.columns.row_of.get(name)
        if row is None or self.rows is None:
            return row
        found = np.flatnonzero(self.rows == row)
        return int(found[0]) if len(found) else None

    def node_info(self, index: int) -> NodeInfo:
        """Return the NodeInfo at an index of this view."""
        row = index if self.rows is None else int(self.rows[index])
        return self.columns.node_infos[row]

    def node_infos(self) -> list[NodeInfo]:
        """Return all NodeInfos of this view, in order."""
        infos = self.columns.node_infos
        return infos if self.rows is None else [infos[row] for row in self.rows]

    def subset(self, indices: npt.NDArray[np.intp]) -> NodesView:
        """Return the view of some indices of this view."""
        return NodesView(self.columns, indices if self.rows is None else self.rows[indices])
