"""Members with resource claims of their own: allocated in the trial, and undone with it."""

from __future__ import annotations

import pytest

from scheduler.pod_groups import Verdict
from tests.builders import PodBuilder, node, pod
from tests.device_builders import resource_claim
from tests.plugins.dynamic_resources.conftest import closed_loop  # noqa: F401 - a fixture
from tests.plugins.dynamic_resources.device_world import DeviceWorld
from tests.scheduler.parts import NoBinding
from tests.scheduler.pod_groups.groups import Cluster, default_framework, nodes_of


class DeviceServices(NoBinding):
    """A cluster in which node ``a`` has one device and node ``b`` has two."""

    def __init__(self, members: int) -> None:
        super().__init__()
        world = DeviceWorld("a", "b").local("a", "gpu-0").local("b", "gpu-0", "gpu-1")
        self.devices = world.known
        self.claim_writer = world.handle.claim_writer
        self.device_reports = world.handle.device_reports
        for index in range(members):
            world.claim(resource_claim(f"c{index}").uid(f"u{index}").request("r", "gpu"))


def member(index: int) -> PodBuilder:
    return pod(f"m{index}").request(cpu="1").resource_claim("gpu", f"c{index}")


def planned(services: DeviceServices, members: int):
    nodes = [node(name).capacity(cpu="16").info() for name in "ab"]
    cluster = Cluster(nodes, framework=default_framework(services))
    return cluster.plan([member(index) for index in range(members)])


def test_each_member_gets_a_device_of_its_own():
    plan = planned(DeviceServices(3), 3)
    assert plan.verdict is Verdict.FITS
    assert sorted(nodes_of(plan).values()) == ["a", "b", "b"]


@pytest.mark.parametrize("members", [4, 6])
def test_devices_of_a_refused_group_are_free_again(members):
    services = DeviceServices(members)
    plan = planned(services, members)
    assert plan.verdict in (Verdict.DOES_NOT_FIT, Verdict.NOT_FOUND)
    assert planned(services, 3).verdict is Verdict.FITS
