"""What runs once before the first pod."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cache.scheduler_cache import SchedulerCache
from cache.snapshot import Snapshot
from plugins.default_binder import DefaultBinder
from plugins.framework.attempt_budget import AttemptBudgetExceededError
from plugins.framework.cycle_state import CycleState
from plugins.framework.interfaces import FilterPlugin, PostFilterPlugin
from plugins.framework.read_ahead import ReadAheadPlugin
from plugins.framework.status import unschedulable
from plugins.priority_sort import PrioritySort
from scheduler.cycle.host_selection import HostSelector
from scheduler.cycle.rehearsal import read_ahead, rehearse
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from scheduler.runtime.framework_runner import FrameworkRunner
from scheduler.runtime.profile_map import Profiles
from tests.bench.deciding import Parts
from tests.builders import node, pod

FRESH_PROCESS = """
import sys
from cache.snapshot import Snapshot
from plugins.framework.cycle_state import CycleState
from scheduler.cycle.host_selection import HostSelector
from scheduler.cycle.rehearsal import rehearse
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from tests.bench.deciding import Parts
from tests.builders import node, pod

parts = Parts()
for number in range(20):
    parts.cache.add_node(node(f"n{number}").zone("z").capacity(cpu="4", pods="10").build())
cycle = SchedulingCycle(Snapshot(), HostSelector(1))
rehearse(parts.cache, cycle, [parts.framework])
before = set(sys.modules)
anyone = pod("p").label("app", "a").spread("topology.kubernetes.io/zone", app="a")
for demanding in (anyone, pod("q")):
    assert cycle.decide(parts.framework, CycleState(), demanding.info()).node_name
print(*(set(sys.modules) - before))
"""


class Full(FilterPlugin):
    name = "Full"

    def filter_one(self, state, info, node_info):
        return unschedulable("full")


class Broken(FilterPlugin):
    name = "Broken"

    def filter_one(self, state, info, node_info):
        raise RuntimeError("it fell over")


class MakesRoom(PostFilterPlugin):
    name = "MakesRoom"
    asked = 0

    def post_filter(self, state, info, nodes, verdicts):
        self.asked += 1
        return None, unschedulable()


def cache_with(*names: str) -> SchedulerCache:
    cache = SchedulerCache()
    for name in names:
        cache.add_node(node(name).capacity(cpu="4", pods="10").build())
    return cache


def new_cycle() -> SchedulingCycle:
    return SchedulingCycle(Snapshot(), HostSelector(7))


def runner(filters, post_filters=()) -> FrameworkRunner:
    points = {
        "queueSort": [PrioritySort(None, None)],
        "filter": filters,
        "postFilter": post_filters,
        "bind": [DefaultBinder(None, None)],
    }
    return FrameworkRunner("berth", points, {})


def test_the_first_decisions_after_it_load_nothing_any_more():
    done = subprocess.run(
        [sys.executable, "-c", FRESH_PROCESS], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


def test_decisions_are_the_same_as_without_it():
    parts = Parts()
    for number in range(9):
        parts.cache.add_node(node(f"n{number}").capacity(cpu="4", pods="10").build())
    chosen = []
    for rehearsed in (False, True):
        cycle = new_cycle()
        if rehearsed:
            rehearse(parts.cache, cycle, Profiles([parts.framework]))
        parts.cache.update_snapshot(cycle.snapshot)
        infos = [pod(f"p{number}").info() for number in range(20)]
        chosen.append(
            [cycle.decide(parts.framework, CycleState(), info).node_name for info in infos]
        )
    assert chosen[0] == chosen[1]


def test_where_no_node_is_feasible_nobody_is_asked_to_make_room():
    makes_room = MakesRoom(None, None)
    rehearse(
        cache_with("a", "b"), new_cycle(), Profiles([runner([Full(None, None)], [makes_room])])
    )
    assert makes_room.asked == 0


@pytest.mark.parametrize("names", [pytest.param((), id="no node"), pytest.param(("a",), id="one")])
def test_a_plugin_that_fails_and_an_empty_cluster_are_no_hindrance(names):
    rehearse(cache_with(*names), new_cycle(), Profiles([runner([Broken(None, None)])]))


class Reader(Full, ReadAheadPlugin):
    """Has so much to read, of which each budget allows a part."""

    left = 5

    def read_ahead(self, nodes, budget):
        for _ in range(3):
            if not self.left:
                return
            self.left -= 1
        raise AttemptBudgetExceededError(budget.limit_s)


def test_what_plugins_read_ahead_goes_on_until_nothing_is_left():
    parts = cache_with("a"), new_cycle(), Profiles([runner([Reader(None, None)])])
    assert [read_ahead(*parts, 0.02) for _ in range(3)] == [True, False, False]
