from __future__ import annotations

import numpy as np
import pytest

from plugins.framework.interfaces import ScorePlugin
from plugins.framework.results import NodeVerdicts
from scheduler.config import default_config, running_profiles
from scheduler.offline.cluster import Cluster
from scheduler.offline.offline_framework import offline_framework
from scheduler.profiles import ShadowOptions
from scheduler.shadow import ShadowRunner
from scheduler.shadow.runner import MAX_SAVED_S
from tests.builders import node, pod
from tests.fakes.clock import FakeClock
from tests.scheduler.shadow.policies import (
    Acts,
    Broken,
    Handle,
    Only,
    Points,
    decide,
    nodes,
    policy,
)
from tests.storage_builders import claim, storage_of

ABC = ("a", "b", "c")


def beside(shadow, *, decisions=1000, budget=1.0, **more):
    return ShadowRunner(shadow, ShadowOptions(decisions, budget), **more)


def watched(live, shadow, *asked):
    """Return a runner that has compared one decision on ``a``, ``b`` and ``c`` for each pod."""
    runner, snapshot = beside(shadow), nodes(*ABC)
    for each in asked or (pod("web"),):
        runner.observe(snapshot, live, decide(snapshot, live, each))
    return runner


def test_a_policy_beside_itself_changes_nothing():
    report = watched(policy(Points(a=3)), policy(Points(a=3)), pod("x"), pod("y")).report()
    assert (report.compared, report.both_placed) == (2, 2)
    assert (report.changed_winners, report.changed_feasibility) == (0, 0)


def test_winners_that_would_change_are_counted():
    assert watched(policy(Points(a=3)), policy(Points(b=3))).report().changed_winners == 1


def test_nodes_that_would_be_lost_are_counted():
    report = watched(policy(), policy(Only("a"))).report()
    assert (report.changed_feasibility, report.nodes_lost, report.nodes_gained) == (1, 2, 0)


@pytest.mark.parametrize(
    ("live", "shadow", "found"),
    [
        pytest.param(policy(), policy(Only()), (0, 1, 0), id="only the live one finds a node"),
        pytest.param(policy(Only()), policy(), (0, 0, 1), id="only the shadow does"),
        pytest.param(policy(), policy(), (1, 0, 0), id="both do"),
        pytest.param(policy(Only()), policy(Only()), (0, 0, 0), id="neither does"),
    ],
)
def test_who_found_a_node_is_counted(live, shadow, found):
    report = watched(live, shadow).report()
    assert (report.both_placed, report.only_live, report.only_shadow) == found


def test_the_influence_of_each_plugin_of_both_is_told():
    live = policy(Points("Cost", a=9), Points("Image", b=1))
    report = watched(live, policy(Points("Rack", b=5))).report()
    told = {each.plugin: each.changes for each in report.live_influence}
    assert told == {"Cost": 1.0, "Image": 0.0}
    assert [each.plugin for each in report.shadow_influence] == ["Rack"]


def test_the_cost_of_both_is_told():
    report = watched(policy(), policy()).report()
    assert report.live_cost.mean_s > 0
    assert report.shadow_cost.mean_s > 0


@pytest.mark.parametrize("names", [pytest.param(ABC, id="placed"), pytest.param((), id="refused")])
def test_a_shadow_does_not_act(names):
    acts = Acts()
    watched(policy(Only(*names)), policy(Only(*names), acts))
    assert acts.asked == []


def test_the_live_policy_is_not_made_to_act_once_more():
    acts = Acts()
    live, snapshot = policy(Only(), acts), nodes(*ABC)
    decision = decide(snapshot, live)
    acts.asked.clear()
    beside(policy()).observe(snapshot, live, decision)
    assert acts.asked == []


def test_a_shadow_that_fails_is_told_and_its_run_ends_all_the_same():
    snapshot, live = nodes(*ABC), policy()
    runner = beside(policy(Broken()), decisions=2)
    for _ in range(3):
        runner.observe(snapshot, live, decide(snapshot, live))
    report = runner.report()
    assert (report.compared, report.failures) == (2, 2)
    assert report.failure == 'running "Broken" filter plugin: it fell over'


def test_a_failed_decision_is_not_compared():
    assert watched(policy(Broken()), policy()).report().passed.failed == 1


class Speechless(Only):
    """Refuses nodes, and fails when it is asked why."""

    def filter(self, state, info, nodes):
        return NodeVerdicts(np.zeros(len(nodes), dtype=np.bool_), detail=self.fall_over)

    def fall_over(self):
        raise RuntimeError("it fell over")


def test_what_goes_wrong_reaches_nobody():
    report = watched(policy(), policy(Speechless())).report()
    assert (report.compared, report.passed.failed) == (0, 1)


def test_after_as_many_decisions_as_wanted_it_rests():
    snapshot, live = nodes(*ABC), policy()
    runner = beside(policy(), decisions=2)
    for _ in range(3):
        runner.observe(snapshot, live, decide(snapshot, live))
    assert runner.is_complete
    assert runner.report().compared == 2


def test_decisions_for_which_there_is_no_time_are_counted():
    clock = FakeClock()

    class Slow(ScorePlugin):
        name = "Slow"

        def score_one(self, state, info, node_info):
            clock.advance(1.0)
            return 0

    snapshot, live = nodes(*ABC), policy()
    runner = beside(policy(Slow(None, Handle())), budget=0.5, clock=clock)
    for _ in range(3):
        runner.observe(snapshot, live, decide(snapshot, live))
    clock.advance(6.0 + MAX_SAVED_S)
    runner.observe(snapshot, live, decide(snapshot, live))
    report = runner.report()
    assert (report.compared, report.passed.budget) == (2, 2)
    assert report.time_s == 6.0


@pytest.mark.parametrize(
    ("found", "passed"),
    [
        pytest.param([claim("data").bound_to("pv-1")], 0, id="its volume was there before"),
        pytest.param([claim("data")], 1, id="its volume is taken now"),
        pytest.param([], 1, id="its claim is unknown"),
    ],
)
def test_a_pod_that_got_volumes_with_its_node_is_passed_over(found, passed):
    storage = storage_of(*(each.build() for each in found))
    snapshot, live = nodes(*ABC), policy()
    runner = beside(policy(), storage=storage)
    runner.observe(snapshot, live, decide(snapshot, live, pod("web").claim("data")))
    assert runner.report().passed.volumes == passed


def test_with_another_live_policy_it_begins_anew():
    snapshot = nodes(*ABC)
    runner = beside(policy(Points(b=1)))
    for live in (policy(Points(a=1)), policy(Points(b=1))):
        runner.observe(snapshot, live, decide(snapshot, live))
    report = runner.report()
    assert (report.compared, report.changed_winners) == (1, 0)


def test_it_leaves_room_for_nominated_pods_as_the_live_policy_does():
    cluster = Cluster()
    cluster.add_node(node("a").capacity(cpu="4", pods="10").build())
    cluster.add_pod(pod("vip").request(cpu="3").priority(9).nominated("a").build())
    live, shadow = (
        offline_framework(running_profiles(default_config()), cluster) for _ in range(2)
    )
    shadow.nominated = None
    snapshot, runner = cluster.snapshot(), beside(shadow)
    runner.observe(snapshot, live, decide(snapshot, live, pod("web").request(cpu="2")))
    report = runner.report()
    assert (report.compared, report.both_placed, report.changed_feasibility) == (1, 0, 0)


def test_a_cluster_without_nodes_is_not_worth_comparing():
    snapshot, live = nodes(), policy()
    runner = beside(policy())
    runner.observe(snapshot, live, decide(snapshot, live))
    assert runner.report().compared == 0
