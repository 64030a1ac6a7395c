from __future__ import annotations

import pytest

from plugins.framework.cluster_events import NODE_ADD, EventRegistration
from plugins.framework.status import SUCCESS, unschedulable
from scheduler.queueing import QueueState
from tests.builders import pod
from tests.fakes.clock import FakeClock
from tests.scheduler.queueing.queues import make_queue

BOTH = frozenset({"berth", "gpu"})
GPU = frozenset({"gpu"})


class World:
    """A queue whose gate and registrations a test changes."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.shut: set[str] = set()
        self.registered = {"Fit": ()}
        self.queue = make_queue(
            self.clock,
            pre_enqueue=self._pre_enqueue,
            registrations=lambda name: self.registered,
        )

    def _pre_enqueue(self, pod):
        if pod.spec.scheduler_name in self.shut:
            return unschedulable("shut").by("Gate")
        return SUCCESS

    def add(self, name: str, scheduler_name: str = "gpu"):
        info = pod(name).scheduler(scheduler_name).info()
        self.queue.add(info)
        return info

    def refused(self, name: str, scheduler_name: str = "gpu"):
        info = self.add(name, scheduler_name)
        queued = self.queue.pop(0)
        assert queued is not None
        queued.unschedulable_plugins = frozenset({"Fit"})
        self.queue.add_unschedulable(queued)
        assert self.queue.state_of(info.uid) is QueueState.UNSCHEDULABLE
        self.clock.advance(60)
        return info

    def state(self, info) -> QueueState:
        return self.queue.state_of(info.uid)


def test_a_refused_pod_of_a_changed_profile_is_woken():
    world = World()
    info = world.refused("a")
    world.queue.policy_changed(GPU, BOTH)
    assert world.state(info) is QueueState.ACTIVE


def test_a_refused_pod_of_another_profile_stays():
    world = World()
    info = world.refused("a", "berth")
    world.queue.policy_changed(GPU, BOTH)
    assert world.state(info) is QueueState.UNSCHEDULABLE


def test_a_gate_that_has_opened_lets_the_pod_in():
    world = World()
    world.shut = {"gpu"}
    info = world.add("a")
    world.shut = set()
    world.queue.policy_changed(GPU, BOTH)
    assert world.state(info) is QueueState.ACTIVE


def test_a_gate_that_has_shut_keeps_an_active_pod_out():
    world = World()
    info = world.add("a")
    world.shut = {"gpu"}
    world.queue.policy_changed(GPU, BOTH)
    assert world.state(info) is QueueState.GATED


def test_a_gate_that_has_shut_keeps_a_pausing_pod_out():
    world = World()
    info = world.add("a")
    queued = world.queue.pop(0)
    world.queue.add_unschedulable(queued)
    assert world.state(info) is QueueState.BACKOFF
    world.shut = {"gpu"}
    world.queue.policy_changed(GPU, BOTH)
    assert world.state(info) is QueueState.GATED


@pytest.mark.parametrize("how", ["add", "refused"])
def test_pods_of_a_profile_that_is_gone_leave(how):
    world = World()
    info = getattr(world, how)("a")
    world.queue.policy_changed(frozenset(), frozenset({"berth"}))
    assert world.state(info) is QueueState.NOWHERE


def test_a_pod_in_flight_of_a_profile_that_is_gone_does_not_come_back():
    world = World()
    info = world.add("a")
    queued = world.queue.pop(0)
    world.queue.policy_changed(frozenset(), frozenset({"berth"}))
    world.queue.add_unschedulable(queued)
    assert world.state(info) is QueueState.NOWHERE


def test_a_pod_in_flight_whose_profile_comes_back_is_not_lost():
    world = World()
    info = world.add("a")
    queued = world.queue.pop(0)
    world.queue.policy_changed(frozenset(), frozenset({"berth"}))
    world.queue.policy_changed(GPU, BOTH)
    world.queue.add(info)
    world.queue.add_unschedulable(queued)
    assert world.state(info) is not QueueState.NOWHERE


def test_a_pod_that_was_in_flight_is_tried_again_if_it_is_refused():
    world = World()
    info = world.add("a")
    queued = world.queue.pop(0)
    world.queue.policy_changed(GPU, BOTH)
    queued.unschedulable_plugins = frozenset({"Fit"})
    world.queue.add_unschedulable(queued)
    assert world.state(info) is QueueState.BACKOFF


def test_registrations_are_asked_for_anew():
    world = World()
    info = world.refused("a", "berth")
    world.queue.move_all(NODE_ADD, None, None)
    assert world.state(info) is QueueState.UNSCHEDULABLE
    world.registered = {"Fit": (EventRegistration(NODE_ADD),)}
    world.queue.policy_changed(frozenset(), BOTH)
    world.queue.move_all(NODE_ADD, None, None)
    assert world.state(info) is QueueState.ACTIVE


def test_a_nomination_goes_with_the_profile():
    world = World()
    info = world.refused("a")
    world.queue.nominator.add(info, "n1")
    world.queue.policy_changed(frozenset(), frozenset({"berth"}))
    assert world.queue.nominator.node_of(info.uid) is None
