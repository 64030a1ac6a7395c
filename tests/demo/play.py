"""Plays a scene on a control plane: creates it, lets berth at it, collects what came of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from tests.controlplane.api import ApiClient
from tests.controlplane.objects import make_namespace
from tests.controlplane.server_process import ServerProcess
from tests.demo.outcome import Outcome, work_out
from tests.demo.pod_watch import EVENTS_PATH, PODS_PATH, PodWatch
from tests.demo.scene import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.controlplane.control_plane import ControlPlane
    from tests.demo.display import Display
    from tests.demo.scene import Scene

DEADLINE_S: Final = 120.0
"""For all pods to be settled. A few seconds are normal; this is for a machine that is busy."""

EVENTS_DEADLINE_S: Final = 20.0
"""For the Events, which berth sends behind the bindings. Without them the summary says so."""

POLL_S: Final = 0.1

_BATCH: Final = 64


class DemoError(Exception):
    """The demo could not be played to its end; the message is for a person."""


def start_berth(control_plane: ControlPlane) -> ServerProcess:
    """Start berth as users do, with the service account and the rights that it ships with."""
    kubeconfig = control_plane.berth_kubeconfig()
    command = [sys.executable, "-m", "scheduler", "run", "--kubeconfig", str(kubeconfig)]
    command += ["--secure-port", "0", "--insecure-bind-address", "127.0.0.1:0"]
    command += ["--log-format", "json", "--leader-elect", "false"]
    return ServerProcess(command, control_plane.folder / "berth.log")


def berth_address(berth: ServerProcess) -> str | None:
    """Return HOST:PORT of berth's HTTP server, as its log tells it; None before it is ready."""
    for line in berth.log_file.read_text(errors="replace").splitlines():
        with contextlib.suppress(ValueError):
            entry = json.loads(line)
            if isinstance(entry, dict) and entry.get("event") == "scheduling":
                return str(entry["address"])
    return None


async def create(control_plane: ControlPlane, scene: Scene, display: Display) -> None:
    """Create nodes and pods; no scheduler may run yet."""
    async with ApiClient(control_plane.admin_kubeconfig) as api:
        await api.create_many([make_namespace(NAMESPACE)])
        await _create_all(api, "nodes created", scene.nodes, display)
        await _create_all(api, "pods created", scene.pods, display)


async def follow(
    control_plane: ControlPlane, scene: Scene, berth: ServerProcess, display: Display
) -> Outcome:
    """Watch until each pod is settled and judge the result.

    Raises
    ------
    DemoError
        berth ended, or the pods were not settled in time.
    """
    async with ApiClient(control_plane.admin_kubeconfig) as api:
        with display.stage("pods bound by berth", len(scene.placeable)) as stage:
            watch = PodWatch(scene, stage.reach)
            await _run_beside(berth, watch, api)
        events = await _await_events(api, scene)
        nodes = await api.list_all("/api/v1/nodes")
        pods = await api.list_all(PODS_PATH)
    return work_out(scene, nodes, pods, events, watch.last_s - watch.first_s)


async def _create_all(
    api: ApiClient, what: str, manifests: Sequence[dict[str, Any]], display: Display
) -> None:
    with display.stage(what, len(manifests)) as stage:
        for start in range(0, len(manifests), _BATCH):
            batch = manifests[start : start + _BATCH]
            await api.create_many(batch)
            stage.reach(start + len(batch))


async def _run_beside(berth: ServerProcess, watch: PodWatch, api: ApiClient) -> None:
    """Run the watch for as long as berth runs and there is time."""
    following = asyncio.ensure_future(watch.run(api))
    deadline_s = time.monotonic() + DEADLINE_S
    try:
        while not following.done():
            await asyncio.wait({following}, timeout=POLL_S)
            if not berth.running:
                raise DemoError(f"berth ended with exit status {berth.exit_status}")
            if time.monotonic() > deadline_s:
                raise DemoError(f"after {DEADLINE_S:.0f} s {watch.describe()}")
        await following
    finally:
        following.cancel()


async def _await_events(api: ApiClient, scene: Scene) -> list[dict[str, Any]]:
    """Return all Events, once there is one for each pod that a cycle refused."""
    deadline_s = time.monotonic() + EVENTS_DEADLINE_S
    while True:
        events = await api.list_all(EVENTS_PATH)
        explained = {
            event["regarding"]["name"] for event in events if event["reason"] == "FailedScheduling"
        }
        if scene.pending.keys() - scene.gated <= explained or time.monotonic() > deadline_s:
            return events
        await asyncio.sleep(POLL_S)
