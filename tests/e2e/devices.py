"""Devices that do not exist, on real nodes: a driver beside each kubelet, and what asks for them.

The driver is a program of our own (``tests/controlplane/driver``); all else is real. A container
that got a device has its pool and name in a variable, which it prints.
"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any, Final

import yaml

from tests.controlplane.binaries import find_or_build
from tests.controlplane.server_process import ServerProcess
from tests.e2e.images import BUSYBOX
from tests.e2e.node import node_user

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.controlplane.control_plane import ControlPlane
    from tests.e2e.cluster import Cluster
    from tests.e2e.node import Node

DRIVER: Final = "dra.e2e.berth.dev"
NAMESPACE: Final = "devices"
MODEL: Final = "b"
DEVICES: Final[Mapping[str, str]] = {"dev-0": "a", "dev-1": MODEL, "dev-2": MODEL}
"""The model of each device of a node."""
WANTED: Final = tuple(name for name, model in DEVICES.items() if model == MODEL)
"""The devices that the claims' selector matches: not the first one."""

_SHARED: Final = f"""
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {{name: e2e}}
spec:
  selectors: [{{cel: {{expression: device.driver == "{DRIVER}"}}}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: device, namespace: {NAMESPACE}}}
spec:
  spec:
    devices:
      requests:
        - name: device
          exactly:
            deviceClassName: e2e
            selectors:
              - cel: {{expression: 'device.attributes["{DRIVER}"].model == "{MODEL}"'}}
"""


class DeviceDriver:
    """The driver of one node, from here until :meth:`stop`.

    Concurrency
    -----------
    One thread.
    """

    def __init__(self, node: Node, control_plane: ControlPlane) -> None:
        self._node = node
        self._process = ServerProcess(
            [
                find_or_build(["driver"])["driver"],
                f"-name={DRIVER}",
                f"-node={node.name}",
                f"-kubeconfig={control_plane.kubeconfig_of(node_user(node.name))}",
                f"-kubelet-folder={node.kubelet_folder}",
                f"-cdi-folder={node.cdi_folder}",
                f"-devices={','.join(f'{name}={model}' for name, model in DEVICES.items())}",
            ],
            node.folder / "driver.log",
        )

    def stop(self) -> None:
        """End the program; its ResourceSlice stays until the kubelet removes it."""
        self._process.terminate()

    def prepared(self) -> set[str]:
        """Return the UIDs of the claims that are prepared on the node."""
        return {file.stem for file in self._node.cdi_folder.glob("*.json")}


@dataclasses.dataclass(frozen=True, slots=True)
class Claim:
    """A claim, the pod that it was made for, and the device that is allocated to it.

    Attributes
    ----------
    device
        ``pool/name``; empty without an allocation.
    """

    uid: str
    pod: str
    device: str

    @classmethod
    def of(cls, claim: Mapping[str, Any]) -> Claim:
        """Return what the API says of a claim that was made from the template."""
        owner = claim["metadata"]["ownerReferences"][0]["name"]
        allocation = claim.get("status", {}).get("allocation")
        results = allocation["devices"]["results"] if allocation else [{"pool": "", "device": ""}]
        ((pool, device),) = [(result["pool"], result["device"]) for result in results]
        return cls(claim["metadata"]["uid"], owner, f"{pool}/{device}" if allocation else "")


def create_namespace(cluster: Cluster) -> None:
    """Create the namespace, the DeviceClass and the ResourceClaimTemplate."""
    cluster.kubectl("create", "namespace", NAMESPACE)
    cluster.kubectl("apply", "-f", "-", given=_SHARED)


def create_pods(cluster: Cluster, *names: str) -> None:
    """Create pods of berth's that each ask for one device, and print which one they got."""
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {
                "schedulerName": "berth",
                "terminationGracePeriodSeconds": 1,
                "resourceClaims": [{"name": "mine", "resourceClaimTemplateName": "device"}],
                "containers": [
                    {
                        "name": "main",
                        "image": BUSYBOX,
                        "imagePullPolicy": "Never",
                        "command": ["/bin/sh", "-c", 'echo "$E2E_DEVICE"; sleep 1000000'],
                        "resources": {"claims": [{"name": "mine"}]},
                    }
                ],
            },
        }
        for name in names
    ]
    cluster.kubectl("create", "-f", "-", given=yaml.safe_dump_all(pods))


def claims(cluster: Cluster) -> list[Claim]:
    """Return all claims of the namespace."""
    path = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims"
    return [Claim.of(item) for item in cluster.get(path)["items"]]


def running_pods(cluster: Cluster) -> set[str]:
    """Return the names of the pods whose container runs, those on their way out not counted."""
    return {
        pod["metadata"]["name"]
        for pod in cluster.get(f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
        if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
    }


def seen_device(cluster: Cluster, pod: str) -> str:
    """Return what the container of a pod printed: its variable."""
    return cluster.kubectl("logs", pod, "-n", NAMESPACE).strip()


def published(cluster: Cluster) -> set[str]:
    """Return the devices in the ResourceSlices of the driver, as ``pool/name``."""
    slices = cluster.get("/apis/resource.k8s.io/v1/resourceslices")["items"]
    return {
        f"{s['spec']['pool']['name']}/{device['name']}"
        for s in slices
        if s["spec"]["driver"] == DRIVER
        for device in s["spec"].get("devices", ())
    }


def unschedulable_reason(cluster: Cluster, pod: str) -> str:
    """Return the message of a pod's condition PodScheduled; empty if it is not False."""
    found = json.loads(cluster.kubectl("get", "pod", pod, "-n", NAMESPACE, "-o", "json"))
    conditions = found["status"].get("conditions", ())
    return next(
        (
            condition["message"]
            for condition in conditions
            if (condition["type"], condition["status"]) == ("PodScheduled", "False")
        ),
        "",
    )
