"""Which failures let a pod go to another pool: those that other nodes may mend."""

from __future__ import annotations

import threading

import pytest

from plugins.framework.status import unschedulable
from scheduler.cycle.failure_handler import FailureHandler
from scheduler.cycle.reports import Reports
from scheduler.pools.options import PoolOptions
from scheduler.pools.own_pool import OwnPool
from scheduler.pools.refusals import Refusals
from scheduler.pools.topologies import GATE
from scheduler.queueing import QueueState
from tests.builders import pod
from tests.fakes.clock import FakeClock
from tests.scheduler.cycle.test_nominations import MakesRoom, Scene
from tests.scheduler.pools.pools import A
from tests.scheduler.queueing.queues import make_queue


def scene_with(refusals: Refusals, *plugins) -> Scene:
    scene = Scene(*plugins)
    scene.failures = FailureHandler(
        scene.queue,
        lambda _, name: scene.live.get(name),
        Reports(scene.notes, scene.notes, scene.parts.metrics),
        scene.parts.clock,
        refusals,
    )
    return scene


@pytest.fixture
def refusals() -> Refusals:
    return Refusals(lambda: 0.0, threading.Lock)


def refused(refusals: Refusals) -> list[str]:
    return [uid for uid, _ in refusals.all()]


def test_a_pod_that_no_node_has_room_for(refusals):
    scene = scene_with(refusals)
    scene.add("web")
    scene.try_next()
    assert refused(refusals) == ["web"]


def test_not_one_that_evictions_help(refusals):
    scene = scene_with(refusals, MakesRoom())
    scene.add("web")
    scene.try_next()
    assert scene.nominated("web") is not None
    assert refused(refusals) == []


def test_no_longer_once_evictions_help(refusals):
    scene = scene_with(refusals, MakesRoom())
    scene.runner.points["postFilter"][0].answer = ("", unschedulable())
    scene.add("web")
    scene.try_next()
    assert refused(refusals) == ["web"]
    scene.runner.points["postFilter"][0].answer = ("n1", unschedulable())
    scene.queue.activate(["web"])
    scene.try_next()
    assert refused(refusals) == []


def test_a_pod_without_any_nodes_at_all(refusals):
    scene = scene_with(refusals)
    for name in ("n1", "n2"):
        scene.make_room(name)
        scene.parts.cache.remove_node(name)
    scene.add("web")
    scene.try_next()
    assert refused(refusals) == ["web"]


def test_a_pod_whose_constraints_reach_across_pools_is_gated():
    options = PoolOptions("a", A.node_selector)
    gate = OwnPool.of(options, lambda: 0.0, threading.Lock)
    queue = make_queue(FakeClock(), pre_enqueue=gate.gated(lambda _: unschedulable("asked")))
    made = pod("web").spread("topology.kubernetes.io/zone", app="web").info()
    queue.add(made)
    assert queue.state_of(made.uid) is QueueState.GATED
    assert [info.uid for info in queue.gated_by(GATE)] == [made.uid]
    assert not queue.take_out(made.uid)
