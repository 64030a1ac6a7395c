"""The peer: kube-scheduler itself on the same control plane, to compare with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import yaml

from tests.controlplane.binaries import find_or_build
from tests.controlplane.pod_groups import SCHEDULER_ARGS
from tests.controlplane.server_process import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.controlplane.control_plane import ControlPlane

USER: Final = "system:kube-scheduler"
_CLUSTER_ROLES: Final = ("system:kube-scheduler", "system:volume-scheduler")


def start_kube_scheduler(
    control_plane: ControlPlane,
    config: Mapping[str, Any] | None = None,
    *,
    https_port: int = 0,
    user: str = USER,
) -> ServerProcess:
    """Start kube-scheduler under its own user and default cluster role.

    It does not elect a leader, serves no port unless told to, and is not throttled by its
    client's default of 50 requests a second. End it with `ServerProcess.kill` or ``terminate``;
    its log is in the control plane's folder.

    Parameters
    ----------
    config
        Fields of a KubeSchedulerConfiguration, laid over these defaults: mappings are merged,
        everything else replaces.
    https_port
        Serves metrics there, on loopback and to everybody; 0 serves nothing.
    user
        Another one, for a second kube-scheduler beside the first; see :func:`grant_like`.

    Raises
    ------
    ControlPlaneError
        The program cannot be had.
    """
    binary = find_or_build(["kube-scheduler"])["kube-scheduler"]
    defaults = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {
            "kubeconfig": str(control_plane.kubeconfig_of(user)),
            "qps": 5000,
            "burst": 5000,
        },
    }
    name = user.rpartition(":")[2]
    config_file = control_plane.folder / f"{name}.yaml"
    config_file.write_text(yaml.safe_dump(_laid_over(defaults, config or {})))
    command = [binary, f"--config={config_file}", f"--secure-port={https_port}"]
    if control_plane.pod_groups:
        command += SCHEDULER_ARGS
    if https_port:
        command += [
            "--bind-address=127.0.0.1",
            f"--cert-dir={control_plane.folder}",
            "--authorization-always-allow-paths=/metrics,/readyz",
        ]
    return ServerProcess(command, control_plane.folder / f"{name}.log")


def grant_like(control_plane: ControlPlane, user: str) -> None:
    """Give a user of the control plane the cluster roles that kube-scheduler's own user has."""
    for role in _CLUSTER_ROLES:
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"{role}:{user}"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": role,
            },
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
        }
        path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
        control_plane.call("POST", path, binding)


def _laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        if isinstance(value, dict) and isinstance(under, dict):
            value = _laid_over(under, value)
        merged[key] = value
    return merged
