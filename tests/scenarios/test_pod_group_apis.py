"""Berth on a cluster that serves PodGroups later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cache.pod_group_objects import GroupKey, GroupSource
from scheduler.event_handlers import late_watches
from tests.controlplane.access import USER
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.objects import make_node, make_pod
from tests.controlplane.pod_groups import (
    by_label,
    install_x_pod_groups,
    make_x_pod_group,
)
from tests.scenarios.running_berth import RunningBerth

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.controlplane.control_plane import ControlPlane

pytestmark = pytest.mark.controlplane

BY_LABEL = GroupKey("default", "ring", GroupSource.LABEL)


@pytest.fixture
def api(fresh_control_plane: ControlPlane) -> Iterator[BlockingApi]:
    with BlockingApi(fresh_control_plane.admin_kubeconfig) as api:
        yield api


def about_groups(plane: ControlPlane) -> list[Any]:
    """Return berth's requests about PodGroups, reviews of rights included."""
    return [
        event
        for event in plane.audit_events()
        if event["user"]["username"] == USER and "podgroups" in str(event)
    ]


def test_an_api_that_is_installed_while_berth_runs_is_known_and_costs_nothing_before(
    fresh_control_plane: ControlPlane, api: BlockingApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late_watches, "LOOK_S", 0.2)
    plane = fresh_control_plane
    with RunningBerth(plane.berth_kubeconfig()) as berth:
        api.wait_until(lambda: berth.is_ready, "berth is ready")
        api.create_many([make_node("n1"), make_pod("single")])
        api.wait_bound(1)
        assert about_groups(plane) == []

        groups = berth.app.known.cluster.pod_groups
        api.create_many([by_label(make_pod("member", scheduler_name="another"), "ring")])
        install_x_pod_groups(plane)
        api.create_many([make_x_pod_group("ring", 3)])
        api.wait_until(lambda: groups.rules(BY_LABEL) is not None, "berth knows the group")
        standing = groups.standing(BY_LABEL)
        assert (standing.missing, standing.counts.waiting) == (3, 1)
        api.create_many([make_pod("another-single")])
        api.wait_until(
            lambda: (
                {pod["metadata"]["name"] for pod in api.pods() if pod["spec"].get("nodeName")}
                == {"single", "another-single"}
            ),
            "single pods are bound as before",
        )
