"""Several pools on one API server, in virtual time: watches lag, answers are lost, leaders die.

The parts under test are the real ones: event handlers, queue, cache, ownership, hand-overs, and
what a binding depends on. The API server does what kube-apiserver does with preconditions. What it
accepts is checked against the rule of ownership by what is stored at that moment.
"""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from scheduler.client.errors import ApiError
from scheduler.cycle.pool_hand_over import TAKE_OVER_AFTER_S, HandOvers
from scheduler.event_handlers.pods_and_nodes import EventHandlers
from scheduler.informers import Delta, DeltaKind
from scheduler.pools.options import PoolOptions
from scheduler.pools.own_pool import OwnPool
from scheduler.pools.ownership import POOL, Ownership
from tests.scheduler.parts import Parts
from tests.scheduler.pools.pools import POOLS, waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from cache.objects import Pod
    from cache.pod_info import PodInfo
    from scheduler.queueing import QueueState

LEASE_S = 15.0
AFTER_S = 20.0
LOOK_S = 5.0


class BrokenPromiseError(AssertionError):
    """Something happened that never may."""


class Pause:
    """Awaited by a task that waits for the world."""

    def __await__(self) -> Generator[None]:
        yield


@dataclass
class Request:
    """A write on its way."""

    sender: Process
    apply: Callable[[], Any]
    is_applied: bool = False
    is_answered: bool = False
    result: Any = None
    error: ApiError | None = None

    async def answer(self) -> Any:
        while not self.is_answered:
            await Pause()
        if self.error is not None:
            raise self.error
        return self.result


class Process(Parts):
    """A leader of a pool: the parts that decide whom a pod belongs to."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        super().__init__()

    def __post_init__(self) -> None:
        super().__post_init__()
        world, name = self.world, self.name
        options = next(pool for pool in POOLS if pool.name == name)
        self.clock = world.clock
        self.pool = world.make_pool(
            PoolOptions(name, options.node_selector, pools=POOLS, hand_over_after_s=AFTER_S),
            world.clock,
        )
        assert self.pool.ownership is not None
        self.ownership = self.pool.ownership
        self.handlers = EventHandlers(
            self.pods, self.pod_groups, self.profiles, self.metrics, ownership=self.ownership
        )
        self.store: dict[str, Pod] = {}
        self.position = 0
        self.looked: dict[str, float | None] = {}
        self.binding: list[tuple[PodInfo, Any, Any]] = []
        self.given: set[str] = set()
        self.hand_overs = HandOvers(
            self,
            self.ownership,
            self.pool.refusals,
            self,
            self,
            AFTER_S,
            lambda *_: None,
            lambda: world.now_s,
        )
        self.round: Any = None

    # --- what the parts ask of it -------------------------------------------------------------

    def live_pod(self, _: str, name: str) -> Pod | None:
        return self.store.get(name)

    def state_of(self, uid: str) -> QueueState:
        return self.queue.state_of(uid)

    def take_out(self, uid: str) -> bool:
        return self.queue.take_out(uid)

    def requeue(self, pod: Pod) -> None:
        self.handlers.requeue(pod)

    async def quiet(self, _: str) -> None:
        await Pause()

    def live(self) -> set[str]:
        return {name for name, dead_s in self.looked.items() if dead_s is None}

    def dead_for_s(self, pool: str) -> float:
        dead_s = self.looked.get(pool)
        return 0.0 if dead_s is None else self.world.now_s - dead_s

    async def annotate_pending_pod(self, _: str, name: str, uid: str, words: Any, version: str):
        world = self.world
        dead = {each for each in self.looked if self.dead_for_s(each) >= TAKE_OVER_AFTER_S}
        request = Request(self, lambda: world.annotate(self, name, uid, words, version, dead))
        world.requests.append(request)
        written: str = await request.answer()
        if words[POOL] != self.name and world.stored.get(name) is not None:
            self.given.add(uid)
        return written

    async def get_pod(self, _: str, name: str) -> Pod | None:
        await Pause()
        return self.world.stored.get(name)

    # --- what it does -------------------------------------------------------------------------

    def look(self) -> None:
        """Read the Leases of the others."""
        for pool in POOLS:
            if pool.name != self.name:
                self.looked[pool.name] = self.world.dead_since_s(pool.name)

    def hear(self) -> bool:
        """Take in the next event of the watch; return whether there was one."""
        log = self.world.log
        if self.position >= len(log):
            return False
        name, new = log[self.position]
        self.position += 1
        old = self.store.pop(name, None)
        if new is not None:
            self.store[name] = new
        kind = DeltaKind.DELETED if new is None else DeltaKind.UPDATED
        self.handlers.on_pods([Delta(DeltaKind.ADDED if old is None else kind, old, new)])
        return True

    def search(self) -> None:
        """Queue the pods that wait for this pool, and that its queue does not know."""
        for pod in self.store.values():
            if self.handlers.is_lost(pod):
                self.handlers.requeue(pod)

    def attempt(self) -> None:
        """Try the first pod of the queue."""
        queued = self.queue.pop(0)
        if queued is None:
            return
        info = queued.info
        if info.uid in self.given:
            raise BrokenPromiseError(f"{self.name} tries {info.key}, which it has given away")
        if self.world.room[self.name] <= len(self.binding):
            queued.unschedulable_plugins = frozenset({"NodeResourcesFit"})
            self.queue.add_unschedulable(queued)
            self.pool.refusals.refused(info.uid, info.namespace, info.name)
            return
        self.cache.assume_pod(info, f"node-{self.name}")
        self.binding.append((info, queued, self._bind(info)))

    async def _bind(self, info: PodInfo) -> bool:
        await Pause()
        if not self.pool.still_owns(self.live_pod, info):
            return False
        version = self.pool.version(self.live_pod, info)
        world = self.world
        request = Request(self, lambda: world.bind(self, info, version))
        world.requests.append(request)
        try:
            await request.answer()
        except ApiError:
            await Pause()
            stored = world.stored.get(info.name)
            return stored is not None and bool(stored.spec.node_name)
        return True

    def step_binding(self, rng: random.Random) -> None:
        if not self.binding:
            return
        info, queued, task = entry = rng.choice(self.binding)
        try:
            task.send(None)
        except StopIteration as end:
            self.binding.remove(entry)
            if end.value:
                self.cache.finish_binding(info, self.world.now_s)
                self.queue.done(info.uid)
            else:
                self.cache.forget_pod(info)
                queued.unschedulable_plugins = frozenset()
                self.queue.add_unschedulable(queued)

    def close(self) -> None:
        """Leave everything as it is."""
        for _, _, task in self.binding:
            task.close()
        if self.round is not None:
            self.round.close()

    def step_round(self) -> None:
        """Go on with the hand-overs, or begin with them."""
        if self.round is None:
            self.round = self.hand_overs.round()
        try:
            self.round.send(None)
        except StopIteration:
            self.round = None


@dataclass
class World:
    """The API server, time, and one process for each pool.

    Parameters
    ----------
    compares_versions
        Whether the API server heeds the resourceVersion of a write.
    make_pool
        Makes what a process knows of its pool.
    """

    seed: int
    compares_versions: bool = True
    make_pool: Callable[[PoolOptions, Callable[[], float]], OwnPool] = field(
        default=lambda options, clock: OwnPool.of(options, clock, _NoLock)
    )

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.now_s = 1000.0
        self.clock = _Clock(self)
        self.stored: dict[str, Pod] = {}
        self.log: list[tuple[str, Pod | None]] = []
        self.requests: list[Request] = []
        self.version = 0
        self.hops: dict[str, int] = {}
        self.bound: dict[str, str] = {}
        self.room = {pool.name: self.rng.choice((0, 1, 4)) for pool in POOLS}
        self.ended_s: dict[str, float] = {}
        self.rule = Ownership(POOLS[0].name, POOLS)
        self.processes: dict[str, Process] = {}
        for pool in POOLS:
            self._start(pool.name)

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            process.close()

    # --- the API server -----------------------------------------------------------------------

    def write(self, name: str, pod: Pod | None) -> str:
        self.version += 1
        if pod is None:
            del self.stored[name]
        else:
            metadata = replace(pod.metadata, resource_version=str(self.version))
            pod = self.stored[name] = replace(pod, metadata=metadata)
        self.log.append((name, pod))
        return str(self.version)

    def _check(self, name: str, uid: str, version: str) -> Pod:
        pod = self.stored.get(name)
        if pod is None:
            raise ApiError(404, "NotFound", name)
        if pod.metadata.uid != uid:
            raise ApiError(409, "Conflict", "another pod")
        if version and self.compares_versions and pod.metadata.resource_version != version:
            raise ApiError(409, "Conflict", "another version")
        return pod

    def annotate(
        self, sender: Process, name: str, uid: str, words: Any, version: str, dead: set[str]
    ) -> str:
        pod = self._check(name, uid, version)
        owner = self.rule.owner_of(pod)
        if pod.spec.node_name:
            raise BrokenPromiseError(f"{sender.name} hands {name} on, which is bound")
        # Whoever takes a pod has seen that its owner has no leader; one may have come since.
        takes = words[POOL] == sender.name and owner in dead
        if sender.name != owner and not takes:
            raise BrokenPromiseError(f"{sender.name} writes about {name} of {owner}")
        annotations = {**pod.metadata.annotations, **words}
        written = self.write(
            name, replace(pod, metadata=replace(pod.metadata, annotations=annotations))
        )
        self.hops[name] = self.hops.get(name, 0) + 1
        if words[POOL] in self.processes:
            self.processes[words[POOL]].given.discard(uid)
        return written

    def bind(self, sender: Process, info: PodInfo, version: str) -> None:
        pod = self._check(info.name, info.uid, version)
        if pod.spec.node_name:
            raise ApiError(409, "Conflict", "bound")
        owner = self.rule.owner_of(pod)
        if owner != sender.name:
            raise BrokenPromiseError(f"{sender.name} binds {info.key} of {owner}")
        self.bound[info.uid] = sender.name
        self.room[sender.name] -= 1
        self.write(info.name, replace(pod, spec=replace(pod.spec, node_name=f"node-{owner}")))

    # --- leaders ------------------------------------------------------------------------------

    def _start(self, name: str) -> None:
        process = self.processes[name] = Process(self, name)
        self.ended_s.pop(name, None)
        # A leader begins when it knows all that the one before it has written.
        while process.hear():
            pass
        process.look()

    def dead_since_s(self, name: str) -> float | None:
        """Return when a pool's Lease has ended; None while it lasts."""
        ended_s = self.ended_s.get(name)
        return None if ended_s is None or self.now_s < ended_s else ended_s

    def kill(self, name: str) -> None:
        """End a leader; what it has sent may arrive until its Lease ends."""
        if name in self.processes:
            self.processes.pop(name).close()
            self.ended_s[name] = self.now_s + LEASE_S

    def pass_time(self, seconds: float) -> None:
        self.now_s += seconds
        for request in list(self.requests):
            name = request.sender.name
            if self.processes.get(name) is not request.sender and self.dead_since_s(name):
                self.requests.remove(request)  # the fence

    # --- steps --------------------------------------------------------------------------------

    def arrive(self, request: Request) -> None:
        if request.is_applied:
            return
        request.is_applied = True
        try:
            request.result = request.apply()
        except ApiError as error:
            request.error = error

    def answer(self, request: Request, *, lost: bool = False) -> None:
        """Answer a request; a lost answer says nothing, and the request may arrive later still."""
        if lost:
            request.error = ApiError(None, "Timeout", "no answer")
        else:
            self.arrive(request)
        request.is_answered = True
        if request.is_applied:
            self.requests.remove(request)

    def step(self) -> None:
        """Let one thing happen."""
        rng = self.rng
        process = rng.choice(list(self.processes.values())) if self.processes else None
        kind = rng.random()
        if kind < 0.05 and len(self.stored) < 6:
            name = f"pod-{self.version}"
            self.write(name, waiting(name, owner=rng.choice(["", "", "a", "b", "c", "gone"])))
        elif kind < 0.07 and self.stored:
            self.write(rng.choice(list(self.stored)), None)
        elif kind < 0.09 and self.stored:
            name = rng.choice(list(self.stored))
            pod = self.stored[name]
            labels = {**pod.metadata.labels, "seen": str(self.version)}
            self.write(name, replace(pod, metadata=replace(pod.metadata, labels=labels)))
        elif kind < 0.10:
            self.kill(rng.choice([pool.name for pool in POOLS]))
        elif kind < 0.13:
            for pool in POOLS:
                if pool.name not in self.processes and self.dead_since_s(pool.name) is not None:
                    self._start(pool.name)
                    break
        elif kind < 0.17:
            self.pass_time(rng.choice((1.0, 20.0, 80.0)))
        elif kind < 0.19:
            self.room[rng.choice([pool.name for pool in POOLS])] += 1
        elif kind < 0.30 and self.requests:
            request = rng.choice(self.requests)
            if request.is_answered or rng.random() < 0.3:
                self.arrive(request)
                if request.is_answered:
                    self.requests.remove(request)
            else:
                self.answer(request, lost=rng.random() < 0.1)
        elif process is not None:
            rng.choice(
                (
                    process.hear,
                    process.hear,
                    process.look,
                    process.search,
                    process.attempt,
                    lambda: process.step_binding(rng),
                    process.step_round,
                    process.step_round,
                )
            )()

    def settle(self) -> None:
        """Let everything come to rest: all pools have leaders, nothing is lost, time passes."""
        for _ in range(120):
            for pool in POOLS:
                if pool.name not in self.processes and self.dead_since_s(pool.name) is not None:
                    self._start(pool.name)
            for _ in range(6):
                for request in list(self.requests):
                    with suppress(ValueError):
                        self.answer(request)
                for process in self.processes.values():
                    while process.hear():
                        pass
                    process.look()
                    process.queue.flush_backoff()
                    process.queue.flush_unschedulable_leftover()
                    process.attempt()
                    for _ in range(8):
                        process.step_binding(self.rng)
                        process.step_round()
            self.pass_time(LOOK_S)


class _Clock:
    def __init__(self, world: World) -> None:
        self._world = world

    def __call__(self) -> float:
        return self._world.now_s


class _NoLock:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass
