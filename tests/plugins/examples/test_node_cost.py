"""NodeCost: what costs little comes first."""

from __future__ import annotations

import msgspec
import pytest

from plugins.examples.node_cost import NodeCost
from plugins.framework.args import ArgsError
from tests.builders import node, pod
from tests.plugins.examples.asking import Asked

COST = "example.com/cost-per-hour"


def priced(name, cost, **room):
    return node(name).label(COST, cost).capacity(**{"cpu": "4", "memory": "16Gi", **room})


def test_the_cheapest_comes_first():
    asked = Asked(NodeCost, priced("a", "0.10"), priced("b", "0.20"), priced("c", "0.30"))
    assert asked.scores(pod()) == {"a": 100, "b": 50, "c": 0}


def test_nodes_that_cannot_do_set_no_scale():
    asked = Asked(NodeCost, priced("a", "0.10"), priced("b", "0.20"), priced("c", "9"))
    assert asked.scores(pod(), "a", "b") == {"a": 100, "b": 0}


@pytest.mark.parametrize("text", [None, "cheap", "", "1e999"], ids=["none", "word", "empty", "inf"])
def test_a_node_that_does_not_say_its_cost_has_the_one_that_is_assumed(text):
    silent = node("a") if text is None else node("a").label(COST, text)
    asked = Asked(NodeCost, silent, priced("b", "2"), priced("c", "4"), unpriced=3.0)
    assert asked.scores(pod()) == {"a": 50, "b": 100, "c": 0}


@pytest.mark.parametrize(
    ("per", "best"),
    [
        pytest.param("node", "small", id="whole nodes"),
        pytest.param("cpu", "large", id="one CPU"),
        pytest.param("memory", "fat", id="one GiB"),
    ],
)
def test_what_the_cost_is_of(per, best):
    asked = Asked(
        NodeCost,
        priced("small", "0.2", cpu="1", memory="4Gi"),
        priced("large", "0.8", cpu="16", memory="16Gi"),
        priced("fat", "0.9", cpu="4", memory="64Gi"),
        per=per,
    )
    scores = asked.scores(pod())
    assert max(scores, key=scores.__getitem__) == best


def test_a_node_without_a_cpu_has_no_cost_of_one():
    asked = Asked(NodeCost, priced("a", "1", cpu="0"), priced("b", "1"), per="cpu")
    assert asked.scores(pod()) == {"a": 0, "b": 100}


def test_all_pods_are_alike_to_it():
    assert NodeCost(NodeCost.Args()).signature(None) == ()


@pytest.mark.parametrize(
    "args",
    [
        pytest.param({"per": "gpu"}, id="of what nobody counts"),
        pytest.param({"unpriced": "much"}, id="a word"),
        pytest.param({"labels": "x"}, id="misspelt"),
    ],
)
def test_arguments_of_another_kind_are_refused(args):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(args, NodeCost.Args)


@pytest.mark.parametrize("unpriced", [-1.0, float("nan"), float("inf")])
def test_a_cost_that_is_none_is_named(unpriced):
    (problem,) = NodeCost.Args(unpriced=unpriced).problems()
    assert isinstance(problem, ArgsError)
    assert problem.path == "unpriced"
