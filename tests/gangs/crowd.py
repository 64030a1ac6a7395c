"""Gangs and single pods on nodes that come and die, with what controllers would do about it."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from tests.controlplane.api import ApiError
from tests.controlplane.objects import make_node, make_pod
from tests.devices.histories import PODS_PATH
from tests.gangs.gangs import NODE_MILLI, Gang, gang_of, group_of, member_of, nodes_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.controlplane.blocking_api import BlockingApi
    from tests.devices.histories import History, PodVersion

HIGH: Final = "high"
SINGLE: Final = "single"
_BERTH: Final = "berth"
_SINGLE_MILLI: Final = 1_000
_SIZES: Final = (1_000, 2_000, 4_000)
_WAVES: Final = 3


class Crowd:
    """What lives on the cluster.

    Parameters
    ----------
    pods
        Follows the pods of the default namespace.

    Attributes
    ----------
    gangs
        All that were created, in order.
    """

    def __init__(self, api: BlockingApi, pods: History[PodVersion], seed: int) -> None:
        self._api = api
        self._pods = pods
        self._rng = random.Random(seed)
        self._node_numbers = itertools.count()
        self._suffixes = itertools.count()
        self._living: set[str] = set()
        self._specs: dict[str, dict[str, Any]] = {}
        self.gangs: list[Gang] = []
        api.create_many([_priority_class(HIGH, 100)])

    def create_nodes(self, count: int) -> None:
        """Create nodes."""
        names = [f"node-{next(self._node_numbers):04}" for _ in range(count)]
        self._living.update(names)
        self._api.create_many(make_node(x, cpu=f"{NODE_MILLI}m", memory="1Ti") for x in names)

    def create_nodes_for(self, gangs: Iterable[Gang], singles: int, room: float) -> None:
        """Create nodes with ``room`` times the CPU of gangs and single pods."""
        self.create_nodes(nodes_for([*gangs, Gang(SINGLE, singles, _SINGLE_MILLI)], room))

    def make_gangs(self, count: int, *, preemptors: int) -> list[list[Gang]]:
        """Return three waves of gangs, and gangs for a wave that needs room of the others."""
        rng = self._rng
        made = [
            Gang(f"gang{index:03}", rng.randint(3, 12), rng.choice(_SIZES))
            for index in range(count)
        ]
        size = -(-count // _WAVES)
        waves = [made[start : start + size] for start in range(0, count, size)]
        # A member takes half a node: few nodes have so much room by then.
        last = [Gang(f"high{index:03}", 4, NODE_MILLI // 2) for index in range(preemptors)]
        return [*waves, last]

    def create(self, gangs: Sequence[Gang], priority_class: str = "") -> None:
        """Create gangs with all their members; every other one by the label."""
        spec = {"priorityClassName": priority_class} if priority_class else {}
        for gang in gangs:
            self.gangs.append(gang)
            self._specs[gang.name] = spec
            by_label = self._is_by_label(gang)
            group = group_of(gang, by_label=by_label, priority_class=priority_class)
            self._api.create_many([group])
            members = [self._member(gang) for _ in range(gang.members)]
            self._api.create_many(members)

    def create_singles(self, count: int) -> None:
        """Create single pods."""
        self._api.create_many(self._single() for _ in range(count))

    def kill_node(self, name: str) -> int:
        """Delete a node, and do as :meth:`collect`."""
        self._api.delete(f"/api/v1/nodes/{name}")
        self._living.remove(name)
        return self.collect()

    def collect(self) -> int:
        """Delete the pods of dead nodes and create new ones for them; return how many.

        A binding that was on its way when its node died takes effect: so there are always more.
        """
        there = [pod for pod in list(self._pods.latest.values()) if pod.node]
        dead = [pod.name for pod in there if pod.node not in self._living]
        lost = [name for name in dead if self._delete_pod(name)]
        gangs = {gang.name: gang for gang in self.gangs}
        for name in lost:
            gang = gangs.get(gang_of(name))
            self._api.create_many([self._single() if gang is None else self._member(gang)])
        return len(lost)

    def partial(self) -> int:
        """Return how many gangs have a node for some of their members only."""
        bound = self.bound()
        return sum(0 < len(bound[gang.name]) < gang.members for gang in self.gangs)

    def is_whole(self, gang: Gang) -> bool:
        """Whether all members of a gang have a node."""
        return len(self.bound()[gang.name]) >= gang.members

    def nodes_with_a_part(self) -> list[str]:
        """Return the living nodes with members of a gang that has members elsewhere, too."""
        found: set[str] = set()
        for gang in self.gangs:
            nodes = set(self.bound()[gang.name])
            if len(nodes) > 1:
                found |= nodes
        return sorted(found & self._living)

    def bound(self) -> defaultdict[str, list[str]]:
        """Return the nodes of the members of each gang that have one."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for pod in list(self._pods.latest.values()):
            if pod.node:
                found[gang_of(pod.name)].append(pod.node)
        return found

    def _delete_pod(self, name: str) -> bool:
        """Delete a pod; return whether it was still there, as an evicted one is not."""
        try:
            self._api.delete(f"{PODS_PATH}/{name}")
        except ApiError as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise
            return False
        return True

    def _member(self, gang: Gang) -> dict[str, Any]:
        return member_of(
            gang,
            f"{next(self._suffixes):05}",
            _BERTH,
            by_label=self._is_by_label(gang),
            terminationGracePeriodSeconds=0,
            **self._specs[gang.name],
        )

    def _single(self) -> dict[str, Any]:
        name = f"{SINGLE}-{next(self._suffixes):05}"
        return make_pod(
            name, scheduler_name=_BERTH, cpu=f"{_SINGLE_MILLI}m", terminationGracePeriodSeconds=0
        )

    def _is_by_label(self, gang: Gang) -> bool:
        return int(gang.name[-3:]) % 2 == 1


def _priority_class(name: str, value: int) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }
