"""Finds devices for the claims of a pod, on one node after the other.

*Source*: k8s.io/dynamic-resource-allocation 0.36, structured/internal/incubating,
allocator_incubating.go. Of the allocators in that module it is the one that kube-scheduler 1.36
uses with the default feature gates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugins.dynamic_resources.deadline import NO_DEADLINE
from plugins.dynamic_resources.errors import InvalidPoolsError
from plugins.dynamic_resources.like_nodes import Solution
from plugins.dynamic_resources.requests import RequestReader
from plugins.dynamic_resources.results import allocation_result, with_new_shares
from plugins.dynamic_resources.search import Search
from plugins.dynamic_resources.taken_devices import DevicesInUse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cache.allocated_devices import AllocatedState
    from cache.device_objects import AllocationResult, DeviceClass, ResourceClaim
    from cache.objects import Node
    from plugins.dynamic_resources.deadline import Deadline
    from plugins.dynamic_resources.kept_results import ClaimResults
    from plugins.dynamic_resources.like_nodes import NodeLook
    from plugins.dynamic_resources.pools import NodePools, PoolIndex
    from plugins.dynamic_resources.requests import Request
    from plugins.dynamic_resources.selector_cache import SelectorCache
    from plugins.dynamic_resources.taken_devices import Taken


class Allocator:
    """Finds devices for the claims of one pod in one attempt.

    Parameters
    ----------
    claims
        The claims without an allocation, in the order of the pod.
    allocated
        The devices in use; never changed.
    pools
        The pools of nodes.
    classes
        Returns a class by name.
    selectors
        The selectors in use.
    share_ids
        Returns a new random id for a share of a device.

    Notes
    -----
    *Concurrency*: confined to one thread.
    """

    def __init__(
        self,
        claims: Sequence[ResourceClaim],
        allocated: AllocatedState,
        pools: PoolIndex,
        classes: Callable[[str], DeviceClass | None],
        selectors: SelectorCache,
        share_ids: Callable[[], str],
    ) -> None:
        reader = RequestReader(classes, selectors)
        self.requests = tuple(reader.read(index, claim) for index, claim in enumerate(claims))
        """What each claim asks for."""
        self._pools = pools
        self._in_use = DevicesInUse(allocated)
        self._share_ids = share_ids
        self._common: dict[NodePools, tuple[AllocationResult, ...] | None] = {}
        self._kept = pools.kept.of(
            claims, [classes(name) for name in _class_names(claims)], allocated
        )

    def allocate(
        self, node: Node, deadline: Deadline = NO_DEADLINE, *, prune: bool = True
    ) -> tuple[AllocationResult, ...] | None:
        """Return an allocation for each claim, or None when the node lacks devices.

        Parameters
        ----------
        deadline
            Is asked at each step of the search.
        prune
            Whether devices are skipped that cannot do better than others before them. What is
            found does not depend on it.

        Raises
        ------
        SearchTimeoutError, SearchCancelledError
            When the deadline has passed.
        InvalidPoolsError
            When nothing was found, and a pool is invalid.
        AllocationError
            When the claims cannot be allocated for another reason that is no lack of devices.
        AttemptBudgetExceededError
            When the attempt has used up its budget.

        Notes
        -----
        *Cost*: proportional to the devices of the node, as long as the first devices that match
        can be taken. At worst it grows exponentially with the number of requested devices. On a
        node that was searched for the same requests before and has not changed since, a
        microsecond or two: see :mod:`plugins.dynamic_resources.kept_results`.
        """
        pools = self._pools.pools(node)
        if pools in self._common:
            results = self._common[pools]
        else:
            results = self._find(node, pools, deadline, prune)
            if pools.is_common:
                self._common[pools] = results
        if results is None and pools.has_invalid:
            raise InvalidPoolsError
        return results

    def _find(
        self, node: Node, pools: NodePools, deadline: Deadline, prune: bool
    ) -> tuple[AllocationResult, ...] | None:
        """Return what was found for an earlier pod, or search."""
        kept = self._kept if prune else None
        name = node.metadata.name
        is_known, results = (False, None) if kept is None else kept.get(name, pools)
        if is_known:
            results = None if results is None else with_new_shares(results, self._share_ids)
        else:
            results = self._solve(kept, node, pools, deadline, prune)
            if kept is not None:
                kept.put(name, pools, results)
        return results

    def _solve(
        self,
        kept: ClaimResults | None,
        node: Node,
        pools: NodePools,
        deadline: Deadline,
        prune: bool,
    ) -> tuple[AllocationResult, ...] | None:
        """Return what was found on a node that is alike, or search."""
        look: NodeLook | None = None
        name = node.metadata.name
        if kept is not None:
            look = kept.like_nodes.look(name, pools, self.requests, self._in_use.allocated)
        if kept is not None and look is not None:
            is_known, solution = kept.like_nodes.get(look)
            if is_known:
                if solution is None:
                    return None
                return self._results(solution.chosen, solution.on(pools), name)
        search = Search(self.requests, node, pools, self._in_use, deadline, prune)
        is_found = search.run()
        if kept is not None and look is not None:
            kept.like_nodes.put(look, Solution.of(search, pools) if is_found else None)
        if not is_found:
            return None
        chosen = [search.chosen(index) for index in range(len(self.requests))]
        return self._results(chosen, search.taken, name)

    def _results(
        self,
        chosen: Sequence[Sequence[Request]],
        taken: Sequence[Sequence[Taken]],
        node_name: str,
    ) -> tuple[AllocationResult, ...]:
        return tuple(
            allocation_result(each.claim, requests, devices, node_name, self._share_ids)
            for each, requests, devices in zip(self.requests, chosen, taken, strict=True)
        )


def _class_names(claims: Sequence[ResourceClaim]) -> Iterator[str]:
    for claim in claims:
        for request in claim.spec.devices.requests:
            if request.exactly is not None:
                yield request.exactly.device_class_name
            for alternative in request.first_available:
                yield alternative.device_class_name
