from __future__ import annotations

import pytest
from msgspec.structs import replace

from cache.pod_group_objects import GROUP_LABEL
from scheduler.what_if import QuestionError
from tests.builders import pod
from tests.pod_group_builders import X_KEY, x_group
from tests.scheduler.what_if.clusters import (
    GANG_LABEL,
    ask,
    cluster_of,
    gang,
    machine,
    manifest,
    owned,
)

THREE = tuple(machine(f"n{number}") for number in (1, 2, 3))
WORKER = manifest("worker", "2", labels={GANG_LABEL: "gang"})


@pytest.mark.parametrize(
    ("objects", "replicas", "placed", "refused"),
    [
        pytest.param([gang(), WORKER], None, 3, 0, id="one pod stands for all members"),
        pytest.param([gang(minimum=6), WORKER], None, 6, 0, id="all that fit"),
        pytest.param([gang(minimum=7), WORKER], None, 0, 7, id="too large as a whole"),
        pytest.param([gang(), WORKER], 2, 6, 0, id="two gangs"),
        pytest.param([gang(minimum=4), WORKER], 3, 4, 8, id="one of three gangs"),
        pytest.param(
            [
                gang(),
                manifest("master", "4", labels={GANG_LABEL: "gang"}),
                *(manifest(f"worker-{n}", "2", labels={GANG_LABEL: "gang"}) for n in (1, 2)),
            ],
            None,
            3,
            0,
            id="members of two kinds",
        ),
        pytest.param([gang(), WORKER, manifest("web", "2")], None, 4, 0, id="a pod beside a gang"),
    ],
)
def test_gangs_are_placed_as_a_whole(objects, replicas, placed, refused):
    question = {"objects": objects} | ({} if replicas is None else {"replicas": replicas})
    found = ask(cluster_of(*THREE), **question)
    assert (found.placed, found.refused) == (placed, refused)


def test_the_reason_for_a_gang_is_that_of_the_planner():
    found = ask(cluster_of(*THREE), objects=[gang(minimum=7), WORKER])
    assert "6 of 7" in found.reason


def test_it_is_known_whether_one_more_gang_would_fit():
    found = [ask(cluster_of(*THREE), objects=[gang(minimum=n), WORKER]).parts[0] for n in (3, 4)]
    assert [part.one_more_fits for part in found] == [True, False]


def test_the_field_names_a_group_as_well():
    described = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "gang"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 7}}},
    }
    worker = manifest("worker", "2", schedulingGroup={"podGroupName": "gang"})
    found = ask(cluster_of(*THREE), objects=[described, worker])
    assert (found.placed, found.refused) == (0, 7)


def waiting(count: int):
    return [
        pod(f"m{n}", namespace="ns").request(cpu="2").label(GROUP_LABEL, "gang")
        for n in range(count)
    ]


def cluster_with_group(*things, minimum: int = 3):
    cluster = cluster_of(*things)
    cluster.known.pod_groups.x_pod_group_changed(None, x_group(minimum))
    return cluster


def test_a_group_of_the_cluster_is_placed():
    found = ask(cluster_with_group(*THREE, *waiting(3)), podgroup="ns/gang")
    assert [(part.kind, part.subject, part.placed) for part in found.parts] == [
        ("group", str(X_KEY), 3)
    ]


def test_added_nodes_let_a_group_fit():
    cluster = cluster_with_group(machine("n1"), *waiting(3))
    assert ask(cluster, podgroup="ns/gang").placed == 0
    cluster = cluster_with_group(machine("n1"), *waiting(3))
    assert ask(cluster, podgroup="ns/gang", add=[{"like": "n1"}]).placed == 3


def test_further_members_complete_a_group_of_the_cluster():
    member = manifest("more", "2", labels={GANG_LABEL: "gang"})
    member["metadata"]["namespace"] = "ns"
    found = ask(cluster_with_group(*THREE, *waiting(1)), objects=[member], replicas=2)
    assert found.placed == 3


def test_pending_groups_are_placed_as_a_whole():
    found = ask(cluster_with_group(*THREE, *waiting(7), minimum=7), pending=True)
    assert (found.placed, found.refused) == (0, 7)


def test_a_group_preempts_as_a_whole():
    low = [owned(pod(f"low-{n}").request(cpu="4").on(f"n{n}").priority(-1)) for n in (1, 2)]
    found = ask(cluster_with_group(*THREE[:2], *low, *waiting(3)), podgroup="ns/gang")
    assert (found.parts[0].placed, len(found.preempted)) == (3, 2)
    assert {each.by for each in found.preempted} == {"ns/gang"}


def test_members_that_were_evicted_come_back_to_their_group():
    placed = [
        replace(owned(built.on("n1")), status=replace(built.build().status, phase="Running"))
        for built in waiting(2)
    ]
    found = ask(cluster_with_group(*THREE, *placed, minimum=2), drain=["n1"])
    assert (found.placed, found.refused) == (2, 0)


@pytest.mark.parametrize(
    ("question", "path", "why"),
    [
        pytest.param({"podgroup": "ns/gong"}, "podgroup", "did you mean gang?", id="misspelled"),
        pytest.param(
            {"objects": [gang("empty")]}, "objects", "no pod is a member", id="without members"
        ),
    ],
)
def test_a_group_that_cannot_be_tried_is_a_mistake(question, path, why):
    with pytest.raises(QuestionError, match=why) as caught:
        ask(cluster_with_group(*THREE, *waiting(1)), **question)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("minimum", "replicas"),
    [
        pytest.param(100_001, None, id="one large group"),
        pytest.param(1_000, 101, id="many groups"),
    ],
)
def test_groups_with_too_many_members_are_a_mistake(minimum, replicas):
    question = {"objects": [gang(minimum=minimum), WORKER]}
    with pytest.raises(QuestionError, match="more than 100000 members"):
        ask(cluster_of(*THREE), **question, **({"replicas": replicas} if replicas else {}))
