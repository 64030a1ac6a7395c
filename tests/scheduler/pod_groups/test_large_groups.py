"""What large groups cost, in questions to the filters: rows 40, 41 and 46 of the reference."""

from __future__ import annotations

import pytest

from cache.trial import Trial
from plugins.default_binder import DefaultBinder
from plugins.framework.interfaces import FilterPlugin
from plugins.framework.results import ALL_PASS
from plugins.framework.status import SUCCESS
from plugins.names import NODE_NAME
from plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from plugins.priority_sort import PrioritySort
from scheduler.config.extension_points import POINTS, points_of
from scheduler.pod_groups import Verdict
from scheduler.runtime.framework_runner import FrameworkRunner
from tests.builders import pod
from tests.plugins.conformance import RecordingHandle
from tests.scheduler.pod_groups.groups import Cluster, rules
from tests.scheduler.pod_groups.test_planner import members, small

NODES = 400


class Counting(FilterPlugin):
    """Counts how often it is asked: about all nodes at once, and about one."""

    name = NODE_NAME
    reads_pods = False

    def __init__(self) -> None:
        super().__init__(None, RecordingHandle())
        self.vectors = self.scalars = 0

    def signature(self, info):
        return ()

    def filter(self, state, info, nodes):
        self.vectors += 1
        return ALL_PASS

    def filter_one(self, state, info, node_info):
        self.scalars += 1
        return SUCCESS


def counted_cluster(racks=1):
    counting, handle = Counting(), RecordingHandle()
    fit = NodeResourcesFit(NodeResourcesFitArgs(), handle)
    every = [PrioritySort(None, handle), counting, fit, DefaultBinder(None, handle)]
    points = {point: [p for p in every if point in points_of(type(p))] for point in POINTS}
    framework = FrameworkRunner("berth", points, {"NodeResourcesFit": 1})
    nodes = [small(f"n{i}").label("rack", f"r{i % racks}").info() for i in range(NODES)]
    return Cluster(nodes, framework=framework), counting


def test_row_40_like_members_are_placed_with_a_constant_number_of_filter_runs():
    runs = []
    for size in (100, NODES):
        cluster, counting = counted_cluster()
        assert cluster.plan(members(size, cpu="1")).verdict is Verdict.FITS
        runs.append(counting.vectors)
    assert runs[0] == runs[1] < 5


def test_row_40_one_member_too_many_is_refused_with_less():
    fits, of_fit = counted_cluster()
    fits.plan(members(NODES, cpu="1"))
    cluster, of_refusal = counted_cluster()
    plan = cluster.plan(members(NODES + 1, cpu="1"))
    assert (plan.verdict, plan.fitting, len(plan.refused)) == (Verdict.DOES_NOT_FIT, NODES, 1)
    assert of_refusal.vectors <= of_fit.vectors + 2
    assert of_refusal.scalars <= of_fit.scalars


@pytest.mark.parametrize("size", [8, 9], ids=["fits", "does not fit"])
def test_row_41_racks_cost_no_further_filter_runs(size):
    runs = []
    for racks in (10, 50):
        cluster, counting = counted_cluster(racks)
        gang = members(NODES // racks + size - 8, cpu="1")
        plan = cluster.plan(gang, rules(len(gang), topology="rack"))
        assert (plan.verdict is Verdict.FITS) == (size == 8)
        runs.append(counting.vectors)
    assert runs[0] == runs[1] < 6


def test_row_46_ten_thousand_members_are_planned():
    cluster, counting = counted_cluster()
    plan = cluster.plan(members(10_000, cpu="500m"), rules(800))
    assert (plan.verdict, len(plan.placed)) == (Verdict.FITS, 800)
    assert counting.vectors < 10


def test_row_46_as_many_shapes_as_members():
    cluster, _ = counted_cluster(racks=100)
    gang = [pod(f"m{i}").request(cpu=f"{500 + i}m") for i in range(300)]
    plan = cluster.plan(gang, rules(300, topology="rack"))
    assert plan.verdict is Verdict.DOES_NOT_FIT
    assert len(plan.status.message) < 1024


def test_a_reason_is_short_however_long_its_parts_are():
    cluster, _ = counted_cluster()
    names = {f"example.com/{'x' * 50}{i}": "1" for i in range(100)}
    plan = cluster.plan([pod("m").request(names)])
    assert len(plan.status.message) < 1024


def test_counting_says_what_placing_one_by_one_finds():
    cluster, _ = counted_cluster()
    running = Trial(cluster.snapshot)
    for index in range(150):
        running.add_pod(pod(f"old{index}").request(cpu="600m").info(), f"n{index}")
    plan = cluster.plan(members(700, cpu="400m"))
    assert (plan.verdict, plan.fitting) == (Verdict.DOES_NOT_FIT, 250 * 2 + 150 * 1)
