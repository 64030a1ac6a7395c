"""Gangs that compete for a cluster with room for half of them (``make gangs KIND=competing``).

All groups and pods exist before a scheduler starts. It is at rest when it has bound nothing for a
while. Then the API server says which gangs are whole, and counting says what else would fit.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.bench.load_client import BoundWatch, LoadClient
from tests.gangs import best_room
from tests.gangs.contenders import arena, cpu_s
from tests.gangs.gangs import NODE_MILLI, gang_of, make_nodes, nodes_for, objects_of, random_gangs
from tests.gangs.writes import counts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tests.controlplane.server_process import ServerProcess
    from tests.gangs.contenders import Arena, Attempts
    from tests.gangs.gangs import Gang

_POLL_S = 0.25


@dataclass(frozen=True, slots=True)
class Contest:
    """How many gangs compete for how much room.

    Attributes
    ----------
    share
        Of the CPU of all gangs, which the nodes have.
    orders
        Random orders that are tried to find out how much room can be used.
    quiet_s
        A scheduler that has bound nothing for so long since its last bind is at rest; longer than
        the longest backoff.
    deadline_s
        The longest time for one scheduler.
    """

    gangs: int = 200
    smallest: int = 3
    largest: int = 50
    share: float = 0.5
    orders: int = 10_000
    quiet_s: float = 25.0
    deadline_s: float = 300.0
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Rest:
    """What one scheduler has reached when it is at rest.

    Attributes
    ----------
    whole, partial, waiting
        Gangs all, some and none of whose members have a node.
    would_fit
        Waiting gangs each of which alone would fit into the room that is free.
    seconds
        From the start of the process to the last bind.
    binding_s
        From the first bind to the last.
    longest_partial_s
        The longest time from the first bind of a gang to its last.
    assumed
        Pods that the scheduler holds room for without a bind.
    is_quiet
        False when the time was up before it was at rest.
    """

    name: str
    whole: Sequence[Gang]
    partial: Sequence[Gang]
    waiting: Sequence[Gang]
    would_fit: Sequence[Gang]
    used_milli: int
    seconds: float
    binding_s: float
    longest_partial_s: float
    assumed: int
    attempts: Attempts
    written: Mapping[str, int]
    cpu_s: float
    is_quiet: bool


@dataclass(frozen=True, slots=True)
class Result:
    """The contest and what every scheduler has reached."""

    contest: Contest
    gangs: Sequence[Gang]
    nodes: int
    best_milli: int
    rests: Sequence[Rest]

    def share_of_best(self, rest: Rest) -> float:
        """Return the room that a scheduler used, of what the best order reaches."""
        return rest.used_milli / self.best_milli


def compete(
    contest: Contest, names: Sequence[str], say: Callable[[str], object] = lambda _: None
) -> Result:
    """Let the schedulers place the same gangs, one after the other."""
    gangs = random_gangs(contest.seed, contest.gangs, contest.smallest, contest.largest)
    nodes = nodes_for(gangs, contest.share)
    pods = sum(gang.members for gang in gangs)
    say(f"{len(gangs)} gangs, {pods} pods, {nodes} nodes; looking for the best order")
    best = best_room.best_used_milli(gangs, nodes, contest.orders, contest.seed)
    rests = []
    for name in names:
        with arena(name) as place:
            rest = _play(contest, gangs, nodes, place)
        say(f"{name}: {len(rest.whole)} gangs whole after {rest.seconds:.1f} s")
        rests.append(rest)
    return Result(contest, gangs, nodes, best, rests)


def _play(contest: Contest, gangs: Sequence[Gang], nodes: int, place: Arena) -> Rest:
    place.api.create_many(make_nodes(nodes))
    place.api.create_many(each for gang in gangs for each in objects_of(gang))
    with place.running() as process:
        started_s = time.monotonic()
        bound_s, is_quiet = asyncio.run(_watch(contest, place, process))
        attempts, assumed, used_s = place.attempts(), place.assumed(), cpu_s(process)
    bound = Counter(gang_of(name) for name in bound_s)
    free = _free_milli(place, nodes)
    groups: dict[bool | None, list[Gang]] = {True: [], None: [], False: []}
    for gang in gangs:
        count = bound[gang.name]
        groups[True if count == gang.members else None if count else False].append(gang)
    times = sorted(bound_s.values()) or [started_s]
    return Rest(
        name=place.name,
        whole=groups[True],
        partial=groups[None],
        waiting=groups[False],
        would_fit=best_room.that_fit(groups[False], free),
        used_milli=nodes * NODE_MILLI - sum(free),
        seconds=times[-1] - started_s,
        binding_s=times[-1] - times[0],
        longest_partial_s=_longest_partial_s(bound_s),
        assumed=assumed,
        attempts=attempts,
        written=counts(place.written()),
        cpu_s=used_s,
        is_quiet=is_quiet,
    )


async def _watch(
    contest: Contest, place: Arena, process: ServerProcess
) -> tuple[dict[str, float], bool]:
    """Return when each pod was bound, and whether the scheduler came to rest."""
    async with LoadClient(place.plane.admin_kubeconfig) as client:
        watch = BoundWatch(client, "default")
        await watch.open()
        following = asyncio.ensure_future(watch.run())
        try:
            begun_s = last_s = time.monotonic()
            count = 0
            while process.running and not following.done():
                await asyncio.sleep(_POLL_S)
                now_s = time.monotonic()
                if len(watch.bound_s) > count:
                    count, last_s = len(watch.bound_s), now_s
                if count and now_s - last_s > contest.quiet_s:
                    return dict(watch.bound_s), True
                if now_s - begun_s > contest.deadline_s:
                    break
            if following.done():
                following.result()
            return dict(watch.bound_s), False
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


def _free_milli(place: Arena, nodes: int) -> list[int]:
    """Return the free CPU of each node, by the pods that the API server has on it."""
    free = {f"node-{index:04}": NODE_MILLI for index in range(nodes)}
    for pod in place.api.pods("default"):
        node = pod["spec"].get("nodeName")
        if node:
            request = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
            free[node] -= _milli(request)
    return list(free.values())


def _milli(quantity: str) -> int:
    return int(quantity[:-1]) if quantity.endswith("m") else 1000 * int(quantity)


def _longest_partial_s(bound_s: Mapping[str, float]) -> float:
    first: dict[str, float] = {}
    last: dict[str, float] = {}
    for name, at_s in bound_s.items():
        gang = gang_of(name)
        first[gang] = min(first.get(gang, at_s), at_s)
        last[gang] = max(last.get(gang, at_s), at_s)
    return max((last[gang] - first[gang] for gang in first), default=0.0)
