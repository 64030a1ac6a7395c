"""Headroom: others leave a part of each node to one class."""

from __future__ import annotations

import pytest

from plugins.authoring import Pod
from plugins.examples.headroom import Headroom
from tests.builders import node, pod
from tests.plugins.examples.asking import Asked

CLASS = "example.com/workload-class"
WHY = "node(s) had only the headroom left that is kept for critical pods"


def sized(name, cpu="10", memory="100Gi"):
    return node(name).capacity(cpu=cpu, memory=memory)


def other(name="other", cpu="1", **more):
    return pod(name).request(cpu=cpu, **more)


def critical(name="critical", cpu="1", **more):
    return other(name, cpu, **more).label(CLASS, "critical")


@pytest.fixture
def asked():
    """A node with 10 CPUs, of which 2 are kept, 7 are used by others, and an idle one."""
    made = Asked(Headroom, sized("busy"), sized("idle"), share={"cpu": 0.2})
    made.place(other("there", "7").on("busy"))
    return made


@pytest.mark.parametrize(
    ("cpu", "refused"),
    [
        pytest.param("1", {}, id="up to the headroom"),
        pytest.param("1001m", {"busy": WHY}, id="a milli-CPU of it"),
        pytest.param("8001m", {"busy": WHY, "idle": WHY}, id="on an idle node as well"),
    ],
)
def test_others_leave_the_headroom(asked, cpu, refused):
    assert asked.refused(other(cpu=cpu)) == refused


def test_the_class_may_use_all(asked):
    assert asked.refused(critical(cpu="3")) == {}


def test_what_the_class_uses_takes_nothing_from_the_others(asked):
    asked.place(critical("there too", "2").on("busy"))
    assert asked.refused(other(cpu="1")) == {}


def test_the_class_gone_its_headroom_stays(asked):
    asked.place(critical("there too", "2").on("idle"))
    assert asked.refused(other(cpu="8")) == {"busy": WHY}
    assert asked.refused(other(cpu="8001m")) == {"busy": WHY, "idle": WHY}


def test_what_is_not_requested_is_not_looked_at(asked):
    asked.place(other("more", "3").on("busy"))
    assert asked.refused(pod().request(memory="50Gi")) == {}


def test_each_resource_has_its_share():
    asked = Asked(Headroom, sized("a"), share={"cpu": 0.0, "memory": 0.5})
    assert asked.refused(other(cpu="10", memory="50Gi")) == {}
    assert asked.refused(other(cpu="1", memory="51Gi")) == {"a": WHY}


def test_only_the_nodes_that_are_named_keep_it():
    asked = Asked(
        Headroom,
        sized("a").label("pool", "general"),
        sized("b").label("pool", "batch"),
        sized("c"),
        share={"cpu": 1.0},
        nodes={"pool": "general"},
    )
    assert asked.refused(other()) == {"a": WHY}


def test_another_class_is_named_in_the_reason():
    asked = Asked(Headroom, sized("a"), share={"cpu": 1.0}, label="team", value="search")
    assert asked.refused(other())["a"].endswith("kept for search pods")
    assert asked.refused(other().label("team", "search")) == {}


def test_pods_share_verdicts_that_request_the_same():
    plugin = Headroom(Headroom.Args())
    signatures = [
        plugin.signature(Pod(each.info()))
        for each in (other("a"), other("b"), other("c", "2"), critical("d"), critical("e", "2"))
    ]
    assert [signatures.index(each) for each in signatures] == [0, 0, 2, 3, 3]


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_that_is_none_is_named(share):
    (problem,) = Headroom.Args(share={"cpu": share}).problems()
    assert problem.path == "share[cpu]"
