"""Pods per second on a real API server, berth beside kube-scheduler, in turn.

All pods exist before the scheduler starts; the time runs from the first binding to the last.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.contenders import Berth, Contender, KubeScheduler
from tests.bench.process_usage import ProcessUsage
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import make_node, make_pod

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.controlplane.api import BindProgress
    from tests.controlplane.server_process import ServerProcess

ZONES = ("zone-1", "zone-2", "zone-3")


@dataclass(frozen=True, slots=True)
class Round:
    """One contender's work on a fresh control plane."""

    contender: str
    pods_per_s: float
    seconds: float
    start_to_first_bind_s: float
    cpu_s_per_1000_pods: float
    peak_rss_mib: float


def play(contender: Contender, nodes: int, pods: int) -> Round:
    """Let one contender place all pods."""
    with ControlPlane(load=True, audit=False) as plane, BlockingApi(plane.admin_kubeconfig) as api:
        api.create_many(
            [make_node(f"node-{i:05}", zone=ZONES[i % len(ZONES)]) for i in range(nodes)]
        )
        api.create_many(
            [
                make_pod(
                    f"pod-{i:05}",
                    cpu="100m",
                    memory="500Mi",
                    scheduler_name=contender.scheduler_name,
                )
                for i in range(pods)
            ]
        )
        started = time.monotonic()
        process = contender.start(plane)
        try:
            progress = api.run(_placed(api, process, pods))
            usage = ProcessUsage.of(process.pid)
        finally:
            process.kill()
    return Round(
        contender.name,
        progress.pods_per_s,
        progress.last_s - progress.first_s,
        progress.first_s - started,
        usage.cpu_s / pods * 1000,
        usage.peak_rss_bytes / 2**20,
    )


async def _placed(api: BlockingApi, process: ServerProcess, pods: int) -> BindProgress:
    """Wait until all pods are bound, or the scheduler has died."""
    waiting = asyncio.ensure_future(api.client.wait_bound(pods, timeout_s=600))
    while not waiting.done():
        await asyncio.wait({waiting}, timeout=0.5)
        if not process.running:
            waiting.cancel()
            raise RuntimeError(f"the scheduler has ended:\n{process.log_tail()}")
    return waiting.result()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make bench ARGS=", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--contenders", default="berth,kube-scheduler")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    options = parser.parse_args(arguments)
    known: dict[str, Contender] = {
        "berth": Berth(),
        "kube-scheduler": KubeScheduler(),
        "kube-scheduler-all": KubeScheduler(all_nodes=True),
    }
    contenders = [known[name] for name in options.contenders.split(",")]
    rounds = []
    for number in range(options.rounds):
        for contender in contenders:
            result = play(contender, options.nodes, options.pods)
            rounds.append(result)
            print(
                f"round {number + 1}  {result.contender:<20}{result.pods_per_s:8.0f} pods/s  "
                f"first bind after {result.start_to_first_bind_s:5.2f} s  "
                f"{result.cpu_s_per_1000_pods:5.2f} CPU s/1000 pods  "
                f"{result.peak_rss_mib:6.0f} MiB",
                flush=True,
            )
    medians = {
        contender.name: statistics.median(
            each.pods_per_s for each in rounds if each.contender == contender.name
        )
        for contender in contenders
    }
    print(f"\n{options.nodes} nodes, {options.pods} pods, {os.cpu_count()} cores, medians:")
    for name, median in medians.items():
        print(f"  {name:<20}{median:8.0f} pods/s   {median / medians[contenders[-1].name]:5.2f} x")
    if options.json:
        conditions = {
            "nodes": options.nodes,
            "pods": options.pods,
            "cores": os.cpu_count(),
            "python": platform.python_version(),
        }
        figures = {"conditions": conditions, "rounds": [asdict(each) for each in rounds]}
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
