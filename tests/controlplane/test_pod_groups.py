from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.controller_manager import start_controller_manager
from tests.controlplane.objects import make_node, make_pod
from tests.controlplane.peer import start_kube_scheduler
from tests.controlplane.pod_groups import (
    FIELD_API,
    LABEL_API,
    PROTECTION_CONTROLLER,
    by_field,
    groups_path,
    install_x_pod_groups,
    make_pod_group,
    make_x_pod_group,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.controlplane


@pytest.fixture(scope="module")
def plane(controlplane_binaries: None) -> Iterator[ControlPlane]:
    with ControlPlane(pod_groups=True) as started:
        yield started


@pytest.fixture(scope="module")
def api(plane: ControlPlane) -> Iterator[BlockingApi]:
    with BlockingApi(plane.admin_kubeconfig) as started:
        yield started


def test_both_apis_have_pod_groups(plane, api):
    install_x_pod_groups(plane)
    api.create_many([make_pod_group("both", 2), make_x_pod_group("both", 3)])
    policy = api.get(f"{groups_path(FIELD_API)}/both")["spec"]["schedulingPolicy"]
    assert policy == {"gang": {"minCount": 2}}
    assert api.get(f"{groups_path(LABEL_API)}/both")["spec"] == {"minMember": 3}


def test_a_gang_is_placed_by_kube_scheduler_and_its_group_can_be_deleted(plane, api):
    api.create_many([make_node("n1"), make_pod_group("gang", 3)])
    pods = [make_pod(f"gang-{i}", scheduler_name="default-scheduler") for i in range(3)]
    api.create_many([by_field(pod, "gang") for pod in pods])
    servers = [
        start_kube_scheduler(plane),
        start_controller_manager(plane, [PROTECTION_CONTROLLER]),
    ]
    try:
        api.wait_bound(3, timeout_s=30)
        for pod in pods:
            api.delete(f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}")
        api.delete(f"{groups_path(FIELD_API)}/gang")

        def is_gone() -> bool:
            return "gang" not in [
                x["metadata"]["name"] for x in api.list_all(groups_path(FIELD_API))
            ]

        api.wait_until(is_gone, "the group is gone")
    finally:
        for server in servers:
            server.kill()
