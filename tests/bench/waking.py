"""``python -m tests.bench waking``: how far the I/O loop falls behind while pods start elsewhere.

Pods that another scheduler has placed start at a steady rate, first alone, and then beside many
pods with two required terms that wait for ours. What is compared is the lag of the loop in both.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
import urllib.request
from typing import TYPE_CHECKING, Any

import uvloop

from tests.bench.contenders import Berth, contender
from tests.bench.load_client import LoadClient
from tests.bench.pod_templates import SCHEDULER_NAME
from tests.bench.process_usage import ProcessUsage
from tests.bench.scraping import Scrape, scrape
from tests.controlplane.control_plane import ControlPlane, free_ports
from tests.controlplane.objects import HOSTNAME_LABEL, ZONE_LABEL, make_node, make_pod

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_PENDING = 'scheduler_pending_pods{queue="unschedulable"} '
_PATIENCE_S = 300.0
_NAMESPACE = "default"

_CALM_S = 0.1
"""CPU seconds within two: what it takes when nothing happens."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure each contender in turn, and print what was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench waking", description=__doc__)
    parser.add_argument("--waiting", type=int, default=10_000, help="pods with two terms")
    parser.add_argument("--templates", type=int, default=1000, help="that these are made from")
    parser.add_argument("--rate", type=int, default=100, help="pods that start each second")
    parser.add_argument("--seconds", type=float, default=30.0, help="of each part")
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--contenders", default="berth", help="berth, berth@FOLDER, by commas")
    options = parser.parse_args(arguments)
    print(f"{options.waiting} pods wait, {options.rate} others start each second")
    for name in options.contenders.split(","):
        port = free_ports(1)[0]
        made = contender(name, SCHEDULER_NAME, port)
        if not isinstance(made, Berth):
            parser.error(f"{name} has no event loop to look at")
        with ControlPlane(load=True, audit=False) as plane:
            for line in uvloop.run(_measure(plane, made, port, options)):
                print(f"{name:<24}{line}", flush=True)
    return 0


def waiting_pods(count: int, templates: int) -> Iterator[dict[str, Any]]:
    """Yield pods that wait to be near a pod that never comes, and apart from their own kind."""
    for index in range(count):
        app = f"waiting-{index % templates}"
        yield make_pod(
            f"waiting-{index}",
            namespace=_NAMESPACE,
            scheduler_name=SCHEDULER_NAME,
            cpu="10m",
            labels={"app": app},
            affinity={
                "podAffinity": _required(ZONE_LABEL, {"friend-of": app}),
                "podAntiAffinity": _required(HOSTNAME_LABEL, {"app": app}),
            },
        )


def _required(topology_key: str, labels: dict[str, str]) -> dict[str, Any]:
    term = {"topologyKey": topology_key, "labelSelector": {"matchLabels": labels}}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


async def _measure(
    plane: ControlPlane, made: Berth, port: int, options: argparse.Namespace
) -> list[str]:
    found = []
    async with LoadClient(plane.admin_kubeconfig) as client:
        await client.create_many(
            make_node(f"node-{index}", zone=f"zone-{index % 3}", pods="5000")
            for index in range(options.nodes)
        )
        process = made.start(plane)
        try:
            await _until_pending(port, 0)
            starts = _Starts(client, options)
            found.append(await _part("nobody waits", starts, process.pid, port))
            await client.create_many(waiting_pods(options.waiting, options.templates))
            await _until_pending(port, options.waiting)
            await _until_calm(process.pid)
            found.append(await _part(f"{options.waiting} wait", starts, process.pid, port))
        finally:
            process.kill()
    return found


class _Starts:
    """Pods that another scheduler has placed."""

    def __init__(self, client: LoadClient, options: argparse.Namespace) -> None:
        self._client = client
        self._options = options
        self._count = 0

    async def run(self) -> float:
        """Let them come at the rate; return how many came each second."""
        options, started_s = self._options, time.monotonic()
        total = int(options.rate * options.seconds)
        for number in range(total):
            due_s = started_s + number / options.rate
            await asyncio.sleep(max(0.0, due_s - time.monotonic()))
            self._count += 1
            await self._client.create(
                make_pod(
                    f"foreign-{self._count}",
                    namespace=_NAMESPACE,
                    scheduler_name="another",
                    cpu="1m",
                    labels={"app": f"foreign-{self._count % 50}", "tier": "front"},
                    nodeName=f"node-{self._count % options.nodes}",
                )
            )
        return total / (time.monotonic() - started_s)


async def _part(name: str, starts: _Starts, pid: int, port: int) -> str:
    before = await asyncio.to_thread(scrape, port, https=False)
    cpu_s = ProcessUsage.of(pid).cpu_s
    rate = await starts.run()
    used_s = ProcessUsage.of(pid).cpu_s - cpu_s
    after = await asyncio.to_thread(scrape, port, https=False)
    deadline_s = time.monotonic() + _PATIENCE_S
    while after is None and time.monotonic() < deadline_s:
        # A loop that is far behind answers once it has caught up; its lags are counted by then.
        after = await asyncio.to_thread(scrape, port, https=False)
    if before is None or after is None:
        return f"{name:<14} no answer to a scrape, CPU {used_s:.1f} s"
    median, tail = (_quantile(before, after, share) for share in (0.5, 0.99))
    return (
        f"{name:<14} {rate:5.0f} starts/s  lag p50 {median:8.2f} ms  p99 {tail:8.2f} ms"
        f"  CPU {used_s:.1f} s"
    )


def _quantile(before: Scrape, after: Scrape, share: float) -> float:
    """Return a quantile of the lags in ms, as Prometheus interpolates within a bucket."""
    grown = [(bound, count - before.lag.get(bound, 0.0)) for bound, count in after.lag.items()]
    wanted = share * max((count for _, count in grown), default=0.0)
    lower, below = 0.0, 0.0
    for bound, count in sorted(grown):
        if count >= wanted and count > below:
            upper = lower if bound == float("inf") else bound
            return (lower + (upper - lower) * (wanted - below) / (count - below)) * 1e3
        lower, below = bound, count
    return float("nan")


async def _until_pending(port: int, count: int) -> None:
    """Wait until so many pods have been refused."""
    deadline_s = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline_s:
        if await asyncio.to_thread(_refused, port) == count:
            return
        await asyncio.sleep(0.5)
    raise TimeoutError(f"not {count} pods wait: {_refused(port)}")


async def _until_calm(pid: int) -> None:
    """Wait until the Events and conditions of those who were refused have been written."""
    deadline_s = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline_s:
        before_s = ProcessUsage.of(pid).cpu_s
        await asyncio.sleep(2.0)
        if ProcessUsage.of(pid).cpu_s - before_s < _CALM_S:
            return


def _refused(port: int) -> int | None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            lines = answer.read().decode().splitlines()
    except OSError:
        return None
    counts = (line.removeprefix(_PENDING) for line in lines if line.startswith(_PENDING))
    return next((int(float(count)) for count in counts), 0)


if __name__ == "__main__":
    sys.exit(main())
