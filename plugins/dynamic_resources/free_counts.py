"""The free devices for one kind of request, by node: each pool is counted once.

Nodes that reach the same pools form a group and have one number in common.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Container

    import numpy.typing as npt

    from cache.device_objects import DeviceId, PoolId
    from plugins.dynamic_resources.pools import NodePools, Pool

SEARCH: Final = -1
"""Stands for the number of free devices on a node that has to be searched."""

_ROW_BYTES: Final = 500
"""Estimate for a row whose node reaches a pool of its own."""

_DEVICE_BYTES: Final = 16
"""Estimate for a device that matches: its identity lives elsewhere as long as the device does."""

Rows: TypeAlias = set[int]


class Part:
    """The devices of one pool that match, as the nodes of some groups reach them.

    Attributes
    ----------
    devices
        In use or not; None where a node that reaches the pool has to be searched.
    free
        How many of them were free when they were counted last.
    """

    __slots__ = ("devices", "free", "groups", "pool")

    def __init__(
        self, pool: Pool, devices: tuple[DeviceId, ...] | None, in_use: Container[DeviceId]
    ) -> None:
        self.pool = pool
        self.devices = devices
        self.free = 0
        self.groups: list[_Group] = []
        self.recount(in_use)

    def recount(self, in_use: Container[DeviceId]) -> int:
        """Return how many more devices are free than there were."""
        before = self.free
        self.free = sum(device not in in_use for device in self.devices or ())
        return self.free - before


class _Group:
    """Rows that reach the same pools, and have the same number of free devices."""

    __slots__ = ("free", "is_unsure", "parts", "rows")

    def __init__(self, parts: tuple[Part, ...], *, is_unsure: bool) -> None:
        self.parts = parts
        self.is_unsure = is_unsure
        self.rows: Rows | tuple[int] = set()
        self.free = sum(part.free for part in parts)


class FreeCounts:
    """The free devices for one kind of request.

    Attributes
    ----------
    free
        int32, by row: the free devices, or ``SEARCH``.
    unknown
        The rows of which the devices have to be looked up.
    stale
        The parts to be counted again.
    """

    __slots__ = ("_common", "_group_of", "_parts_of", "bytes", "free", "stale", "unknown")

    def __init__(self, n_rows: int) -> None:
        self.free: npt.NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self.unknown: Rows = set()
        self.stale: set[Part] = set()
        self.bytes = 0
        self._group_of: list[_Group | None] = []
        self._common: dict[NodePools, _Group] = {}
        self._parts_of: dict[PoolId, list[Part]] = {}
        self.resize(n_rows)
        self.unknown.update(range(n_rows))

    def resize(self, n_rows: int) -> None:
        """Make room for more rows, without devices."""
        more = n_rows - len(self.free)
        if more > 0:
            self.free = np.concatenate([self.free, np.zeros(more, dtype=np.int32)])
            self._group_of += [None] * more
            self.bytes += _ROW_BYTES * more

    def has_changed(self, pool: PoolId) -> None:
        """Count a pool again, because one of its devices was taken or freed."""
        self.stale.update(self._parts_of.get(pool, ()))

    def all_have_changed(self) -> None:
        """Count all pools again."""
        for parts in self._parts_of.values():
            self.stale.update(parts)

    def part(self, pool: Pool) -> Part | None:
        """Return the matches in a pool that other nodes reach as well, if they are known."""
        return next((each for each in self._parts_of.get(pool.id, ()) if each.pool is pool), None)

    def join(self, row: int, pools: NodePools) -> bool:
        """Enter a row into the group of its pools; return False if there is none yet."""
        group = self._common.get(pools) if pools.is_common else None
        if group is None:
            return False
        if self._group_of[row] is not group:
            self._enter(row, group)
        return True

    def enter(self, row: int, pools: NodePools | None, parts: tuple[Part, ...]) -> None:
        """Enter a row with its devices; ``pools`` is None where they cannot be told."""
        is_unsure = pools is None or pools.has_invalid or any(p.devices is None for p in parts)
        group = _Group(parts, is_unsure=is_unsure)
        self._enter(row, group)
        if pools is not None and pools.is_common:
            self._common[pools] = group
        else:
            group.rows = (row,)
        for part in parts:
            if not part.groups:
                self._parts_of.setdefault(part.pool.id, []).append(part)
                self.bytes += _DEVICE_BYTES * len(part.devices or ())
            part.groups.append(group)

    def leave(self, row: int) -> None:
        """Forget what is known of a row."""
        group = self._group_of[row]
        self._group_of[row] = None
        self.free[row] = 0
        if group is None:
            return
        if isinstance(group.rows, set):
            group.rows.discard(row)
            if group.rows:
                return
        for part in group.parts:
            part.groups.remove(group)
            if not part.groups:
                self._drop(part)

    def forget_unused(self) -> None:
        """Forget the pools that no node reaches any more."""
        self._common = {pools: group for pools, group in self._common.items() if group.rows}

    def recount(self, in_use: Container[DeviceId]) -> None:
        """Count the stale parts."""
        while self.stale:
            part = self.stale.pop()
            grown = part.recount(in_use)
            if not grown:
                continue
            for group in part.groups:
                group.free += grown
                if not group.is_unsure:
                    self.free[list(group.rows)] = group.free

    def _enter(self, row: int, group: _Group) -> None:
        self.leave(row)
        self._group_of[row] = group
        if isinstance(group.rows, set):
            group.rows.add(row)
        self.free[row] = SEARCH if group.is_unsure else group.free

    def _drop(self, part: Part) -> None:
        self.bytes -= _DEVICE_BYTES * len(part.devices or ())
        self.stale.discard(part)
        parts = self._parts_of[part.pool.id]
        parts.remove(part)
        if not parts:
            del self._parts_of[part.pool.id]
