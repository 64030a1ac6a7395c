"""PodTopologySpread: spreads pods evenly over hosts, zones or another topology."""

from plugins.pod_topology_spread.args import DefaultConstraint, PodTopologySpreadArgs
from plugins.pod_topology_spread.plugin import PodTopologySpread

__all__ = ["DefaultConstraint", "PodTopologySpread", "PodTopologySpreadArgs"]
