"""Groups of pods on a control plane: what serves them, and the objects as the API takes them.

``scheduling.k8s.io/v1alpha2`` is off by default in 1.36: the API server needs its gates and the API
version, a scheduler and the controller manager need the gates. ``ControlPlane(pod_groups=True)``
does all of it. The other API is a CustomResourceDefinition, see :func:`install_x_pod_groups`.
"""

from __future__ import annotations

import time
import urllib.error
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.controlplane.control_plane import ControlPlane

FIELD_API: Final = "scheduling.k8s.io/v1alpha2"
LABEL_API: Final = "scheduling.x-k8s.io/v1alpha1"
GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"
PROTECTION_CONTROLLER: Final = "podgroup-protection-controller"
"""It takes the finalizer from a PodGroup that is deleted once no pod that runs names it."""

_OF_SCHEDULERS: Final = (
    "GenericWorkload",
    "GangScheduling",
    "WorkloadAwarePreemption",
    "TopologyAwareWorkloadScheduling",
)
_CRD_PATH: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_FILE: Final = Path(__file__).resolve().parents[2] / "deploy" / "pod-groups" / "crd.yaml"
_DEADLINE_S: Final = 30.0
_POLL_S: Final = 0.02


def _gates(*names: str) -> str:
    return "--feature-gates=" + ",".join(f"{name}=true" for name in names)


API_SERVER_ARGS: Final = (
    f"--runtime-config={FIELD_API}=true",
    _gates(*_OF_SCHEDULERS, "WorkloadWithJob"),
)
SCHEDULER_ARGS: Final = (_gates(*_OF_SCHEDULERS),)
CONTROLLER_MANAGER_ARGS: Final = (_gates("GenericWorkload", "WorkloadWithJob"),)


def make_pod_group(
    name: str, minimum: int | None, *, namespace: str = "default", **spec: Any
) -> dict[str, Any]:
    """Return a PodGroup of ``scheduling.k8s.io``.

    Parameters
    ----------
    minimum
        Of a gang; None makes a group with the policy ``basic``.
    spec
        Further fields under their API names (``priority=5``).
    """
    policy = {"basic": {}} if minimum is None else {"gang": {"minCount": minimum}}
    return {
        "apiVersion": FIELD_API,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"schedulingPolicy": policy, **spec},
    }


def make_x_pod_group(
    name: str,
    minimum: int | None,
    *,
    namespace: str = "default",
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """Return a PodGroup of ``scheduling.x-k8s.io``."""
    return {
        "apiVersion": LABEL_API,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace, "annotations": dict(annotations or {})},
        "spec": {**({} if minimum is None else {"minMember": minimum}), **spec},
    }


def by_field(pod: dict[str, Any], group: str) -> dict[str, Any]:
    """Make a pod a member of a PodGroup of ``scheduling.k8s.io``, and return it."""
    pod["spec"]["schedulingGroup"] = {"podGroupName": group}
    return pod


def by_label(pod: dict[str, Any], group: str) -> dict[str, Any]:
    """Make a pod a member of a PodGroup of ``scheduling.x-k8s.io``, and return it."""
    pod["metadata"].setdefault("labels", {})[GROUP_LABEL] = group
    return pod


def groups_path(api: str, namespace: str = "default") -> str:
    """Return the path of the PodGroups of an API in a namespace."""
    return f"/apis/{api}/namespaces/{namespace}/podgroups"


def install_x_pod_groups(plane: ControlPlane) -> None:
    """Install the kind PodGroup of ``scheduling.x-k8s.io``, as users do; it is served then."""
    plane.call("POST", _CRD_PATH, yaml.safe_load(_FILE.read_text(encoding="utf-8")))
    deadline = time.monotonic() + _DEADLINE_S
    while True:
        try:
            plane.call("GET", groups_path(LABEL_API))
            return
        except urllib.error.HTTPError as error:
            with error:
                if time.monotonic() > deadline:
                    raise
        time.sleep(_POLL_S)
