"""Random histories: whatever happens, at rest each gang is whole, waits, or has lost members."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from cache.pod_group_objects import GROUP_LABEL
from tests.regressions import expectations, steps
from tests.regressions.world import World

if TYPE_CHECKING:
    from tests.fakes.api_objects import JsonObject

SEEDS = 40
STEPS = 60

PRIORITY = {"x": 0, "y": 0, "z": 3}
GROUPS = tuple(PRIORITY)


class History:
    """One cluster, and what happens to it.

    Attributes
    ----------
    hurt
        The groups that have lost members, or whose bindings were refused.
    """

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.rng = random.Random(seed)
        self.minimum: dict[str, int] = {}
        self.hurt: set[str] = set()
        self.log: list[str] = []
        self._pods = 0
        self._nodes = 0

    def pods(self) -> list[JsonObject]:
        """Return all pods of the cluster."""
        return self.world.cluster.pods()

    async def do(self, text: str) -> None:
        """Let something happen, and what follows from it."""
        self.log.append(text)
        steps.of(text)(self.world)
        await self.world.settle()

    async def happen(self) -> None:
        """Let something at random happen."""
        await self.do(self.rng.choice((self._come, self._change, self._go, self._schedule))())

    def _come(self) -> str:
        kind = self.rng.random()
        if kind < 0.12:
            self._nodes += 1
            return f"node n{self._nodes} cpu={self.rng.randint(1, 3)}"
        self._pods += 1
        if kind < 0.3:
            return f"pod single-{self._pods} priority={self.rng.choice((0, 0, 2, 4))}"
        gate = " gate=wait" if kind > 0.93 else ""
        name = self.rng.choice(GROUPS)
        return f"pod p{self._pods} group={name} priority={PRIORITY[name]}{gate}"

    def _change(self) -> str:
        name = self.rng.choice(GROUPS)
        if self.rng.random() < 0.1 and name in self.minimum:
            del self.minimum[name]
            return f"delete group {name}"
        before, self.minimum[name] = self.minimum.get(name), self.rng.randint(1, 4)
        if before is None or before < self.minimum[name]:
            placed = any(
                _group(each) == name and each["spec"].get("nodeName") for each in self.pods()
            )
            if placed:  # one that is whole was raised above what it has
                self.hurt.add(name)
        return f"group {name} min={self.minimum[name]}"

    def _go(self) -> str:
        pods = [pod for pod in self.pods() if not _has_ended(pod)]
        if not pods:
            return "cycle"
        pod = self.rng.choice(pods)
        name, group = pod["metadata"]["name"], _group(pod)
        is_bound = bool(pod["spec"].get("nodeName"))
        choice = self.rng.random()
        if choice < 0.2 and pod["spec"].get("schedulingGates"):
            return f"ungate pod {name}"
        if choice < 0.4 and is_bound:
            return f"finish pod {name}"
        if choice < 0.6 and not is_bound:
            self.hurt.add(group)
            return f"refuse next of binds with {self.rng.choice((409, 422, 500))}"
        if choice < 0.7 and self._nodes > 2:
            self.hurt.update(GROUPS)
            node = self.rng.choice(self.world.cluster.all_raw("nodes"))["metadata"]["name"]
            return f"cordon node {node}"
        self.hurt.add(group)
        return f"end pod {name}"

    def _schedule(self) -> str:
        return "advance 3s" if self.rng.random() < 0.2 else "cycle"

    async def rest(self) -> None:
        """Let time pass until nobody is tried any more."""
        self.world.cluster.accept_all()
        for _ in range(3):
            await self.do("advance 70s")
            while True:
                await self.do("cycle")
                if self.world.tried is None and not await self._victims_end():
                    break

    async def _victims_end(self) -> bool:
        """Let all pods end that were asked to; return whether there were any."""
        ending = [
            pod["metadata"]["name"]
            for pod in self.pods()
            if pod["metadata"].get("deletionTimestamp")
        ]
        for name in ending:
            await self.do(f"end pod {name}")
        return bool(ending)

    # --- what must be so ----------------------------------------------------------------------

    def check(self) -> None:
        """Check what must be so at rest."""
        expectations.of("rest")(self.world)
        room = self._room()
        largest = max(room.values(), default=0)
        pods = [pod for pod in self.pods() if not pod["spec"].get("schedulingGates")]
        for name in GROUPS:
            members = [pod for pod in pods if _group(pod) == name]
            waiting = sum(not pod["spec"].get("nodeName") for pod in members)
            satisfied = len(members) - waiting - sum(_failed(pod) for pod in members)
            minimum = self.minimum.get(name)
            if minimum is None:
                continue
            if satisfied:
                assert not (waiting and largest), f"{name}: {waiting} wait though they would fit"
                assert satisfied >= minimum or name in self.hurt, f"{name} is partial"
            elif waiting >= minimum:
                assert sum(room.values()) < minimum, f"{name} waits though it would fit"
        assert not (largest and any(_is_single_waiting(pod) for pod in pods))

    def _room(self) -> Counter[str]:
        """Return the free CPUs of the nodes that take pods."""
        room: Counter[str] = Counter()
        for node in self.world.cluster.all_raw("nodes"):
            if not node.get("spec", {}).get("unschedulable"):
                room[node["metadata"]["name"]] = int(node["status"]["allocatable"]["cpu"])
        for pod in self.pods():
            node_name = pod["spec"].get("nodeName")
            if node_name in room and not _has_ended(pod):
                room[node_name] -= 1
        assert not any(free < 0 for free in room.values()), "a node is overcommitted"
        return room


def _group(pod: JsonObject) -> str:
    return (pod["metadata"].get("labels") or {}).get(GROUP_LABEL, "")


def _has_ended(pod: JsonObject) -> bool:
    return pod["status"].get("phase") in ("Succeeded", "Failed")


def _failed(pod: JsonObject) -> bool:
    return pod["status"].get("phase") == "Failed"


def _is_single_waiting(pod: JsonObject) -> bool:
    return not _group(pod) and not pod["spec"].get("nodeName")


@pytest.mark.parametrize("seed", range(SEEDS))
def test_at_rest_each_gang_is_whole_or_waits(seed):
    async def run() -> None:
        async with World() as world:
            history = History(world, seed)
            try:
                for _ in range(STEPS):
                    await history.happen()
                await history.rest()
                history.check()
            except BaseException:
                print("\n".join(history.log))
                raise

    asyncio.run(run())
