from __future__ import annotations

import pytest
from msgspec.structs import replace

from cache import kept_annotations
from cache.kept_annotations import MIRROR_ANNOTATION
from tests.builders import pod
from tests.scheduler.what_if.clusters import (
    ask,
    budget,
    cluster_of,
    machine,
    manifest,
    moves,
    owned,
    running,
)

TWO = (machine("n1"), machine("n2"))


def test_the_pods_of_a_drained_node_go_elsewhere():
    found = ask(cluster_of(*TWO, running("web", "n1")), drain=["n1"])
    assert moves(found) == {"default/web": ("n1", "n2")}
    assert (found.drains[0].node, found.drains[0].evicted) == ("n1", 1)


def test_what_does_not_fit_is_named_with_the_reason():
    cluster = cluster_of(*TWO, running("web", "n1", "3"), running("db", "n2", "3"))
    found = ask(cluster, drain=["n1"])
    assert (found.placed, found.refused) == (0, 1)
    assert found.parts[0].refusals[0].sample == ("default/web",)
    assert "1 Insufficient cpu, 1 node(s) were unschedulable" in found.reason


@pytest.mark.parametrize(
    ("leaving", "evicted", "stay", "placed", "unmanaged"),
    [
        pytest.param(running("web", "n1"), 1, (0, 0), 1, 0, id="of a ReplicaSet"),
        pytest.param(running("web", "n1", kind="Job"), 1, (0, 0), 1, 0, id="of a Job"),
        pytest.param(running("web", "n1", kind="DaemonSet"), 0, (1, 0), 0, 0, id="of a DaemonSet"),
        pytest.param(running("web", "n1", kind="Node"), 0, (0, 1), 0, 0, id="static, by its owner"),
        pytest.param(pod("bare").on("n1").phase("Running"), 1, (0, 0), 0, 1, id="bare"),
        pytest.param(
            owned(pod("web").on("n1").terminating()), 0, (0, 0), 0, 0, id="on its way already"
        ),
        pytest.param(pod("done").on("n1").ended("Succeeded"), 0, (0, 0), 0, 0, id="ended"),
    ],
)
def test_pods_are_treated_as_kubectl_drain_treats_them(leaving, evicted, stay, placed, unmanaged):
    found = ask(cluster_of(*TWO, leaving), drain=["n1"])
    (drain,) = found.drains
    assert drain.evicted == evicted
    assert (drain.daemon_set_pods, drain.mirror_pods) == stay
    assert (found.placed, len(drain.unmanaged)) == (placed, unmanaged)


def test_a_static_pod_is_known_by_its_annotation(monkeypatch):
    monkeypatch.setattr(kept_annotations, "_prefixes", (MIRROR_ANNOTATION,))
    built = pod("static").on("n1").build()
    metadata = replace(built.metadata, annotations={MIRROR_ANNOTATION: "x"})
    found = ask(cluster_of(*TWO, replace(built, metadata=metadata)), drain=["n1"])
    assert (found.drains[0].evicted, found.drains[0].mirror_pods) == (0, 1)


def test_all_nodes_are_cordoned_before_the_first_eviction():
    three = (*TWO, machine("n3"))
    cluster = cluster_of(*three, running("a", "n1"), running("b", "n2"))
    found = ask(cluster, drain=["n1", "n2"])
    assert found.nodes == {"n3": 2}


# --- budgets ----------------------------------------------------------------------------------


def web(count: int, cpu: str = "1", on: str = "n1"):
    return [running(f"web-{number}", on, cpu, app="web") for number in range(count)]


def test_a_budget_that_allows_nothing_blocks_the_drain():
    found = ask(cluster_of(*TWO, *web(2), budget(0, app="web")), drain=["n1"])
    (drain,) = found.drains
    assert drain.evicted == 0
    assert [(each.pod, each.budgets) for each in drain.blocked] == [
        ("default/web-0", ("default/web",)),
        ("default/web-1", ("default/web",)),
    ]
    assert (found.budgets[0].budget, found.budgets[0].blocked) == ("default/web", 2)


def test_evictions_go_on_as_successors_run():
    found = ask(cluster_of(*TWO, *web(3), budget(1, app="web")), drain=["n1"])
    assert (found.placed, found.drains[0].evicted, found.drains[0].blocked) == (3, 3, ())
    (use,) = found.budgets
    assert (use.allowed, use.evicted, use.waited, use.blocked) == (1, 3, 2, 0)


def test_a_successor_that_does_not_fit_keeps_the_others_from_leaving():
    cluster = cluster_of(machine("n1"), machine("n2", "1"), *web(3), budget(1, app="web"))
    found = ask(cluster, drain=["n1"])
    assert (found.placed, found.refused) == (1, 1)
    assert [each.pod for each in found.drains[0].blocked] == ["default/web-2"]


@pytest.mark.parametrize(
    ("budgets", "evicted"),
    [
        pytest.param([budget(0, app="db")], 1, id="of other pods"),
        pytest.param([budget(1, app="web")], 1, id="one is allowed"),
        pytest.param([budget(0, app="web")], 0, id="none is allowed"),
        pytest.param([budget(1, app="web"), budget(1, "two", app="web")], 0, id="two budgets"),
    ],
)
def test_a_pod_leaves_if_its_budget_lets_it(budgets, evicted):
    found = ask(cluster_of(*TWO, *web(1), *budgets), drain=["n1"])
    assert found.drains[0].evicted == evicted


def test_two_budgets_for_one_pod_are_the_reason():
    budgets = [budget(1, app="web"), budget(1, "two", app="web")]
    found = ask(cluster_of(*TWO, *web(1), *budgets), drain=["n1"])
    assert "more than one PodDisruptionBudget" in found.drains[0].blocked[0].reason


def test_a_pod_that_does_not_run_yet_is_evicted_whatever_its_budget_says():
    (starting,) = web(1)
    starting = replace(starting, status=replace(starting.status, phase="Pending"))
    found = ask(cluster_of(*TWO, starting, budget(0, app="web")), drain=["n1"])
    assert found.placed == 1


def test_an_unmanaged_pod_does_not_give_its_disruption_back():
    bare = [
        pod(f"bare-{number}").label("app", "web").on("n1").phase("Running") for number in range(2)
    ]
    found = ask(cluster_of(*TWO, *bare, budget(1, app="web")), drain=["n1"])
    assert (found.drains[0].evicted, len(found.drains[0].blocked)) == (1, 1)


# --- combinations -----------------------------------------------------------------------------


def test_pods_that_keep_apart_follow_each_other():
    apart = [
        owned(pod(f"web-{n}").label("app", "web").pod_anti_affinity("zone", app="web").on(f"n{n}"))
        for n in (1, 2)
    ]
    nodes = [machine(f"n{n}").label("zone", f"z{n % 2}") for n in (1, 2, 3, 4)]
    found = ask(cluster_of(*nodes, *apart), drain=["n1", "n2"])
    assert moves(found) == {"default/web-1": ("n1", "n3"), "default/web-2": ("n2", "n4")}


def test_a_successor_that_others_kept_out_is_tried_again_when_they_have_left():
    nodes = [machine("n1"), machine("n2"), machine("n3"), machine("n4").label("zone", "z2")]
    nodes[:3] = [each.label("zone", "z1") for each in nodes[:3]]
    apart = pod("a").on("n1").node_selector("zone", "z1").pod_anti_affinity("zone", app="b")
    other = pod("b").on("n3").label("app", "b").node_selector("zone", "z2")
    found = ask(cluster_of(*nodes, owned(apart), owned(other)), drain=["n1", "n3"])
    assert moves(found) == {"default/a": ("n1", "n2"), "default/b": ("n3", "n4")}


def test_the_seed_decides_in_which_order_successors_arrive():
    def placed(seed):
        small = owned(pod("small").request(cpu="3").on("n1").priority(5).never_preempts())
        nodes = machine("n1", "8"), machine("n2")
        return ask(cluster_of(*nodes, small, running("large", "n1", "4")), drain=["n1"], seed=seed)

    nodes = {seed: moves(placed(seed)).keys() for seed in range(12)}
    assert nodes[0] == {"default/small"}
    assert {"default/large"} in [set(each) for each in nodes.values()]


def test_new_pods_find_what_the_drain_has_left():
    cluster = cluster_of(*TWO, running("web", "n1", "3"))
    found = ask(cluster, drain=["n1"], objects=[manifest()], replicas=3)
    assert [(part.kind, part.placed, part.refused) for part in found.parts] == [
        ("drained", 1, 0),
        ("pods", 1, 2),
    ]


def test_a_drained_node_may_be_removed_afterwards():
    cluster = cluster_of(*TWO, *web(2), budget(0, app="web"))
    found = ask(cluster, drain=["n1"], remove=["n1"])
    assert len(found.drains[0].blocked) == 2
    assert "n1" not in cluster.nodes


def test_time_that_is_used_up_is_no_budget_in_the_way():
    found = ask(cluster_of(*TWO, *web(3), budget(1, app="web")), cpu_s=0.0, drain=["n1"])
    assert found.budgets == ()
    assert found.drains[0].blocked[0].reason == "the time for this question is used up"


def test_a_pod_that_is_placed_and_then_preempted_counts_once():
    low = running("low", "n1", "3")
    high = manifest("high", "3", priority=5)
    found = ask(cluster_of(*TWO, low), drain=["n1"], objects=[high])
    assert (found.placed, found.refused, found.nodes) == (1, 1, {"n2": 1})
