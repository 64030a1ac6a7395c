from __future__ import annotations

import pytest

from tests.builders import pod
from tests.scheduler.what_if.clusters import (
    ask,
    cluster_of,
    machine,
    manifest,
    moves,
    owned,
    running,
)

TWO = (machine("n1"), machine("n2"))


@pytest.mark.parametrize(
    ("objects", "replicas", "placed", "refused"),
    [
        pytest.param([manifest()], 8, 8, 0, id="as many as fit"),
        pytest.param([manifest()], 9, 8, 1, id="one too many"),
        pytest.param([manifest()], 100_000, 8, 99_992, id="as many as one may ask for"),
        pytest.param([manifest(cpu="9")], 3, 0, 3, id="none fits"),
        pytest.param([manifest("a", "3"), manifest("b")], 2, 4, 0, id="two kinds"),
        pytest.param([manifest("a", "3"), manifest("b")], 4, 4, 4, id="two kinds, in turn"),
        pytest.param(
            [manifest("low"), manifest("high", "4", priority=5)], 2, 2, 2, id="by priority"
        ),
        pytest.param([manifest(nodeSelector={"a": "b"})], 1, 0, 1, id="no such node"),
    ],
)
def test_replicas_are_placed_until_no_more_fit(objects, replicas, placed, refused):
    found = ask(cluster_of(*TWO), objects=objects, replicas=replicas)
    assert (found.placed, found.refused, found.undecided) == (placed, refused, 0)
    assert sum(found.nodes.values()) == placed


def test_the_reason_says_what_stops_the_next():
    found = ask(cluster_of(*TWO), objects=[manifest()], replicas=9)
    assert found.reason.startswith("0/2 nodes are available: 2 Insufficient cpu.")


def test_if_all_fit_the_reason_says_why_one_more_would_not():
    found = ask(cluster_of(*TWO), objects=[manifest()], replicas=8)
    assert "2 Insufficient cpu" in found.reason
    assert found.parts[0].one_more_fits is False


def test_if_one_more_would_fit_there_is_no_reason():
    found = ask(cluster_of(*TWO), objects=[manifest()], replicas=7)
    assert (found.reason, found.parts[0].one_more_fits) == ("", True)


def test_pods_with_affinity_to_another_kind_wait_for_it():
    affinity = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {"matchLabels": {"app": "db"}},
                }
            ]
        }
    }
    objects = [manifest("web", affinity=affinity), manifest("db", labels={"app": "db"})]
    found = ask(cluster_of(*TWO), objects=objects)
    assert found.placed == 2
    assert moves(found)["default/web"] == moves(found)["default/db"]


def test_limits_count_as_requests_as_the_api_server_has_it():
    limited = manifest()
    limited["spec"]["containers"] = [{"name": "main", "resources": {"limits": {"cpu": "4"}}}]
    found = ask(cluster_of(*TWO), objects=[limited], replicas=3)
    assert (found.placed, found.refused) == (2, 1)


def test_a_gated_pod_is_not_tried():
    found = ask(cluster_of(*TWO), objects=[manifest(schedulingGates=[{"name": "quota"}])])
    assert found.refused == 1
    assert "gates" in found.reason


def test_a_name_that_is_taken_does_not_matter():
    found = ask(cluster_of(*TWO, running("web", "n1")), objects=[manifest()])
    assert found.placed == 1


def test_pending_pods_come_first_when_asked():
    waiting = pod("waiting").request(cpu="4")
    found = ask(cluster_of(*TWO, waiting), objects=[manifest(cpu="4")], replicas=2, pending=True)
    assert [(part.kind, part.placed) for part in found.parts] == [("pending", 1), ("pods", 1)]


def test_pending_pods_are_left_alone_when_nobody_asks():
    found = ask(cluster_of(*TWO, pod("waiting").request(cpu="4")), objects=[manifest()])
    assert [part.kind for part in found.parts] == ["pods"]


def test_a_pod_of_a_higher_priority_preempts_and_the_victim_is_placed_anew():
    cluster = cluster_of(
        machine("n1"),
        machine("n2", "2").label("small"),
        owned(pod("low").request(cpu="2").on("n1").priority(1)),
        owned(pod("other").request(cpu="2").on("n1").priority(9)),
    )
    high = manifest("high", "2", priority=5, nodeSelector={"kubernetes.io/hostname": "n1"})
    found = ask(cluster, objects=[high])
    assert [(each.pod, each.node, each.by) for each in found.preempted] == [
        ("default/low", "n1", "default/high")
    ]
    assert [(part.kind, part.nodes) for part in found.parts] == [
        ("pods", {"n1": 1}),
        ("preempted", {"n2": 1}),
    ]


def test_a_victim_without_controller_is_lost():
    cluster = cluster_of(machine("n1"), pod("low").request(cpu="4").on("n1"))
    found = ask(cluster, objects=[manifest("high", "2", priority=5)])
    assert len(found.preempted) == 1
    assert [part.kind for part in found.parts] == ["pods"]


def test_preemption_goes_on_for_each_replica():
    low = [owned(pod(f"low-{n}").request(cpu="2").on(f"n{n}").priority(1)) for n in (1, 2)]
    found = ask(cluster_of(*TWO, *low), objects=[manifest("high", "3", priority=5)], replicas=3)
    assert (found.parts[0].placed, found.parts[0].refused) == (2, 1)
    assert len(found.preempted) == 2


def test_a_pod_of_another_scheduler_is_judged_with_a_note():
    found = ask(cluster_of(*TWO), objects=[manifest(schedulerName="volcano")])
    assert found.placed == 1
    assert any("'volcano'" in note for note in found.notes)


def test_equal_questions_have_equal_answers_and_the_seed_breaks_ties():
    def nodes(seed):
        many = cluster_of(*(machine(f"n{n}") for n in range(30)))
        return ask(many, objects=[manifest()], seed=seed).nodes

    assert nodes(3) == nodes(3)
    assert len({next(iter(nodes(seed))) for seed in range(8)}) > 1


def test_what_the_time_does_not_suffice_for_is_undecided():
    found = ask(cluster_of(*TWO), cpu_s=0.0, objects=[manifest()], replicas=5, pending=True)
    assert (found.placed, found.refused, found.undecided) == (0, 0, 5)
    assert found.out_of_time


def test_an_empty_cluster_places_nobody():
    found = ask(cluster_of(), objects=[manifest()], replicas=3)
    assert (found.placed, found.refused) == (0, 3)
    assert found.reason == "no nodes available to schedule pods"
