"""The schedulers that are measured, each started as a process of its own."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Protocol

import yaml

from tests.controlplane.peer import start_kube_scheduler
from tests.controlplane.server_process import ServerProcess

if TYPE_CHECKING:
    from tests.controlplane.control_plane import ControlPlane

QPS = 5000
"""Both contenders may send as many requests a second: neither is held back by its client."""


class Contender(Protocol):
    """A scheduler that can be started against a control plane."""

    name: str
    scheduler_name: str

    def start(self, control_plane: ControlPlane) -> ServerProcess:
        """Start it; it schedules pods that ask for ``scheduler_name``."""
        ...


class Berth:
    """berth as users start it, under its own service account."""

    name = "berth"
    scheduler_name = "berth"

    def __init__(self, config: dict[str, object] | None = None) -> None:
        self._config = config or {}

    def start(self, control_plane: ControlPlane) -> ServerProcess:
        kubeconfig = control_plane.berth_kubeconfig()
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(kubeconfig), "qps": QPS, "burst": QPS},
            "profiles": [{"schedulerName": self.scheduler_name}],
            **self._config,
        }
        path = control_plane.folder / "berth.yaml"
        path.write_text(yaml.safe_dump(config))
        command = [sys.executable, "-m", "scheduler", "run", "--config", str(path)]
        command += ["--bind-address", "127.0.0.1:0"]
        return ServerProcess(command, control_plane.folder / "berth.log")


class KubeScheduler:
    """The peer, sampling nodes as it does by default, or scoring all of them."""

    scheduler_name = "default-scheduler"

    def __init__(self, *, all_nodes: bool = False) -> None:
        self.name = "kube-scheduler-all" if all_nodes else "kube-scheduler"
        self._config = {"percentageOfNodesToScore": 100} if all_nodes else {}

    def start(self, control_plane: ControlPlane) -> ServerProcess:
        return start_kube_scheduler(control_plane, self._config)
