"""The cluster that Kubernetes' own tests run on: real but for its kubelets, which KWOK simulates.

etcd, kube-apiserver and kube-controller-manager with all its controllers are the real programs.
KWOK makes four nodes ready, runs every pod that is bound to one of them within a second, and ends
it as a kubelet would (``stages.yaml``). The contender is the only scheduler, ``default-scheduler``.
"""

from __future__ import annotations

import contextlib
import time
import urllib.error
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from tests.controlplane.binaries import ControlPlaneError, find_or_build
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.controller_manager import start_controller_manager
from tests.controlplane.server_process import ServerProcess

if TYPE_CHECKING:
    from types import TracebackType

    from tests.bench.contenders import Contender

NODES: Final = 4
"""With six, the test of asynchronous preemption takes longer than its victims' grace period."""

_STAGES: Final = Path(__file__).with_name("stages.yaml")
_GATES: Final = "--feature-gates=GenericWorkload=true"
_AMOUNTS: Final = {
    "cpu": "8",
    "memory": "16Gi",
    "ephemeral-storage": "100Gi",
    "pods": "110",
}
# One pod with the names of all three system pods that e2e.test looks for on each node.
_SYSTEM_POD: Final = "kube-proxy-fluentd-elasticsearch-node-problem-detector"
_DEADLINE_S: Final = 60.0
_POLL_S: Final = 0.1


class Cluster:
    """A running cluster with four nodes; use it with ``with``.

    Parameters
    ----------
    contender
        The scheduler; its scheduler name is ``default-scheduler``.
    keep
        Leave the data folder (logs) behind at the end.
    """

    def __init__(self, contender: Contender, *, keep: bool = False) -> None:
        self.control_plane = ControlPlane(
            audit=False,
            disabled_admission=(),
            extra_apiserver_args=(
                "--authorization-mode=Node",
                "--kubelet-preferred-address-types=InternalIP",
                _GATES,
                "--runtime-config=scheduling.k8s.io/v1alpha2=true",
            ),
            keep=keep,
        )
        self._contender = contender
        self._servers: list[ServerProcess] = []

    def __enter__(self) -> Self:
        kwok = find_or_build(["kwok"])["kwok"]
        self.control_plane.start()
        try:
            self._servers.append(self._start_controllers())
            self._servers.append(
                ServerProcess(
                    [
                        kwok,
                        f"--kubeconfig={self.control_plane.admin_kubeconfig}",
                        f"--config={_STAGES}",
                        "--manage-all-nodes=true",
                        "--node-lease-duration-seconds=40",
                        "--node-ip=127.0.0.1",
                    ],
                    self.control_plane.folder / "kwok.log",
                )
            )
            self._servers.append(self._contender.start(self.control_plane))
            for number in range(NODES):
                self.control_plane.call("POST", "/api/v1/nodes", _node(number))
                self._create_system_pod(number)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for server in self._servers:
            server.kill()
        self.control_plane.stop()

    def ensure_running(self) -> None:
        """Raise `ControlPlaneError` with the end of its log when a server has ended."""
        for server in self._servers:
            if not server.running:
                raise ControlPlaneError(
                    f"{server.name} ended with {server.exit_status}:\n{server.log_tail()}"
                )

    def _start_controllers(self) -> ServerProcess:
        return start_controller_manager(
            self.control_plane,
            ("*",),
            (
                f"--root-ca-file={self.control_plane.ca_file}",
                f"--service-account-private-key-file={self.control_plane.folder / 'sa.key'}",
                _GATES,
            ),
        )

    def _create_system_pod(self, number: int) -> None:
        """Create the pod of kube-system that e2e.test awaits for a minute before many tests."""
        deadline_s = time.monotonic() + _DEADLINE_S
        while True:
            # Refused until a controller has created the namespace's service account.
            with contextlib.suppress(urllib.error.HTTPError):
                path = "/api/v1/namespaces/kube-system/pods"
                self.control_plane.call("POST", path, _system_pod(number))
                return
            if time.monotonic() > deadline_s:
                raise ControlPlaneError(f"kube-system accepted no pod within {_DEADLINE_S:.0f} s")
            self.ensure_running()
            time.sleep(_POLL_S)


def _node(number: int) -> dict[str, Any]:
    name = f"node-{number}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "topology.kubernetes.io/zone": f"zone-{number % 2}",
                "topology.kubernetes.io/region": "region",
            },
        },
        "status": {
            "capacity": _AMOUNTS,
            "allocatable": _AMOUNTS,
            # Loopback, where nobody listens: who asks its kubelet is refused at once.
            "addresses": [
                {"type": "InternalIP", "address": f"127.1.0.{number + 1}"},
                {"type": "Hostname", "address": name},
            ],
            "nodeInfo": _NODE_INFO,
        },
    }


_NODE_INFO: Final = {
    "architecture": "amd64",
    "operatingSystem": "linux",
    # Tests of newer features are skipped on older kubelets.
    "kubeletVersion": "v1.36.3",
    "kubeProxyVersion": "",
    "containerRuntimeVersion": "kwok://",
    "kernelVersion": "",
    "osImage": "",
    "machineID": "",
    "systemUUID": "",
    "bootID": "",
}


def _system_pod(number: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{_SYSTEM_POD}-{number}"},
        "spec": {
            "nodeName": f"node-{number}",
            "priorityClassName": "system-node-critical",
            "containers": [{"name": "pause", "image": "registry.k8s.io/pause:3.10"}],
            "tolerations": [{"operator": "Exists"}],
        },
    }
