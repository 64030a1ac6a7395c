"""A process with ``--node-selector``: it hears of all pods, and of the nodes of one pool."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache.comparer import compare
from scheduler.event_handlers.pods_and_nodes import EventHandlers
from scheduler.event_handlers.pods_elsewhere import PodsElsewhere
from tests.builders import node, pod
from tests.scheduler.event_handlers.test_pods_and_nodes import added, changed, deleted, ended
from tests.scheduler.parts import Parts

N1 = node("n1").capacity(cpu="4", memory="8Gi").build()


class Pool(Parts):
    """The parts of a process that has one pool."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.handlers = EventHandlers(
            self.pods,
            self.pod_groups,
            self.profiles,
            self.metrics,
            elsewhere=PodsElsewhere(),
        )

    @property
    def elsewhere(self) -> float:
        return self.handlers.elsewhere()


@pytest.fixture
def pool() -> Pool:
    return Pool()


def running(name: str = "a", on: str = "n1"):
    return pod(name).scheduler("berth").request(cpu="1").on(on).build()


def test_a_pod_on_a_node_of_another_pool_is_not_in_the_cache(pool):
    pool.handlers.on_pods([added(running())])
    assert (pool.cache.counts().pods, pool.elsewhere) == (0, 1)
    assert pool.cache.dump().nodes == {}


def test_a_node_that_enters_is_counted_with_all_its_pods(pool):
    pool.handlers.on_pods([added(running("a")), added(running("b"))])
    pool.handlers.on_nodes([added(N1)])
    assert (pool.milli_cpu_on("n1"), pool.elsewhere) == (2000, 0)


def test_the_pods_are_counted_before_a_decision_can_take_the_node(pool):
    pool.handlers.on_pods([added(running())])
    seen = []
    pool.cache.observer = lambda stimulus, *_: seen.append(stimulus)
    pool.handlers.on_nodes([added(N1)])
    assert seen == ["add", "node"]


def test_a_node_that_leaves_takes_its_pods_out(pool):
    pool.handlers.on_nodes([added(N1)])
    pool.handlers.on_pods([added(running())])
    pool.handlers.on_nodes([deleted(N1)])
    assert (pool.cache.counts().pods, pool.elsewhere) == (0, 1)
    assert pool.cache.dump().nodes == {}


def test_a_node_that_comes_back_has_the_pods_as_they_are_then(pool):
    old = running()
    pool.handlers.on_nodes([added(N1)])
    pool.handlers.on_pods([added(old), added(running("b"))])
    pool.handlers.on_nodes([deleted(N1)])
    resized = pod("a").scheduler("berth").request(cpu="3").on("n1").build()
    pool.handlers.on_pods([changed(old, resized), deleted(running("b"))])
    pool.handlers.on_nodes([added(N1)])
    assert (pool.milli_cpu_on("n1"), pool.elsewhere) == (3000, 0)


def test_an_assumed_pod_stays_until_its_binding_has_ended(pool):
    waits = pod("a").scheduler("berth").request(cpu="1").build()
    pool.handlers.on_nodes([added(N1)])
    pool.handlers.on_pods([added(waits)])
    popped = pool.queue.pop()
    pool.cache.assume_pod(popped.info, "n1")
    pool.handlers.on_nodes([deleted(N1)])
    assert pool.cache.is_assumed_pod(popped.info.uid)
    pool.handlers.on_pods([changed(waits, running())])
    assert (pool.cache.counts().pods, pool.elsewhere) == (0, 1)


def test_a_waiting_pod_that_another_pool_binds_leaves_the_queue(pool):
    waits = pod("a").scheduler("berth").request(cpu="1").build()
    pool.handlers.on_pods([added(waits)])
    pool.handlers.on_pods([changed(waits, running())])
    assert (pool.queue.counts().active, pool.elsewhere) == (0, 1)


def test_a_pod_that_ends_there_is_not_kept(pool):
    pool.handlers.on_pods([added(running())])
    pool.handlers.on_pods(
        [changed(running(), ended(pod("a").scheduler("berth").request(cpu="1").on("n1")))]
    )
    assert pool.elsewhere == 0


def test_a_node_that_cannot_be_read_does_not_enter(pool):
    pool.handlers.on_pods([added(running())])
    broken = msgspec.structs.replace(
        N1, status=msgspec.structs.replace(N1.status, allocatable={"cpu": "many"})
    )
    pool.handlers.on_nodes([added(broken)])
    assert pool.elsewhere == 1
    pool.handlers.on_nodes([changed(broken, N1)])
    assert (pool.milli_cpu_on("n1"), pool.elsewhere) == (1000, 0)


NAMES = ("n1", "n2", "n3")


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 3), st.integers(0, 4))))
def test_after_any_history_the_cache_is_what_the_watches_say_of_the_pool(steps):
    """Nodes enter and leave, pods come, change and go, in any order."""
    pool, nodes, pods = Pool(), {}, {}
    for name, number, what in steps:
        if what == 0:
            old = nodes.pop(name, None)
            if old is None:
                nodes[name] = node(name).capacity(cpu="4", memory="8Gi").build()
                pool.handlers.on_nodes([added(nodes[name])])
            else:
                pool.handlers.on_nodes([deleted(old)])
            continue
        key = f"{name}-{number}"
        old = pods.pop(key, None)
        if old is None or what > 1:
            new = pod(key).request(cpu=f"{what}00m").on(name).build()
            pods[key] = new
            pool.handlers.on_pods([added(new) if old is None else changed(old, new)])
        else:
            pool.handlers.on_pods([deleted(old)])
    here = [each for each in pods.values() if each.spec.node_name in nodes]
    assert compare(pool.cache.dump(), nodes.values(), here) == []
    assert pool.elsewhere == len(pods) - len(here)
