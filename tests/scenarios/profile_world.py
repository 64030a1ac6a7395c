"""A control plane with nodes and SchedulingProfiles, for berths in the test's own process."""

from __future__ import annotations

import asyncio
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import yaml

from scheduler.profiles.operator import OperatorOptions
from tests.controlplane.objects import make_node, make_pod
from tests.controlplane.scheduling_profiles import PATH, SchedulingProfiles
from tests.scenarios.replicas import wait_until
from tests.scenarios.running_berth import RunningBerth
from tests.scheduler.informers.tcp_proxy import TcpProxy

if TYPE_CHECKING:
    from pathlib import Path

    from scheduler.profiles.operator.profile_watch import ProfileWatch
    from tests.controlplane.blocking_api import BlockingApi
    from tests.controlplane.control_plane import ControlPlane

WITH_PROFILES: Final = OperatorOptions(enabled=True)


class World:
    """A control plane with nodes, its SchedulingProfiles and a client."""

    def __init__(self, plane: ControlPlane, api: BlockingApi) -> None:
        self.plane = plane
        self.api = api
        self.kubeconfig = plane.berth_kubeconfig()
        self.profiles = SchedulingProfiles(plane)
        self._number = 0

    def berth(self, **changes: Any) -> RunningBerth:
        """Return a berth that takes SchedulingProfiles over; ``changes`` as for RunningBerth."""
        return RunningBerth(self.kubeconfig, **{"operator": WITH_PROFILES, **changes})

    def place(self, count: int, scheduler_name: str) -> float:
        """Create pods and return how long it took until all of them had a node, in seconds."""
        self._number += 1
        group = f"group-{self._number}"
        pods = [
            make_pod(
                f"{group}-{i}", cpu="1m", scheduler_name=scheduler_name, labels={"group": group}
            )
            for i in range(count)
        ]
        since_s = time.monotonic()
        self.api.create_many(pods)
        self.api.wait_bound(count, label_selector=f"group={group}", timeout_s=180)
        return time.monotonic() - since_s

    def nodes_of(self, scheduler_name: str) -> set[str]:
        """Return where the pods of a scheduler are."""
        return {each["spec"].get("nodeName", "") for each in self._pods_of(scheduler_name)}

    def names_of(self, scheduler_name: str) -> set[str]:
        """Return the names of the pods of a scheduler."""
        return {each["metadata"]["name"] for each in self._pods_of(scheduler_name)}

    def clear(self) -> None:
        """Delete all SchedulingProfiles."""
        for each in self.api.list_all(PATH):
            self.profiles.delete(each["metadata"]["name"])

    def _pods_of(self, scheduler_name: str) -> list[dict[str, Any]]:
        return [
            each
            for each in self.api.pods("default")
            if each["spec"]["schedulerName"] == scheduler_name
        ]


def make_world(plane: ControlPlane, api: BlockingApi) -> World:
    """Return a world of five equal nodes, n0 to n4, whose API server does not know the kind."""
    world = World(plane, api)
    api.create_many([make_node(f"n{i}", pods="10000") for i in range(5)])
    return world


def watch_of(berth: RunningBerth) -> ProfileWatch:
    """Return what watches SchedulingProfiles for it."""
    operator = berth.app.operator
    assert operator is not None
    return operator.watch


def wait_watched(berth: RunningBerth) -> None:
    """Wait until kopf hands changes to this berth."""
    wait_until(lambda: berth.is_ready and watch_of(berth).kopf_is_up, "kopf runs")


def known(berth: RunningBerth) -> dict[str, int | None]:
    """Return the generation that decides of each SchedulingProfile that this berth knows."""
    statuses = berth.app.profiles.known.statuses()
    return {name: each.active_generation for name, each in statuses.items()}


def kill_kopf(watch: ProfileWatch) -> None:
    """Cancel everything on kopf's loop."""
    kopf = watch.kopf
    assert kopf is not None
    loop = kopf.loop
    assert loop is not None

    def cancel_all() -> None:
        for task in asyncio.all_tasks(loop):
            task.cancel()

    loop.call_soon_threadsafe(cancel_all)


class Gate:
    """A way to the API server that can be closed, on a loop and a thread of its own."""

    def __init__(self, world: World) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gate")
        self._original = world.kubeconfig
        self._is_open = False
        self._proxy = TcpProxy(int(world.plane.url.rpartition(":")[2]))

    def __enter__(self) -> Gate:
        self._thread.start()
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def kubeconfig(self, folder: Path) -> Path:
        """Write and return a kubeconfig of berth that leads through here."""
        content = yaml.safe_load(self._original.read_text())
        (cluster,) = content["clusters"]
        cluster["cluster"]["server"] = f"https://127.0.0.1:{self._proxy.port}"
        way = folder / "gate.kubeconfig"
        way.touch(mode=0o600)
        way.write_text(yaml.safe_dump(content))
        return way

    def open(self) -> None:
        """Let everybody in, at the port of before."""
        if not self._is_open:
            self._is_open = True
            self._run(self._proxy.__aenter__())

    def close(self) -> None:
        """Reset what is open and let nobody in."""
        if self._is_open:
            self._is_open = False
            self._run(self._proxy.__aexit__(None, None, None))

    def freeze(self) -> None:
        """Pass nothing on in the connections that are open now; new ones go to the API server."""
        self._loop.call_soon_threadsafe(partial(self._proxy.freeze, new_too=False))

    def _run(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(30)
