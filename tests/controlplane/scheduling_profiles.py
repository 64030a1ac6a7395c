"""SchedulingProfiles on a control plane: the kind and the rights that berth ships with.

What is installed is ``deploy/scheduling-profiles``, the files that users install.
"""

from __future__ import annotations

import time
import urllib.error
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from tests.controlplane.access import NAMESPACE, USER
from tests.deploy.chart import rendered

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.controlplane.control_plane import ControlPlane

FILE: Final = (
    Path(__file__).resolve().parents[2] / "deploy" / "scheduling-profiles" / "profiles.yaml"
)
PATH: Final = "/apis/scheduling.berth.dev/v1alpha1/schedulingprofiles"
_KIND_PATH: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_RIGHTS: Final = {
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
}
_RIGHTS_THERE: Final = {
    "Role": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles",
    "RoleBinding": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings",
}
_APPLY: Final = {"content_type": "application/apply-patch+yaml"}
_MERGE: Final = {"content_type": "application/merge-patch+json"}
_DEADLINE_S: Final = 60.0
_POLL_S: Final = 0.02


class SchedulingProfiles:
    """The SchedulingProfiles of a control plane, as an admin changes them.

    Parameters
    ----------
    plane
        On which `berth_kubeconfig` has been asked for: that makes berth's service account.
    """

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def install(self) -> None:
        """Install the rights and the kind; returns when berth may list them."""
        self.grant()
        self.install_kind()

    def grant(self) -> None:
        """Give berth the rights."""
        for manifest in _manifests():
            if manifest["kind"] in _RIGHTS:
                self._apply(_RIGHTS[manifest["kind"]], manifest)
        self._wait_allowed(
            {"group": "scheduling.berth.dev", "resource": "schedulingprofiles", "verb": "list"}
        )

    def grant_config_maps(self, *names: str) -> None:
        """Let berth read ConfigMaps of its namespace, as the chart does for those of plugins."""
        values = {"enabled": True, "pythonConfigMaps": list(names)}
        for manifest in rendered({"schedulingProfiles": values}):
            if manifest["metadata"]["name"] == "berth-python-profiles":
                self._apply(_RIGHTS_THERE[manifest["kind"]], manifest)
        attributes = {"namespace": NAMESPACE, "resource": "configmaps", "verb": "get"}
        for name in names:
            self._wait_allowed({**attributes, "name": name})

    def install_kind(self) -> None:
        """Install the kind; returns when it is served."""
        (kind,) = (each for each in _manifests() if each["kind"] == "CustomResourceDefinition")
        self._apply(_KIND_PATH, kind)
        _wait(self._is_served, "the kind")

    def remove_kind(self) -> None:
        """Delete the kind, and with it all SchedulingProfiles."""
        self._plane.call("DELETE", f"{_KIND_PATH}/schedulingprofiles.scheduling.berth.dev")

    def create(
        self, name: str, spec: dict[str, Any], *, labels: dict[str, str] | None = None
    ) -> dict[str, Any]:
        """Create one, and return it."""
        manifest = {
            "apiVersion": "scheduling.berth.dev/v1alpha1",
            "kind": "SchedulingProfile",
            "metadata": {"name": name, "labels": labels or {}},
            "spec": spec,
        }
        return self._plane.call("POST", PATH, manifest)

    def patch(self, name: str, spec: dict[str, Any]) -> dict[str, Any]:
        """Merge something into the spec of one, and return it."""
        return self._plane.call("PATCH", f"{PATH}/{name}", {"spec": spec}, **_MERGE)

    def patch_status(self, name: str, patch: dict[str, Any]) -> dict[str, Any]:
        """Merge something into one as whoever may only write its status, and return it."""
        return self._plane.call("PATCH", f"{PATH}/{name}/status", patch, **_MERGE)

    def wait_sealed(self, name: str, generation: int) -> None:
        """Wait until its annotation vouches for a generation."""

        def is_sealed() -> bool:
            annotations = self.get(name)["metadata"].get("annotations", {})
            seals = annotations.get("scheduling.berth.dev/good-generations", "")
            return any(each.startswith(f"{generation}:") for each in seals.split())

        _wait(is_sealed, f"the annotation of {name}")

    def delete(self, name: str) -> None:
        """Delete one."""
        self._plane.call("DELETE", f"{PATH}/{name}")

    def get(self, name: str) -> dict[str, Any]:
        """Return one."""
        return self._plane.call("GET", f"{PATH}/{name}")

    def condition(self, name: str, kind: str) -> dict[str, Any]:
        """Return a condition of one; empty while there is none."""
        status = self.get(name).get("status", {})
        found = [each for each in status.get("conditions", ()) if each["type"] == kind]
        return found[0] if found else {}

    def wait_settled(self, name: str) -> dict[str, Any]:
        """Wait until its status speaks of its generation, and return the status."""
        status: dict[str, Any] = {}

        def is_settled() -> bool:
            found = self.get(name)
            status.clear()
            status.update(found.get("status", {}))
            return bool(status.get("observedGeneration") == found["metadata"]["generation"])

        _wait(is_settled, f"the status of {name}")
        return status

    def _wait_allowed(self, attributes: dict[str, str]) -> None:
        """Wait until berth may do something: the API server learns of rights by a watch."""
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": USER, "resourceAttributes": attributes},
        }
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        _wait(lambda: self._plane.call("POST", path, review)["status"]["allowed"], "the rights")

    def _is_served(self) -> bool:
        try:
            self._plane.call("GET", PATH)
        except urllib.error.HTTPError as error:
            with error:
                return False
        return True

    def _apply(self, collection: str, manifest: dict[str, Any]) -> None:
        path = f"{collection}/{manifest['metadata']['name']}?fieldManager=install&force=true"
        self._plane.call("PATCH", path, manifest, **_APPLY)


def _manifests() -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(FILE.read_text(encoding="utf-8")) if each]


def _wait(holds: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + _DEADLINE_S
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {_DEADLINE_S:.0f} s: {what}")
        time.sleep(_POLL_S)
