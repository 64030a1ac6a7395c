"""The names of kube-scheduler's plugins, as configuration files and metrics spell them.

*Source*: pkg/scheduler/framework/plugins/names/names.go (1.36).
"""

from __future__ import annotations

from typing import Final

DEFAULT_BINDER: Final = "DefaultBinder"
DEFAULT_PREEMPTION: Final = "DefaultPreemption"
DYNAMIC_RESOURCES: Final = "DynamicResources"
GANG_SCHEDULING: Final = "GangScheduling"
IMAGE_LOCALITY: Final = "ImageLocality"
INTER_POD_AFFINITY: Final = "InterPodAffinity"
NODE_AFFINITY: Final = "NodeAffinity"
NODE_DECLARED_FEATURES: Final = "NodeDeclaredFeatures"
NODE_NAME: Final = "NodeName"
NODE_PORTS: Final = "NodePorts"
NODE_RESOURCES_BALANCED_ALLOCATION: Final = "NodeResourcesBalancedAllocation"
NODE_RESOURCES_FIT: Final = "NodeResourcesFit"
NODE_UNSCHEDULABLE: Final = "NodeUnschedulable"
NODE_VOLUME_LIMITS: Final = "NodeVolumeLimits"
POD_GROUP_PODS_COUNT: Final = "PodGroupPodsCount"
POD_TOPOLOGY_SPREAD: Final = "PodTopologySpread"
PRIORITY_SORT: Final = "PrioritySort"
SCHEDULING_GATES: Final = "SchedulingGates"
TAINT_TOLERATION: Final = "TaintToleration"
TOPOLOGY_PLACEMENT_GENERATOR: Final = "TopologyPlacementGenerator"
VOLUME_BINDING: Final = "VolumeBinding"
VOLUME_RESTRICTIONS: Final = "VolumeRestrictions"
VOLUME_ZONE: Final = "VolumeZone"

IN_TREE: Final[frozenset[str]] = frozenset(
    value for constant, value in vars().items() if constant.isupper()
)
"""The names above: every plugin that kube-scheduler 1.36 registers, whether it exists here or not.
A configuration file may name any of them."""
