"""A gang that can never fit, on an idle and on a busy cluster (``make gangs KIND=never``).

The cluster is busy with single pods that come at a steady rate and are deleted once they are
bound. They come before the gang exists, while it waits, and after it is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.bench.load_client import BoundWatch, LoadClient
from tests.bench.statistics_of import quantile
from tests.controlplane.objects import make_pod
from tests.controlplane.pod_groups import FIELD_API, groups_path
from tests.gangs.contenders import arena, cpu_s
from tests.gangs.gangs import NODE_MILLI, SCHEDULER_NAME, Gang, gang_of, make_nodes, objects_of
from tests.gangs.writes import EVENTS, GROUP_STATUS, POD_STATUS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from tests.controlplane.server_process import ServerProcess
    from tests.gangs.contenders import Arena, Attempts
    from tests.gangs.writes import Written

_SINGLE: Final = "single"
_MEMBER_MILLI: Final = 4_000
_WARM_UP: Final = 20
_FIRST_S: Final = 120.0
_SETTLE_S: Final = 15.0
_REAP_S: Final = 0.1
_AT_ONE_TIME: Final = 16
_LOOK_S: Final = 2.0
_CALM_SHARE: Final = 0.1


@dataclass(frozen=True, slots=True)
class Wait:
    """How large the gang and the cluster are, and how long each part lasts.

    Attributes
    ----------
    nodes
        They have room for ``room`` of the gang's members.
    rate
        Single pods a second while the cluster is busy.
    """

    members: int = 1_000
    nodes: int = 100
    minutes: float = 0.5
    rate: int = 25
    seed: int = 1

    @property
    def room(self) -> int:
        """How many members fit."""
        return self.nodes * (NODE_MILLI // _MEMBER_MILLI)


class Part(NamedTuple):
    """A part of the time, and what was seen in it.

    Attributes
    ----------
    gang_writes
        Writes beyond those that single pods need, by kind.
    times_ms
        From the moment when a single pod was due to its bind, in order.
    missing
        Single pods that were not bound.
    """

    name: str
    seconds: float
    attempts: Attempts
    gang_writes: Mapping[str, int]
    times_ms: Sequence[float]
    missing: int
    cpu_share: float

    def per_minute(self, count: float) -> float:
        """Return a count of this part for each minute."""
        return 60 * count / self.seconds

    def p(self, share: float) -> float:
        """Return a quantile of the times in milliseconds."""
        return quantile(self.times_ms, share)


BEFORE: Final = "busy, no gang"
IDLE: Final = "idle, the gang waits"
BUSY: Final = "busy, the gang waits"
AFTER: Final = "busy, the gang is gone"


class Waited(NamedTuple):
    """What was seen of one scheduler, by part."""

    name: str
    parts: Mapping[str, Part]
    bound_members: int

    @property
    def loss(self) -> float:
        """How much longer the p99 of single pods is while the gang waits, than without it."""
        without = [*self.parts[BEFORE].times_ms, *self.parts[AFTER].times_ms]
        return self.parts[BUSY].p(0.99) / quantile(sorted(without), 0.99) - 1


def wait(
    size: Wait, names: Sequence[str], say: Callable[[str], object] = lambda _: None
) -> list[Waited]:
    """Let the gang wait for each of the schedulers in turn."""
    if size.room >= size.members:
        raise ValueError(f"{size.members} members fit on {size.nodes} nodes")
    found = []
    for name in names:
        with arena(name) as place:
            place.api.create_many(make_nodes(size.nodes))
            with place.running() as process:
                found.append(asyncio.run(_Play(size, place, process, say).run()))
    return found


class _Play:
    def __init__(
        self, size: Wait, place: Arena, process: ServerProcess, say: Callable[[str], object]
    ) -> None:
        self._size = size
        self._place = place
        self._process = process
        self._say = say
        self._gang = Gang("never", size.members, _MEMBER_MILLI)
        self._parts: list[tuple[Part, dt.datetime, dt.datetime, int]] = []

    async def run(self) -> Waited:
        async with LoadClient(self._place.plane.admin_kubeconfig) as client:
            watch = BoundWatch(client, "default")
            await watch.open()
            following = asyncio.ensure_future(watch.run())
            try:
                await self._come(client, watch, "warm", _WARM_UP)
                await self._part(BEFORE, client, watch)
                await client.create_many(objects_of(self._gang))
                await self._part(IDLE, client, watch, is_busy=False)
                await self._part(BUSY, client, watch)
                bound = sum(gang_of(name) == self._gang.name for name in watch.bound_s)
                await self._remove_gang(client)
                await self._calm()
                await self._part(AFTER, client, watch)
            finally:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
        written = self._place.written()
        parts = {
            part.name: part._replace(gang_writes=_gang_writes(written, start, end, singles))
            for part, start, end, singles in self._parts
        }
        return Waited(self._place.name, parts, bound)

    async def _part(
        self, name: str, client: LoadClient, watch: BoundWatch, *, is_busy: bool = True
    ) -> None:
        before, used_s = await self._attempts(), cpu_s(self._process)
        start, start_s = dt.datetime.now(dt.UTC), time.monotonic()
        seconds = 60 * self._size.minutes
        times: Sequence[float] = ()
        count = round(seconds * self._size.rate) if is_busy else 0
        if is_busy:
            times = await self._come(client, watch, f"{_SINGLE}{len(self._parts)}", count)
        else:
            await asyncio.sleep(seconds)
        took_s = time.monotonic() - start_s
        attempts = (await self._attempts()).since(before)
        share = (cpu_s(self._process) - used_s) / took_s
        part = Part(name, took_s, attempts, {}, times, count - len(times), share)
        self._parts.append((part, start, dt.datetime.now(dt.UTC), len(times)))
        self._say(f"{self._place.name}: {name}: {took_s:.0f} s")

    async def _calm(self) -> None:
        """Wait until the attempt that was under way has ended."""
        deadline_s = time.monotonic() + _FIRST_S
        used_s = cpu_s(self._process)
        while time.monotonic() < deadline_s:
            await asyncio.sleep(_LOOK_S)
            now_s = cpu_s(self._process)
            if now_s - used_s < _CALM_SHARE * _LOOK_S:
                return
            used_s = now_s

    async def _attempts(self) -> Attempts:
        return await asyncio.to_thread(self._place.attempts)

    async def _come(
        self, client: LoadClient, watch: BoundWatch, prefix: str, count: int
    ) -> list[float]:
        """Create pods at the steady rate; return the times until they were bound, in order."""
        due_s: dict[str, float] = {}
        already = len(watch.bound_s)
        async with _reaping(client, watch, due_s):
            begun_s = time.monotonic() + 0.1
            async with asyncio.TaskGroup() as group:
                for index in range(count):
                    name = f"{prefix}-{index:06}"
                    due_s[name] = begun_s + index / self._size.rate
                    await asyncio.sleep(max(due_s[name] - time.monotonic(), 0))
                    group.create_task(client.create(_single(name)))
            patience_s = _FIRST_S if prefix == "warm" else _SETTLE_S
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience_s):
                    await watch.reached(already + count)
        bound = watch.bound_s
        return sorted(1e3 * (bound[name] - due) for name, due in due_s.items() if name in bound)

    async def _remove_gang(self, client: LoadClient) -> None:
        names = iter(each for each in objects_of(self._gang) if each["kind"] == "Pod")

        async def work() -> None:
            for each in names:
                await client.delete(each)

        await asyncio.gather(*(work() for _ in range(_AT_ONE_TIME)))
        path = f"{groups_path(FIELD_API)}/{self._gang.name}"
        # No controller manager is there to take the finalizer away.
        await asyncio.to_thread(self._place.api.delete, path)
        await asyncio.to_thread(self._place.api.patch, path, {"metadata": {"finalizers": None}})


@contextlib.asynccontextmanager
async def _reaping(
    client: LoadClient, watch: BoundWatch, due_s: Mapping[str, float]
) -> AsyncIterator[None]:
    """Delete the pods of ``due_s`` soon after they are bound."""
    gone: set[str] = set()

    async def reap() -> None:
        while True:
            await asyncio.sleep(_REAP_S)
            for name in [x for x in due_s if x in watch.bound_s and x not in gone]:
                gone.add(name)
                await client.delete(_single(name))

    task = asyncio.ensure_future(reap())
    try:
        yield
        await asyncio.sleep(3 * _REAP_S)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _single(name: str) -> dict[str, Any]:
    return make_pod(name, scheduler_name=SCHEDULER_NAME, cpu="100m")


def _gang_writes(
    written: Sequence[Written], start: dt.datetime, end: dt.datetime, singles: int
) -> dict[str, int]:
    """Return the writes in a time, without the one Event that each single pod gets."""
    inside = [each for each in written if start <= each.time <= end]
    found = Counter(each.kind for each in inside if not each.name.startswith(_SINGLE))
    events = max(Counter(each.kind for each in inside)[EVENTS] - singles, 0)
    return {
        EVENTS: events,
        POD_STATUS: found[POD_STATUS],
        GROUP_STATUS: found[GROUP_STATUS],
    }
