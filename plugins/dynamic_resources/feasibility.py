"""Conditions without which a search of devices cannot succeed, whatever it takes.

A search that tries everything takes exponential time to find nothing. Most of these searches are
hopeless for a reason that is cheap to see: a request has no device left, several requests together
want more devices than there are, no value of an attribute has enough devices. kube-scheduler does
not look for such reasons; what is found is the same, since only parts of the search without a
result are left out. A search that may end with an error has to be carried out.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Final, NamedTuple

from plugins.dynamic_resources.candidates import alternatives_of
from plugins.dynamic_resources.constraints import UNKNOWN, MatchAttribute

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

    from plugins.dynamic_resources.candidates import Candidates, RequestsOfClaims
    from plugins.dynamic_resources.constraints import AttributeKey
    from plugins.dynamic_resources.pooled_device import PooledDevice
    from plugins.dynamic_resources.pools import NodePools
    from plugins.dynamic_resources.taken_devices import TakenDevices

_MAX_SUBSETS_OF: Final = 6
"""Requests of which all subsets are compared with their devices: 63 of them."""

_MAX_VALUES: Final = 64
"""Values of an attribute that are tried; a node with more of them is left to the search."""

_MAX_PAIRS: Final = 2048
"""Pairs of a request and a device that are looked at again in the middle of a search: 10 ms."""


class _Wish(NamedTuple):
    """An alternative of a request, and the devices that it can have now, as bits."""

    candidates: Candidates
    devices: int


class _Demand(NamedTuple):
    """A number of devices, of some."""

    wanted: int
    devices: int


class Feasibility:
    """What can be said of the rest of a search from the devices that are left.

    Parameters
    ----------
    requests
        The requests of the claims. Whether they match is known for all devices that are free.
    pools
        The devices of the node.
    taken
        The devices that are taken, at first none.

    Notes
    -----
    *Concurrency*: confined to one thread.
    """

    def __init__(self, requests: RequestsOfClaims, pools: NodePools, taken: TakenDevices) -> None:
        self._requests = requests
        self._pools = pools
        self._all = pools.devices
        self._shared = _bits(i for i, device in enumerate(self._all) if device.is_shared)
        self._usable = {
            each: self._first_devices(each, taken)
            for of_claim in requests
            for request in of_claim
            for each in alternatives_of(request)
        }
        self.is_cheap = len(self._all) * len(self._usable) <= _MAX_PAIRS
        """Whether it can be asked often."""

    # --- devices that are alike ---------------------------------------------------------------

    def looks(self, taken: TakenDevices) -> Mapping[PooledDevice, Hashable]:
        """Return for each device a value that is equal for those which these claims see alike."""
        seen: dict[Hashable, int] = {}
        constraints = [each for of_claim in taken.constraints for each in of_claim]
        looks: dict[PooledDevice, Hashable] = {}
        for index, device in enumerate(self._all):
            key = (
                tuple(usable >> index & 1 for usable in self._usable.values()),
                tuple(each.value_of(device) for each in constraints),
                device.capacity_look,
                device.is_shared,
                device.consumption_look,
            )
            looks[device] = seen.setdefault(key, len(seen))
        return looks

    # --- conditions ---------------------------------------------------------------------------

    def is_hopeless(self, taken: TakenDevices, claim: int = 0, index: int = 0) -> bool:
        """Return whether the requests from one on cannot be satisfied beside what is taken.

        Parameters
        ----------
        claim, index
            The first request without devices.

        Notes
        -----
        *Cost*: some microseconds for each request and device.
        """
        wishes = [
            [_Wish(each, self._devices_now(each, taken)) for each in alternatives_of(request)]
            for number, of_claim in enumerate(self._requests[claim:])
            for request in (of_claim if number else of_claim[index:])
        ]
        if _cannot_be(wishes, self._shared, lambda wish: wish.devices):
            return True
        return any(
            self._has_no_value(wishes, number, constraint)
            for number, constraints in enumerate(taken.constraints[claim:], claim)
            for constraint in constraints
            if isinstance(constraint, MatchAttribute) and not constraint.has_devices
        )

    def _has_no_value(
        self, wishes: Sequence[Sequence[_Wish]], claim: int, constraint: MatchAttribute
    ) -> bool:
        """Return whether too few devices have the same value, whichever it is."""

        def is_bound(wish: _Wish) -> bool:
            request = wish.candidates.request
            return request.claim == claim and constraint.is_about(request.name, request.alternative)

        bound = 0
        for of_request in wishes:
            for wish in of_request:
                bound |= wish.devices if is_bound(wish) else 0
        by_value: dict[AttributeKey, int] = {}
        for index in _indices(bound):
            value = constraint.value_of(self._all[index])
            if value is not None:
                by_value[value] = by_value.get(value, 0) | 1 << index
        if UNKNOWN in by_value or not 0 < len(by_value) <= _MAX_VALUES:
            # Of a type that is not known, a device is taken if it is the only one.
            return False

        def cannot_be(with_value: int) -> bool:
            return _cannot_be(
                wishes,
                self._shared,
                lambda wish: wish.devices & with_value if is_bound(wish) else wish.devices,
            )

        return all(map(cannot_be, by_value.values()))

    # --- devices ------------------------------------------------------------------------------

    def _first_devices(self, candidates: Candidates, taken: TakenDevices) -> int:
        """Return the devices that a request could have if it were the only one."""
        request, pool_at = candidates.request, self._pools.pool_at
        if request.is_all:
            return _bits(candidates.all_devices)
        return _bits(
            index
            for index, device in enumerate(self._all)
            if candidates.matches[index]
            and not taken.is_in_use(request, device)
            and taken.admits(request, device, pool_at(index))
        )

    def _devices_now(self, candidates: Candidates, taken: TakenDevices) -> int:
        request, pool_at = candidates.request, self._pools.pool_at
        return _bits(
            index
            for index in _indices(self._usable[candidates])
            if not taken.is_in_use(request, self._all[index])
            and taken.admits(request, self._all[index], pool_at(index))
        )


def _cannot_be(
    wishes: Iterable[Sequence[_Wish]], shared: int, devices_of: Callable[[_Wish], int]
) -> bool:
    """Return whether a request has too few devices, or several requests have together.

    All requests of a claim have different devices, and so have all of the pod but an admin's.
    """
    of_claims: dict[int, list[_Demand]] = {}
    ordinary: list[_Demand] = []
    for of_request in wishes:
        fitting = [
            _Demand(wish.candidates.count, devices)
            for wish in of_request
            if _suffices(wish.candidates, devices := devices_of(wish))
        ]
        if not fitting:
            return True
        together = 0
        for each in fitting:
            together |= each.devices
        demand = _Demand(min(each.wanted for each in fitting), together)
        request = of_request[0].candidates.request
        of_claims.setdefault(request.claim, []).append(demand)
        if not request.is_admin:
            ordinary.append(demand)
    return any(
        _are_too_many(some, shared)
        for demands in (ordinary, *of_claims.values())
        for some in _subsets(demands)
    )


def _suffices(candidates: Candidates, devices: int) -> bool:
    if candidates.request.is_all and not candidates.all_devices:
        return False
    return devices.bit_count() >= candidates.count


def _subsets(demands: list[_Demand]) -> Iterator[Sequence[_Demand]]:
    """Yield the demands that are compared with their devices: all subsets of a few.

    Of many, those that want the same or less than each one of them.
    """
    if len(demands) <= _MAX_SUBSETS_OF:
        for size in range(2, len(demands) + 1):
            yield from combinations(demands, size)
        return
    for most in {each.devices for each in demands}:
        yield [each for each in demands if not each.devices & ~most]
    yield demands


def _are_too_many(demands: Sequence[_Demand], shared: int) -> bool:
    """Return whether there are more wanted than devices for them.

    A shared device counts once for each request, all others once. By Hall's theorem this decides,
    if it is asked for all subsets.
    """
    wanted = sum(each.wanted for each in demands)
    together, shares = 0, 0
    for each in demands:
        together |= each.devices
        shares += (each.devices & shared).bit_count()
    return wanted > (together & ~shared).bit_count() + shares


def _bits(indices: Iterable[int]) -> int:
    bits = 0
    for index in indices:
        bits |= 1 << index
    return bits


def _indices(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
