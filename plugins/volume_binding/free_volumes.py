"""The free volumes of each class as columns, smallest first.

A pod with a claim is compared with all free volumes of a class. To avoid a loop over them, the
rows of a class follow the volumes that changed since the last pod: mostly the one volume that was
bound for it.

A volume requires one of three things of its nodes: nothing; one value of one label, as local and
zonal volumes do; or another node affinity, of which there are few kinds.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from msgspec.structs import replace

from cache.label_selectors import IN
from cache.quantity import exact_value
from cache.storage import volume_class
from cache.value import Value
from plugins.volume_binding import reachability

if TYPE_CHECKING:
    from collections.abc import Iterable
    from fractions import Fraction

    import numpy.typing as npt

    from cache.label_columns import LabelColumn
    from cache.label_selectors import NodeSelectorMatcher
    from cache.storage import Storage
    from cache.storage_objects import PersistentVolume

    RowKey: TypeAlias = tuple[int | Fraction, int]

STORAGE: Final = "storage"

AVAILABLE: Final = "Available"

FILESYSTEM: Final = "Filesystem"

ANYWHERE: Final = 0
"""The demand of a volume that every node reaches."""

BY_LABEL: Final = -1
"""Stands for the demand of a volume that wants one value of one label."""

MAX_CLASSES: Final = 256
"""Classes that are stored; a dropped class is built again at its next use."""


_FEW: Final = 64
"""Changes up to which rows are changed one by one; beyond, a rebuild is cheaper."""

_MIN_DISTINCT: Final = 1024


class Shape(Value, frozen=True):
    """The properties of a volume that a claim must match, except size, labels and affinity."""

    mode: str
    attributes_class: str
    access_modes: frozenset[str]
    is_free: bool
    """It is available and not being deleted."""


def shape_of(volume: PersistentVolume) -> Shape:
    """Return a volume's shape."""
    spec = volume.spec
    return Shape(
        mode=spec.volume_mode or FILESYSTEM,
        attributes_class=spec.volume_attributes_class_name or "",
        access_modes=frozenset(spec.access_modes),
        is_free=volume.status.phase == AVAILABLE and volume.metadata.deletion_timestamp is None,
    )


def size_of(volume: PersistentVolume) -> int | Fraction:
    """Return the capacity of a volume in bytes, 0 when it has none."""
    return exact_value(volume.spec.capacity.get(STORAGE, 0))


class LabelDemands:
    """The values of one label that volumes require, and their ids in the nodes' column.

    Attributes
    ----------
    ids
        The number of each value that a volume ever required.
    """

    __slots__ = ("_column", "_known", "_node_ids", "ids", "key")

    def __init__(self, key: str) -> None:
        self.key = key
        self.ids: dict[str, int] = {}
        self._column: LabelColumn | None = None
        self._known = (0, 0)
        self._node_ids: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    def node_ids(self, column: LabelColumn) -> npt.NDArray[np.int64]:
        """Return, for each value, its id in the nodes' column; 0 for one that no node has.

        *Cost*: proportional to the values when there are new ones of volumes or nodes.
        """
        known = (len(self.ids), len(column.values))
        if column is not self._column or known != self._known:
            found = (column.id_of(value) or 0 for value in self.ids)
            self._node_ids = np.fromiter(found, dtype=np.int64, count=len(self.ids))
            self._column, self._known = column, known
        return self._node_ids


class FreeVolumes(Value, frozen=True):
    """The free volumes of a class at one moment.

    Attributes
    ----------
    keys
        Size and number of each row, ascending: the smallest first, of one size the longest known.
    volumes
        The volume of each row.
    shape_ids, demand_ids
        int32 (n_volumes,): into ``shapes`` and ``demands``.
    values_by_label
        For each label that volumes demand one value of: int32 (n_volumes,), the number of the
        value, -1 where a volume does not.
    shapes, demands, labels
        The distinct ones; only ever grow.
    """

    keys: list[RowKey]
    volumes: list[PersistentVolume]
    shape_ids: npt.NDArray[np.int32]
    demand_ids: npt.NDArray[np.int32]
    values_by_label: dict[str, npt.NDArray[np.int32]]
    shapes: list[Shape]
    demands: list[NodeSelectorMatcher | None]
    labels: dict[str, LabelDemands]

    def __len__(self) -> int:
        return len(self.volumes)


class FreeVolumesByClass:
    """The free volumes of each requested class.

    Notes
    -----
    *Concurrency*: confined to the scheduling thread.
    """

    def __init__(self) -> None:
        self._storage: Storage | None = None
        self._version = 0
        self._tables: dict[str, _Table] = {}

    def of_class(self, storage: Storage, class_name: str) -> FreeVolumes:
        """Return the free volumes of a class, with assumed changes.

        The returned value does not change later.

        *Cost*: proportional to what has changed since the last call, and to the rows of the
        classes where something has; proportional to all volumes of the class the first time.
        """
        self._follow(storage)
        table = self._tables.get(class_name)
        if table is None or table.is_overgrown:
            if len(self._tables) >= MAX_CLASSES:
                self._tables.clear()
            table = self._tables[class_name] = _Table(
                each for each in storage.volumes_of_class(class_name) if each.spec.claim_ref is None
            )
        return table.free()

    def _follow(self, storage: Storage) -> None:
        if storage is not self._storage:
            self._storage = storage
            self._tables.clear()
        version, changed = storage.volumes.changes(self._version)
        self._version = version
        if changed is None:
            self._tables.clear()
        elif changed and self._tables:
            for name in changed:
                self._take(storage.volumes.get(name), name)

    def _take(self, volume: PersistentVolume | None, name: str) -> None:
        is_unclaimed = volume is not None and volume.spec.claim_ref is None
        class_name = volume_class(volume) if volume is not None and is_unclaimed else None
        for each, table in self._tables.items():
            table.put(name, volume if each == class_name else None)


class _Table:
    """The rows of one class, changed by copying, so that returned values do not change."""

    def __init__(self, volumes: Iterable[PersistentVolume]) -> None:
        self._shape_ids: dict[Shape, int] = {}
        self._demand_ids: dict[NodeSelectorMatcher | None, int] = {None: ANYWHERE}
        self._shapes: list[Shape] = []
        self._demands: list[NodeSelectorMatcher | None] = [None]
        self._labels: dict[str, LabelDemands] = {}
        self._next = 0
        self._rows: dict[str, tuple[RowKey, PersistentVolume]] = {}
        self._pending: dict[str, PersistentVolume | None] = {}
        self._free: FreeVolumes | None = None
        for volume in volumes:
            self._number(volume)

    @property
    def is_overgrown(self) -> bool:
        """Whether most of the stored distinct demands are those of deleted volumes."""
        values = sum(len(demands.ids) for demands in self._labels.values())
        return values + len(self._demands) + len(self._shapes) > 2 * len(self._rows) + _MIN_DISTINCT

    def put(self, name: str, volume: PersistentVolume | None) -> None:
        """Update a volume to its current state; None for a volume that is not free in the class."""
        if volume is not None or name in self._rows:
            self._pending[name] = volume

    def free(self) -> FreeVolumes:
        """Return the current rows."""
        pending, self._pending = self._pending, {}
        if self._free is not None and len(pending) > _FEW:
            self._free = None
        for name, volume in pending.items():
            known = self._rows.pop(name, None)
            if known is not None and self._free is not None:
                self._free = _without(self._free, known[0])
            if volume is not None:
                key = self._number(volume)
                if self._free is not None:
                    self._free = self._with(self._free, key, volume)
        if self._free is None:
            self._free = self._build()
        return self._free

    def _number(self, volume: PersistentVolume) -> RowKey:
        self._next += 1
        key = (size_of(volume), self._next)
        self._rows[volume.metadata.name] = (key, volume)
        return key

    def _build(self) -> FreeVolumes:
        ordered = sorted(self._rows.values(), key=lambda row: row[0])
        volumes = [volume for _, volume in ordered]
        coded = [self._code(volume) for volume in volumes]
        n = len(volumes)
        values_by_label = {key: np.full(n, -1, dtype=np.int32) for key in self._labels}
        for row, (_, _, label, value) in enumerate(coded):
            if label:
                values_by_label[label][row] = value
        return FreeVolumes(
            [key for key, _ in ordered],
            volumes,
            np.array([code[0] for code in coded], dtype=np.int32),
            np.array([code[1] for code in coded], dtype=np.int32),
            values_by_label,
            self._shapes,
            self._demands,
            self._labels,
        )

    def _with(self, free: FreeVolumes, key: RowKey, volume: PersistentVolume) -> FreeVolumes:
        shape, demand, label, value = self._code(volume)
        row = bisect_left(free.keys, key)
        n = len(free)
        values_by_label = {
            each: np.insert(values, row, value if each == label else -1)
            for each, values in free.values_by_label.items()
        }
        if label and label not in values_by_label:
            values_by_label[label] = np.full(n + 1, -1, dtype=np.int32)
            values_by_label[label][row] = value
        keys = free.keys.copy()
        insort(keys, key)
        return replace(
            free,
            keys=keys,
            volumes=[*free.volumes[:row], volume, *free.volumes[row:]],
            shape_ids=np.insert(free.shape_ids, row, shape),
            demand_ids=np.insert(free.demand_ids, row, demand),
            values_by_label=values_by_label,
        )

    def _code(self, volume: PersistentVolume) -> tuple[int, int, str, int]:
        """Return the ids of shape and demand, and the label and the value's number, if any."""
        shape = shape_of(volume)
        shape_id = self._shape_ids.setdefault(shape, len(self._shapes))
        if shape_id == len(self._shapes):
            self._shapes.append(shape)
        matcher = reachability.compiled_affinity(volume.spec.node_affinity)
        if matcher is not None and len(matcher.terms) == 1:
            (term,) = matcher.terms
            if len(term.requirements) == 1:
                (requirement,) = term.requirements
                if requirement.operator == IN and len(requirement.values) == 1:
                    demands = self._labels.get(requirement.key)
                    if demands is None:
                        demands = self._labels[requirement.key] = LabelDemands(requirement.key)
                    (value,) = requirement.values
                    number = demands.ids.setdefault(value, len(demands.ids))
                    return shape_id, BY_LABEL, requirement.key, number
        demand_id = self._demand_ids.setdefault(matcher, len(self._demands))
        if demand_id == len(self._demands):
            self._demands.append(matcher)
        return shape_id, demand_id, "", -1


def _without(free: FreeVolumes, key: RowKey) -> FreeVolumes:
    row = bisect_left(free.keys, key)
    return replace(
        free,
        keys=[*free.keys[:row], *free.keys[row + 1 :]],
        volumes=[*free.volumes[:row], *free.volumes[row + 1 :]],
        shape_ids=np.delete(free.shape_ids, row),
        demand_ids=np.delete(free.demand_ids, row),
        values_by_label={
            each: np.delete(values, row) for each, values in free.values_by_label.items()
        },
    )
