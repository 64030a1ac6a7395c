"""Manifests that were made for other schedulers work with only their schedulerName changed.

What operators write is recorded: ``tests/operators``. Jobs, ReplicaSets and the groups of Jobs are
made by the controllers of Kubernetes themselves.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cache.pod_group_objects import GroupSource
from scheduler.cycle import held_groups
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.controller_manager import start_controller_manager
from tests.controlplane.objects import make_namespace, make_node, make_pod
from tests.controlplane.pod_groups import (
    FIELD_API,
    GROUP_LABEL,
    LABEL_API,
    PROTECTION_CONTROLLER,
    by_field,
    groups_path,
    install_x_pod_groups,
    make_pod_group,
    make_x_pod_group,
)
from tests.scenarios.running_berth import RunningBerth

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.controlplane

RECORDED = Path(__file__).parents[1] / "operators" / "recorded"
CONTROLLERS = ("job-controller", "replicaset-controller", PROTECTION_CONTROLLER)


@pytest.fixture(scope="module")
def plane(controlplane_binaries: None) -> Iterator[ControlPlane]:
    with ControlPlane(pod_groups=True, audit=False) as started:
        install_x_pod_groups(started)
        controllers = start_controller_manager(started, CONTROLLERS)
        yield started
        controllers.kill()


@pytest.fixture(scope="module")
def api(plane: ControlPlane) -> Iterator[BlockingApi]:
    with BlockingApi(plane.admin_kubeconfig) as started:
        yield started


@pytest.fixture(scope="module")
def berth(plane: ControlPlane, api: BlockingApi) -> Iterator[RunningBerth]:
    with pytest.MonkeyPatch.context() as patch:
        # A group that cannot be tried says so after five seconds; nobody wants to wait for that.
        patch.setattr(held_groups, "LASTS_S", 0.2)
        with RunningBerth(plane.berth_kubeconfig()) as started:
            api.wait_until(lambda: started.is_ready, "berth is ready")
            yield started


class Place:
    """A namespace, and nodes that only its pods ask for."""

    _made = 0

    def __init__(self, api: BlockingApi, berth: RunningBerth) -> None:
        Place._made += 1
        self.api, self.berth = api, berth
        self.namespace = f"others-{Place._made}"
        api.create_many([make_namespace(self.namespace)])

    def node(self, cpu: int) -> None:
        name = f"{self.namespace}-{cpu}"
        gpus = {"nvidia.com/gpu": "64"}
        labels = {"place": self.namespace}
        self.api.create_many([make_node(name, cpu=str(cpu), labels=labels, extra=gpus)])

    def spec(self, cpu: str = "1") -> dict[str, Any]:
        """Return the spec of a pod for these nodes."""
        made = make_pod("template", cpu=cpu, nodeSelector={"place": self.namespace})["spec"]
        assert isinstance(made, dict)
        return made

    def pods(self) -> list[dict[str, Any]]:
        return self.api.pods(self.namespace)

    def bound(self) -> int:
        return sum(bool(pod["spec"].get("nodeName")) for pod in self.pods())

    def wait_bound(self, count: int) -> None:
        self.api.wait_until(
            lambda: self.bound() == count and self.berth.is_at_rest, f"{count} pods are bound"
        )

    def wait_refused(self, count: int) -> None:
        """Wait until there are so many pods without a node, and each says why."""

        def says_why(pod: dict[str, Any]) -> bool:
            conditions = pod["status"].get("conditions", ())
            return any(each["type"] == "PodScheduled" for each in conditions)

        self.api.wait_until(
            lambda: (
                sum(says_why(pod) and not pod["spec"].get("nodeName") for pod in self.pods())
                == count
            ),
            f"{count} pods are refused",
        )


@pytest.fixture
def place(api: BlockingApi, berth: RunningBerth) -> Place:
    return Place(api, berth)


def test_groups_are_read_in_the_version_that_is_served(berth: RunningBerth) -> None:
    kinds = [berth.app.watches.pod_group_kind(source) for source in GroupSource]
    assert [kind and kind.group_version for kind in kinds] == [FIELD_API, LABEL_API]


# --- by hand, and by the controllers of Kubernetes ----------------------------------------------


def test_the_demo_of_scheduler_plugins(place: Place) -> None:
    """Six pods of a ReplicaSet, a minimum of three, and room for three."""
    place.node(3)
    labels = {"app": "nginx", GROUP_LABEL: "nginx"}
    group = make_x_pod_group("nginx", 3, namespace=place.namespace, scheduleTimeoutSeconds=10)
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "nginx", "labels": {"app": "nginx"}},
        "spec": {
            "replicas": 6,
            "selector": {"matchLabels": {"app": "nginx"}},
            "template": {"metadata": {"name": "nginx", "labels": labels}, "spec": place.spec()},
        },
    }
    place.api.create_many([group])
    place.api.post(f"/apis/apps/v1/namespaces/{place.namespace}/replicasets", replica_set)
    place.wait_bound(3)
    place.wait_refused(3)


def test_an_indexed_job_whose_group_the_job_controller_makes(place: Place) -> None:
    place.node(2)
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": {
            "completionMode": "Indexed",
            "completions": 3,
            "parallelism": 3,
            "template": {"spec": place.spec() | {"restartPolicy": "Never"}},
        },
    }
    place.api.post(f"/apis/batch/v1/namespaces/{place.namespace}/jobs", job)
    place.wait_refused(3)
    (group,) = place.api.list_all(groups_path(FIELD_API, place.namespace))
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
    place.node(1)
    place.wait_bound(3)


def test_a_workload_and_its_group_by_hand(place: Place) -> None:
    place.node(3)
    workload = {
        "apiVersion": FIELD_API,
        "kind": "Workload",
        "metadata": {"name": "training"},
        "spec": {
            "podGroupTemplates": [
                {"name": "workers", "schedulingPolicy": {"gang": {"minCount": 3}}}
            ]
        },
    }
    place.api.post(f"/apis/{FIELD_API}/namespaces/{place.namespace}/workloads", workload)
    of = {"workload": {"workloadName": "training", "podGroupTemplateName": "workers"}}
    group = make_pod_group("workers-0", 3, namespace=place.namespace, podGroupTemplateRef=of)
    place.api.create_many([group])
    for number in range(3):
        pod = make_pod(f"worker-{number}", namespace=place.namespace)
        pod["spec"] = place.spec()
        place.api.create_many([by_field(pod, "workers-0")])
    place.wait_bound(3)


# --- what operators have written ----------------------------------------------------------------


def recorded(name: str, case: str, place: Place) -> tuple[list[Any], list[Any]]:
    """Return the recorded groups, of which there is one at most, and pods, in a place."""
    objects = json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))[case]
    for each in objects:
        each["metadata"]["namespace"] = place.namespace
        each["metadata"].pop("ownerReferences", None)
        if each["kind"] == "Pod":
            each["spec"]["nodeSelector"] = {"place": place.namespace}
    groups = [each for each in objects if each["kind"] == "PodGroup"]
    return groups, [each for each in objects if each["kind"] == "Pod"]


@pytest.mark.parametrize(
    ("name", "cpu", "count"),
    [
        pytest.param("kuberay", 7, 4, id="KubeRay"),
        pytest.param("trainer", 6, 3, id="Kubeflow Trainer"),
    ],
)
def test_what_an_operator_writes_is_placed_as_a_whole(
    place: Place, name: str, cpu: int, count: int
) -> None:
    groups, pods = recorded(name, "new", place)
    place.node(cpu - 1)
    place.api.create_many([*groups, *pods])
    place.wait_refused(count)
    assert place.bound() == 0
    place.node(cpu)
    place.wait_bound(count)


@pytest.mark.parametrize(
    ("name", "case"),
    [
        pytest.param("kuberay", "scaled down", id="KubeRay"),
        pytest.param("trainer", "scaled down, running", id="Kubeflow Trainer"),
    ],
)
def test_what_was_scaled_down_waits_until_somebody_changes_its_group(
    place: Place, name: str, case: str
) -> None:
    """Both make the group once: its minimum stays that of the larger workload."""
    (group,), _ = recorded(name, "new", place)
    again, pods = recorded(name, case, place)
    assert again in ([], [group])
    place.node(7)
    place.api.create_many([group, *pods])
    place.wait_refused(len(pods))
    path = f"{groups_path(LABEL_API, place.namespace)}/{group['metadata']['name']}"
    place.api.patch(path, {"spec": {"minMember": len(pods)}})
    place.wait_bound(len(pods))


def test_an_update_by_the_trainer_of_a_suspended_job_counts_at_once(place: Place) -> None:
    (group,), _ = recorded("trainer", "new", place)
    (changed,), pods = recorded("trainer", "scaled down, suspended", place)
    assert (group["spec"]["minMember"], changed["spec"]["minMember"]) == (3, 2)
    place.node(7)
    place.api.create_many([group, *pods])
    place.wait_refused(2)
    path = f"{groups_path(LABEL_API, place.namespace)}/{group['metadata']['name']}"
    place.api.patch(path, {"spec": changed["spec"]})
    place.wait_bound(2)
