"""Nodes that a search cannot tell apart: what was found on one of them holds for the others.

The nodes of a fleet publish the same devices, each in a pool of its own. Two nodes are alike for
the claims of a pod if their devices agree, one after the other, in all that these claims ask
about, and if the same of them are in use. Of such nodes one is searched; on the others the devices
at the same places are taken.

Only nodes are compared whose pools are usable and not reached by other nodes. Then no device, rule
or counter elsewhere has a say in what is found, and no error can name a pool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from plugins.dynamic_resources.constraints import constraint_of
from plugins.dynamic_resources.errors import AllocationError
from plugins.dynamic_resources.requests import PrioritizedList
from plugins.dynamic_resources.taken_devices import Taken

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
    from fractions import Fraction

    from cache.allocated_devices import AllocatedState
    from plugins.dynamic_resources.consumable_capacity import Amount
    from plugins.dynamic_resources.pooled_device import PooledDevice
    from plugins.dynamic_resources.pools import CounterState, NodePools, Pool
    from plugins.dynamic_resources.requests import ClaimRequests, Request
    from plugins.dynamic_resources.search import Search

_MAX_SHAPES: Final = 256
"""Shapes of nodes for claims of one template; where there are more, few nodes are alike."""

_MAX_SOLUTIONS: Final = 1024
"""Solutions for claims of one template: as many patterns of devices in use."""

_DEVICES_A_RESULT: Final = 4
"""Devices of a shape that weigh as much as a result."""

_NOTHING: Final[Mapping[str, int | Fraction]] = {}

_Usage: TypeAlias = "tuple[int, bool, bool, frozenset[tuple[str, int | Fraction]]]"

NodeLook: TypeAlias = "tuple[int, tuple[_Usage, ...]]"
"""Equal for nodes that are alike: the number of their shape, and their devices in use."""


class _Pick(NamedTuple):
    """A device that was taken, by its place among the devices of the node."""

    request: Request
    place: int
    consumed: Mapping[str, Amount]


class Solution(NamedTuple):
    """What a search has found, without the names of devices.

    Attributes
    ----------
    chosen
        The requests of each claim, with the chosen alternative of each prioritized list.
    picks
        The devices of each claim.
    """

    chosen: tuple[Sequence[Request], ...]
    picks: tuple[tuple[_Pick, ...], ...]

    @classmethod
    def of(cls, search: Search, pools: NodePools) -> Solution:
        """Return what a search has found on a node with these pools."""
        place_of = {device: place for place, device in enumerate(pools.devices)}
        picks = tuple(
            tuple(_Pick(each.request, place_of[each.device], each.consumed) for each in of_claim)
            for of_claim in search.taken
        )
        return cls(tuple(map(search.chosen, range(len(picks)))), picks)

    def on(self, pools: NodePools) -> list[list[Taken]]:
        """Return the devices of each claim on a node that is alike."""
        devices = pools.devices
        return [
            [Taken(each.request, devices[each.place], each.consumed, None) for each in of_claim]
            for of_claim in self.picks
        ]


class LikeNodes:
    """What was found for the claims of one template on nodes that are alike.

    Notes
    -----
    *Concurrency*: confined to one thread.

    *Cost*: for each node some microseconds for each of its devices, once; then a microsecond for
    each of them when something has changed there.
    """

    __slots__ = ("_numbers", "_shapes", "_solutions", "weight")

    def __init__(self) -> None:
        self.weight = 0
        """What all of it weighs, in results of :mod:`plugins.dynamic_resources.kept_results`."""
        self._numbers: dict[Hashable, int] = {}
        self._shapes: dict[str, tuple[NodePools, int | None]] = {}
        self._solutions: dict[NodeLook, Solution | None] = {}

    def look(
        self,
        node_name: str,
        pools: NodePools,
        claims: Sequence[ClaimRequests],
        allocated: AllocatedState,
    ) -> NodeLook | None:
        """Return what tells a node apart from others, or None for one that has to be searched."""
        known = self._shapes.get(node_name)
        if known is None or known[0] is not pools:
            known = self._shapes[node_name] = (pools, self._number(pools, claims))
        return None if known[1] is None else (known[1], _usage(pools.devices, allocated))

    def _number(self, pools: NodePools, claims: Sequence[ClaimRequests]) -> int | None:
        shape = _shape(pools, claims)
        if shape is None:
            return None
        number = self._numbers.get(shape)
        if number is None and len(self._numbers) < _MAX_SHAPES:
            number = self._numbers[shape] = len(self._numbers)
            self.weight += 1 + len(pools.devices) // _DEVICES_A_RESULT
        return number

    def get(self, look: NodeLook) -> tuple[bool, Solution | None]:
        """Return whether the result on such nodes is known, and the result."""
        return look in self._solutions, self._solutions.get(look)

    def put(self, look: NodeLook, solution: Solution | None) -> None:
        """Keep the result on such nodes."""
        if len(self._solutions) >= _MAX_SOLUTIONS:
            self.weight -= len(self._solutions)
            self._solutions.clear()
        self.weight += look not in self._solutions
        self._solutions[look] = solution

    def clear(self) -> None:
        """Forget everything."""
        self.weight = 0
        self._numbers.clear()
        self._shapes.clear()
        self._solutions.clear()


# --- what a search sees -----------------------------------------------------------------------


def _shape(pools: NodePools, claims: Sequence[ClaimRequests]) -> Hashable | None:
    """Return what claims ask about the devices of a node, in order; None if that does not do."""
    if not all(map(_stands_alone, pools.pools)):
        return None
    requests = tuple(_requests(claims))
    values = []
    for each in (each for claim in claims for each in claim.claim.spec.devices.constraints):
        constraint = constraint_of(each)
        if constraint is None:
            return None
        values.append(constraint.value_of)
    try:
        return tuple(
            (
                pool.id.driver,
                None if pool.counters is None else _amounts(pool.counters),
                tuple(_seen(device, requests, values) for device in pool.devices),
            )
            for pool in pools.pools
        )
    except AllocationError:
        # A selector fails; whether that matters depends on what is tried before.
        return None


def _requests(claims: Sequence[ClaimRequests]) -> Iterator[Request]:
    for claim in claims:
        for each in claim.requests:
            if isinstance(each, PrioritizedList):
                yield from each.alternatives
            else:
                yield each


def _seen(
    device: PooledDevice,
    requests: Sequence[Request],
    values: Sequence[Callable[[PooledDevice], Hashable]],
) -> Hashable:
    return (
        tuple([request.matches(device) for request in requests]),
        tuple([value_of(device) for value_of in values]),
        device.capacity_look,
        device.is_shared,
        device.taints,
        device.counters_look,
    )


def _stands_alone(pool: Pool) -> bool:
    """Return whether no other node has a say in what can be taken from a pool."""
    if not pool.is_usable or not pool.is_local or pool.chooses_by_device:
        return False
    if pool.counters is None:
        return True
    own = {id(device.slice) for device in pool.devices}
    return all(id(each) in own for each in pool.counters.slices if each.spec.devices)


def _amounts(counters: CounterState) -> Hashable:
    return tuple(
        (name, tuple(sorted((key, str(each.value)) for key, each in of_one.counters.items())))
        for name, of_one in sorted(counters.sets.items())
    )


def _usage(devices: Sequence[PooledDevice], allocated: AllocatedState) -> tuple[_Usage, ...]:
    """Return the places of the devices in use, and how they are used."""
    alone, shared, consumed = allocated.devices, allocated.shared, allocated.consumed
    found = []
    for place, device in enumerate(devices):
        key = device.id
        if key in alone or key in shared or key in consumed:
            amounts = frozenset(consumed.get(key, _NOTHING).items())
            found.append((place, key in alone, key in shared, amounts))
    return tuple(found)
