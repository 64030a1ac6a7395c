"""The results of searches, kept for other pods that ask for the same.

The pods of one template have claims that differ in their names only. What is found on a node
depends on the requests, on the classes, and on the pools that the node can reach with the devices
in use there; of all nodes, only those are searched again whose pools have changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from cache.ages import AGES
from cache.device_objects import PoolId
from plugins.dynamic_resources.like_nodes import LikeNodes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cache.allocated_devices import AllocatedState
    from cache.device_objects import AllocationResult, DeviceClass, DeviceId, ResourceClaim
    from plugins.dynamic_resources.pools import NodePools

MAX_RESULTS: Final = 40_000
"""Results that are kept, of some 1.5 kB each: 60 MB, and more than the nodes of any cluster."""

_MAX_POOLS: Final = 1 << 17
"""Pools whose last change is remembered; beyond it everything is forgotten, as after a restart."""

_encode = msgspec.msgpack.Encoder().encode


class ClaimResults:
    """What was found for the claims of one template, by node and for nodes that are alike.

    Attributes
    ----------
    like_nodes
        What was found on nodes that these claims cannot tell apart.

    Notes
    -----
    *Concurrency*: confined to one thread.
    """

    __slots__ = ("_by_node", "_kept", "age", "classes", "like_nodes", "weight")

    def __init__(self, kept: KeptResults, classes: tuple[DeviceClass | None, ...]) -> None:
        self._kept = kept
        self.classes = classes
        self.age = AGES.number
        """The one in which a pod had such claims last."""
        self.weight = 0
        """What all of it weighed, in results, when one was put in last."""
        self.like_nodes = LikeNodes()
        self._by_node: dict[str, tuple[NodePools, int, tuple[AllocationResult, ...] | None]] = {}

    def get(
        self, node_name: str, pools: NodePools
    ) -> tuple[bool, tuple[AllocationResult, ...] | None]:
        """Return whether the result on a node is known, and the result.

        Parameters
        ----------
        pools
            The pools that the node can reach now.
        """
        known = self._by_node.get(node_name)
        if known is None or known[0] is not pools or self._kept.have_changed(pools, known[1]):
            return False, None
        return True, known[2]

    def put(
        self, node_name: str, pools: NodePools, results: tuple[AllocationResult, ...] | None
    ) -> None:
        """Keep the result on a node."""
        if len(self._by_node) >= MAX_RESULTS:
            # Most of the nodes are gone: no cluster is so large.
            self._by_node.clear()
            self.like_nodes.clear()
        self._by_node[node_name] = (pools, self._kept.version, results)
        before, self.weight = self.weight, len(self._by_node) + self.like_nodes.weight
        self._kept.grown(self.weight - before)


class KeptResults:
    """What was found for claims lately.

    Attributes
    ----------
    version
        The version of the devices in use.

    Notes
    -----
    *Concurrency*: confined to one thread.

    *Cost*: of a result that is known, a microsecond. Only verdicts are kept, never errors.
    """

    def __init__(self, max_results: int = MAX_RESULTS) -> None:
        self._max_results = max_results
        self._n_results = 0
        self._by_claims: dict[bytes, ClaimResults] = {}
        self._changed: dict[PoolId, int] = {}
        self._allocated: AllocatedState | None = None
        self._age = AGES.number
        self.version = 0

    def __len__(self) -> int:
        return self._n_results

    def follow(
        self,
        allocated: AllocatedState,
        changes: Callable[[int], tuple[int, frozenset[DeviceId] | None]],
    ) -> None:
        """Use the results for these devices in use from now on.

        Parameters
        ----------
        allocated
            Read before ``changes`` is called.
        changes
            Returns a version, and the devices taken or freed after another version; see
            :meth:`cache.devices.Devices.device_changes`.
        """
        if self._age != AGES.number:
            self._age = AGES.number
            self._drop_old()
        version, devices = changes(self.version)
        if devices is None or len(self._changed) > _MAX_POOLS:
            self.clear()
            devices = frozenset()
        for device in devices:
            self._changed[PoolId(device.driver, device.pool)] = version
        self._allocated = allocated
        # What is not yet in ``allocated`` counts as a change after it.
        self.version = min(version, allocated.version)

    def clear(self) -> None:
        """Forget all results."""
        self._by_claims.clear()
        self._changed.clear()
        self._n_results = 0

    def of(
        self,
        claims: Iterable[ResourceClaim],
        classes: Sequence[DeviceClass | None],
        allocated: AllocatedState,
    ) -> ClaimResults | None:
        """Return the results for claims with the same requests as these.

        None means that nothing can be kept, because the devices in use are not those that
        :meth:`follow` was called with.
        """
        if allocated is not self._allocated:
            return None
        key = b"".join(_encode(claim.spec) for claim in claims)
        known = self._by_claims.pop(key, None)
        if known is None or any(
            old is not new for old, new in zip(known.classes, classes, strict=True)
        ):
            if known is not None:
                self._n_results -= known.weight
            known = ClaimResults(self, tuple(classes))
        # The last place is that of the claims that were used last.
        self._by_claims[key] = known
        known.age = AGES.number
        return known

    def have_changed(self, pools: NodePools, since: int) -> bool:
        """Return whether devices of pools were taken or freed after a version."""
        changed = self._changed
        return any(changed.get(pool.id, 0) > since for pool in pools.pools)

    def grown(self, count: int) -> None:
        """Account for new results, and drop those that were not used for longest."""
        self._n_results += count
        while self._n_results > self._max_results and len(self._by_claims) > 1:
            oldest = next(iter(self._by_claims))
            self._n_results -= self._by_claims.pop(oldest).weight

    def _drop_old(self) -> None:
        """Drop what no pod has asked for during the whole previous age."""
        for key, known in list(self._by_claims.items()):
            if known.age < AGES.number - 1:
                self._n_results -= self._by_claims.pop(key).weight
