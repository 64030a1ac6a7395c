"""A pod has one owner, and no pool decides about a pod of another: histories of three pools.

Watches lag, answers are lost or late, leaders die while their requests are on the way, users write
and delete pods. What the API server accepts is checked in :mod:`tests.scheduler.pools.world`.
"""

from __future__ import annotations

import pytest
import structlog

from scheduler.pools.own_pool import OwnPool
from tests.scheduler.pools.pools import POOLS, waiting
from tests.scheduler.pools.world import BrokenPromiseError, World

STEPS = 400


@pytest.fixture(autouse=True)
def no_log():
    """Thousands of lines about refused requests."""
    with structlog.testing.capture_logs():
        yield


def play(world: World, steps: int = STEPS) -> World:
    for _ in range(steps):
        world.step()
    return world


@pytest.mark.parametrize("seed", [*range(30), 54, 150, 230, 274])
def test_only_the_owner_binds_and_only_the_owner_hands_on(seed) -> None:
    with World(seed) as world:
        play(world)


@pytest.mark.parametrize("seed", range(8))
def test_where_there_is_room_every_pod_is_bound_once_all_is_calm(seed) -> None:
    with World(seed) as world:
        play(world)
        for pool in POOLS:
            world.room[pool.name] = 100
        world.settle()
        assert [name for name, pod in world.stored.items() if not pod.spec.node_name] == []
        for process in world.processes.values():
            assert process.ownership.counts == {"given": 0, "others": 0}
            assert len(process.pool.refusals) == 0


def test_a_pod_goes_round_and_then_waits_longer_each_time() -> None:
    with World(0) as world:
        world.room = dict.fromkeys(world.room, 0)
        world.write("web", waiting())
        world.settle()  # ten minutes
        # Three pools: two hops in each round after the first one has refused it, and one to begin a
        # round; the pauses are 40, 80, 160 and 320 s.
        assert 6 <= world.hops["web"] <= 14
        world.room["b"] = 1
        world.settle()
        world.settle()
        assert world.bound == {waiting().metadata.uid: "b"}


def test_the_pods_of_a_pool_without_a_leader_are_taken_by_the_next_one() -> None:
    with World(0) as world:
        world.room = {"a": 5, "b": 5, "c": 5}
        world.kill("b")
        world.write("web", waiting(owner="b"))
        world.write("other", waiting("other", owner="a"))
        del world.ended_s["b"]
        world.ended_s["b"] = world.now_s
        world.pass_time(1.0)
        start, world._start = world._start, lambda _: None
        world.settle()
        assert set(world.bound.values()) == {"a", "c"}
        assert world.hops == {"web": 1}
        world._start = start


def any_promise_is_broken(make) -> bool:
    for seed in range(28, 70):
        with make(seed) as world:
            try:
                play(world)
            except BrokenPromiseError:
                return True
    return False


def without_version(options, clock) -> OwnPool:
    pool = OwnPool.of(options, clock, lambda: _NOTHING)
    return _WithoutVersion(pool.ownership, pool.refusals, pool.gate)


class _Nothing:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


_NOTHING = _Nothing()


class _WithoutVersion(OwnPool):
    def version(self, live_pod, info) -> str:
        return ""


def without_memory(options, clock) -> OwnPool:
    pool = OwnPool.of(options, clock, lambda: _NOTHING)
    pool.ownership.owns = lambda pod: pool.ownership.owner_of(pod) == pool.ownership.own
    return pool


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(
            lambda seed: World(seed, compares_versions=False), id="no version is compared"
        ),
        pytest.param(
            lambda seed: World(seed, make_pool=without_version), id="bindings name no version"
        ),
        pytest.param(
            lambda seed: World(seed, make_pool=without_memory), id="what is given is forgotten"
        ),
    ],
)
def test_each_part_of_the_rule_is_needed(make) -> None:
    """With a part of it gone, some history breaks a promise: the tests above can fail."""
    assert any_promise_is_broken(make)
