"""Forecasts beside what happens then on a real API server with a running Berth (make what-if)."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import sys
from typing import TYPE_CHECKING, NamedTuple

from scheduler.config import parse_config
from scheduler.process.log_setup import configure_logging
from tests.controlplane.api import ApiClient
from tests.controlplane.binaries import find_or_build
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.controller_manager import start_controller_manager
from tests.scenarios.running_berth import RunningBerth
from tests.what_if.actions import ADD, DRAIN, SCALE_UP, first_nodes, random_action
from tests.what_if.life import CONTROLLERS, SEEDS, Kubelets, Scene

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from scheduler.what_if import Forecast
    from tests.what_if.actions import Action

BINARIES = ["etcd", "kube-apiserver", "kube-controller-manager", "kubectl"]
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
podMaxBackoffSeconds: 1
profiles: [{schedulerName: berth}]
"""
"""The default profile. With short pauses, as nothing is compared before all pods were tried."""

CLASS = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 1000,
}


class Row(NamedTuple):
    """One action: the forecast, and what happened.

    Attributes
    ----------
    placed, refused, blocked
        Pods that got a node, that wait, and that could not be evicted: forecast and outcome.
    on_same_nodes
        How many of the pods that got a node did so on a node that the forecast had for as many.
    is_among_forecasts
        Whether a forecast with another seed has the numbers of the outcome.
    """

    number: int
    kind: str
    placed: tuple[int, int]
    refused: tuple[int, int]
    blocked: tuple[int, int]
    on_same_nodes: int
    is_among_forecasts: bool

    @property
    def is_equal(self) -> bool:
        """Whether all numbers are as they were forecast."""
        return all(told == seen for told, seen in (self.placed, self.refused, self.blocked))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign; 0 when every outcome was as a forecast, 1 when not."""
    parser = argparse.ArgumentParser(prog="python -m tests.what_if", description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="actions")
    parser.add_argument("--nodes", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    find_or_build(BINARIES)
    configure_logging("console", "error")
    with ControlPlane(audit=False) as plane:
        manager = start_controller_manager(plane, CONTROLLERS)
        try:
            with RunningBerth(plane.berth_kubeconfig(), config=parse_config(CONFIG, "campaign")):
                rows = asyncio.run(_campaign(plane, options))
        finally:
            manager.kill()
    return _report(rows)


async def _campaign(plane: ControlPlane, options: argparse.Namespace) -> list[Row]:
    chance = random.Random(options.seed)
    rows = []
    async with ApiClient(plane.admin_kubeconfig) as api:
        await api.post("/apis/scheduling.k8s.io/v1/priorityclasses", CLASS)
        await api.create_many(first_nodes(chance, options.nodes))
        kubelets = asyncio.create_task(Kubelets(api).run())
        scene = Scene(api, plane.admin_kubeconfig)
        kinds = [SCALE_UP] * 4 + [DRAIN, SCALE_UP, ADD] * options.count
        for number in range(options.count):
            names = [each["metadata"]["name"] for each in await api.list_all("/api/v1/nodes")]
            action = random_action(chance, number, kinds[number], sorted(names))
            rows.append(await _round(scene, action, number))
            sys.stdout.write(f"{_line(rows[-1])}\n")
            sys.stdout.flush()
            await scene.tidy(action, most_share=0.9)
            if action.kind == ADD:
                await scene.drop_added_nodes()
        kubelets.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await kubelets
    return rows


async def _round(scene: Scene, action: Action, number: int) -> Row:
    before = await scene.pods()
    told = await scene.ask(action)
    blocked = await scene.do(action)
    after = await scene.pods()
    return _compare(number, action, told, before, after, blocked)


def _compare(
    number: int,
    action: Action,
    forecasts: Sequence[Forecast],
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    blocked: set[str],
) -> Row:
    told = forecasts[0]
    had = {uid for uid, pod in before.items() if pod["spec"].get("nodeName")}
    placed = [
        pod["spec"]["nodeName"]
        for uid, pod in after.items()
        if uid not in had and pod["spec"].get("nodeName")
    ]
    waiting = sum(not pod["spec"].get("nodeName") for pod in after.values())
    left = dict(told.nodes)
    same = 0
    for name in placed:
        if left.get(name, 0):
            left[name] -= 1
            same += 1
    outcome = len(placed), waiting, len(blocked)
    return Row(
        number,
        action.kind,
        (told.placed, len(placed)),
        (told.refused, waiting),
        (_blocked(told), len(blocked)),
        same,
        outcome in {(each.placed, each.refused, _blocked(each)) for each in forecasts},
    )


def _blocked(told: Forecast) -> int:
    return sum(len(drain.blocked) for drain in told.drains)


def _line(row: Row) -> str:
    verdict = "by another seed" if row.is_among_forecasts else "DIFFERENT"
    verdict = "as forecast" if row.is_equal else verdict
    return (
        f"{row.number:4} {row.kind:14} placed {row.placed[0]:3} / {row.placed[1]:3}  "
        f"refused {row.refused[0]:3} / {row.refused[1]:3}  "
        f"blocked {row.blocked[0]:2} / {row.blocked[1]:2}  "
        f"same nodes {row.on_same_nodes:3}  {verdict}"
    )


def _report(rows: Sequence[Row]) -> int:
    equal = sum(row.is_equal for row in rows)
    placed = sum(row.placed[1] for row in rows)
    same = sum(row.on_same_nodes for row in rows)
    sys.stdout.write(
        f"{equal} of {len(rows)} outcomes as forecast; {same} of {placed} pods on the same nodes\n"
    )
    among = sum(row.is_among_forecasts for row in rows)
    sys.stdout.write(f"{among} of {len(rows)} outcomes as a forecast with one of {SEEDS} seeds\n")
    for kind in (SCALE_UP, DRAIN, ADD):
        of_kind = [row for row in rows if row.kind == kind]
        equal_of_kind = sum(row.is_equal for row in of_kind)
        sys.stdout.write(f"  {kind}: {equal_of_kind} of {len(of_kind)}\n")
    return int(among < len(rows))


if __name__ == "__main__":
    sys.exit(main())
