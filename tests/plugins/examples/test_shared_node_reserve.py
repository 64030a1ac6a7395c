"""SharedNodeReserve: a part of a node stays free where others place pods."""

from __future__ import annotations

import msgspec
import pytest

import berth
from cache.objects import OwnerReference
from plugins.examples.shared_node_reserve import SharedNodeReserve
from tests.builders import node, pod
from tests.plugins.examples.asking import Asked

WHY = "node(s) had only the reserve left that is kept for other schedulers"


def ours(name="ours", cpu="1", **more):
    return pod(name).scheduler("berth").request(cpu=cpu, **more)


def theirs(name="theirs", cpu="1"):
    return pod(name).scheduler("default-scheduler").request(cpu=cpu)


def asked(**args) -> Asked:
    """Two nodes with 10 CPUs, of which 2 are kept where others place pods: on the first one."""
    made = Asked(
        SharedNodeReserve, *(node(name).capacity(cpu="10") for name in ("shared", "own")), **args
    )
    made.place(theirs().on("shared"))
    made.place(ours("there").on("own"))
    return made


@pytest.mark.parametrize(
    ("cpu", "refused"),
    [
        pytest.param("7", {}, id="up to the reserve"),
        pytest.param("7001m", {"shared": WHY}, id="a milli-CPU of it"),
    ],
)
def test_a_reserve_is_left_on_shared_nodes_alone(cpu, refused):
    assert asked(share={"cpu": 0.2}).refused(ours(cpu=cpu)) == refused


@pytest.mark.parametrize(
    "args",
    [
        pytest.param({"own": ("default-scheduler",)}, id="the other scheduler is one of ours"),
        pytest.param({"pods": 2}, id="there are too few of its pods"),
        pytest.param({"share": {"memory": 0.5}}, id="another resource"),
    ],
)
def test_nothing_is_kept_where(args):
    assert asked(**{"share": {"cpu": 0.2}, **args}).refused(ours(cpu="8")) == {}


@pytest.mark.parametrize("kind", ["DaemonSet", "Node"])
def test_pods_that_run_on_every_node_make_no_node_a_shared_one(kind):
    made = Asked(SharedNodeReserve, node("n").capacity(cpu="10"), share={"cpu": 0.2})
    local = theirs().on("n")
    owners = (OwnerReference(kind=kind, uid="owner", controller=True),)
    metadata = msgspec.structs.replace(local.build().metadata, owner_references=owners)
    made.place(local._meta(owner_references=metadata.owner_references))
    assert made.refused(ours(cpu="9")) == {}


@pytest.mark.parametrize(
    ("args", "path"),
    [
        pytest.param({"share": {"cpu": 1.5}}, "share[cpu]", id="share"),
        pytest.param({"pods": 0}, "pods", id="pods"),
    ],
)
def test_impossible_arguments_are_named(args, path):
    problems = list(SharedNodeReserve.Args(**args).problems())
    assert [problem.path for problem in problems] == [path]
    assert all(isinstance(problem, berth.ArgsError) for problem in problems)
