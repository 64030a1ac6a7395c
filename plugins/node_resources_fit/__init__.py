"""NodeResourcesFit: the free resources of a node, as a filter and as a score."""

from plugins.node_resources_fit.args import (
    NodeResourcesFitArgs,
    RequestedToCapacityRatioParam,
    ScoringStrategy,
    UtilizationShapePoint,
)
from plugins.node_resources_fit.needs import Shortfall
from plugins.node_resources_fit.plugin import NodeResourcesFit

__all__ = [
    "NodeResourcesFit",
    "NodeResourcesFitArgs",
    "RequestedToCapacityRatioParam",
    "ScoringStrategy",
    "Shortfall",
    "UtilizationShapePoint",
]
