"""Evictions as the API server decides about them: which budgets allow what."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cache.objects import LabelSelector, NodeCondition, PodCondition
from cache.workload_objects import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
    WorkloadMeta,
)
from tests.builders import pod
from tests.scheduler.what_if.clusters import (
    ask,
    budget,
    cluster_of,
    machine,
    manifest,
    owned,
    running,
)

TWO = (machine("n1"), machine("n2"))


def web(name: str, *, ready: bool = True, on: str = "n1"):
    made = running(name, on, app="web")
    conditions = (PodCondition("Ready", status=str(ready)),)
    return replace(made, status=replace(made.status, conditions=conditions))


def made(status=(0, 0, 0), **spec):
    """Return a budget; ``status`` is healthy, desired and expected."""
    healthy, desired, expected = status
    spec = {"selector": LabelSelector(match_labels={"app": "web"}), **spec}
    return PodDisruptionBudget(
        WorkloadMeta("web", "default"),
        PodDisruptionBudgetSpec(**spec),
        PodDisruptionBudgetStatus(
            disruptions_allowed=max(healthy - desired, 0),
            observed_generation=1 if expected else 0,
            current_healthy=healthy,
            desired_healthy=desired,
            expected_pods=expected,
        ),
    )


ALWAYS = {"unhealthy_pod_eviction_policy": "AlwaysAllow"}
IF_MET = {"unhealthy_pod_eviction_policy": "IfHealthyBudget"}


@pytest.mark.parametrize(
    ("ready", "status", "spec", "is_evicted"),
    [
        pytest.param(True, (2, 1, 2), {}, True, id="ready, one more than demanded"),
        pytest.param(True, (1, 1, 2), ALWAYS, False, id="ready: the policy is about others"),
        pytest.param(False, (1, 1, 2), {}, True, id="unready, as many as demanded are ready"),
        pytest.param(False, (1, 1, 2), IF_MET, True, id="the default by name"),
        pytest.param(False, (1, 2, 3), {}, False, id="unready, and too few are ready"),
        pytest.param(False, (0, 0, 2), {}, False, id="nothing is demanded, nothing is healthy"),
        pytest.param(False, (2, 0, 2), {}, True, id="nothing is demanded: a disruption is allowed"),
        pytest.param(False, (0, 2, 2), ALWAYS, True, id="unready, always allowed"),
    ],
)
def test_whether_a_pod_may_be_evicted(ready, status, spec, is_evicted):
    cluster = cluster_of(*TWO, web("web", ready=ready), made(status, **spec))
    assert (ask(cluster, drain=["n1"]).drains[0].evicted == 1) is is_evicted


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        pytest.param({"max_unavailable": 1}, 1, id="at most one"),
        pytest.param({"max_unavailable": "50%"}, 2, id="half, rounded up"),
        pytest.param({"min_available": 2}, 1, id="at least two"),
        pytest.param({"min_available": "50%"}, 1, id="at least half, rounded up"),
        pytest.param({"min_available": 9}, 0, id="more than there are"),
        pytest.param({}, 0, id="neither: it expects no pods"),
    ],
)
def test_a_budget_without_a_status_is_counted_as_its_controller_counts(spec, allowed):
    pods = [web(f"web-{number}", on="n1") for number in range(3)]
    cluster = cluster_of(machine("n1"), *pods, made(**spec))
    found = ask(cluster, drain=["n1"])
    assert (found.budgets[0].allowed, found.drains[0].evicted) == (allowed, allowed)


def test_a_budget_of_the_question_counts():
    object_ = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "new"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 5, "expectedPods": 5},
    }
    found = ask(cluster_of(*TWO, web("web")), drain=["n1"], objects=[object_])
    assert found.drains[0].blocked[0].budgets == ("default/new",)


def test_an_empty_selector_protects_all_pods_of_the_namespace():
    cluster = cluster_of(*TWO, web("web"), made((1, 1, 1), selector=LabelSelector()))
    assert len(ask(cluster, drain=["n1"]).drains[0].blocked) == 1


def test_a_budget_that_is_below_its_demand_gets_back_to_it_first():
    pods = [web("web-1"), web("web-2", on="n2")]
    waiting = pod("web-3").label("app", "web").request(cpu="1")
    cluster = cluster_of(*TWO, *pods, waiting, made((2, 3, 3)))
    found = ask(cluster, drain=["n1"], pending=True)
    assert (found.placed, found.drains[0].evicted) == (1, 0)


def test_the_successor_of_a_pod_that_does_not_get_ready_does_not_either():
    pods = [web(f"web-{number}", ready=number > 1) for number in range(4)]
    cluster = cluster_of(*TWO, *pods, made((2, 2, 4)))
    drain = ask(cluster, drain=["n1"]).drains[0]
    assert (drain.evicted, [each.pod for each in drain.blocked]) == (
        2,
        ["default/web-2", "default/web-3"],
    )


def test_pods_of_a_node_that_is_not_ready_get_ready_elsewhere():
    sick = machine("n1").build()
    conditions = (NodeCondition("Ready", status="False"),)
    sick = replace(sick, status=replace(sick.status, conditions=conditions))
    pods = [web(f"web-{number}", ready=False) for number in range(2)]
    cluster = cluster_of(machine("n2"), *pods, made((0, 2, 2), **ALWAYS))
    cluster.add_node(sick)
    ask(cluster, drain=["n1"])
    assert all(not each.status.conditions for each in cluster.pods.values())


def test_a_preempted_pod_uses_its_budget():
    cluster = cluster_of(
        machine("n1"),
        machine("n2", "1"),
        machine("n3", "1"),
        running("low", "n2", app="web"),
        web("web", on="n3"),
        running("full", "n1", "4"),
        made((2, 1, 2)),
    )
    high = pod("high").request(cpu="1").node_selector("kubernetes.io/hostname", "n2").priority(5)
    cluster.add_pod(high.build())
    found = ask(cluster, pending=True, drain=["n3"])
    assert [each.pod for each in found.preempted] == ["default/low"]
    assert len(found.drains[0].blocked) == 1


def test_pods_of_other_namespaces_are_not_protected():
    other = replace(
        web("web"), metadata=replace(web("web").metadata, namespace="other", uid="other")
    )
    assert ask(cluster_of(*TWO, other, budget(0, app="web")), drain=["n1"]).placed == 1


def test_new_pods_do_not_change_what_a_budget_allows():
    cluster = cluster_of(*TWO, web("web"), made((1, 1, 1)))
    found = ask(cluster, drain=["n1"], objects=[manifest(labels={"app": "web"})])
    assert len(found.drains[0].blocked) == 1


@pytest.mark.parametrize(("protected", "free"), [("n2", "n3"), ("n3", "n2")])
def test_preemption_sees_what_an_eviction_has_left_of_a_budget(protected, free):
    high = owned(pod("high").request(cpu="1").on("n1").priority(9), name="high")
    pods = [web("web-1"), web("web-2", on=protected), running("other", free), high]
    nodes = machine("n1"), machine("n2", "1"), machine("n3", "1")
    found = ask(cluster_of(*nodes, *pods, made((2, 1, 2))), drain=["n1"])
    assert [each.pod for each in found.preempted] == ["default/other"]
