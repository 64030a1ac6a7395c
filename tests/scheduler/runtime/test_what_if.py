from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plugins.framework.cycle_state import CycleState
from tests.builders import PodBuilder, node, pod
from tests.plugins.default_preemption.stage import Stage

if TYPE_CHECKING:
    from cache.pod_info import PodInfo

FULL = node("full").capacity(cpu="1")
GUEST = pod("guest").request(cpu="1").label("app", "web").on("full")


def settled(stage: Stage, state: CycleState, info: PodInfo) -> bool:
    """Whether no other filter has a say on any node."""
    found = stage.plugin.handle.what_if.settle(state, info, stage.snapshot.all_nodes())
    return found is not None and bool(found[1].all())


@pytest.mark.parametrize(
    ("asked", "alone"),
    [
        pytest.param(pod().request(cpu="1"), True, id="only resources"),
        pytest.param(pod().host_port(80).node_selector("a", "b"), True, id="ports and labels"),
        pytest.param(pod().spread("zone", app="web"), False, id="spreading"),
        pytest.param(pod().pod_affinity("zone", app="web"), False, id="affinity"),
    ],
)
def test_whether_a_pod_is_judged_by_one_node_at_a_time(asked: PodBuilder, alone: bool) -> None:
    stage = Stage(FULL)
    state, _ = stage.search(asked.info())
    assert settled(stage, state, asked.info()) is alone


def test_anti_affinity_of_a_pod_that_runs_is_not_of_one_node() -> None:
    stage = Stage(FULL.label("zone", "a"), GUEST.pod_anti_affinity("zone", app="web"))
    asked = pod().label("app", "web").info()
    state, _ = stage.search(asked)
    assert not settled(stage, state, asked)


def test_only_filters_that_judge_nodes_alone_are_asked_and_the_first_to_reject_counts() -> None:
    stage = Stage(FULL.label("zone", "a"), node("closed").taint("x").capacity(cpu="0"), GUEST)
    asked = pod().request(cpu="1").pod_anti_affinity("zone", app="web").info()
    state, _ = stage.search(asked)
    verdicts = stage.plugin.handle.what_if.filter_alone(state, asked, stage.snapshot.all_nodes())
    assert verdicts.feasible is not None
    assert not verdicts.feasible.any()
    told = {status.plugin: (status.reasons, count) for status, count in verdicts.rejections()}
    assert told == {
        "NodeResourcesFit": (("Insufficient cpu",), 1),
        "TaintToleration": (("node(s) had untolerated taint(s)",), 1),
    }


def test_filters_that_the_cycle_skips_are_not_asked() -> None:
    stage = Stage(FULL, GUEST)
    state = CycleState()
    state.skip_filter = {plugin.name for plugin in stage.framework.plugins}
    what_if, info = stage.plugin.handle.what_if, pod().request(cpu="1").info()
    assert settled(stage, state, info)
    assert what_if.filter_alone(state, info, stage.snapshot.all_nodes()).feasible is None
