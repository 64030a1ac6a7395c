"""With the guard berth's token can write what berth writes, and nothing else."""

from __future__ import annotations

import copy
import json
import urllib.error
from typing import TYPE_CHECKING, Any, Final

import pytest

from scheduler.api_writes.eviction import DISRUPTION_TARGET
from scheduler.pools.ownership import POOL as POOL_OF
from scheduler.pools.ownership import ROUND
from scheduler.profiles.operator.history import GOOD
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.objects import make_node, make_pod
from tests.controlplane.scheduling_profiles import PATH, SchedulingProfiles
from tests.deploy.chart import NAMESPACE, RELEASE, rendered_text
from tests.deploy.kubectl import kubectl
from tests.scenarios.replicas import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.controlplane.control_plane import ControlPlane

pytestmark = pytest.mark.controlplane

VALUES: Final = {
    "rbac": {"guard": {"enabled": True}},
    "schedulingProfiles": {"enabled": True},
    "pools": [{"name": "a", "nodeSelector": {"pool": "a"}}],
}
POD: Final = "/api/v1/namespaces/default/pods/waits"
STATUS: Final = f"{POD}/status"
VOLUME: Final = "/api/v1/persistentvolumes/volume"
TAKEN: Final = "/api/v1/persistentvolumes/taken"
CLAIM: Final = "/api/v1/namespaces/default/persistentvolumeclaims/claim"
RESOURCE_CLAIMS: Final = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
RESOURCE_CLAIM: Final = f"{RESOURCE_CLAIMS}/devices"
PROFILE: Final = f"{PATH}/policy"
LABELLED: Final[dict[str, Any]] = {"metadata": {"labels": {"a": "b"}}}
STRATEGIC: Final = "application/strategic-merge-patch+json"
MERGE: Final = "application/merge-patch+json"


def volume(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {"whose": "theirs"}},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/tmp"},
            **spec,
        },
    }


CLAIM_OBJECT: Final = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "claim", "namespace": "default"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "",
    },
}


GPU: Final = "example.com/gpu"
FINALIZER: Final = "resource.kubernetes.io/delete-protection"


def resource_claim(**metadata: Any) -> dict[str, Any]:
    exactly = {"deviceClassName": "gpu"}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"namespace": "default", **metadata},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
    }


OF_A_POD: Final = {
    "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
    "ownerReferences": [
        {"apiVersion": "v1", "kind": "Pod", "name": "waits", "uid": "u", "controller": True}
    ],
}


class World:
    def __init__(self, plane: ControlPlane, token: str) -> None:
        self._plane = plane
        self._token = token

    def refusal(
        self, method: str, path: str, body: dict[str, Any], content_type: str, *, dry_run: bool
    ) -> str:
        """Write something with berth's token; return what is said against it."""
        options = "?dryRun=All" if dry_run else ""
        try:
            self._plane.call(
                method, path + options, body, token=self._token, content_type=content_type
            )
        except urllib.error.HTTPError as error:
            with error:
                return str(json.load(error)["message"])
        return ""


@pytest.fixture(scope="module")
def world(controlplane_binaries: None) -> Iterator[World]:
    from tests.controlplane.control_plane import ControlPlane

    with ControlPlane() as plane, BlockingApi(plane.admin_kubeconfig) as api:
        admin = plane.admin_kubeconfig
        plane.berth_kubeconfig()
        SchedulingProfiles(plane).install()
        kubectl("create", "namespace", NAMESPACE, kubeconfig=admin, may_fail=True)
        text = rendered_text(VALUES)
        kubectl(
            "apply", "--server-side", "--force-conflicts", "-f", "-", kubeconfig=admin, given=text
        )
        wants = make_pod("wants")
        (container,) = wants["spec"]["containers"]
        amounts = {GPU: "1"}
        container |= {"name": "main", "resources": {"requests": amounts, "limits": amounts}}
        api.create_many([make_node("n1"), make_pod("waits"), make_pod("bound"), wants])
        claim_ref = {"namespace": "default", "name": "other", "uid": "u-1"}
        for each in (volume("volume"), volume("taken", claimRef=claim_ref)):
            plane.call("POST", "/api/v1/persistentvolumes", each)
        plane.call("POST", CLAIM.rpartition("/")[0], copy.deepcopy(CLAIM_OBJECT))
        plane.call("POST", RESOURCE_CLAIMS, resource_claim(name="devices"))
        plane.call("POST", RESOURCE_CLAIMS, resource_claim(name="special", **OF_A_POD))
        SchedulingProfiles(plane).create("policy", {"schedulerName": "policy"})
        token = kubectl("create", "token", RELEASE, "-n", NAMESPACE, kubeconfig=admin)[0].strip()
        world = World(plane, token)
        # The API server takes up policies by a watch, one after another.
        for path, patch, content_type, _ in REFUSED.values():
            wait_until(
                lambda: world.refusal("PATCH", path, patch, content_type, dry_run=True),  # noqa: B023
                f"the guard stands before {path}",
            )
        yield world


def status(**fields: Any) -> dict[str, Any]:
    return {"status": fields}


def condition(kind: str) -> dict[str, Any]:
    return status(conditions=[{"type": kind, "status": "False", "reason": "Because"}])


def annotated(**annotations: Any) -> dict[str, Any]:
    return {"metadata": {"annotations": {k.replace("__", "/"): v for k, v in annotations.items()}}}


REFUSED: Final[dict[str, tuple[str, dict[str, Any], str, str]]] = {
    "the-phase-of-a-pod": (STATUS, status(phase="Succeeded"), STRATEGIC, "berth writes conditions"),
    "the-address-of-a-pod": (
        STATUS,
        status(podIP="10.0.0.1"),
        STRATEGIC,
        "berth writes conditions",
    ),
    "that-a-pod-is-ready": (STATUS, condition("Ready"), STRATEGIC, "PodScheduled and"),
    "a-label-of-a-pod": (
        STATUS,
        LABELLED,
        STRATEGIC,
        "metadata of pods",
    ),
    "an-annotation-of-a-pod": (STATUS, annotated(a="b"), STRATEGIC, "about its pool only"),
    "the-size-of-a-volume": (
        VOLUME,
        {"spec": {"capacity": {"storage": "9Gi"}}},
        MERGE,
        "of a volume berth writes claimRef only",
    ),
    "what-becomes-of-a-volume": (
        VOLUME,
        {"spec": {"persistentVolumeReclaimPolicy": "Delete"}},
        MERGE,
        "of a volume berth writes claimRef only",
    ),
    "somebody-elses-volume": (
        TAKEN,
        {"spec": {"claimRef": {"name": "ours", "uid": "u-2"}}},
        MERGE,
        "takes no volume from its claim",
    ),
    "a-volume-set-free": (TAKEN, {"spec": {"claimRef": None}}, MERGE, "takes no volume from"),
    "a-finalizer-of-a-volume": (
        VOLUME,
        {"metadata": {"finalizers": ["a.example/b"]}},
        MERGE,
        "metadata of volumes",
    ),
    "an-annotation-of-a-volume": (VOLUME, annotated(whose=None), MERGE, "bound-by-controller only"),
    "the-volume-of-a-claim": (CLAIM, {"spec": {"volumeName": "volume"}}, MERGE, "specs of claims"),
    "a-label-of-a-claim": (
        CLAIM,
        LABELLED,
        MERGE,
        "metadata of claims",
    ),
    "an-annotation-of-a-claim": (CLAIM, annotated(a="b"), MERGE, "selected-node only"),
    "a-label-of-a-resource-claim": (RESOURCE_CLAIM, LABELLED, MERGE, "writes finalizers only"),
    "a-finalizer-of-a-resource-claim": (
        RESOURCE_CLAIM,
        {"metadata": {"finalizers": [FINALIZER, "a.example/b"]}},
        MERGE,
        "delete-protection only",
    ),
    "the-spec-of-a-profile": (PROFILE, {"spec": {"mode": "Shadow"}}, MERGE, "specs of Scheduling"),
    "a-label-of-a-profile": (PROFILE, LABELLED, MERGE, "metadata of"),
    "an-annotation-of-a-profile": (PROFILE, annotated(a="b"), MERGE, "good-generations only"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_berth_never_writes_its_token_cannot(world: World, case: str) -> None:
    path, patch, content_type, why = REFUSED[case]
    assert why in world.refusal("PATCH", path, patch, content_type, dry_run=True)


@pytest.mark.parametrize(
    ("path", "patch", "content_type"),
    [
        pytest.param(STATUS, condition("PodScheduled"), STRATEGIC, id="why-a-pod-waits"),
        pytest.param(STATUS, condition(DISRUPTION_TARGET), STRATEGIC, id="that-it-has-to-go"),
        pytest.param(STATUS, status(nominatedNodeName="n1"), STRATEGIC, id="a-nomination"),
        pytest.param(STATUS, status(nominatedNodeName=None), STRATEGIC, id="none-any-more"),
        pytest.param(
            STATUS, annotated(**{POOL_OF: "b", ROUND: "1:a"}), STRATEGIC, id="whose-a-pod-is"
        ),
        pytest.param(
            VOLUME,
            {
                **annotated(**{"pv.kubernetes.io__bound-by-controller": "yes"}),
                "spec": {"claimRef": {"namespace": "default", "name": "claim", "uid": "u-3"}},
            },
            MERGE,
            id="whose-a-volume-is",
        ),
        pytest.param(
            CLAIM,
            annotated(**{"volume.kubernetes.io__selected-node": "n1"}),
            MERGE,
            id="where-a-volume-is-made",
        ),
        pytest.param(
            RESOURCE_CLAIM,
            {"metadata": {"finalizers": [FINALIZER]}},
            MERGE,
            id="the-finalizer-of-a-resource-claim",
        ),
        pytest.param(
            f"{RESOURCE_CLAIM}/status",
            status(allocation={"devices": {}}),
            MERGE,
            id="an-allocation",
        ),
        pytest.param(
            "/api/v1/namespaces/default/pods/wants/status",
            status(
                extendedResourceClaimStatus={
                    "resourceClaimName": "special",
                    "requestMappings": [
                        {"containerName": "main", "resourceName": GPU, "requestName": "r"}
                    ],
                }
            ),
            STRATEGIC,
            id="the-claim-for-extended-resources",
        ),
        pytest.param(
            PROFILE, {"metadata": {"annotations": {GOOD: "1:a"}}}, MERGE, id="a-good-generation"
        ),
    ],
)
def test_what_berth_writes_its_token_can(
    world: World, path: str, patch: dict[str, Any], content_type: str
) -> None:
    assert world.refusal("PATCH", path, patch, content_type, dry_run=False) == ""


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        pytest.param({"annotations": {"a": "b"}}, "changes nothing else of them", id="annotations"),
        pytest.param({"labels": {"a": "b"}}, "changes nothing else of them", id="labels"),
        pytest.param({}, "", id="as-berth-does"),
    ],
)
def test_a_binding_says_where_and_nothing_else(
    world: World, metadata: dict[str, Any], why: str
) -> None:
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "bound", "namespace": "default", **metadata},
        "target": {"kind": "Node", "name": "n1"},
    }
    path = "/api/v1/namespaces/default/pods/bound/binding"
    said = world.refusal("POST", path, binding, "application/json", dry_run=False)
    assert why in said
    assert bool(why) == bool(said)


@pytest.mark.parametrize(
    ("method", "path", "body", "why"),
    [
        pytest.param("POST", RESOURCE_CLAIMS, resource_claim(name="new"), "creates", id="a-claim"),
        pytest.param(
            "POST", RESOURCE_CLAIMS, resource_claim(name="new", **OF_A_POD), "", id="as-berth-does"
        ),
        pytest.param("DELETE", RESOURCE_CLAIM, {}, "deletes", id="somebody-elses"),
        pytest.param("DELETE", f"{RESOURCE_CLAIMS}/special", {}, "", id="one-of-berths"),
    ],
)
def test_berth_makes_and_deletes_claims_for_extended_resources_only(
    world: World, method: str, path: str, body: dict[str, Any], why: str
) -> None:
    said = world.refusal(method, path, body, "application/json", dry_run=True)
    assert why in said
    assert bool(why) == bool(said)
