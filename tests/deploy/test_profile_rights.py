"""The rights that SchedulingProfiles need: as few as can be, and what is missing without each."""

from __future__ import annotations

import contextlib
import copy
from typing import TYPE_CHECKING, Any, Final

import pytest

from scheduler.profiles.operator import OperatorOptions
from tests.controlplane.access import NAMESPACE, USER
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import make_node, make_pod
from tests.controlplane.scheduling_profiles import FILE, SchedulingProfiles
from tests.deploy.chart import manifests_in, of_kind
from tests.scenarios.replicas import wait_until
from tests.scenarios.running_berth import RunningBerth

if TYPE_CHECKING:
    from collections.abc import Iterator

GROUP: Final = "scheduling.berth.dev"
RBAC: Final = manifests_in(FILE.read_text(encoding="utf-8"))
ROLE: Final = f"{NAMESPACE}-berth-profiles"
ROLE_PATH: Final = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{ROLE}"
REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
GRANTED: Final = {
    ("list", GROUP, "schedulingprofiles"),
    ("watch", GROUP, "schedulingprofiles"),
    ("patch", GROUP, "schedulingprofiles"),
    ("patch", GROUP, "schedulingprofiles/status"),
}


def role() -> dict[str, Any]:
    (found,) = (each for each in of_kind(RBAC, "ClusterRole") if each["metadata"]["name"] == ROLE)
    return found


def test_what_is_granted() -> None:
    granted = {
        (verb, group, resource)
        for rule in role()["rules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert granted == GRANTED


def test_it_is_granted_to_berth() -> None:
    (binding,) = of_kind(RBAC, "ClusterRoleBinding")
    assert binding["roleRef"]["name"] == ROLE
    (subject,) = binding["subjects"]
    assert f"system:serviceaccount:{subject['namespace']}:{subject['name']}" == USER


def test_the_editors_role_is_bound_to_nobody() -> None:
    roles = {each["metadata"]["name"] for each in of_kind(RBAC, "ClusterRole")}
    assert roles - {ROLE} == {f"{NAMESPACE}-berth-profile-editor"}


# --- on a real API server ---------------------------------------------------------------------


class World:
    def __init__(self, plane: ControlPlane, api: BlockingApi) -> None:
        self.plane = plane
        self.api = api
        self.kubeconfig = plane.berth_kubeconfig()
        self.profiles = SchedulingProfiles(plane)

    @contextlib.contextmanager
    def berth(self) -> Iterator[RunningBerth]:
        """A berth that is ready."""
        with RunningBerth(self.kubeconfig, operator=OperatorOptions(enabled=True)) as berth:
            wait_until(lambda: berth.is_ready, "berth is ready")
            yield berth

    @contextlib.contextmanager
    def without(self, verb: str, resource: str) -> Iterator[None]:
        """Take a rule away for a while."""
        lesser = copy.deepcopy(role())
        lesser["rules"] = [each for each in lesser["rules"] if verb not in each["verbs"]]
        self._put(lesser, verb, resource, allowed=False)
        try:
            yield
        finally:
            self._put(role(), verb, resource, allowed=True)

    def _put(self, wanted: dict[str, Any], verb: str, resource: str, *, allowed: bool) -> None:
        self.plane.call("PUT", ROLE_PATH, wanted)
        name, _, subresource = resource.partition("/")
        attributes = {"verb": verb, "group": GROUP, "resource": name, "subresource": subresource}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": USER, "resourceAttributes": attributes},
        }
        # The authoriser follows the roles by a watch.
        wait_until(
            lambda: self.plane.call("POST", REVIEWS, review)["status"]["allowed"] == allowed,
            f"the role is in force: {verb} {resource}",
        )


@pytest.fixture(scope="module")
def world(controlplane_binaries: None) -> Iterator[World]:
    with ControlPlane() as plane, BlockingApi(plane.admin_kubeconfig) as api:
        world = World(plane, api)
        world.profiles.install()
        api.create_many([make_node("n1")])
        yield world


def running(berth: RunningBerth) -> dict[str, int | None]:
    statuses = berth.app.profiles.known.statuses()
    return {name: each.active_generation for name, each in statuses.items()}


@pytest.mark.controlplane
def test_all_of_it_is_used_and_nothing_more_is_asked_for(world: World) -> None:
    with world.berth() as berth:
        operator = berth.app.operator
        assert operator is not None
        wait_until(lambda: operator.watch.kopf_is_up, "kopf is up")
        world.profiles.create("used", {"schedulerName": "used"})
        world.profiles.wait_settled("used")
    events = [each for each in world.plane.audit_events() if each["user"]["username"] == USER]
    used = set()
    for each in events:
        target = each.get("objectRef", {})
        if target.get("apiGroup") == GROUP:
            resource = "/".join(filter(None, (target["resource"], target.get("subresource"))))
            used.add((each["verb"], GROUP, resource))
    assert used == GRANTED
    assert [each for each in events if each["responseStatus"]["code"] in (401, 403)] == []


@pytest.mark.controlplane
def test_without_the_right_to_read_them_pods_are_placed_by_the_file(world: World) -> None:
    world.profiles.create("unread", {"schedulerName": "unread"})
    with world.without("list", "schedulingprofiles"), world.berth() as berth:
        world.api.create_many([make_pod("by-the-file", cpu="1m")])
        world.api.wait_bound(1, timeout_s=180)
        assert running(berth) == {}
    with world.berth() as berth:
        wait_until(lambda: running(berth).get("unread") == 1, "it is taken over")


@pytest.mark.controlplane
def test_without_the_right_to_write_their_status_policies_change_all_the_same(
    world: World,
) -> None:
    with world.berth() as berth:
        with world.without("patch", "schedulingprofiles/status"):
            world.profiles.create("unsaid", {"schedulerName": "unsaid"})
            wait_until(lambda: running(berth).get("unsaid") == 1, "it is taken over")
            operator = berth.app.operator
            assert operator is not None
            wait_until(lambda: operator.writer.failed > 0, "a status was refused")
            assert "status" not in world.profiles.get("unsaid")
        assert world.profiles.wait_settled("unsaid")["activeGeneration"] == 1
