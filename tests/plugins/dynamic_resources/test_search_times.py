"""Searches that take too long, then and in a replay."""

from __future__ import annotations

from itertools import count

import pytest

from plugins.dynamic_resources.node_verdicts import NodeVerdictError
from tests.builders import pod
from tests.device_builders import device, resource_claim
from tests.plugins.dynamic_resources.device_world import DeviceWorld

PAIR = resource_claim("c").request("r", "gpu", count=2).match("gpu.example.com/board")
WEB = pod("web").resource_claim("r", "c")


def two_nodes() -> DeviceWorld:
    """Return nodes with two devices of one board each: whether they match takes a search."""
    world = DeviceWorld("n1", "n2")
    for name in ("n1", "n2"):
        world.local(name, *(device(f"{name}-{each}").attribute("board", name) for each in "ab"))
    world.claim(PAIR)
    return world


def test_a_search_that_takes_too_long_is_reported_with_its_pod_and_node() -> None:
    world, told, ticks = two_nodes(), [], count(step=100)
    world.plugin.search_times.clock = lambda: float(next(ticks))
    world.plugin.search_times.on_timeout = lambda *each: told.append(each)
    with pytest.raises(NodeVerdictError, match="timed out") as raised:
        world.cycle(WEB)
    ((uid, name),) = told
    assert uid == WEB.info().uid
    assert f"node {name}:" in str(raised.value)


def test_a_search_that_is_quick_enough_is_not() -> None:
    world, told = two_nodes(), []
    world.plugin.search_times.on_timeout = lambda *each: told.append(each)
    assert world.cycle(WEB).feasible() == ["n1", "n2"]
    assert not told


def test_a_search_that_took_too_long_then_has_no_result_in_a_replay() -> None:
    world = two_nodes()
    times = world.plugin.search_times
    times.has_timed_out = lambda uid, name: (uid, name) == (WEB.info().uid, "n1")
    with pytest.raises(NodeVerdictError, match="node n1: timed out"):
        world.cycle(WEB)
