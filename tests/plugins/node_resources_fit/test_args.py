from __future__ import annotations

from typing import Any

import msgspec
import pytest

from plugins.framework.args import ArgsError
from plugins.node_resources_fit import (
    NodeResourcesFit,
    NodeResourcesFitArgs,
    ScoringStrategy,
)
from plugins.resource_scorer import DEFAULT_RESOURCES, ResourceSpec
from tests.plugins.conformance import RecordingHandle


def _made(args: dict[str, Any]) -> NodeResourcesFit:
    return NodeResourcesFit(msgspec.convert(args, NodeResourcesFitArgs), RecordingHandle())


def _ratio(*points: tuple[int, int]) -> dict[str, Any]:
    shape = [{"utilization": utilization, "score": score} for utilization, score in points]
    return {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": shape}}


LEAST_ALLOCATED = ScoringStrategy("LeastAllocated", DEFAULT_RESOURCES)


@pytest.mark.parametrize(
    ("args", "strategy"),
    [
        pytest.param({}, LEAST_ALLOCATED, id="nothing given"),
        pytest.param({"scoringStrategy": None}, LEAST_ALLOCATED, id="a strategy of null"),
        pytest.param(
            {"scoringStrategy": {"type": "MostAllocated"}},
            ScoringStrategy("MostAllocated", DEFAULT_RESOURCES),
            id="no resources are CPU and memory",
        ),
        pytest.param(
            {"scoringStrategy": {"type": "MostAllocated", "resources": []}},
            ScoringStrategy("MostAllocated", DEFAULT_RESOURCES),
            id="so is an empty list",
        ),
        pytest.param(
            {
                "scoringStrategy": {
                    "type": "LeastAllocated",
                    "resources": [{"name": "cpu"}, {"name": "memory", "weight": 0}],
                }
            },
            LEAST_ALLOCATED,
            id="no weight, or 0, is 1",
        ),
        pytest.param(
            {
                "scoringStrategy": {
                    "type": "LeastAllocated",
                    "resources": [{"name": "example.com/gpu", "weight": 100}],
                }
            },
            ScoringStrategy("LeastAllocated", (ResourceSpec("example.com/gpu", 100),)),
            id="a weight is kept",
        ),
    ],
)
def test_the_effective_strategy(args: dict[str, Any], strategy: ScoringStrategy) -> None:
    assert _made(args).args.scoring_strategy == strategy


@pytest.mark.parametrize(
    "args",
    [
        pytest.param(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "NodeResourcesFitArgs",
                "ignoredResources": None,
            },
            id="with its kind, and null for a list",
        ),
        pytest.param(
            {
                "ignoredResources": ["example.com/gpu", "bare"],
                "ignoredResourceGroups": ["example.com"],
            },
            id="ignored names and groups",
        ),
        pytest.param({"scoringStrategy": _ratio((50, 7))}, id="a shape of one point"),
        pytest.param({"scoringStrategy": _ratio((0, 10), (100, 0))}, id="a falling shape"),
    ],
)
def test_good_arguments_are_taken(args: dict[str, Any]) -> None:
    _made(args)


@pytest.mark.parametrize(
    ("args", "path"),
    [
        pytest.param(
            {"ignoredResources": ["example.com/gpu", "a/b/c"]},
            "ignoredResources[1]",
            id="a resource with two slashes",
        ),
        pytest.param({"ignoredResources": [""]}, "ignoredResources[0]", id="an empty resource"),
        pytest.param(
            {"ignoredResourceGroups": ["example.com/gpu"]},
            "ignoredResourceGroups[0]",
            id="a group with a slash",
        ),
        pytest.param(
            {"ignoredResourceGroups": ["-example.com"]},
            "ignoredResourceGroups[0]",
            id="a group that is no name",
        ),
        pytest.param({"scoringStrategy": {}}, "scoringStrategy.type", id="a strategy, no type"),
        pytest.param(
            {"scoringStrategy": {"type": "leastAllocated"}},
            "scoringStrategy.type",
            id="an unknown type",
        ),
        pytest.param(
            {
                "scoringStrategy": {
                    "type": "LeastAllocated",
                    "resources": [{"name": "cpu"}, {"name": "memory", "weight": 101}],
                }
            },
            "scoringStrategy.resources[1].weight",
            id="a weight over 100",
        ),
        pytest.param(
            {
                "scoringStrategy": {
                    "type": "LeastAllocated",
                    "resources": [{"name": "cpu", "weight": -1}],
                }
            },
            "scoringStrategy.resources[0].weight",
            id="a negative weight",
        ),
        pytest.param(
            {"scoringStrategy": {"type": "RequestedToCapacityRatio"}},
            "scoringStrategy.requestedToCapacityRatio",
            id="a ratio without its parameters",
        ),
        pytest.param(
            {"scoringStrategy": {**_ratio((0, 0)), "type": "MostAllocated"}},
            "scoringStrategy.requestedToCapacityRatio",
            id="the parameters of a ratio for another type",
        ),
        pytest.param(
            {"scoringStrategy": _ratio()},
            "scoringStrategy.requestedToCapacityRatio.shape",
            id="a shape without points",
        ),
        pytest.param(
            {"scoringStrategy": _ratio((0, 0), (50, 5), (50, 6))},
            "scoringStrategy.requestedToCapacityRatio.shape[2].utilization",
            id="points that do not go on",
        ),
        pytest.param(
            {"scoringStrategy": _ratio((0, 0), (101, 5))},
            "scoringStrategy.requestedToCapacityRatio.shape[1].utilization",
            id="a utilization over 100",
        ),
        pytest.param(
            {"scoringStrategy": _ratio((-1, 0))},
            "scoringStrategy.requestedToCapacityRatio.shape[0].utilization",
            id="a negative utilization",
        ),
        pytest.param(
            {"scoringStrategy": _ratio((0, 11))},
            "scoringStrategy.requestedToCapacityRatio.shape[0].score",
            id="a score over 10",
        ),
    ],
)
def test_a_mistake_is_refused_with_its_path(args: dict[str, Any], path: str) -> None:
    with pytest.raises(ArgsError) as caught:
        _made(args)
    assert caught.value.path == path
