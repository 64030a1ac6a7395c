"""Berth's own identity on a test cluster: the service account and rights that it ships with.

What is installed is ``deploy/rbac.yaml``, the file that users install, so a right that is missing
there is missing in the tests too.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RBAC_FILE: Final = Path(__file__).resolve().parents[2] / "deploy" / "rbac.yaml"
NAMESPACE: Final = "berth-system"
SERVICE_ACCOUNT: Final = "berth"
USER: Final = f"system:serviceaccount:{NAMESPACE}:{SERVICE_ACCOUNT}"

_COLLECTIONS: Final[Mapping[str, str]] = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings",
}
_DEADLINE_S: Final = 30.0
_POLL_S: Final = 0.02


class Call(Protocol):
    """A request to the API server, as admin unless a token is given; the decoded answer."""

    def __call__(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        token: str | None = None,
        content_type: str = "application/json",
    ) -> dict[str, Any]: ...


def grant_access(call: Call, lifetime_s: int) -> str:
    """Install ``deploy/rbac.yaml`` and return a token of berth's service account.

    Server-side apply, so it may be repeated. The API server's authoriser follows roles and
    bindings by watches of its own: this returns when each rule has come into force.
    """
    manifests = [m for m in yaml.safe_load_all(RBAC_FILE.read_text(encoding="utf-8")) if m]
    for manifest in manifests:
        metadata = manifest["metadata"]
        collection = _COLLECTIONS[manifest["kind"]].format(namespace=metadata.get("namespace"))
        call(
            "PATCH",
            f"{collection}/{metadata['name']}?fieldManager=install&force=true",
            manifest,
            content_type="application/apply-patch+yaml",
        )
    token_request = call(
        "POST",
        f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{SERVICE_ACCOUNT}/token",
        {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": lifetime_s},
        },
    )
    token = token_request["status"]["token"]
    assert isinstance(token, str)
    _await_rules(call, token, manifests)
    return token


def _await_rules(call: Call, token: str, manifests: Sequence[Mapping[str, Any]]) -> None:
    deadline = time.monotonic() + _DEADLINE_S
    bound = {each["roleRef"]["name"] for each in manifests if "roleRef" in each}
    for manifest in manifests:
        if manifest["metadata"]["name"] not in bound:
            continue  # for scrapers and users, not for berth
        for rule in manifest.get("rules", ()):
            resource, _, subresource = rule["resources"][0].partition("/")
            review = {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {
                    "resourceAttributes": {
                        "group": rule["apiGroups"][0],
                        "resource": resource,
                        "subresource": subresource,
                        "verb": rule["verbs"][0],
                        "name": next(iter(rule.get("resourceNames", ())), ""),
                        "namespace": manifest["metadata"].get("namespace", ""),
                    }
                },
            }
            path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
            while not call("POST", path, review, token=token)["status"]["allowed"]:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"this rule is not in force: {rule}")
                time.sleep(_POLL_S)
