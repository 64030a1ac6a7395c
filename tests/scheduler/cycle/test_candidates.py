"""Decisions about a pod that may only be placed on some nodes."""

from __future__ import annotations

import numpy as np
import pytest

from cache.snapshot import Snapshot
from cache.trial import Trial
from plugins.framework.cycle_state import CycleState
from scheduler.cycle.host_selection import HostSelector
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from scheduler.runtime.judgement import Candidates, LikePods
from tests.builders import node, pod
from tests.scheduler.pod_groups.groups import default_framework

ZONE = "topology.kubernetes.io/zone"
NAMES = ("a", "b", "c", "d")


@pytest.fixture(scope="module")
def framework():
    return default_framework()


def cycle_over(*infos):
    return SchedulingCycle(Snapshot.of(infos), HostSelector(1))


def decide(cycle, framework, info, *rows, **options):
    among = Candidates(np.array(rows, dtype=np.intp), len(cycle.snapshot))
    return cycle.decide(framework, CycleState(), info, among=among, **options)


@pytest.mark.parametrize("times", [1, 2], ids=["anew", "from kept verdicts"])
def test_only_candidates_are_chosen(framework, times):
    cycle = cycle_over(*(node(name).info() for name in NAMES))
    for index in range(times):
        decision = decide(cycle, framework, pod(f"p{index}").request(cpu="1").info(), 1, 3)
    assert decision.node_name in ("b", "d")
    assert decision.feasible_nodes == 2


def test_the_only_feasible_candidate_needs_no_score(framework):
    cycle = cycle_over(*(node(name).info() for name in NAMES))
    decision = decide(cycle, framework, pod().info(), 2)
    assert (decision.node_name, decision.score) == ("c", None)


def test_a_refusal_counts_the_candidates(framework):
    full = node("a").capacity(cpu="1").info(pod("old").request(cpu="1"))
    cycle = cycle_over(full, *(node(name).info() for name in NAMES[1:]))
    decision = decide(cycle, framework, pod().request(cpu="1").info(), 0)
    assert decision.message().startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_plugins_see_the_other_nodes(framework):
    nodes = [node(name).zone(name) for name in NAMES]
    other = pod("other").label("app", "x")
    cycle = cycle_over(nodes[0].info(), nodes[1].info(other), *(n.info() for n in nodes[2:]))
    spread = pod().label("app", "x").spread(ZONE, app="x")
    assert decide(cycle, framework, spread.info(), 1).node_name == ""
    assert decide(cycle, framework, spread.info(), 0).node_name == "a"


def test_no_candidate_is_no_node(framework):
    decision = decide(cycle_over(node("a").info()), framework, pod().info())
    assert not decision.is_placed


def test_without_post_filters_nobody_looks_for_victims(framework):
    low = pod("low").request(cpu="4").priority(0)
    cycle = cycle_over(node("a").capacity(cpu="4").info(low))
    high = pod("high").request(cpu="4").priority(10).info()
    decision = decide(cycle, framework, high, 0, post_filters=False)
    assert (decision.post_filtered, decision.nominated_node_name) == (False, None)


def test_equal_names_make_equal_choices_whatever_was_chosen_before(framework):
    cycle = cycle_over(*(node(name).info() for name in NAMES))
    chosen = []
    for _ in range(3):
        cycle.decide(framework, CycleState(), pod("before").info())
        with cycle.ties_by("gang") as pick:
            chosen.append([pick(1000) for _ in range(5)])
    assert chosen[0] == chosen[1] == chosen[2]


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(pod().request(cpu="1"), id="every plugin signs or skips"),
        pytest.param(pod().label("app", "x").spread(ZONE, app="x"), id="spread"),
        pytest.param(pod().label("app", "y"), id="unwanted by a running pod"),
    ],
)
@pytest.mark.parametrize("rows", [(), (0, 2, 3)], ids=["all nodes", "some nodes"])
def test_like_pods_are_decided_about_as_pods_that_nothing_is_known_of(framework, asked, rows):
    runs = []
    for like in (None, LikePods()):
        running = pod("old").label("app", "old").pod_anti_affinity(ZONE, app="y")
        infos = [node(name).zone(name).info() for name in NAMES[1:]]
        cycle = cycle_over(node("a").zone("a").info(running), *infos)
        among = Candidates(np.array(rows, dtype=np.intp), len(cycle.snapshot)) if rows else None
        trial, run = Trial(cycle.snapshot), []
        for index in range(20):
            info, state = asked.named(f"p{index}").info(), CycleState()
            decision = cycle.decide(
                framework, state, info, among=among, like=like, post_filters=False
            )
            skips = (state.skip_filter, state.skip_score)
            run.append((decision.node_name, decision.score, decision.feasible_nodes, skips))
            if decision.is_placed:
                trial.add_pod(info, decision.node_name)
        runs.append(run)
    assert runs[0] == runs[1]
