from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings

from cache.pod_info import PodInfo
from plugins.framework.cycle_state import CycleState
from plugins.framework.status import Code
from scheduler.config import default_config, effective_profiles
from scheduler.cycle.host_selection import HostSelector
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from scheduler.explain import Explanation, Rejection, explain
from scheduler.offline.cluster import Cluster
from scheduler.offline.offline_framework import offline_framework
from tests.builders import NodeBuilder, PodBuilder, names_term, node, pod
from tests.plugins.conformance import clusters, pending_pods

if TYPE_CHECKING:
    from cache.objects import Pod
    from tests.plugins.conformance import Cluster as DrawnCluster


def explained(asked: PodBuilder, *objects: NodeBuilder | PodBuilder) -> Explanation:
    cluster = Cluster()
    for each in objects:
        if isinstance(each, NodeBuilder):
            cluster.cache.add_node(each.build())
        else:
            cluster.add_pod(each.build())
    framework = offline_framework(effective_profiles(default_config()), cluster)
    return explain(framework, cluster.snapshot(), asked.info())


def test_every_node_is_rejected_or_ranked() -> None:
    result = explained(
        pod().request(cpu="2"),
        node("small").capacity(cpu="1"),
        node("tainted").taint("gpu"),
        node("good"),
    )
    assert result.rejected == {
        "small": Rejection(
            "NodeResourcesFit", Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("Insufficient cpu",)
        ),
        "tainted": Rejection(
            "TaintToleration",
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            ("node(s) had untolerated taint(s)",),
        ),
    }
    assert list(result.ranked) == ["good"]


def test_the_ranking_is_by_total_and_then_by_name() -> None:
    result = explained(
        pod().request(cpu="1"),
        node("b").capacity(cpu="8"),
        node("a").capacity(cpu="8"),
        node("c").capacity(cpu="64"),
    )
    assert list(result.ranked) == ["c", "a", "b"]


def test_a_total_is_the_sum_of_the_weighted_scores() -> None:
    (scores,) = explained(pod().request(cpu="1"), node("n1")).ranked.values()
    assert scores.total == sum(scores.scores.values())
    assert scores.scores["TaintToleration"] == 300


def test_a_node_outside_a_narrowed_search_is_rejected_by_who_narrowed_it() -> None:
    result = explained(pod().node_affinity(names_term("n1")), node("n1"), node("n2"))
    assert list(result.ranked) == ["n1"]
    assert result.rejected["n2"] == Rejection(
        "NodeAffinity",
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
        ("node(s) didn't satisfy plugin(s) [NodeAffinity]",),
    )


def test_a_cluster_without_nodes_has_no_verdicts() -> None:
    result = explained(pod().resource_claim("gpu"))
    assert result == Explanation("default/pod", 0, None, {}, {})


def test_pods_that_run_use_their_nodes_and_those_that_have_ended_do_not() -> None:
    full = node("n1").capacity(cpu="2")
    running = pod("running").uid("r").request(cpu="2").on("n1")
    assert explained(pod().request(cpu="1"), full, running).rejected
    assert explained(pod().request(cpu="1"), full).ranked


@settings(max_examples=30, deadline=None)
@given(cluster=clusters(), asked=pending_pods())
def test_it_agrees_with_the_live_cycle(cluster: DrawnCluster, asked: Pod) -> None:
    ours = Cluster()
    for each in cluster.nodes:
        ours.cache.add_node(each)
    for other in cluster.pods:
        ours.add_pod(other)
    framework = offline_framework(effective_profiles(default_config()), ours)
    snapshot, info = ours.snapshot(), PodInfo(asked)
    result = explain(framework, snapshot, info)
    decision = SchedulingCycle(snapshot, HostSelector(0)).decide(framework, CycleState(), info)
    assert decision.is_placed == bool(result.ranked)
    if decision.is_placed:
        assert decision.feasible_nodes == len(result.ranked)
        best = next(iter(result.ranked.values())).total
        assert result.ranked[decision.node_name].total == best
        assert decision.score in (None, best)
    elif result.pre_filter is None:
        told = {
            name: Rejection.of(group.status)
            for group in decision.diagnosis.rejected
            for name in group.node_names
        }
        assert result.rejected.items() >= told.items()


@pytest.mark.parametrize("scheduler_name", ["", "nobody"])
def test_a_pod_of_another_scheduler_is_judged_by_the_first_profile(scheduler_name: str) -> None:
    framework = offline_framework(effective_profiles(default_config()), Cluster(), scheduler_name)
    assert framework.profile_name == "berth"
