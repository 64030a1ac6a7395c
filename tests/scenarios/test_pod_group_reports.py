"""What people see of pod groups on a real API server, with berth's own rights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import make_node, make_pod
from tests.controlplane.pod_groups import (
    FIELD_API,
    LABEL_API,
    by_field,
    by_label,
    groups_path,
    install_x_pod_groups,
    make_pod_group,
    make_x_pod_group,
)
from tests.scenarios.running_berth import RunningBerth

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.controlplane

PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
GANG = 3


@pytest.fixture(scope="module")
def api(controlplane_binaries: None) -> Iterator[BlockingApi]:
    """A cluster that serves both APIs, with a gang of three in each that finds no room."""
    with ControlPlane(pod_groups=True) as plane, BlockingApi(plane.admin_kubeconfig) as api:
        install_x_pod_groups(plane)
        api.create_many([make_node("small", cpu="1")])
        api.create_many([make_pod_group("field", GANG), make_x_pod_group("label", GANG)])
        for name, join in (("field", by_field), ("label", by_label)):
            pods = [make_pod(f"{name}-{number}", cpu="2") for number in range(GANG)]
            api.create_many([join(pod, name) for pod in pods])
        with RunningBerth(plane.berth_kubeconfig()) as berth:
            api.wait_until(lambda: berth.is_ready, "berth is ready")
            yield api


def status_of(api: BlockingApi, name: str) -> Any:
    version = FIELD_API if name == "field" else LABEL_API
    return api.get(f"{groups_path(version)}/{name}").get("status", {})


def members(api: BlockingApi, name: str) -> list[Any]:
    return [api.get(f"{PODS}/{name}-{number}") for number in range(GANG)]


def condition_of(pod: Any) -> tuple[str, str]:
    for condition in pod["status"].get("conditions", ()):
        if condition["type"] == "PodScheduled":
            return condition["reason"], condition["message"]
    return "", ""


def end(api: BlockingApi, name: str, phase: str) -> None:
    """Let the members come to a phase, as kubelets do."""
    for number in range(GANG):
        api.patch(f"{PODS}/{name}-{number}/status", {"status": {"phase": phase}})


def group_condition(api: BlockingApi) -> Any:
    conditions = status_of(api, "field").get("conditions", [{}])
    return {each.get("type"): each for each in conditions}.get("PodGroupScheduled", {})


def test_a_gang_that_does_not_fit_says_so_everywhere(api: BlockingApi) -> None:
    api.wait_until(lambda: group_condition(api).get("status") == "False", "the group says so")
    message = group_condition(api)["message"]
    assert group_condition(api)["reason"] == "Unschedulable"
    metadata = api.get(f"{groups_path(FIELD_API)}/field")["metadata"]
    assert group_condition(api).get("observedGeneration") == metadata.get("generation")

    def all_say_so() -> bool:
        told = {condition_of(pod) for pod in members(api, "field")}
        return told == {("Unschedulable", f'pod group "field": {message}')}

    api.wait_until(all_say_so, "each member is Unschedulable")
    api.wait_until(lambda: status_of(api, "label").get("phase") == "Scheduling", "its phase")
    assert status_of(api, "label")["scheduleStartTime"]


def test_there_is_one_event_on_the_group_and_none_on_its_members(api: BlockingApi) -> None:
    def events() -> list[Any]:
        return [each for each in api.list_all(EVENTS) if each["reason"] == "FailedScheduling"]

    def regarding() -> list[tuple[str, str]]:
        told = [each["regarding"] for each in events()]
        return sorted((each["apiVersion"], each["name"]) for each in told)

    expected = [(FIELD_API, "field"), (LABEL_API, "label")]
    api.wait_until(lambda: regarding() == expected, "an Event for each group")
    uid = api.get(f"{groups_path(LABEL_API)}/label")["metadata"]["uid"]
    assert uid in {each["regarding"]["uid"] for each in events()}


def test_gangs_that_are_placed_run_and_finish(api: BlockingApi) -> None:
    api.create_many([make_node("large", cpu="16")])
    api.wait_bound(2 * GANG, timeout_s=30)
    api.wait_until(lambda: group_condition(api)["status"] == "True", "the condition is True")
    assert group_condition(api)["reason"] == "Scheduled"
    end(api, "label", "Running")
    api.wait_until(lambda: status_of(api, "label")["phase"] == "Running", "the gang runs")
    assert status_of(api, "label")["running"] == GANG
    end(api, "label", "Succeeded")
    api.wait_until(lambda: status_of(api, "label")["phase"] == "Finished", "the gang finished")
    status = status_of(api, "label")
    assert (status.get("running", 0), status["succeeded"]) == (0, GANG)


def test_the_rest_of_a_gang_that_lost_a_member_is_evicted_after_its_grace(api: BlockingApi) -> None:
    annotations = {"scheduling.berth.dev/partial-gang-grace": "1s"}
    api.patch(f"{groups_path(FIELD_API)}/field", {"metadata": {"annotations": annotations}})
    api.delete(f"{PODS}/field-0")

    def are_leaving() -> bool:
        rest = [api.get(f"{PODS}/field-{number}") for number in range(1, GANG)]
        return all(pod["metadata"].get("deletionTimestamp") for pod in rest)

    api.wait_until(are_leaving, "the rest is evicted")
    conditions = {each["type"]: each for each in status_of(api, "field")["conditions"]}
    assert conditions["PodGroupScheduled"]["status"] == "True"
    assert conditions["DisruptionTarget"]["status"] == "True"
    assert "only 2 of at least 3 members" in conditions["DisruptionTarget"]["message"]
