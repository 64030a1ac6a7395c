"""The number of volumes of each driver on every node, updated as pods and storage change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from plugins.framework.attempt_budget import UNLIMITED
from plugins.framework.status import Status
from plugins.node_volume_limits.counted_volumes import (
    NONE,
    Counted,
    VolumeKey,
    attached_volumes,
    class_key,
    volume_limits,
    volumes_of_running_pod,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    import numpy.typing as npt

    from cache.columns import Columns
    from cache.node_info import NodeInfo
    from cache.pod_info import PodInfo
    from cache.storage import Storage
    from plugins.framework.attempt_budget import AttemptBudget
    from plugins.framework.results import BoolArray

NO_LIMIT: Final = 2**62
"""Stands for the limit of a driver that has none on a node: more than any number of volumes."""

_NO_KEYS: frozenset[Hashable] = frozenset()

_ATTACHMENTS: Final = ""
"""Replaces a pod's UID for volumes that are attached to a node."""


class _Pod(NamedTuple):
    info: PodInfo
    volumes: Counted
    read: frozenset[Hashable]
    """The keys of the objects that this was computed from."""


class _Node:
    """The volumes and limits of one node that limits any driver."""

    __slots__ = ("attached", "attached_read", "limits", "name", "pods", "uses")

    def __init__(self, name: str) -> None:
        self.name = name
        self.limits: Mapping[str, int] = {}
        self.pods: dict[str, _Pod] = {}
        self.uses: dict[VolumeKey, int] = {}
        """The volumes that its pods use, and how many pods each."""
        self.attached: frozenset[VolumeKey] | None = None
        """The volumes that are attached; None when they have to be looked up."""
        self.attached_read = _NO_KEYS

    def held(self) -> dict[str, int]:
        """Return the number of volumes of each driver on the node."""
        return held_volumes(self.uses, self.attached or NONE)

    def error(self) -> Status | None:
        """Return the error if its volumes cannot be counted."""
        for pod in self.pods.values():
            if isinstance(pod.volumes, Status):
                return pod.volumes
        return None


def held_volumes(uses: Iterable[VolumeKey], attached: Iterable[VolumeKey]) -> dict[str, int]:
    """Return the number of distinct volumes of each driver."""
    held: dict[str, int] = {}
    for key in {*uses, *attached}:
        held[key[0]] = held.get(key[0], 0) + 1
    return held


class VolumeUsage:
    """The volumes on all nodes of some columns.

    Nodes that limit no driver are skipped.

    Notes
    -----
    *Concurrency*: confined to the thread of the columns; reads storage, which is thread-safe.

    *Cost*: each call follows the nodes, pods, claims, volumes, classes, CSINodes and attachments
    that have changed since the last call, some microseconds each. Where that was too long ago,
    and at first, all volumes are counted: some 30 us for each pod with a volume.
    """

    def __init__(self, columns: Columns, storage: Storage) -> None:
        self.columns = columns
        self._storage = storage
        self._cursor = 0
        self._stale: set[int] = set()
        """The rows to be checked again."""
        self._nodes: dict[int, _Node] = {}
        """By row; a node that limits no driver is left out."""
        self._rows_of: dict[VolumeKey, set[int]] = {}
        self._readers: dict[Hashable, set[tuple[int, str]]] = {}
        """The dependents of a claim, a volume or a class: row and pod, or row and attachments."""
        self._errors: dict[int, Status] = {}
        self._limits: dict[str, npt.NDArray[np.int64]] = {}
        self._held: dict[str, npt.NDArray[np.int64]] = {}
        self._num_rows = 0
        """How many rows both have: as many as there are nodes, or more."""
        self._claims = storage.claims.api_version
        self._volumes = storage.volumes.api_version
        self._classes = storage.classes.version
        self._csi_nodes = storage.csi_nodes.version
        self._attachments = storage.attachments_version

    # --- questions ----------------------------------------------------------------------------

    def over_limit(
        self, wanted: frozenset[VolumeKey], budget: AttemptBudget = UNLIMITED
    ) -> BoolArray:
        """Return bool (n_nodes,), of all rows: where volumes exceed the limit of their driver.

        A volume that is on a node already is not counted again there.
        """
        count = len(self.columns)
        over = np.zeros(count, dtype=np.bool_)
        by_driver: dict[str, list[VolumeKey]] = {}
        for key in wanted:
            by_driver.setdefault(key[0], []).append(key)
        for driver, keys in by_driver.items():
            if driver not in self._limits:
                continue
            more = np.full(count, len(keys), dtype=np.int64)
            for key in keys:
                budget.check()
                rows = self._rows_of.get(key)
                if rows:
                    more[list(rows)] -= 1
            held, limits = self._held[driver][:count], self._limits[driver][:count]
            over |= (held + more > limits) & (more > 0)
        return over

    def uses_any(self, volumes: frozenset[VolumeKey]) -> bool:
        """Return whether a pod on a node that limits drivers uses one of some volumes."""
        return not self._rows_of.keys().isdisjoint(volumes)

    def errors(self) -> Mapping[int, Status]:
        """Return the errors of nodes whose volumes cannot be counted, by row."""
        return self._errors

    def volumes_of(self, node_name: str, info: PodInfo) -> Counted | None:
        """Return the volumes of a pod on a node, or None where they are not known."""
        node = self._node_of(node_name)
        known = None if node is None else node.pods.get(info.uid)
        return known.volumes if known is not None and known.info is info else None

    def attached_to(self, node_name: str) -> frozenset[VolumeKey] | None:
        """Return the volumes that are attached to a node, or None where they are not known."""
        node = self._node_of(node_name)
        return None if node is None else node.attached

    def _node_of(self, name: str) -> _Node | None:
        row = self.columns.row_of.get(name)
        return None if row is None else self._nodes.get(row)

    # --- following ----------------------------------------------------------------------------

    def follow(self) -> None:
        """Apply all changes since the last call."""
        self._read_storage()
        self._cursor, changed = self.columns.follow(self._cursor)
        self._stale.update(changed)
        if self._num_rows < len(self.columns):
            self._make_room()
        for row in self._stale:
            info = self.columns.info_at(row)
            if info is None:
                self._forget(row)
            else:
                self._update(row, info)
        self._stale.clear()

    def _read_storage(self) -> None:
        storage = self._storage
        if self._classes != storage.classes.version:
            self._classes, classes = storage.classes.changes(self._classes)
            self._expire(None if classes is None else frozenset(map(class_key, classes)))
        if self._claims != storage.claims.api_version:
            self._claims, claims = storage.claims.api_changes(self._claims)
            self._expire(claims)
        if self._volumes != storage.volumes.api_version:
            self._volumes, volumes = storage.volumes.api_changes(self._volumes)
            self._expire(volumes)
        if self._csi_nodes != storage.csi_nodes.version:
            self._csi_nodes, nodes = storage.csi_nodes.changes(self._csi_nodes)
            if nodes is None:
                self._start_anew()
            else:
                row_of = self.columns.row_of
                self._stale.update(row_of[name] for name in nodes if name in row_of)
        if self._attachments != storage.attachments_version:
            self._attachments, nodes = storage.attachment_changes(self._attachments)
            if nodes is None:
                self._start_anew()
            else:
                # A node that has moved meanwhile is counted again anyway.
                for name in nodes:
                    row = self.columns.row_of.get(name)
                    if row is not None and row in self._nodes:
                        self._expire_one(row, _ATTACHMENTS)

    def _start_anew(self) -> None:
        for row in list(self._nodes):
            self._forget(row)
        self._stale.update(range(len(self.columns)))

    def _expire(self, keys: frozenset[Hashable] | frozenset[str] | None) -> None:
        """Drop results that depend on claims, volumes or classes with these keys."""
        if keys is None:
            self._start_anew()
            return
        for key in keys:
            for row, uid in tuple(self._readers.get(key, ())):
                self._expire_one(row, uid)

    def _expire_one(self, row: int, uid: str) -> None:
        node = self._nodes[row]
        if uid == _ATTACHMENTS:
            self._unread(node.attached_read, row, uid)
            node.attached, node.attached_read = None, _NO_KEYS
        else:
            self._take_off(row, node, uid)
        self._stale.add(row)

    def _make_room(self) -> None:
        """Grow the arrays by half, because nodes may be added one by one."""
        self._num_rows = len(self.columns) + len(self.columns) // 2
        for arrays, nothing in ((self._limits, NO_LIMIT), (self._held, 0)):
            for driver, array in arrays.items():
                more = (0, self._num_rows - len(array))
                arrays[driver] = np.pad(array, more, constant_values=nothing)

    def _add_driver(self, driver: str) -> None:
        self._limits[driver] = np.full(self._num_rows, NO_LIMIT, dtype=np.int64)
        self._held[driver] = np.zeros(self._num_rows, dtype=np.int64)

    # --- one node -----------------------------------------------------------------------------

    def _update(self, row: int, info: NodeInfo) -> None:
        name = info.name
        node = self._nodes.get(row)
        if node is not None and node.name != name:
            self._forget(row)
            node = None
        limits = volume_limits(self._storage.csi_nodes.get(name))
        if not limits:
            self._forget(row)
            self._write(row, _Node(name))
            return
        if node is None:
            node = self._nodes[row] = _Node(name)
        node.limits = limits
        if node.attached is None:
            read: set[Hashable] = set()
            node.attached = attached_volumes(self._storage, name, read)
            node.attached_read = self._note(read, row, _ATTACHMENTS)
        pods, known = info.pods, node.pods
        for uid in [uid for uid in known if pods.get(uid) is not known[uid].info]:
            self._take_off(row, node, uid)
        if len(known) < len(pods):
            for uid, pod in pods.items():
                if uid not in known:
                    self._put(row, node, pod)
        error = node.error()
        if error is not None:
            self._errors[row] = error
        else:
            self._errors.pop(row, None)
        self._write(row, node)

    def _put(self, row: int, node: _Node, info: PodInfo) -> None:
        volumes: Counted = NONE
        keys = _NO_KEYS
        if info.pod.spec.volumes:
            read: set[Hashable] = set()
            volumes = volumes_of_running_pod(self._storage, info.pod, read)
            keys = self._note(read, row, info.uid)
        node.pods[info.uid] = _Pod(info, volumes, keys)
        if not isinstance(volumes, Status):
            for key in volumes:
                node.uses[key] = node.uses.get(key, 0) + 1
                rows = self._rows_of.get(key)
                if rows is None:
                    self._rows_of[key] = {row}
                else:
                    rows.add(row)

    def _take_off(self, row: int, node: _Node, uid: str) -> None:
        pod = node.pods.pop(uid, None)
        if pod is None:
            return
        self._unread(pod.read, row, uid)
        if isinstance(pod.volumes, Status):
            return
        for key in pod.volumes:
            node.uses[key] -= 1
            if not node.uses[key]:
                del node.uses[key]
                self._leave(key, row)

    def _leave(self, key: VolumeKey, row: int) -> None:
        rows = self._rows_of[key]
        rows.remove(row)
        if not rows:
            del self._rows_of[key]

    def _forget(self, row: int) -> None:
        node = self._nodes.pop(row, None)
        if node is not None:
            for uid in list(node.pods):
                self._take_off(row, node, uid)
            self._unread(node.attached_read, row, _ATTACHMENTS)
        self._errors.pop(row, None)

    def _note(self, read: set[Hashable], row: int, uid: str) -> frozenset[Hashable]:
        reader, readers = (row, uid), self._readers
        for key in read:
            known = readers.get(key)
            if known is None:
                readers[key] = {reader}
            else:
                known.add(reader)
        return frozenset(read) if read else _NO_KEYS

    def _unread(self, read: frozenset[Hashable], row: int, uid: str) -> None:
        for key in read:
            readers = self._readers[key]
            readers.discard((row, uid))
            if not readers:
                del self._readers[key]

    def _write(self, row: int, node: _Node) -> None:
        for driver in node.limits:
            if driver not in self._limits:
                self._add_driver(driver)
        held = node.held()
        for driver, limits in self._limits.items():
            limits[row] = node.limits.get(driver, NO_LIMIT)
            self._held[driver][row] = held.get(driver, 0)


def exceeds(
    wanted: frozenset[VolumeKey],
    uses: Iterable[VolumeKey],
    held: Mapping[str, int],
    limits: Mapping[str, int],
) -> bool:
    """Return whether volumes exceed the limit of their driver on one node.

    Parameters
    ----------
    wanted
        The volumes of the pod to be placed.
    uses
        The volumes of the pods on the node.
    held
        The number of volumes of each driver on the node.
    limits
        The limit of each driver.
    """
    more: dict[str, int] = {}
    for key in wanted.difference(uses):
        more[key[0]] = more.get(key[0], 0) + 1
    return any(
        driver in limits and held.get(driver, 0) + count > limits[driver]
        for driver, count in more.items()
    )
