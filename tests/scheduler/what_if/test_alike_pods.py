"""Many copies are placed by counting: where one after the other would have been placed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.what_if import new_pods
from tests.builders import node, pod
from tests.scheduler.what_if.clusters import HEAD, PACKING, ask, cluster_of, machine, manifest

DEFAULT = f"{HEAD}profiles: [{{schedulerName: berth}}]"


@pytest.fixture
def counted(monkeypatch):
    """Count copies however few they are; return where they were counted."""
    found: list[int] = []
    original = new_pods.place_alike

    def watched(*arguments):
        for row in original(*arguments):
            found.append(row)
            yield row

    monkeypatch.setattr(new_pods, "MANY", 2)
    monkeypatch.setattr(new_pods, "place_alike", watched)
    return found


def levels(found):
    """Return how many nodes have so many of the pods."""
    return sorted(found.nodes.values())


@st.composite
def clusters(draw):
    """Return a function that makes one cluster again and again."""
    shapes = draw(
        st.lists(
            st.tuples(
                st.sampled_from(["2", "4", "6"]),
                st.sampled_from(["4Gi", "16Gi"]),
                st.sampled_from(["3", "20"]),
                st.sampled_from(["0", "500m", "1"]),
            ),
            min_size=1,
            max_size=5,
        )
    )

    def make():
        nodes = [
            node(f"n{i}").capacity({"cpu": cpu, "memory": memory, "pods": pods})
            for i, (cpu, memory, pods, _) in enumerate(shapes)
        ]
        pods = [pod(f"p{i}").request(cpu=cpu).on(f"n{i}") for i, (*_, cpu) in enumerate(shapes)]
        return cluster_of(*nodes, *pods)

    return make


@settings(max_examples=20)
@given(
    clusters(),
    st.sampled_from(["100m", "500m", "1"]),
    st.integers(2, 24),
    st.sampled_from([DEFAULT, PACKING]),
)
def test_counting_places_as_many_on_nodes_that_are_as_good(make, cpu, replicas, config):
    question = {"objects": [manifest(cpu=cpu)], "replicas": replicas, "config": config}
    one_by_one = ask(make(), **question)
    before, new_pods.MANY = new_pods.MANY, 2
    try:
        together = ask(make(), **question)
    finally:
        new_pods.MANY = before
    assert (together.placed, together.refused) == (one_by_one.placed, one_by_one.refused)
    assert together.reason == one_by_one.reason
    if not one_by_one.refused:
        return  # who has the last ones is chance
    assert together.nodes == one_by_one.nodes


def test_alike_nodes_are_filled_evenly(counted):
    nodes = [machine(f"n{number}") for number in range(4)]
    found = ask(cluster_of(*nodes), objects=[manifest(cpu="500m")], replicas=10)
    assert levels(found) == [2, 2, 3, 3]
    assert len(counted) == 9, "all but the first one"


def test_packing_fills_one_node_after_the_other(counted):
    nodes = [machine(f"n{number}") for number in range(3)]
    question = {"objects": [manifest(cpu="1")], "replicas": 6, "config": PACKING}
    assert levels(ask(cluster_of(*nodes), **question)) == [2, 4]
    assert counted


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {
                        "maxSkew": 1,
                        "topologyKey": "kubernetes.io/hostname",
                        "whenUnsatisfiable": "DoNotSchedule",
                        "labelSelector": {"matchLabels": {"app": "a"}},
                    }
                ]
            },
            id="spread",
        ),
        pytest.param(
            {"containers": [{"name": "main", "ports": [{"containerPort": 1, "hostPort": 1}]}]},
            id="host ports",
        ),
        pytest.param({"hostNetwork": False, "nodeSelector": {"no": "where"}}, id="no node"),
    ],
)
def test_pods_that_more_than_amounts_decide_about_are_not_counted(counted, spec):
    nodes = [machine(f"n{number}") for number in range(3)]
    ask(cluster_of(*nodes), objects=[manifest(labels={"app": "a"}, **spec)], replicas=3)
    assert not counted


def test_what_follows_sees_the_counted_pods(counted):
    found = ask(
        cluster_of(machine("n1"), machine("n2")),
        objects=[manifest("many", "1", priority=5), manifest("late", "1")],
        replicas=5,
    )
    assert counted
    assert [(part.subject, part.placed) for part in found.parts] == [
        ("default/many", 5),
        ("default/late", 3),
    ]


def test_pods_have_names_of_their_own(counted):
    cluster = cluster_of(machine("n1"), machine("n2"))
    found = ask(cluster, objects=[manifest()], replicas=8)
    names = [each.pod for each in found.parts[0].placements]
    assert sorted(names) == [f"default/web-{number}" for number in range(1, 9)]
    assert set(cluster.pods) == set(names)
