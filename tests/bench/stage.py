"""One workload after the other on a control plane that goes back to the same state each time."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import uvloop

from tests.bench.load_client import BoundWatch, LoadClient
from tests.bench.pod_templates import BEFORE, MEASURED
from tests.bench.process_usage import ProcessUsage
from tests.bench.records import Round
from tests.bench.scraping import GroupAttempts, group_attempts
from tests.bench.statistics_of import curve
from tests.bench.workloads import NAMESPACES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from tests.bench.contenders import Contender
    from tests.bench.saved_control_plane import SavedControlPlane
    from tests.bench.workloads import Churn, Workload
    from tests.controlplane.server_process import ServerProcess

FIRST_BIND_S = 180.0
"""A contender that has bound nothing by then has failed."""

_POLL_S = 0.5
_EMPTY = "empty"
_READY = "ready"


@dataclass(frozen=True)
class Limits:
    """When a round ends although not all pods are bound.

    Parameters
    ----------
    seconds
        After the first binding. What was bound until then makes the rate.
    """

    seconds: float = 120.0


class Stage:
    """Arranges clusters and lets contenders at them.

    Parameters
    ----------
    plane
        Started.
    """

    def __init__(self, plane: SavedControlPlane) -> None:
        self._plane = plane
        self._ground = ""
        # What is there now, if it is one of the saved states.
        self._now = ""

    def arrange(self, workload: Workload, nodes: int, pods: int) -> None:
        """Create nodes and pods; from now on every round begins with them.

        Workloads with the same nodes that follow each other share their creation.
        """
        plane = self._plane
        if not plane.has(_EMPTY):
            # The rights of contenders are part of the state: a round does not wait for them.
            plane.berth_kubeconfig()
            uvloop.run(self._create(NAMESPACES))
            plane.save(_EMPTY)
            self._now = _EMPTY
        ground = f"{workload.ground}-{nodes}"
        if ground != self._ground:
            self._go_to(_EMPTY)
            self._now = ""
            uvloop.run(self._create(workload.ground.objects(nodes)))
            if self._ground:
                plane.drop(self._ground)
            plane.save(ground)
            self._ground = self._now = ground
        self._go_to(ground)
        self._now = ""
        uvloop.run(self._create(workload.objects))
        uvloop.run(self._create(workload.pods_before(nodes)))
        if not workload.at_a_time:
            uvloop.run(self._create(workload.pods_to_place(pods)))
        plane.save(_READY)

    def _go_to(self, state: str) -> None:
        if self._now != state:
            self._plane.restore(state)
            self._now = state

    def play(
        self,
        workload: Workload,
        contender: Contender,
        *,
        nodes: int,
        pods: int,
        number: int,
        session: int,
        limits: Limits,
    ) -> Round:
        """Let one contender at what was arranged.

        Raises
        ------
        RuntimeError
            It has ended, or has bound nothing at all.
        """
        self._plane.restore(_READY)
        with self.running(contender, workload.plugin_config) as started:
            observed = uvloop.run(self._observe(workload, started.process, nodes, pods, limits))
            usage = ProcessUsage.of(started.process.pid)
            attempts = group_attempts(contender) if workload.gang else GroupAttempts()
            server_cpu_s = self._plane.servers_cpu_s() - started.server_cpu_s
            load_cpu_s = time.process_time() - started.load_cpu_s
        times_s = sorted(observed.bound_s.values())
        bound = len(times_s)
        seconds = times_s[-1] - times_s[0]
        return Round(
            workload=workload.name,
            nodes=nodes,
            before=workload.counts(nodes)[0],
            pods=pods,
            contender=contender.name,
            number=number,
            session=session,
            bound=bound,
            seconds=seconds,
            # The first one is where the time begins; of one pod alone there is no rate.
            pods_per_s=(bound - 1) / seconds if seconds > 0 else 0.0,
            start_to_first_bind_s=times_s[0] - started.at_s,
            cpu_s_per_1000_pods=usage.cpu_s / bound * 1000,
            server_cpu_s_per_1000_pods=server_cpu_s / bound * 1000,
            load_cpu_s_per_1000_pods=load_cpu_s / bound * 1000,
            peak_rss_mib=usage.peak_rss_bytes / 2**20,
            rss_mib=usage.rss_bytes / 2**20,
            curve_s=curve(times_s),
            watch_restarts=observed.restarts,
            group_attempts=attempts.count,
            group_attempt_ms=attempts.mean_ms,
        )

    @contextlib.contextmanager
    def running(self, contender: Contender, plugin_config: Sequence[Any] = ()) -> Any:
        """Run a contender against what is there now; it is gone afterwards, whatever happens."""
        self._plane.settle()
        server_cpu_s = self._plane.servers_cpu_s()
        load_cpu_s = time.process_time()
        process = contender.start(self._plane, plugin_config)
        try:
            yield Started(process, time.monotonic(), server_cpu_s, load_cpu_s)
        finally:
            process.kill()

    def restore(self) -> None:
        """Go back to what was arranged."""
        self._plane.restore(_READY)

    @contextlib.asynccontextmanager
    async def client(self) -> AsyncIterator[LoadClient]:
        """Lend a client of the load generator."""
        async with LoadClient(self._plane.admin_kubeconfig) as client:
            yield client

    async def _create(self, objects: Any) -> None:
        async with self.client() as client:
            await client.create_many(objects)

    async def _observe(
        self, workload: Workload, process: ServerProcess, nodes: int, pods: int, limits: Limits
    ) -> BoundWatch:
        async with self.client() as client:
            watch = BoundWatch(client, MEASURED)
            await watch.open()
            following = asyncio.ensure_future(watch.run())
            tasks: list[asyncio.Future[Any]] = [following]
            if workload.churn is not None:
                going = stir(client, watch, workload.churn, workload.counts(nodes)[0])
                tasks.append(asyncio.ensure_future(going))
            if workload.at_a_time:
                going = in_turn(client, watch, workload, pods)
                tasks.append(asyncio.ensure_future(going))
            try:
                await until_bound(watch, pods, process, tasks, limits)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            return watch


@dataclass(frozen=True)
class Started:
    """A contender that runs, when it was started, and what others had used by then."""

    process: ServerProcess
    at_s: float
    server_cpu_s: float
    load_cpu_s: float


async def until_bound(
    watch: BoundWatch,
    pods: int,
    process: ServerProcess,
    tasks: list[asyncio.Future[Any]],
    limits: Limits,
) -> None:
    """Wait until all pods are bound or the round is over.

    Raises
    ------
    RuntimeError
        The contender has ended, or has bound nothing at all.
    """
    started_s = time.monotonic()
    while not await watch.wait(pods, _POLL_S):
        for task in tasks:
            if task.done():
                task.result()  # raises
        if not process.running:
            raise RuntimeError(f"the scheduler has ended:\n{process.log_tail()}")
        now_s = time.monotonic()
        if not watch.bound_s:
            if now_s - started_s > FIRST_BIND_S:
                raise RuntimeError(f"nothing was bound:\n{process.log_tail()}")
        elif now_s - min(watch.bound_s.values()) > limits.seconds:
            return


async def in_turn(client: LoadClient, watch: BoundWatch, workload: Workload, pods: int) -> None:
    """Create some pods and what they need, and delete them when all are bound, again and again."""
    count, made = 0, list[dict[str, Any]]()
    for each in workload.pods_to_place(pods):
        made.append(each)
        count += each["kind"] == "Pod"
        if each["kind"] != "Pod" or (count % workload.at_a_time and count < pods):
            continue
        await client.create_many(made)
        await watch.reached(count)
        await asyncio.gather(*(client.delete(gone) for gone in made if gone["kind"] == "Pod"))
        claims = [gone for gone in made if gone["kind"] == "ResourceClaim"]
        await asyncio.gather(*map(client.give_back, claims))
        made = []


async def stir(client: LoadClient, watch: BoundWatch, churn: Churn, before: int) -> None:
    """Let things come and go at a steady pace until cancelled.

    It begins with the first binding: who takes longer to start finds no more of them.
    """
    await watch.begun.wait()
    loop = asyncio.get_running_loop()
    begun = loop.time()
    number = 0
    last: list[dict[str, Any]] = []
    while True:
        await asyncio.sleep(max(begun + number * churn.every_s - loop.time(), 0))
        if churn.deletes and number < before:
            meta = {"name": f"before-{number:06}", "namespace": BEFORE}
            await client.delete({"kind": "Pod", "metadata": meta})
        if churn.recreates:
            for each in last:
                await client.delete(each)
        last = churn.objects(number)
        for each in last:
            await client.create(each)
        number += 1
