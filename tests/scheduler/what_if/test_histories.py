"""Random questions on random clusters: what holds for every forecast."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.what_if import forecast_json
from tests.builders import pod
from tests.scheduler.what_if.clusters import ask, budget, cluster_of, machine, manifest, running

NODES = [f"n{number}" for number in range(4)]
CPUS = st.sampled_from(["500m", "1", "2", "3"])


@st.composite
def clusters(draw):
    """Return a cluster with pods of four kinds, and a budget."""
    nodes = [machine(name, draw(st.sampled_from(["2", "4"]))) for name in NODES]
    kinds = st.sampled_from(["ReplicaSet", "DaemonSet", "Node"])
    managed = [
        running(f"p{number}", draw(st.sampled_from(NODES)), draw(CPUS), draw(kinds), app="web")
        for number in range(draw(st.integers(0, 5)))
    ]
    waiting = [
        pod(f"w{number}").request(cpu=draw(CPUS)) for number in range(draw(st.integers(0, 2)))
    ]
    return cluster_of(*nodes, *managed, *waiting, budget(draw(st.integers(0, 2)), app="web"))


SOME = st.lists(st.sampled_from(NODES), unique=True, max_size=2)
QUESTIONS = st.fixed_dictionaries(
    {
        "objects": st.lists(
            st.builds(manifest, st.sampled_from("ab"), CPUS, priority=st.integers(0, 1)),
            min_size=1,
            max_size=2,
        ),
        "replicas": st.integers(1, 6),
        "drain": SOME,
        "remove": SOME,
        "add": st.lists(
            st.fixed_dictionaries({"like": st.sampled_from(NODES), "count": st.integers(1, 2)}),
            max_size=1,
        ),
        "pending": st.booleans(),
    }
)


@settings(max_examples=40)
@given(clusters(), QUESTIONS)
def test_whatever_is_asked(cluster, question):
    was_over = {name for name, used, has in _cpu(cluster) if used > has}
    gone = set(question["remove"]) | set(question["drain"])
    found = ask(cluster, **question)
    assert found.undecided == 0
    assert sum(found.nodes.values()) == found.placed
    assert not gone & set(found.nodes)
    assert not set(question["remove"]) & set(cluster.nodes)
    for name, used, has in _cpu(cluster):
        like = name.partition("-new-")[0]
        assert used <= has or like in was_over, "a node is overcommitted"
    asked = len(question["objects"]) * question["replicas"]
    of_pods = [part for part in found.parts if part.kind == "pods"]
    assert sum(part.placed + part.refused for part in of_pods) == asked
    assert json.loads(forecast_json(found))["placed"] == found.placed


def _cpu(cluster):
    """Yield each node with the CPU that its pods ask for, and that it has, in milli-cores."""
    for name, info in cluster.cache.dump().nodes.items():
        if info.node is not None:
            yield name, info.requested.get("cpu", 0), info.allocatable["cpu"]
