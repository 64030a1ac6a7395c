"""A real node: containerd with runc, and a kubelet; two of them share one bridge.

Containerd is built by binaries.py, since that of Debian 12 cannot give devices to containers (CDI);
runc is Debian's. State lies in the sandbox's folder. The kubelet takes part as
``system:node:NAME``, with the rights that the node authorizer gives it, and its pods' containers
really run.
"""

from __future__ import annotations

import json
import subprocess
import time
from typing import TYPE_CHECKING, Final

import yaml

from tests.controlplane.binaries import CONTAINERD, ControlPlaneError, find_or_build
from tests.controlplane.server_process import ServerProcess
from tests.e2e.images import BUSYBOX
from tests.e2e.sandbox import BRIDGE, GATEWAY, cgroup_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.controlplane.control_plane import ControlPlane

GROUP: Final = "system:nodes"
_FIRST_PORT: Final = 10_250
_DEADLINE_S: Final = 60.0


def node_user(name: str) -> str:
    """Return the user as whom the kubelet of the node `name` acts."""
    return f"system:node:{name}"


class Node:
    """One containerd and one kubelet.

    Parameters
    ----------
    name
        The Node's name; its user must be known to the control plane (`node_user`).
    number
        Tells the ports and the pod addresses of nodes on one machine apart, from 0.

    Attributes
    ----------
    folder
        Configuration, state and logs.
    kubelet_folder
        The kubelet's own folder, where device drivers register.
    cdi_folder
        Where containerd looks for the devices that drivers add to containers.

    Concurrency
    -----------
    One thread at a time.
    """

    def __init__(self, name: str, number: int, folder: Path) -> None:
        self.name = name
        self._number = number
        self._sandbox = folder
        self.folder = folder / name
        self.kubelet_folder = self.folder / "kubelet"
        self.cdi_folder = self.folder / "cdi"
        self._programs: Mapping[str, Path] = {}
        self._containerd: ServerProcess | None = None
        self._kubelet: ServerProcess | None = None

    def start(self, control_plane: ControlPlane, images: Mapping[str, Path]) -> None:
        """Start containerd, import `images`, start the kubelet; it registers by itself.

        Raises
        ------
        ControlPlaneError
            One of them ended, or containerd does not answer within a minute.
        """
        self._programs = find_or_build([*CONTAINERD, "kubelet"])
        self.folder.mkdir()
        self.cdi_folder.mkdir()
        self._write_cni()
        self._containerd = ServerProcess(
            [self._programs["containerd"], "--config", self._containerd_config()],
            self.folder / "containerd.log",
        )
        self._await_containerd(self._containerd)
        for archive in images.values():
            self.ctr("images", "import", str(archive))
        self._kubelet = ServerProcess(
            [
                self._programs["kubelet"],
                f"--config={self._kubelet_config()}",
                f"--kubeconfig={control_plane.kubeconfig_of(node_user(self.name))}",
                f"--hostname-override={self.name}",
                f"--root-dir={self.kubelet_folder}",
                f"--cert-dir={self.folder / 'pki'}",
                f"--node-ip={GATEWAY}",
                f"--node-labels=berth.e2e/node={self.name}",
            ],
            self.folder / "kubelet.log",
        )

    def stop(self) -> None:
        """End both; the containers go with the sandbox."""
        for server in (self._kubelet, self._containerd):
            if server is not None:
                server.kill()

    def ctr(self, *arguments: str) -> str:
        """Run containerd's own client in the kubelet's namespace; its output."""
        done = subprocess.run(
            [self._programs["ctr"], "--address", self._socket, "--namespace", "k8s.io", *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise ControlPlaneError(f"ctr {' '.join(arguments)} failed:\n{done.stderr}")
        return done.stdout

    def container_pid(self, container_id: str) -> int:
        """Return the process id of a container (``containerd://...`` or the bare id).

        Raises
        ------
        ControlPlaneError
            It does not run.
        """
        wanted = container_id.removeprefix("containerd://")
        for line in self.ctr("tasks", "list").splitlines()[1:]:
            found, pid, _ = line.split(maxsplit=2)
            if found == wanted:
                return int(pid)
        raise ControlPlaneError(f"{self.name}: no task {wanted}")

    def log_tail(self) -> str:
        """Return the end of both logs."""
        servers = (self._containerd, self._kubelet)
        return "\n".join(f"{s.name}:\n{s.log_tail()}" for s in servers if s is not None)

    @property
    def _socket(self) -> str:
        return str(self.folder / "containerd.sock")

    def _await_containerd(self, containerd: ServerProcess) -> None:
        deadline = time.monotonic() + _DEADLINE_S
        while True:
            if not containerd.running or time.monotonic() > deadline:
                raise ControlPlaneError(f"containerd is not ready:\n{containerd.log_tail()}")
            try:
                self.ctr("version")
                return
            except ControlPlaneError:
                time.sleep(0.05)

    def _write_cni(self) -> None:
        folder = self.folder / "cni"
        folder.mkdir()
        conflist = {
            "cniVersion": "0.4.0",
            "name": "berth-e2e",
            "plugins": [
                {
                    "type": "bridge",
                    "bridge": BRIDGE,
                    "isGateway": False,
                    "ipMasq": False,
                    "ipam": {
                        "type": "host-local",
                        "dataDir": str(self._sandbox / "addresses"),
                        "ranges": [[{"subnet": "10.244.0.0/16", "gateway": GATEWAY}]],
                        "routes": [{"dst": "0.0.0.0/0"}],
                    },
                },
                {"type": "loopback"},
            ],
        }
        (folder / "10-berth.conflist").write_text(json.dumps(conflist))

    def _containerd_config(self) -> Path:
        path = self.folder / "containerd.toml"
        # Without CAP_SYS_RESOURCE nobody can lower an OOM score: runc would fail.
        path.write_text(f"""\
version = 3
root = "{self.folder}/containerd"
state = "{self.folder}/state"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.nri.v1.nri"]
[grpc]
address = "{self._socket}"
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{BUSYBOX}"
[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
cdi_spec_dirs = ["{self.cdi_folder}"]
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["/usr/lib/cni"]
conf_dir = "{self.folder}/cni"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
runtime_path = "{self._programs["containerd-shim-runc-v2"]}"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
SystemdCgroup = false
""")
        return path

    def _kubelet_config(self) -> Path:
        path = self.folder / "kubelet.yaml"
        config = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": f"unix://{self._socket}",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": cgroup_of(self._sandbox, self.name),
            "failCgroupV1": False,
            "failSwapOn": False,
            "resolvConf": "",
            "port": _FIRST_PORT + 10 * self._number,
            "healthzPort": 0,
            "readOnlyPort": 0,
            "podLogsDir": str(self.folder / "logs"),
            "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%"},
            "imageGCHighThresholdPercent": 100,
            # Nobody but the sandbox reaches its ports.
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "nodeStatusUpdateFrequency": "5s",
            "syncFrequency": "10s",
        }
        path.write_text(yaml.safe_dump(config))
        return path
