"""The search of devices for the claims of a pod on one node.

The search is exhaustive and depth-first: claims in the order of the pod, requests in the order of
the claim, devices in the order of the pools. The first complete solution wins. The devices of one
request are combined, not permuted: each is searched for behind the one before it.

It keeps a stack of its own, whose depth is the number of devices, alternatives and claims, so that
no pod exceeds Python's limit of recursion.

*Source*: k8s.io/dynamic-resource-allocation 0.36, structured/internal/incubating,
allocator_incubating.go (Allocate, allocateOne, validateDeviceRequest).
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from plugins.dynamic_resources.candidates import Candidates, Choice, alternatives_of
from plugins.dynamic_resources.constraints import constraint_of
from plugins.dynamic_resources.errors import AllocationError
from plugins.dynamic_resources.feasibility import Feasibility
from plugins.dynamic_resources.requests import PrioritizedList
from plugins.dynamic_resources.taken_devices import TakenDevices

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from cache.objects import Node
    from plugins.dynamic_resources.constraints import Constraint
    from plugins.dynamic_resources.deadline import Deadline
    from plugins.dynamic_resources.pooled_device import PooledDevice
    from plugins.dynamic_resources.pools import NodePools
    from plugins.dynamic_resources.requests import ClaimRequests, Request
    from plugins.dynamic_resources.taken_devices import DevicesInUse, Taken

MAX_RESULTS: Final = 32
"""Devices of one claim.

*Source*: AllocationResultsMaxSize, k8s.io/api/resource/v1 (0.36)."""


_AT_ONCE: Final = 1024
"""Devices that are looked at between two checks of the deadline: some milliseconds."""


_PATIENCE: Final = 4
"""Devices that are given back before the search looks ahead, which takes longer than a step."""

_NEVER: Final = float("inf")


class Outcome(Enum):
    """How a part of the search ended."""

    FOUND = auto()
    """Everything has devices."""
    FAILED = auto()
    """Nothing was found with the devices that are taken."""
    TOO_MANY = auto()
    """A claim would get more devices than it may have, whichever are taken."""


class _ClaimEnd:
    """Marks on the stack that a claim has all of its devices."""

    __slots__ = ()


class _Place:
    """One device of a request that is searched for.

    Attributes
    ----------
    next
        The index of the next device to try.
    held
        The device that is taken, with its index; None while none is.
    failed
        What could not be told apart from devices with which the rest of the search failed.
    """

    __slots__ = ("candidates", "failed", "held", "held_index", "next", "slot")

    def __init__(self, candidates: Candidates, slot: int, start: int) -> None:
        self.candidates = candidates
        self.slot = slot
        self.next = start
        self.held: Taken | None = None
        self.held_index = 0
        self.failed: set[Hashable] | None = None


class Search:
    """One search.

    Parameters
    ----------
    claims
        The requests of the pod's claims.
    node
        The node.
    pools
        The pools that the node can reach.
    in_use
        The devices that claims use.
    deadline
        Is asked at each step.
    prune
        Whether devices are skipped that cannot be told apart from others that failed, and what
        cannot succeed for a reason that is simple to see. What is found does not depend on it.

    Notes
    -----
    *Concurrency*: confined to one thread; used once.
    """

    def __init__(
        self,
        claims: Sequence[ClaimRequests],
        node: Node,
        pools: NodePools,
        in_use: DevicesInUse,
        deadline: Deadline,
        prune: bool = True,
    ) -> None:
        self._claims = claims
        self._node = node
        self._pools = pools
        self._all = pools.devices
        self._deadline = deadline
        self._requests: list[list[Candidates | Choice]] = []
        self._stack: list[_ClaimEnd | Choice | _Place] = []
        self._prune = prune and _may_prune(claims)
        self._in_use = in_use
        self._devices = TakenDevices(in_use, len(claims))
        self._given_back = 0
        self._patience: float = _PATIENCE if prune else _NEVER
        self._ahead: Feasibility | None = None

    @property
    def taken(self) -> Sequence[Sequence[Taken]]:
        """The devices of each claim, in the order in which they were taken."""
        return self._devices.of_claims

    def chosen(self, claim: int) -> list[Request]:
        """Return the requests of a claim, the chosen alternative of each prioritized list."""
        return [
            each.request if isinstance(each, Candidates) else each.alternatives[each.chosen].request
            for each in self._requests[claim]
        ]

    def run(self) -> bool:
        """Return whether devices were found for all requests.

        Raises
        ------
        AllocationError
            When the claims cannot be allocated for a reason that is no lack of devices.
        """
        for claim in self._claims:
            self._check(claim)
        outcome = self._advance(0, 0)
        while outcome is not Outcome.FOUND:
            if outcome is not None and not self._stack:
                break
            self._deadline.check()
            outcome = self._resume(outcome)
            if self._given_back >= self._patience and self._is_hopeless():
                return False
        if outcome is Outcome.TOO_MANY:
            raise AllocationError("allocation max size exceeded")
        return outcome is Outcome.FOUND

    # --- checks before the search -------------------------------------------------------------

    def _check(self, claim: ClaimRequests) -> None:
        """Check a claim, and find the devices of its requests for all devices."""
        requests: list[Candidates | Choice] = []
        least = 0
        for index, request in enumerate(claim.requests):
            if isinstance(request, PrioritizedList):
                choice = Choice(
                    tuple(self._checked(claim, each, index) for each in request.alternatives)
                )
                least += min(each.count for each in choice.alternatives)
                requests.append(choice)
            else:
                candidates = self._checked(claim, request, index)
                least += candidates.count
                requests.append(candidates)
        if least > MAX_RESULTS:
            raise AllocationError(
                f"claim {claim.text}: number of requested devices {least} exceeds the claim limit "
                f"of {MAX_RESULTS}"
            )
        self._requests.append(requests)
        self._devices.constraints.append(_constraints_of(claim))

    def _checked(self, claim: ClaimRequests, request: Request, index: int) -> Candidates:
        if request.error is not None:
            raise AllocationError(request.error)
        candidates = Candidates(request, index, len(self._all))
        if request.is_all:
            candidates.all_devices = self._find_all(claim, candidates)
            candidates.count = len(candidates.all_devices)
        return candidates

    def _find_all(self, claim: ClaimRequests, candidates: Candidates) -> list[int]:
        request = candidates.request
        found = []
        index = 0
        for pool in self._pools.pools:
            if not pool.is_usable:
                state = "currently being updated" if pool.is_incomplete else "currently invalid"
                raise AllocationError(
                    f"claim {claim.text}, request {request.alternative or request.name}: asks for "
                    f"all devices, but resource pool {pool.id.driver}/{pool.id.pool} is {state}"
                )
            self._deadline.check()
            for device in pool.devices:
                if self._selects(candidates, index, device) and self._devices.has_capacity(
                    request, device
                ):
                    found.append(index)
                index += 1
        return found

    def _selects(self, candidates: Candidates, index: int, device: PooledDevice) -> bool:
        """Return whether a request can select a device on the node."""
        selects = candidates.matches[index]
        if selects is None:
            rule = device.node_rule
            selects = candidates.request.matches(device) and (
                rule is None or rule.matches(self._node)
            )
            candidates.matches[index] = selects
        return selects

    # --- the search ---------------------------------------------------------------------------

    def _advance(self, claim: int, index: int) -> Outcome | None:
        """Go to a request; None when it lies on the stack, to be resumed."""
        while claim < len(self._requests):
            requests = self._requests[claim]
            if index == len(requests):
                self._stack.append(_ClaimEnd())
                claim, index = claim + 1, 0
                continue
            request = requests[index]
            if self._ahead is not None and self._ahead.is_hopeless(self._devices, claim, index):
                return Outcome.FAILED
            if isinstance(request, Choice):
                request.chosen, request.is_too_many = -1, True
                self._stack.append(request)
                return None
            if request.count or request.request.is_all:
                return self._place(request, 0, 0)
            index += 1
        return Outcome.FOUND

    def _place(self, candidates: Candidates, slot: int, start: int) -> Outcome | None:
        """Go to one device of a request; None when it lies on the stack, to be resumed."""
        if slot >= candidates.count:
            if candidates.request.is_all and not candidates.count:
                return Outcome.FAILED
            return self._advance(candidates.request.claim, candidates.index + 1)
        taken = len(self._devices.of_claims[candidates.request.claim])
        if taken + candidates.count - slot > MAX_RESULTS:
            return Outcome.TOO_MANY
        self._stack.append(_Place(candidates, slot, start))
        return None

    def _resume(self, outcome: Outcome | None) -> Outcome | None:
        """Go on with what lies on top of the stack.

        Parameters
        ----------
        outcome
            How what came after it ended; None when it is new.
        """
        top = self._stack[-1]
        if isinstance(top, _Place):
            return self._resume_place(top, outcome)
        if isinstance(top, Choice):
            return self._resume_choice(top, outcome)
        self._stack.pop()
        # A claim that gets too many devices may get fewer after an earlier claim has got others.
        return Outcome.FAILED

    def _resume_choice(self, choice: Choice, outcome: Outcome | None) -> Outcome | None:
        if outcome is Outcome.FAILED:
            choice.is_too_many = False
        choice.chosen += 1
        if choice.chosen == len(choice.alternatives):
            self._stack.pop()
            return Outcome.TOO_MANY if choice.is_too_many else Outcome.FAILED
        return self._place(choice.alternatives[choice.chosen], 0, 0)

    def _resume_place(self, place: _Place, outcome: Outcome | None) -> Outcome | None:
        if place.held is not None and outcome is not None:
            self._devices.give_back(place.held)
            place.held = None
            self._given_back += 1
            if outcome is Outcome.TOO_MANY or place.candidates.request.is_all:
                self._stack.pop()
                return outcome
            if self._prune and not self._is_worth_trying(place):
                self._stack.pop()
                return Outcome.FAILED
        is_taken = (
            self._take_next_of_all(place)
            if place.candidates.request.is_all
            else self._take_next(place)
        )
        if not is_taken:
            self._stack.pop()
            return Outcome.FAILED
        return self._place(place.candidates, place.slot + 1, place.next)

    def _take_next(self, place: _Place) -> bool:
        """Take the next device that the request can have, and return whether there is one."""
        candidates, taken = place.candidates, self._devices
        request, devices, pool_at = candidates.request, self._all, self._pools.pool_at
        for index in range(place.next, len(devices)):
            if index % _AT_ONCE == _AT_ONCE - 1:
                self._deadline.check()
            device = devices[index]
            if (
                taken.is_in_use(request, device)
                or not self._selects(candidates, index, device)
                or not taken.has_capacity(request, device)
                or not taken.matches(request, device)
                or (place.failed and taken.look(request, device) in place.failed)
            ):
                continue
            place.held = taken.take(request, device, pool_at(index))
            if place.held is not None:
                place.held_index, place.next = index, index + 1
                return True
        return False

    def _take_next_of_all(self, place: _Place) -> bool:
        """Take the device of a request for all devices whose turn it is."""
        index = place.candidates.all_devices[place.slot]
        request, device = place.candidates.request, self._all[index]
        if self._devices.is_in_use(request, device):
            return False
        taken = self._devices.take(request, device, self._pools.pool_at(index))
        if taken is None and self._devices.is_constrained:
            raise AllocationError(
                f"claim {self._claims[request.claim].text}, request "
                f"{request.alternative or request.name}: cannot add device {device.id} because a "
                "claim constraint would not be satisfied"
            )
        place.held = taken
        return taken is not None

    # --- what need not be tried ---------------------------------------------------------------

    def _is_hopeless(self) -> bool:
        """Return whether nothing can be found, and from now on ask that of parts of the search.

        The answer is False where the search may end with an error instead.
        """
        self._patience = _NEVER
        if self._may_fail() or not self._evaluate_all():
            return False
        none_taken = TakenDevices(self._in_use, len(self._claims))
        none_taken.constraints.extend(map(_constraints_of, self._claims))
        ahead = Feasibility(self._requests, self._pools, none_taken)
        if self._prune:
            self._devices.see_alike(ahead.looks(none_taken))
            self._ahead = ahead if ahead.is_cheap else None
        return ahead.is_hopeless(none_taken)

    def _may_fail(self) -> bool:
        """Return whether there may be an error that is not a selector's.

        A claim may get too many devices, or a constraint may keep a device from a request for all.
        """
        for requests, constraints in zip(self._requests, self._devices.constraints, strict=True):
            alternatives = [alternatives_of(each) for each in requests]
            if sum(max(each.count for each in some) for some in alternatives) > MAX_RESULTS:
                return True
            # Of a request for all devices only one that has devices meets a constraint.
            if constraints and any(each.all_devices for some in alternatives for each in some):
                return True
        return False

    def _evaluate_all(self) -> bool:
        """Evaluate what is left of the selectors, and return whether none of them fails."""
        try:
            for requests in self._requests:
                for candidates in (each for some in requests for each in alternatives_of(some)):
                    self._deadline.check()
                    for index, device in enumerate(self._all):
                        if index % _AT_ONCE == _AT_ONCE - 1:
                            self._deadline.check()
                        if not self._devices.is_allocated(candidates.request, device):
                            self._selects(candidates, index, device)
        except AllocationError:
            # A deadline that has passed ends the search at its next step.
            return False
        return True

    def _is_worth_trying(self, place: _Place) -> bool:
        """Remember that a device failed, and return whether others may do better.

        They cannot when fewer are left than the request needs. That counts only if no selector
        remains to be evaluated, which might fail with an error.
        """
        candidates, taken = place.candidates, self._devices
        request, devices, pool_at = candidates.request, self._all, self._pools.pool_at
        if place.failed is None:
            place.failed = set()
        place.failed.add(taken.look(request, devices[place.held_index]))
        needed = candidates.count - place.slot
        if needed == 1:
            return True
        for index in range(place.next, len(devices)):
            device = devices[index]
            matches = candidates.matches[index]
            if matches is False or taken.is_in_use(request, device):
                continue
            if matches is None:
                return True
            if taken.admits(request, device, pool_at(index)):
                needed -= 1
                if not needed:
                    return True
        return False


def _constraints_of(claim: ClaimRequests) -> list[Constraint]:
    constraints: list[Constraint] = []
    for index, each in enumerate(claim.claim.spec.devices.constraints):
        constraint = constraint_of(each)
        if constraint is None:
            raise AllocationError(
                f"claim {claim.text}, constraint #{index}: empty constraint "
                "(unsupported constraint type?)"
            )
        constraints.append(constraint)
    return constraints


def _may_prune(claims: Sequence[ClaimRequests]) -> bool:
    """Return whether equal devices are interchangeable.

    They are not for a request for all devices under a constraint, which fails with an error or
    without one depending on the device that is in its way, and not under a constraint of distinct
    values, which forgets values whenever a device is given back.
    """
    for claim in claims:
        constraints = claim.claim.spec.devices.constraints
        if any(each.match_attribute is None for each in constraints):
            return False
        if constraints and any(map(_has_all, claim.requests)):
            return False
    return True


def _has_all(request: Request | PrioritizedList) -> bool:
    if isinstance(request, PrioritizedList):
        return any(each.is_all for each in request.alternatives)
    return request.is_all
