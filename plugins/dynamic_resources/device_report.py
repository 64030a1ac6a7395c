"""Reports why nodes lack devices for a request: what matches, what is free, and what would help.

Each request is counted by itself. Constraints, capacities, counters and the other requests of the
pod are not considered: where the counts suffice and a node is rejected all the same, one of these
is the cause.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from cache.value import Value
from plugins.dynamic_resources.requests import PrioritizedList

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cache.allocated_devices import AllocatedState
    from cache.device_objects import DeviceTaint
    from cache.objects import Node
    from plugins.dynamic_resources.pooled_device import PooledDevice
    from plugins.dynamic_resources.pools import NodePools, PoolIndex
    from plugins.dynamic_resources.requests import ClaimRequests, Request
    from plugins.dynamic_resources.selector_cache import Selector

MAX_NAMED: Final = 5
"""Claims, taints, pools and changes that a report names, the most frequent first."""


class Change(StrEnum):
    """A change that would make more devices free for a request."""

    DROP_SELECTOR = "drop selector"
    TOLERATE_TAINT = "tolerate taint"
    FREE_CLAIM = "free claim"
    ASK_FOR_FEWER = "ask for fewer devices"


class Obstacle(NamedTuple):
    """What keeps a request from a device, with the change that would remove it."""

    change: Change
    subject: str


class Help(NamedTuple):
    """A single change, and on how many nodes the request would then have enough devices."""

    obstacle: Obstacle
    num_nodes: int


class SelectorCount(NamedTuple):
    """A selector, and how many of the devices that all selectors before it match it matches.

    ``failed`` is the number of devices on which it cannot be evaluated.
    """

    name: str
    expression: str
    matching: int
    failed: int


class DeviceReport(Value, frozen=True):
    """The devices for one request, or for one alternative of a prioritized list.

    Attributes
    ----------
    claim, request, device_class
        The request; the class is empty where it does not exist.
    error
        Why no device can be selected at all; empty where one may be.
    wanted
        The number of devices; None where it is for all.
    num_devices
        The devices that the nodes can reach.
    selectors
        Those of the class first, then those of the request.
    matching
        The devices that all selectors match. Each is in use, tainted (and the taint not
        tolerated), or free; a device in use that is tainted counts as in use.
    in_use, users
        The number, and the claims with the numbers of devices that they use.
    tainted, taints
        The number, and the taints with the numbers of devices that they keep.
    free, most_free_on, most_free
        The number on all nodes, and on the node that has most of them.
    enough_on
        The number of nodes with as many free devices as the request is for.
    unusable_pools
        The pools that no device can be taken from, with the cause.
    help
        Single changes after which more nodes would have enough devices, the best first.
    """

    claim: str
    request: str
    device_class: str
    error: str
    wanted: int | None
    num_devices: int = 0
    selectors: tuple[SelectorCount, ...] = ()
    matching: int = 0
    in_use: int = 0
    users: tuple[tuple[str, int], ...] = ()
    tainted: int = 0
    taints: tuple[tuple[str, int], ...] = ()
    free: int = 0
    most_free_on: str = ""
    most_free: int = 0
    enough_on: int = 0
    unusable_pools: tuple[str, ...] = ()
    help: tuple[Help, ...] = ()


def device_reports(
    claims: Iterable[ClaimRequests],
    nodes: Sequence[Node],
    pools: PoolIndex,
    allocated: AllocatedState,
) -> tuple[DeviceReport, ...]:
    """Return a report for each request of the claims, in order.

    Raises
    ------
    AllocationError
        When a slice has a malformed node selector.

    *Cost*: for each request, an evaluation of its selectors for each distinct device, and a
    microsecond for each device that each node can reach.
    """
    reachable = [(node, pools.pools(node)) for node in nodes]
    return tuple(
        _Counting(claim, request, allocated).report(reachable)
        for claim in claims
        for request in _alternatives(claim)
    )


def _alternatives(claim: ClaimRequests) -> Iterator[Request]:
    for request in claim.requests:
        if isinstance(request, PrioritizedList):
            yield from request.alternatives
        else:
            yield request


_Blocked: TypeAlias = "tuple[Obstacle, ...]"


class _Counting:
    """The counts of one request."""

    def __init__(self, claim: ClaimRequests, request: Request, allocated: AllocatedState) -> None:
        self._claim = claim
        self._request = request
        self._allocated = allocated
        self._selectors = list(_selectors(request))
        self._passed = Counter[int]()
        self._failed = Counter[int]()
        self._kinds = Counter[str]()
        self._users = Counter[str]()
        self._taints = Counter[str]()
        self._known: dict[PooledDevice, _Blocked] = {}

    def report(self, reachable: Sequence[tuple[Node, NodePools]]) -> DeviceReport:
        """Count the devices of all nodes."""
        request = self._request
        wanted = None if request.is_all else request.count
        known_class = request.device_class
        class_name = "" if known_class is None else known_class.metadata.name
        if request.error is not None:
            return DeviceReport(
                self._claim.text, request.result_name, class_name, request.error, wanted
            )
        free_on: Counter[str] = Counter()
        gains: Counter[tuple[Obstacle, str]] = Counter()
        unusable: Counter[str] = Counter()
        for node, pools in reachable:
            self._count_node(node, pools, free_on, gains)
            unusable.update(_unusable(pools))
        needed = max(wanted or 1, 1)
        most_free_on, most_free = max(free_on.items(), key=lambda item: item[1], default=("", 0))
        return DeviceReport(
            claim=self._claim.text,
            request=request.result_name,
            device_class=class_name,
            error="",
            wanted=wanted,
            num_devices=len(self._known),
            selectors=tuple(
                SelectorCount(name, each.expression, self._passed[index], self._failed[index])
                for index, (name, each) in enumerate(self._selectors)
            ),
            matching=self._kinds.total(),
            in_use=self._kinds["in use"],
            users=tuple(self._users.most_common(MAX_NAMED)),
            tainted=self._kinds["tainted"],
            taints=tuple(self._taints.most_common(MAX_NAMED)),
            free=self._kinds["free"],
            most_free_on=most_free_on,
            most_free=most_free,
            enough_on=sum(count >= needed for count in free_on.values()),
            unusable_pools=tuple(name for name, _ in unusable.most_common(MAX_NAMED)),
            help=self._help(needed, most_free, free_on, gains),
        )

    def _count_node(
        self,
        node: Node,
        pools: NodePools,
        free_on: Counter[str],
        gains: Counter[tuple[Obstacle, str]],
    ) -> None:
        name = node.metadata.name
        for device in pools.devices:
            rule = device.node_rule
            if rule is not None and not rule.matches(node):
                continue
            blocked = self._known.get(device)
            if blocked is None:
                blocked = self._known[device] = self._judge(device)
            if not blocked:
                free_on[name] += 1
            elif len(blocked) == 1:
                gains[blocked[0], name] += 1

    def _judge(self, device: PooledDevice) -> _Blocked:
        """Return all that keeps the request from a device, and count the device."""
        obstacles: list[Obstacle] = []
        for index, (name, selector) in enumerate(self._selectors):
            result = selector.evaluate(device)
            if result is not True:
                obstacles.append(Obstacle(Change.DROP_SELECTOR, name))
                if isinstance(result, str) and len(obstacles) == 1:
                    self._failed[index] += 1
            elif not obstacles:
                self._passed[index] += 1
        matches = not obstacles
        users = self._users_of(device)
        taints = [_text(taint) for taint in self._request.untolerated(device)]
        if matches:
            self._kinds["in use" if users else "tainted" if taints else "free"] += 1
            self._users.update(users)
            self._taints.update(() if users else taints)
        obstacles += [Obstacle(Change.FREE_CLAIM, user) for user in users]
        obstacles += [Obstacle(Change.TOLERATE_TAINT, taint) for taint in taints]
        return tuple(obstacles)

    def _users_of(self, device: PooledDevice) -> list[str]:
        """Return the claims that have the device for themselves."""
        if self._request.is_admin:
            return []
        return [str(user) for user in self._allocated.devices.get(device.id, ())]

    def _help(
        self,
        needed: int,
        most_free: int,
        free_on: Counter[str],
        gains: Counter[tuple[Obstacle, str]],
    ) -> tuple[Help, ...]:
        helped: Counter[Obstacle] = Counter()
        for (obstacle, node), gain in gains.items():
            free = free_on[node]
            helped[obstacle] += free < needed <= free + gain
        if 0 < most_free < needed:
            fewer = Obstacle(Change.ASK_FOR_FEWER, str(most_free))
            helped[fewer] = sum(count >= most_free for count in free_on.values())
        best = sorted(helped.items(), key=lambda item: (-item[1], item[0]))
        return tuple(Help(*each) for each in best[:MAX_NAMED] if each[1])


class _NamedSelector(NamedTuple):
    name: str
    selector: Selector


def _selectors(request: Request) -> Iterator[_NamedSelector]:
    class_name = "" if request.device_class is None else request.device_class.metadata.name
    owners = (
        (f"class {class_name}", request.class_selectors),
        (f"request {request.result_name}", request.selectors),
    )
    for owner, selectors in owners:
        for index, selector in enumerate(selectors or ()):
            yield _NamedSelector(f"{owner}, selector #{index}", selector)


def _unusable(pools: NodePools) -> Iterator[str]:
    for pool in pools.pools:
        if not pool.is_usable:
            state = "incomplete" if pool.is_incomplete else "invalid"
            yield f"{pool.id.driver}/{pool.id.pool} ({state})"


def _text(taint: DeviceTaint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"
