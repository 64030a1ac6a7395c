"""Pods that wait are tried again as soon as something has changed for them."""

from __future__ import annotations

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


def test_a_pending_pod_is_tried_again_when_a_drain_has_helped_it():
    nodes = [machine(name).label("zone", name[0]) for name in ("a1", "a2", "b1")]
    nodes = [
        each.label("pool", "x") if each.build().metadata.name != "a2" else each for each in nodes
    ]
    in_the_way = owned(pod("old").on("a1").label("app", "old").node_selector("pool", "x"))
    waiting = pod("new").pod_anti_affinity("zone", app="old").node_selector("zone", "a")
    question = {"pending": True, "drain": ["a1"]}
    found = ask(cluster_of(*nodes, in_the_way, waiting), **question)
    assert moves(found) == {"default/old": ("a1", "b1"), "default/new": ("", "a2")}


def test_the_successors_of_preempted_pods_come_before_later_rounds_of_a_drain():
    high = [
        owned(pod(f"high-{n}").label("app", "h").request(cpu="2").on("n1").priority(9), name="h")
        for n in (1, 2)
    ]
    low = running("low", "n2", "2")
    nodes = machine("n1"), machine("n2", "2"), machine("n3", "2")
    found = ask(cluster_of(*nodes, *high, low, budget(1, app="h")), drain=["n1"])
    assert moves(found)["default/high-1"][1] in ("n2", "n3")
    assert found.placed == 2
    assert {part.kind: part.refused for part in found.parts}.get("preempted") == 1


def test_a_pending_pod_that_is_placed_and_then_preempted_counts_once():
    cluster = cluster_of(machine("n1"))
    cluster.add_pod(owned(pod("low").request(cpu="4"), name="low"))
    low = cluster.pods["default/low"]
    assert not low.spec.node_name
    found = ask(cluster, pending=True, objects=[manifest("high", "4", priority=5)])
    assert (found.placed, found.refused, found.nodes) == (1, 1, {"n1": 1})


def test_pods_that_are_alike_are_refused_once():
    waiting = [pod(f"w{number}").request(cpu="9") for number in range(30)]
    found = ask(cluster_of(machine("n1"), *waiting), pending=True)
    (part,) = found.parts
    assert [(each.pods, len(each.sample)) for each in part.refusals] == [(30, 10)]


def test_pods_of_drained_nodes_that_are_removed_are_replaced():
    cluster = cluster_of(
        machine("n1"), machine("n2"), running("web", "n1", app="web"), budget(0, app="web")
    )
    found = ask(cluster, drain=["n1"], remove=["n1"])
    assert [(part.kind, part.placed) for part in found.parts] == [("drained", 0), ("removed", 1)]


def test_a_pending_pod_is_tried_again_when_a_preemption_leaves_more_room_than_is_needed():
    small = pod("small").request(cpu="2").never_preempts()
    cluster = cluster_of(machine("n1"), running("large", "n1", "4"), small)
    found = ask(cluster, pending=True, objects=[manifest("high", "1", priority=5)])
    assert [(part.kind, part.placed, part.refused) for part in found.parts] == [
        ("pending", 1, 0),
        ("pods", 1, 0),
        ("preempted", 0, 1),
    ]
