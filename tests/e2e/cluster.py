"""The whole cluster: API server, all controllers, kube-scheduler, two real nodes, simulated ones.

Nothing of it knows berth: that comes by its chart, as a user would install it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, Self

import yaml

from tests.controlplane.binaries import ControlPlaneError, find_or_build
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.controller_manager import start_controller_manager
from tests.controlplane.server_process import ServerProcess
from tests.e2e.node import GROUP, Node, node_user
from tests.e2e.sandbox import GATEWAY
from tests.scenarios.lease_witness import POLICY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from types import TracebackType


NODES: Final = ("node-1", "node-2")
SIMULATED_LABEL: Final = "berth.e2e/simulated"
_SIMULATED_NODES: Final = 20
_DEADLINE_S: Final = 120.0
_POLL_S: Final = 0.1


class Cluster:
    """A running cluster; use it with ``with``, inside the sandbox.

    Concurrency
    -----------
    `kubectl`, `helm`, `get` and `wait` from any thread.
    """

    def __init__(self, folder: Path, images: Mapping[str, Path]) -> None:
        self.folder = folder
        self._images = images
        # Who holds the Lease stands in the audit log too.
        policy = folder / "audit-policy.yaml"
        policy.write_text(yaml.safe_dump(dict(POLICY)))
        self.control_plane = ControlPlane(
            port=443,
            disabled_admission=(),
            users={node_user(name): GROUP for name in NODES},
            extra_apiserver_args=(
                "--bind-address=0.0.0.0",
                f"--advertise-address={GATEWAY}",
                "--authorization-mode=Node",
                "--enable-admission-plugins=NodeRestriction",
                "--kubelet-preferred-address-types=InternalIP",
                f"--audit-policy-file={policy}",
            ),
            keep=True,  # it goes with the sandbox's folder
        )
        self.nodes = {name: Node(name, number, folder) for number, name in enumerate(NODES)}
        self._servers: list[ServerProcess] = []

    def __enter__(self) -> Self:
        self._binaries = find_or_build(["kubectl", "helm"])
        self.control_plane.start()
        try:
            self._start_controllers()
            self._start_kube_scheduler()
            with ThreadPoolExecutor() as pool:
                starts = [
                    pool.submit(node.start, self.control_plane, self._images)
                    for node in self.nodes.values()
                ]
            for start in starts:
                start.result()
            self._add_simulated_nodes()
            for name in NODES:
                self.wait(f"{name} to be Ready", functools.partial(self.is_ready, name))
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
        for node in self.nodes.values():
            node.stop()
        for server in self._servers:
            server.kill()
        self.control_plane.stop()

    def kubectl(self, *arguments: str, given: str | None = None, check: bool = True) -> str:
        """Run kubectl as admin; its standard output.

        Raises
        ------
        ControlPlaneError
            It failed, and `check` is on.
        """
        return self._command("kubectl", arguments, given, check=check)

    def helm(self, *arguments: str) -> str:
        """Run helm as admin; its standard output."""
        return self._command("helm", arguments, None, check=True)

    def get(self, path: str) -> dict[str, Any]:
        """GET an object or a collection as admin."""
        return self.control_plane.call("GET", path)

    def wait(
        self, what: str, condition: Callable[[], Any], timeout_s: float = _DEADLINE_S
    ) -> float:
        """Wait until `condition` holds (errors of the API count as no); the seconds it took.

        Raises
        ------
        TimeoutError
            It did not within `timeout_s`; the message ends with the cluster's pods and Events.
        """
        started = time.monotonic()
        while True:
            with contextlib.suppress(OSError, ControlPlaneError):
                if condition():
                    return time.monotonic() - started
            if time.monotonic() - started > timeout_s:
                raise TimeoutError(f"waited {timeout_s:.0f} s for {what}\n{self.story()}")
            time.sleep(_POLL_S)

    def is_ready(self, name: str) -> bool:
        """Return whether a node is Ready and its not-ready taint is gone."""
        node = self.get(f"/api/v1/nodes/{name}")
        conditions = {c["type"]: c["status"] for c in node["status"].get("conditions", ())}
        return conditions.get("Ready") == "True" and not node["spec"].get("taints")

    def story(self) -> str:
        """Return what one would look at first when something does not happen."""
        return "\n".join(
            [
                self.kubectl("get", "nodes,pods", "-A", "-o", "wide", check=False),
                self.kubectl("get", "events", "-A", "--sort-by=.lastTimestamp", check=False)[
                    -6000:
                ],
                *(node.log_tail() for node in self.nodes.values()),
            ]
        )

    def _command(
        self, name: str, arguments: tuple[str, ...], given: str | None, *, check: bool
    ) -> str:
        done = subprocess.run(
            [self._binaries[name], *arguments],
            env={**os.environ, "KUBECONFIG": str(self.control_plane.admin_kubeconfig)},
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        if check and done.returncode != 0:
            raise ControlPlaneError(
                f"{name} {' '.join(arguments)} ended with {done.returncode}:\n"
                f"{done.stdout}{done.stderr}"
            )
        return done.stdout

    def _start_controllers(self) -> None:
        folder = self.control_plane.folder
        self._servers.append(
            start_controller_manager(
                self.control_plane,
                ("*",),
                (
                    f"--root-ca-file={self.control_plane.ca_file}",
                    f"--service-account-private-key-file={folder / 'sa.key'}",
                    # Simulated nodes have nobody who would renew their leases.
                    "--node-monitor-grace-period=24h",
                ),
            )
        )

    def _start_kube_scheduler(self) -> None:
        """The cluster's own scheduler, for berth's own pods."""
        kubeconfig = self.control_plane.kubeconfig_of("system:kube-scheduler")
        self._servers.append(
            ServerProcess(
                [
                    find_or_build(["kube-scheduler"])["kube-scheduler"],
                    f"--kubeconfig={kubeconfig}",
                    "--secure-port=0",
                    "--leader-elect=false",
                ],
                self.control_plane.folder / "kube-scheduler.log",
            )
        )

    def _add_simulated_nodes(self) -> None:
        """Nodes without a kubelet, for load: pods are bound to them and never run."""
        amounts = {"cpu": "1000", "memory": "1000Gi", "pods": "1000"}
        for number in range(_SIMULATED_NODES):
            self.control_plane.call(
                "POST",
                "/api/v1/nodes",
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "metadata": {
                        "name": f"simulated-{number:02}",
                        "labels": {SIMULATED_LABEL: "true"},
                    },
                    "spec": {"taints": [{"key": SIMULATED_LABEL, "effect": "NoSchedule"}]},
                    "status": {
                        "capacity": amounts,
                        "allocatable": amounts,
                        "conditions": [{"type": "Ready", "status": "True", "reason": "Simulated"}],
                    },
                },
            )
