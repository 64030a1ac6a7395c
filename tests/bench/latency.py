"""``python -m tests.bench latency``: from a pod's creation to its binding, at a steady rate.

Pods come at fixed moments, whether or not those before them are bound: a scheduler that falls
behind does not get a slower load. The time of a pod runs from the moment at which it was due.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvloop

from scheduler.client.errors import ApiError
from tests.bench.contenders import NAMES, contender
from tests.bench.load_client import BoundWatch
from tests.bench.pod_templates import MEASURED, PLAIN, SCHEDULER_NAME
from tests.bench.process_usage import ProcessUsage
from tests.bench.records import LatencyRound
from tests.bench.results import Results, put
from tests.bench.runs import DEFAULT_FILE
from tests.bench.saved_control_plane import SavedControlPlane
from tests.bench.stage import Limits, Stage, until_bound
from tests.bench.statistics_of import quantile
from tests.bench.workloads import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from tests.bench.contenders import Contender
    from tests.bench.load_client import LoadClient
    from tests.bench.stage import Started
    from tests.bench.workloads import Workload

    Preparation = Callable[[LoadClient], Awaitable[None]]

WORKLOAD = BY_NAME["Basic"]
"""Its nodes and the pods that run already."""

WARM_UP = 200
"""Pods that wait already when the contender is started."""

_REST_S = 1.0
"""After the last binding of these. What is still sent about them, such as Events, belongs to the
burst that they were: the first ten pods of 2 000 took 50 to 140 ms beside it."""

_SETTLE_S = 15.0
"""After the last creation: a pod that is not bound by then counts as not bound."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the file does not hold yet."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench latency", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--rates", default="100,200", help="pods a second, separated by commas")
    parser.add_argument("--seconds", type=float, default=30.0, help="for one round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--contenders", default="kube-scheduler,berth", help=f"{', '.join(NAMES)}, berth@FOLDER"
    )
    parser.add_argument("--json", type=Path, default=DEFAULT_FILE)
    options = parser.parse_args(arguments)
    try:
        contenders = [contender(name, SCHEDULER_NAME) for name in options.contenders.split(",")]
        rates = [int(each) for each in options.rates.split(",")]
    except ValueError as error:
        parser.error(str(error))
    results = Results.load(options.json)
    missing = [
        (rate, number, each)
        for rate in rates
        for number in range(1, options.rounds + 1)
        for each in contenders
        if not results.holds((options.nodes, rate, each.name, number))
    ]
    if not missing:
        return 0
    session = results.begin(datetime.now(UTC).isoformat(timespec="seconds"))
    with SavedControlPlane() as plane:
        stage = Stage(plane)
        # The first pods are there before the start, as those of every other round.
        stage.arrange(WORKLOAD, options.nodes, WARM_UP)
        for rate, number, each in missing:
            arrivals = Arrivals(rate, round(rate * options.seconds))
            played = arrivals.play(stage, each, options.nodes, number, session)
            put(results.latencies, played)
            results.save(options.json)
            print(line(played), flush=True)
    return 0


class Arrivals:
    """Pods that come at a steady rate.

    Parameters
    ----------
    rate
        A second.
    pods
        In all.
    prepare
        What else is to be done before they come, once the contender has placed its first pods.
    beside
        What goes on while they come; cancelled afterwards.
    workload
        The nodes and the pods that run already.
    relists
        Whether the API server goes away meanwhile: what cannot be created then counts as not bound.

    Attributes
    ----------
    began_s, ended_s
        When the first pod was due, and when all were bound or given up, by `time.monotonic`.
    """

    def __init__(
        self,
        rate: int,
        pods: int,
        prepare: Preparation | None = None,
        *,
        beside: Preparation | None = None,
        workload: Workload = WORKLOAD,
        relists: bool = False,
    ) -> None:
        self._rate = rate
        self._pods = pods
        self._prepare = prepare
        self._beside = beside
        self._workload = workload
        self._relists = relists
        self.began_s = self.ended_s = 0.0
        self._due_s: dict[str, float] = {}
        self._created_s: dict[str, float] = {}

    def play(
        self,
        stage: Stage,
        contender: Contender,
        nodes: int,
        number: int,
        session: int,
        *,
        name: str = "",
    ) -> LatencyRound:
        """Let one contender place them.

        Parameters
        ----------
        name
            What the contender is called in the round; its own name without one.

        Raises
        ------
        RuntimeError
            It has ended, or has bound nothing at all.
        """
        stage.restore()
        with stage.running(contender) as started:
            bound_s, cpu_share = uvloop.run(self._observe(stage, started))
        times_ms = sorted(
            (bound_s[n] - due) * 1e3 for n, due in self._due_s.items() if n in bound_s
        )
        if not times_ms:
            raise RuntimeError(f"{contender.name} has bound nothing")
        created_ms = sorted((at - self._due_s[name]) * 1e3 for name, at in self._created_s.items())
        return LatencyRound(
            nodes=nodes,
            before=self._workload.counts(nodes)[0],
            rate=self._rate,
            contender=name or contender.name,
            number=number,
            session=session,
            pods=self._pods,
            bound=len(times_ms),
            created_p50_ms=quantile(created_ms, 0.5),
            p50_ms=quantile(times_ms, 0.5),
            p90_ms=quantile(times_ms, 0.9),
            p99_ms=quantile(times_ms, 0.99),
            max_ms=times_ms[-1],
            cpu_share=cpu_share,
            quantiles_ms=[round(quantile(times_ms, step / 100), 3) for step in range(101)],
        )

    def pod(self, name: str) -> dict[str, Any]:
        """Return one of the pods that come."""
        return PLAIN.pod(name, MEASURED)

    async def _observe(self, stage: Stage, started: Started) -> tuple[dict[str, float], float]:
        async with stage.client() as client:
            watch = BoundWatch(client, MEASURED, lists_again=self._relists)
            await watch.open()
            following = asyncio.ensure_future(watch.run())
            tasks: list[asyncio.Future[Any]] = [following]
            try:
                process = started.process
                await until_bound(watch, WARM_UP, process, tasks, Limits())
                if self._prepare is not None:
                    await self._prepare(client)
                cpu_s, at_s = ProcessUsage.of(process.pid).cpu_s, time.monotonic()
                if self._beside is not None:
                    tasks.append(asyncio.ensure_future(self._beside(client)))
                await self._come(client)
                used_s = ProcessUsage.of(process.pid).cpu_s - cpu_s
                share = used_s / (time.monotonic() - at_s)
                for task in tasks[1:]:
                    task.cancel()
                for task in tasks[1:]:
                    with contextlib.suppress(asyncio.CancelledError):
                        await task
                await watch.wait(WARM_UP + len(self._created_s), _SETTLE_S)
                self.ended_s = time.monotonic()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            return watch.bound_s, share

    async def _come(self, client: LoadClient) -> None:
        self.began_s = begun_s = time.monotonic() + _REST_S
        async with asyncio.TaskGroup() as group:
            for index in range(self._pods):
                due_s = begun_s + index / self._rate
                await asyncio.sleep(max(due_s - time.monotonic(), 0))
                group.create_task(self._create(client, f"steady-{index:06}", due_s))

    async def _create(self, client: LoadClient, name: str, due_s: float) -> None:
        self._due_s[name] = due_s
        try:
            await client.create(self.pod(name))
        except ApiError as error:
            # It counts as not bound.
            if not self._relists:
                print(f"  {name} was not created: {error}", file=sys.stderr)
            return
        self._created_s[name] = time.monotonic()


def line(played: LatencyRound) -> str:
    """Return one round for people."""
    missing = f"  only {played.bound} of {played.pods} bound" if played.bound < played.pods else ""
    return (
        f"{played.number}  {played.contender:<20}{played.rate:4} pods/s"
        f"  p50 {played.p50_ms:7.1f} ms  p99 {played.p99_ms:7.1f} ms  max {played.max_ms:7.1f} ms"
        f"  CPU {played.cpu_share:4.0%}{missing}"
    )
