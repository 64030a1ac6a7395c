"""kube-controller-manager on the same control plane, with no more controllers than a test needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.controlplane.binaries import find_or_build
from tests.controlplane.pod_groups import CONTROLLER_MANAGER_ARGS
from tests.controlplane.server_process import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.controlplane.control_plane import ControlPlane

USER: Final = "system:kube-controller-manager"

VOLUME_CONTROLLERS: Final = ("persistentvolume-binder-controller", "ephemeral-volume-controller")
"""Bind claims to volumes, have provisioners make volumes, and make the claims of ephemeral ones."""


def start_controller_manager(
    control_plane: ControlPlane,
    controllers: Sequence[str] = VOLUME_CONTROLLERS,
    extra_args: Sequence[str] = (),
) -> ServerProcess:
    """Start kube-controller-manager; each controller works under its own service account.

    It does not elect a leader, serves no port, and is not throttled by its client. End it with
    `ServerProcess.kill` or ``terminate``; its log is in the control plane's folder.

    Raises
    ------
    ControlPlaneError
        The program cannot be had.
    """
    binary = find_or_build(["kube-controller-manager"])["kube-controller-manager"]
    return ServerProcess(
        [
            binary,
            f"--kubeconfig={control_plane.kubeconfig_of(USER)}",
            f"--controllers={','.join(controllers)}",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
            "--secure-port=0",
            "--kube-api-qps=5000",
            "--kube-api-burst=5000",
            *(CONTROLLER_MANAGER_ARGS if control_plane.pod_groups else ()),
            *extra_args,
        ],
        control_plane.folder / "kube-controller-manager.log",
    )
