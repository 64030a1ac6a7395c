"""Why, asked by many while pods come: ``make askers``.

A real API server, 5 000 nodes, 200 new pods a second that Berth places, and now and then one that
fits nowhere. Twenty users ask about pods all the time, each as often as they may. What is measured:
how long answers take, and how long decisions take with and without questions.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import ssl
import sys
import time
from typing import Any

import aiohttp
from prometheus_client.parser import text_string_to_metric_families as parse

from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import make_node, make_pod
from tests.controlplane.server_process import ServerProcess

DECISIONS = "scheduler_scheduling_algorithm_duration_seconds"
LAG = "berth_loop_lag_seconds"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods-per-s", type=int, default=200)
    parser.add_argument("--askers", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    users = {f"asker-{number}": "system:masters" for number in range(options.askers)}
    with (
        ControlPlane(audit=False, load=True, users=users) as plane,
        BlockingApi(plane.admin_kubeconfig) as api,
    ):
        api.create_many(
            [make_node(f"n{number}", cpu="64", pods="500") for number in range(options.nodes)]
        )
        command = [sys.executable, "-m", "scheduler", "run", "--kubeconfig"]
        command += [str(plane.berth_kubeconfig()), "--leader-elect=false", "--secure-port", "17259"]
        command += ["--bind-address", "127.0.0.1", "--seed", str(options.seed)]
        berth = ServerProcess(command, plane.folder / "berth.log")
        try:
            return asyncio.run(campaign(options, plane, berth))
        finally:
            berth.kill()


async def campaign(options: Any, plane: ControlPlane, berth: ServerProcess) -> int:
    context = ssl.create_default_context(cafile=str(plane.ca_file))
    connector = aiohttp.TCPConnector(limit=64)
    headers = {"Authorization": f"Bearer {plane._tokens['admin']}"}
    async with aiohttp.ClientSession(connector=connector) as session:
        scene = Scene(options, plane, session, context, headers)
        await scene.ready()
        for name, askers in (("without questions", 0), ("with questions", options.askers)):
            await scene.measure(name, askers)
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"seed {options.seed}, {os.cpu_count()} CPUs, load {load}")
    return 0


class Scene:
    """The pods that come, the users that ask, and what is measured."""

    def __init__(self, options: Any, plane: ControlPlane, session: Any, context: Any, headers: Any):
        self.options, self.plane, self.session = options, plane, session
        self.context, self.headers = context, headers
        self.rng = random.Random(options.seed)
        self.names: list[str] = []
        self.answers: list[tuple[int, float]] = []
        self.sizes: list[int] = []

    async def ready(self) -> None:
        while True:
            try:
                async with self.session.get(f"{BASE}/readyz", ssl=False) as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.2)

    async def measure(self, name: str, askers: int) -> None:
        before, self.answers = await self.metrics(), []
        stop = asyncio.Event()
        asking = [asyncio.create_task(self.ask(f"asker-{n}", stop)) for n in range(askers)]
        began, created = time.monotonic(), len(self.names)
        while (elapsed := time.monotonic() - began) < self.options.seconds:
            due = int(elapsed * self.options.pods_per_s) - (len(self.names) - created)
            await asyncio.gather(*(self.create() for _ in range(max(due, 0))))
            await asyncio.sleep(0.02)
        stop.set()
        await asyncio.gather(*asking)
        after = await self.metrics()
        print(f"{name}: {(len(self.names) - created) / elapsed:.0f} pods/s created")
        for metric, found in after.items():
            p50, p99 = (quantile(before[metric], found, q) for q in (0.5, 0.99))
            print(f"  {metric}: p50 < {p50 * 1e3:.3g} ms, p99 < {p99 * 1e3:.3g} ms")
        good = sorted(took for status, took in self.answers if status == 200)
        if good:
            refused = len(self.answers) - len(good)
            p50, p95 = good[len(good) // 2], good[int(len(good) * 0.95)]
            print(
                f"  {len(good)} answers ({refused} refused by limits): p50 {p50:.2f} s, "
                f"p95 {p95:.2f} s, slowest {good[-1]:.2f} s, about {max(self.sizes)} bytes"
            )
        sys.stdout.flush()

    async def create(self) -> None:
        large = self.rng.random() < 0.005
        name = f"p{len(self.names)}"
        self.names.append(name)
        body = make_pod(name, cpu="128" if large else "10m")
        url = f"{self.plane.url}/api/v1/namespaces/default/pods"
        async with self.session.post(
            url, json=body, headers=self.headers, ssl=self.context
        ) as answer:
            await answer.read()

    async def ask(self, user: str, stop: asyncio.Event) -> None:
        headers = {"Authorization": f"Bearer {self.plane._tokens[user]}"}
        rng = random.Random(user)
        while not stop.is_set():
            query = {"namespace": "default", "name": rng.choice(self.names or ["p0"])}
            began = time.monotonic()
            url = f"{BASE}/insight/v1/why"
            async with self.session.get(url, params=query, headers=headers, ssl=False) as answer:
                self.sizes.append(len(await answer.read()))
                self.answers.append((answer.status, time.monotonic() - began))
                if answer.status != 200:
                    await asyncio.sleep(0.5)

    async def metrics(self) -> dict[str, dict[float, float]]:
        async with self.session.get(f"{BASE}/metrics", headers=self.headers, ssl=False) as answer:
            text = await answer.text()
        found: dict[str, dict[float, float]] = {}
        for family in parse(text):
            if family.name in (DECISIONS, LAG):
                buckets = found.setdefault(family.name, {})
                for sample in family.samples:
                    if sample.name.endswith("_bucket"):
                        limit = float(sample.labels["le"])
                        buckets[limit] = buckets.get(limit, 0.0) + sample.value
        return found


BASE = "https://127.0.0.1:17259"


def quantile(before: dict[float, float], after: dict[float, float], part: float) -> float:
    """Return the upper limit of the bucket that the quantile of the difference is in."""
    counts = {limit: count - before.get(limit, 0.0) for limit, count in after.items()}
    wanted = max(counts.values()) * part
    return min(limit for limit, count in counts.items() if count >= wanted)


if __name__ == "__main__":
    sys.exit(main())
