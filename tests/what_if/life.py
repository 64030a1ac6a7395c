"""A cluster with a running Berth, controllers and simulated kubelets, and what happens in it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
from typing import TYPE_CHECKING, Any, Final

from scheduler.config import default_config, running_profiles
from scheduler.offline.cluster import Cluster
from scheduler.offline.live import list_cluster
from scheduler.what_if import decode_question, forecast
from tests.controlplane.api import ApiError
from tests.controlplane.binaries import find_or_build

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from scheduler.what_if import Forecast
    from tests.controlplane.api import ApiClient
    from tests.what_if.actions import Action

CONTROLLERS: Final = ("replicaset-controller", "disruption-controller")

PODS: Final = "/api/v1/namespaces/default/pods"
SETS: Final = "/apis/apps/v1/namespaces/default/replicasets"
BUDGETS: Final = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"

RUNS: Final = {
    "status": {
        "phase": "Running",
        "conditions": [
            {"type": "Ready", "status": "True"},
            {"type": "PodScheduled", "status": "True"},
        ],
    }
}

QUIET_S: Final = 2.5
"""How long nothing may happen until a change is over; Berth's pauses are 1 s here."""

LONGEST_S: Final = 90.0

SEEDS: Final = 10
"""Forecasts for each action: ties and evictions at one time may go either way."""

DRAIN_S: Final = 45
"""How long kubectl tries; it asks every 5 s again whether a pod may be evicted."""


class Kubelets:
    """Let pods run as soon as they have a node."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            with contextlib.suppress(ApiError):
                for pod in await self._api.pods("default"):
                    is_new = pod["status"].get("phase") == "Pending"
                    if is_new and pod["spec"].get("nodeName"):
                        await self._api.patch(f"{PODS}/{pod['metadata']['name']}/status", RUNS)
            await asyncio.sleep(0.2)


class Scene:
    """The cluster as the campaign sees and changes it."""

    def __init__(self, api: ApiClient, kubeconfig: Path) -> None:
        self.api = api
        self._kubeconfig = kubeconfig
        self._profiles = running_profiles(default_config())

    async def ask(self, action: Action) -> list[Forecast]:
        """Return the forecasts for an action over fresh lists of the cluster, one for each seed."""
        objects = await list_cluster(str(self._kubeconfig))
        found = []
        for seed in range(SEEDS):
            cluster = Cluster()
            cluster.add_all(objects)
            question = decode_question(json.dumps({**action.question, "seed": seed}).encode())
            found.append(forecast(cluster, self._profiles, question))
        return found

    async def pods(self) -> dict[str, dict[str, Any]]:
        """Return the pods by UID."""
        return {pod["metadata"]["uid"]: pod for pod in await self.api.pods("default")}

    async def rest(self) -> dict[str, dict[str, Any]]:
        """Wait until nothing happens any more; return the pods then."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + LONGEST_S
        last, since = await self._state(), loop.time()
        while loop.time() < ends:
            await asyncio.sleep(0.25)
            now = await self._state()
            if now != last:
                last, since = now, loop.time()
            elif loop.time() - since > (QUIET_S if await self._is_settled() else 3 * QUIET_S):
                break
        return await self.pods()

    async def _state(self) -> object:
        pods = (await self.pods()).values()
        return sorted(
            (pod["metadata"]["uid"], pod["spec"].get("nodeName", ""), pod["status"]["phase"])
            for pod in pods
        )

    async def _is_settled(self) -> bool:
        """Return whether there are as many pods as are wanted, and each was tried."""
        sets = await self.api.list_all(SETS)
        pods = (await self.pods()).values()
        wanted = sum(each["spec"]["replicas"] for each in sets)
        return wanted == len(pods) and all(_is_done(pod) for pod in pods)

    async def do(self, action: Action) -> set[str]:
        """Carry an action out; return the pods that could not be evicted."""
        for added in action.question.get("add", ()):
            node = await self.api.get(f"/api/v1/nodes/{added['like']}")
            for number in range(1, added["count"] + 1):
                await self.api.post("/api/v1/nodes", _like(node, f"{added['like']}-new-{number}"))
            await self.rest()
        if action.workload is not None:
            await self.api.post(SETS, action.workload)
        if action.drain:
            await asyncio.to_thread(self._drain, action.drain)
        pods = await self.rest()
        return {
            f"default/{pod['metadata']['name']}"
            for pod in pods.values()
            if pod["spec"].get("nodeName") in action.drain
        }

    def _drain(self, names: tuple[str, ...]) -> None:
        kubectl = find_or_build(["kubectl"])["kubectl"]
        flags = (
            "--force",
            "--ignore-daemonsets",
            "--delete-emptydir-data",
            f"--timeout={DRAIN_S}s",
        )
        files = f"--kubeconfig={self._kubeconfig}", f"--cache-dir={self._kubeconfig}.cache"
        command = [str(kubectl), *files, "drain", *names, *flags]
        subprocess.run(command, capture_output=True, check=False, timeout=600)

    async def tidy(self, action: Action, most_share: float) -> None:
        """Uncordon nodes, remove added ones that are empty, and make room for the next round."""
        if action.budget is not None:
            await self.api.post(BUDGETS, action.budget)
        for name in action.drain:
            await self.api.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": False}})
        while await self._share() > most_share:
            sets = await self.api.list_all(SETS)
            oldest = min(sets, key=lambda each: int(each["metadata"]["name"].split("-")[1]))
            await self._remove_set(oldest["metadata"]["name"])
        await self.rest()

    async def _remove_set(self, name: str) -> None:
        await self.api.patch(f"{SETS}/{name}", {"spec": {"replicas": 0}})
        await self.rest()
        await self.api.delete(f"{SETS}/{name}")
        with contextlib.suppress(ApiError):
            await self.api.delete(f"{BUDGETS}/{name}")

    async def _share(self) -> float:
        """Return how much of the CPU all pods ask for, those that wait included."""
        nodes = await self.api.list_all("/api/v1/nodes")
        has = sum(_milli(node["status"]["allocatable"]["cpu"]) for node in nodes)
        asked = sum(
            _milli(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])
            for pod in (await self.pods()).values()
        )
        return asked / has

    async def drop_added_nodes(self) -> None:
        """Delete the nodes that actions have added, with their pods."""
        for node in await self.api.list_all("/api/v1/nodes"):
            name = node["metadata"]["name"]
            if "-new-" in name:
                await self.api.delete(f"/api/v1/nodes/{name}")
                for pod in (await self.pods()).values():
                    if pod["spec"].get("nodeName") == name:
                        await self.api.delete(f"{PODS}/{pod['metadata']['name']}")
        await self.rest()


def _is_done(pod: Mapping[str, Any]) -> bool:
    if pod["spec"].get("nodeName"):
        return bool(pod["status"]["phase"] == "Running")
    conditions = pod["status"].get("conditions", ())
    return any(each.get("reason") == "Unschedulable" for each in conditions)


def _like(node: Mapping[str, Any], name: str) -> dict[str, Any]:
    labels = {**node["metadata"]["labels"], "kubernetes.io/hostname": name}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": node["status"],
    }


def _milli(text: str) -> int:
    return int(text.removesuffix("m")) if text.endswith("m") else int(text) * 1000
