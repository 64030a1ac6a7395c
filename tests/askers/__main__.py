"""Why, asked by many while pods come: ``make askers``.

A real API server, 5 000 nodes, 200 new pods a second that Berth places, and now and then one that
fits nowhere. Twenty users ask about pods all the time, each as often as they may. What is measured:
how long answers take, how much CPU time, and how long decisions take with and without questions.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import ssl
import sys
import time
from pathlib import Path
from typing import Any

import aiohttp

from tests.askers.measured_berth import DECISIONS, LAGS, durations
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import make_node, make_pod
from tests.controlplane.server_process import ServerProcess

BASE = "https://127.0.0.1:17259"
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
IDLE_S = 3.0
"""After that idle processes have ended, and their CPU time counts as their parent's."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods-per-s", type=int, default=200)
    parser.add_argument("--askers", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--form", choices=("text", "json"), default="text")
    options = parser.parse_args()
    users = {f"asker-{number}": "system:masters" for number in range(options.askers)}
    with (
        ControlPlane(audit=False, load=True, users=users) as plane,
        BlockingApi(plane.admin_kubeconfig) as api,
    ):
        api.create_many(
            [make_node(f"n{number}", cpu="64", pods="500") for number in range(options.nodes)]
        )
        command = [sys.executable, "-m", "tests.askers.measured_berth", str(plane.folder)]
        command += ["run", "--kubeconfig", str(plane.berth_kubeconfig()), "--leader-elect=false"]
        command += ["--secure-port", "17259"]
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
        scene = Scene(options, plane, session, context, headers, berth.pid)
        await scene.ready()
        await scene.measure("without questions", 0)
        began = time.monotonic()
        await scene.ask_once("asker-0", random.Random(options.seed))
        print(f"the first answer, with the start of the worker: {time.monotonic() - began:.1f} s")
        await scene.measure("with questions", options.askers)
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"seed {options.seed}, {os.cpu_count()} CPUs, load {load}")
    return 0


class Scene:
    """The pods that come, the users that ask, and what is measured."""

    def __init__(
        self, options: Any, plane: ControlPlane, session: Any, context: Any, headers: Any, pid: int
    ):
        self.options, self.plane, self.session, self.pid = options, plane, session, pid
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
        files = [self.plane.folder / each for each in (DECISIONS, LAGS)]
        starts = [len(durations(each)) for each in files]
        cpu_s, self.answers = self.cpu_s(), []
        stop = asyncio.Event()
        asking = [asyncio.create_task(self.ask(f"asker-{n}", stop)) for n in range(askers)]
        began, created = time.monotonic(), len(self.names)
        while (elapsed := time.monotonic() - began) < self.options.seconds:
            due = int(elapsed * self.options.pods_per_s) - (len(self.names) - created)
            await asyncio.gather(*(self.create() for _ in range(max(due, 0))))
            await asyncio.sleep(0.02)
        stop.set()
        await asyncio.gather(*asking)
        await asyncio.sleep(IDLE_S)
        print(f"{name}: {(len(self.names) - created) / elapsed:.0f} pods/s created")
        for file, start in zip(files, starts, strict=True):
            print(f"  {file.name}: {quantiles(durations(file, start), 1e3, 'ms')}")
        used = {part: now - cpu_s.get(part, 0.0) for part, now in self.cpu_s().items()}
        print("  CPU: " + ", ".join(f"{part} {seconds:.1f} s" for part, seconds in used.items()))
        if good := [took for status, took in self.answers if status == 200]:
            refused = len(self.answers) - len(good)
            print(
                f"  {len(good)} answers ({refused} refused by limits): {quantiles(good, 1, 's')}; "
                f"{used['worker'] / len(good) * 1e3:.1f} ms of the worker's CPU time for each; at "
                f"most {max(self.sizes)} bytes"
            )
        sys.stdout.flush()

    def cpu_s(self) -> dict[str, float]:
        """Return the CPU time of berth and of its insight worker with the processes it ended."""
        found = {"berth": sum(cpu_times(self.pid)[:2]), "worker": 0.0}
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found["worker"] += sum(cpu_times(int(child)))
        return found

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
        rng = random.Random(user)
        while not stop.is_set():
            began = time.monotonic()
            status = await self.ask_once(user, rng)
            self.answers.append((status, time.monotonic() - began))
            if status != 200:
                await asyncio.sleep(0.5)

    async def ask_once(self, user: str, rng: random.Random) -> int:
        headers = {"Authorization": f"Bearer {self.plane._tokens[user]}"}
        query = {"namespace": "default", "name": rng.choice(self.names), "form": self.options.form}
        url = f"{BASE}/insight/v1/why"
        async with self.session.get(url, params=query, headers=headers, ssl=False) as answer:
            self.sizes.append(len(await answer.read()))
            return int(answer.status)


def cpu_times(pid: int) -> list[float]:
    """Return user and system time of a process, and of those of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return [int(each) / TICKS_PER_S for each in fields[11:15]]


def quantiles(seconds: list[float], factor: float, unit: str) -> str:
    """Return p50, p95, p99 and the maximum, as text."""
    ordered = sorted(seconds)
    parts = (0.5, 0.95, 0.99, 1.0)
    found = [ordered[min(int(len(ordered) * part), len(ordered) - 1)] * factor for part in parts]
    return "p50 {:.3g}, p95 {:.3g}, p99 {:.3g}, most {:.3g} {}".format(*found, unit)


if __name__ == "__main__":
    sys.exit(main())
