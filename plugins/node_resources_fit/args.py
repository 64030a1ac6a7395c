"""The arguments of NodeResourcesFit.

*Source*: config/v1/types_pluginargs.go, pkg/scheduler/apis/config/v1/defaults.go (1.36)
and pkg/scheduler/apis/config/validation/validation_pluginargs.go (ValidateNodeResourcesFitArgs).
"""

from __future__ import annotations

import msgspec

from cache.resources import is_qualified_name
from plugins.framework.args import ArgsError, PluginArgs
from plugins.resource_scorer import DEFAULT_RESOURCES, ResourceSpec, defaulted_resources

LEAST_ALLOCATED = "LeastAllocated"
MOST_ALLOCATED = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"

STRATEGY_TYPES = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)

MAX_WEIGHT = 100
MAX_UTILIZATION = 100
MAX_SHAPE_SCORE = 10
"""Scores in the file run to 10; they are scaled to the scheduler's 100."""


class _Args(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Base of the structs: camelCase, and an unknown field is an error."""


class UtilizationShapePoint(_Args, frozen=True):
    """A point of a piecewise linear shape: utilization in percent, score 0..10."""

    utilization: int = 0
    score: int = 0


class RequestedToCapacityRatioParam(_Args, frozen=True):
    """The shape of RequestedToCapacityRatio, by growing utilization."""

    shape: tuple[UtilizationShapePoint, ...] | None = None


class ScoringStrategy(_Args, frozen=True):
    """How nodes are compared."""

    type: str = ""
    resources: tuple[ResourceSpec, ...] | None = None
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None


DEFAULT_STRATEGY = ScoringStrategy(LEAST_ALLOCATED, DEFAULT_RESOURCES)


class NodeResourcesFitArgs(PluginArgs, frozen=True):
    """``NodeResourcesFitArgs`` as in a configuration file.

    ``ignored_resources`` and ``ignored_resource_groups`` (the part of a name before its slash)
    name extended resources that the filter does not check; they do not affect the score.
    """

    ignored_resources: tuple[str, ...] | None = None
    ignored_resource_groups: tuple[str, ...] | None = None
    scoring_strategy: ScoringStrategy | None = None

    def defaulted(self) -> NodeResourcesFitArgs:
        """Return the arguments with every default filled in; nothing is checked."""
        strategy = self.scoring_strategy or DEFAULT_STRATEGY
        return msgspec.structs.replace(
            self,
            ignored_resources=self.ignored_resources or (),
            ignored_resource_groups=self.ignored_resource_groups or (),
            scoring_strategy=msgspec.structs.replace(
                strategy, resources=defaulted_resources(strategy.resources)
            ),
        )

    def validate(self) -> None:
        """Check the arguments after :meth:`defaulted`.

        Raises
        ------
        ArgsError
            For the first error.
        """
        for index, name in enumerate(self.ignored_resources or ()):
            if not is_qualified_name(name):
                raise ArgsError(f"ignoredResources[{index}]", f"{name!r} is not a qualified name")
        for index, group in enumerate(self.ignored_resource_groups or ()):
            path = f"ignoredResourceGroups[{index}]"
            if "/" in group:
                raise ArgsError(path, f"the resource group {group!r} must not contain '/'")
            if not is_qualified_name(group):
                raise ArgsError(path, f"{group!r} is not a qualified name")
        if self.scoring_strategy is not None:
            _validate_strategy(self.scoring_strategy)


def _validate_strategy(strategy: ScoringStrategy) -> None:
    if strategy.type not in STRATEGY_TYPES:
        raise ArgsError(
            "scoringStrategy.type",
            f"{strategy.type!r} is none of {', '.join(STRATEGY_TYPES)}",
        )
    for index, spec in enumerate(strategy.resources or ()):
        if not 0 < spec.weight <= MAX_WEIGHT:
            raise ArgsError(
                f"scoringStrategy.resources[{index}].weight",
                f"the weight {spec.weight} of {spec.name} is not within 1..{MAX_WEIGHT}",
            )
    path = "scoringStrategy.requestedToCapacityRatio"
    ratio = strategy.requested_to_capacity_ratio
    if strategy.type == REQUESTED_TO_CAPACITY_RATIO:
        if ratio is None:
            raise ArgsError(path, f"must be given when the type is {strategy.type}")
        _validate_shape(ratio.shape or (), f"{path}.shape")
    elif ratio is not None:
        raise ArgsError(path, f"must not be given when the type is {strategy.type}")


def _validate_shape(shape: tuple[UtilizationShapePoint, ...], path: str) -> None:
    if not shape:
        raise ArgsError(path, "needs at least one point")
    for index in range(1, len(shape)):
        if shape[index - 1].utilization >= shape[index].utilization:
            raise ArgsError(
                f"{path}[{index}].utilization",
                f"{shape[index].utilization} must be more than that of the point before it",
            )
    for index, point in enumerate(shape):
        if not 0 <= point.utilization <= MAX_UTILIZATION:
            raise ArgsError(
                f"{path}[{index}].utilization",
                f"{point.utilization} is not within 0..{MAX_UTILIZATION}",
            )
        if not 0 <= point.score <= MAX_SHAPE_SCORE:
            raise ArgsError(
                f"{path}[{index}].score", f"{point.score} is not within 0..{MAX_SHAPE_SCORE}"
            )
