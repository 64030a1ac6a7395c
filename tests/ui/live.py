"""A small cluster with a leader that schedules, for the views that ask it.

A real etcd and API server, Berth in this process, and pods that keep coming: some find a node, the
others wait for the reasons of the made-up cluster.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from scheduler.profiles.operator import OperatorOptions
from scheduler.serving.options import ServingOptions
from tests.controlplane.access import NAMESPACE
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.forwarding_kubelet import ForwardingKubelet
from tests.controlplane.objects import make_node, make_pod, make_restricted_pod
from tests.controlplane.scheduling_profiles import SchedulingProfiles
from tests.scenarios.running_berth import RunningBerth
from tests.scenarios.test_shadow_profile import PACKING
from tests.scenarios.test_standby import electing
from tests.ui.dump import TEAMS, cluster
from tests.ui.views import Pods

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LEADER: Final = "berth-5f6c9d7b8-x2x7k"
WAVE_S: Final = 3.0
WAVE: Final = 4
"""Pods that come at a time while the page is looked at; every fourth waits."""


class LiveCluster:
    """What the browser needs to know of it.

    Attributes
    ----------
    kubeconfig
        That of an administrator.
    pods
        The pods that are looked at.
    """

    def __init__(self, api: BlockingApi, kubeconfig: Path, pods: Pods) -> None:
        self._api = api
        self.kubeconfig = kubeconfig
        self.pods = pods
        self._stop = threading.Event()
        self._created = 0

    def create_pods(self) -> None:
        """Create a wave of pods."""
        made = []
        for number in range(self._created, self._created + WAVE):
            team = TEAMS[number % len(TEAMS)]
            cpu = "64" if number % WAVE == 0 else "50m"
            made.append(make_pod(f"{team}-api-{number:04}", namespace=team, cpu=cpu))
        self._created += WAVE
        self._api.create_many(made)

    def run(self) -> None:
        """Create waves until stopped."""
        while not self._stop.wait(WAVE_S):
            self.create_pods()

    def stop(self) -> None:
        """Create no more pods."""
        self._stop.set()


@contextmanager
def live_cluster(nodes: int, pending: int) -> Iterator[LiveCluster]:
    """Run a cluster with a leader that the API server can forward to."""
    objects = cluster(nodes, pending)
    with (
        ControlPlane(audit=False, load=True) as plane,
        BlockingApi(plane.admin_kubeconfig) as api,
        ForwardingKubelet() as kubelet,
    ):
        kubeconfig = plane.berth_kubeconfig()
        profiles = SchedulingProfiles(plane)
        profiles.install()
        for team in TEAMS:
            api.post("/api/v1/namespaces", {"metadata": {"name": team}})
        api.create_many(_as_created(each) for each in objects if each["kind"] == "Node")
        api.create_many([make_node("host", cpu="1", taints=[_taint()])])
        api.patch("/api/v1/nodes/host/status", {"status": kubelet.node_status()})
        api.create_many([make_restricted_pod(LEADER, NAMESPACE, "host")])
        serving = ServingOptions(bind_address="127.0.0.1", secure_port=0)
        options = {"identity": f"{LEADER}_1", "serving": serving}
        with RunningBerth(
            kubeconfig, config=electing(), operator=OperatorOptions(enabled=True), **options
        ) as leader:
            api.wait_until(lambda: leader.is_ready and leader.app._leads(), "it leads")
            kubelet.addresses[LEADER] = leader.app.server.address
            profiles.create("tight", {**PACKING, "shadow": {"decisions": 500, "budget": 0.5}})
            profiles.wait_settled("tight")
            pods = [_as_created(each) for each in objects if each["kind"] == "Pod"]
            api.create_many(each for each in pods if "nodeName" in each["spec"])
            api.create_many(each for each in pods if "nodeName" not in each["spec"])
            found = LiveCluster(api, plane.admin_kubeconfig, Pods.of(objects))
            waves = threading.Thread(target=found.run, name="waves")
            waves.start()
            try:
                yield found
            finally:
                found.stop()
                waves.join()


def _taint() -> dict[str, str]:
    return {"key": "host", "effect": "NoSchedule"}


def _as_created(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return an object without what the API server fills in."""
    dropped = {"uid", "creationTimestamp", "ownerReferences"}
    metadata = {key: each for key, each in manifest["metadata"].items() if key not in dropped}
    spec = {key: each for key, each in manifest["spec"].items() if key != "priority"}
    return {**manifest, "metadata": metadata, "spec": spec}
