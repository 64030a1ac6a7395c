"""A plugin that goes wrong for some pods, in real cycles: what becomes of them and of others."""

from __future__ import annotations

import numpy as np
import pytest

from cache.scheduler_cache import SchedulerCache
from cache.snapshot import Snapshot
from plugins.authoring import adapt
from plugins.default_binder import DefaultBinder
from plugins.framework.cycle_state import CycleState
from plugins.framework.status import Code
from plugins.priority_sort import PrioritySort
from scheduler.cycle.host_selection import HostSelector
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from scheduler.runtime.framework_runner import FrameworkRunner
from scheduler.user_plugins.containment.circuit_breaker import BreakerRules, State
from scheduler.user_plugins.containment.crash_note import Note
from scheduler.user_plugins.containment.guard import ContainedGuard
from scheduler.user_plugins.containment.options import ContainmentOptions
from scheduler.user_plugins.containment.plugin_code import PluginCode
from tests.builders import node, pod
from tests.fakes.clock import FakeClock

RULES = BreakerRules(failures=4)
OPTIONS = ContainmentOptions(breaker=RULES)


class Handle:
    async def bind_pod(self, info, node_name):
        raise AssertionError("a cycle binds nothing")


class Moody:
    """Lets only node b pass, but for pods labelled bad: with these it goes wrong."""

    clock = FakeClock()

    def filter(self, pod, nodes):
        good = np.array([name == "b" for name in nodes.names])
        if "bad" in pod.labels:
            return getattr(self, pod.labels["bad"])(good, nodes)
        return good

    def raises(self, good, nodes):
        raise KeyError("rack")

    def sleeps(self, good, nodes):
        self.clock.advance(1.0)
        return good

    def wrong_shape(self, good, nodes):
        return good[1:]

    def allocates(self, good, nodes):
        return np.zeros(1 << 50)

    def mutates(self, good, nodes):
        nodes.allocatable("cpu")[:] = 0
        return good


class SignsMoody(Moody):
    def signature(self, pod):
        return pod.labels.get("bad", "")


class InsistsMoody(Moody):
    failure_policy = "Fail"


class Stage:
    """Three equal nodes, and a profile whose one filter is moody."""

    def __init__(self, cls: type) -> None:
        note = Note(None)
        code = PluginCode.of(cls, "digest")
        self.clock = Moody.clock
        self.guard = ContainedGuard(code, note, OPTIONS, clock=self.clock)
        plugin = adapt(cls, guard=self.guard)(None, Handle())
        points = {
            "queueSort": [PrioritySort(None, Handle())],
            "filter": [plugin],
            "bind": [DefaultBinder(None, Handle())],
        }
        self._framework = FrameworkRunner("berth", points, {})
        self._snapshot = Snapshot()
        cache = SchedulerCache()
        for name in "abc":
            cache.add_node(node(name).capacity(cpu="4", memory="8Gi", pods=10).build())
        cache.update_snapshot(self._snapshot)
        self._cycle = SchedulingCycle(self._snapshot, HostSelector(1))
        self._pods = 0

    def place(self, bad: str = ""):
        """Decide about a pod."""
        self._pods += 1
        built = pod(f"pod-{self._pods}").uid(f"uid-{self._pods}")
        if bad:
            built = built.label("bad", bad)
        return self._cycle.decide(self._framework, CycleState(), built.info())

    def break_it(self) -> None:
        while self.guard.report().state is State.CLOSED:
            self.place("raises")


@pytest.fixture
def stage() -> Stage:
    return Stage(Moody)


FAILING = ["raises", "wrong_shape", "allocates", "mutates"]


@pytest.mark.parametrize("bad", FAILING)
def test_a_failing_call_costs_one_pod_its_attempt_and_says_where(stage, bad):
    decision = stage.place(bad)
    assert decision.status.code is Code.ERROR
    assert 'running "Moody" filter plugin: filter: ' in decision.status.message
    assert "(test_contained_cycles.py" in decision.status.message


@pytest.mark.parametrize("bad", [*FAILING, "sleeps"])
def test_the_next_pod_is_placed_by_the_plugin(stage, bad):
    stage.place(bad)
    assert stage.place().node_name == "b"


def test_a_pod_that_it_was_slow_with_is_placed_by_it(stage):
    assert stage.place("sleeps").node_name == "b"
    assert stage.guard.report().failures == {"slow": 1}


def test_what_it_wrote_into_is_as_it_was(stage):
    stage.place("mutates")
    assert stage._snapshot.columns.allocatable.max() > 0


def test_once_it_is_switched_off_all_nodes_will_do(stage):
    stage.break_it()
    assert {stage.place("raises").node_name for _ in range(30)} == {"a", "b", "c"}


def test_pods_of_one_that_insists_wait_meanwhile():
    stage = Stage(InsistsMoody)
    stage.break_it()
    decision = stage.place()
    assert decision.status.code is Code.ERROR
    assert "switched off for another 30 s" in decision.status.message


@pytest.mark.parametrize("cls", [Moody, SignsMoody])
def test_afterwards_it_decides_again(cls):
    """What was kept of the time when it was passed over is not taken for its word."""
    stage = Stage(cls)
    stage.break_it()
    assert {stage.place().node_name for _ in range(30)} == {"a", "b", "c"}
    stage.clock.advance(RULES.open_s)
    assert {stage.place().node_name for _ in range(30)} == {"b"}
