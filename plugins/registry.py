"""The registry of all plugins that Berth has, by name.

*Source*: pkg/scheduler/framework/plugins/registry.go (1.36) for kube-scheduler's names.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from plugins.default_binder import DefaultBinder
from plugins.default_preemption import DefaultPreemption
from plugins.dynamic_resources import DynamicResources
from plugins.image_locality import ImageLocality
from plugins.inter_pod_affinity import InterPodAffinity
from plugins.namespace_fair_sort import NamespaceFairSort
from plugins.node_affinity import NodeAffinity
from plugins.node_declared_features import NodeDeclaredFeatures
from plugins.node_name import NodeName
from plugins.node_ports import NodePorts
from plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from plugins.node_resources_fit import NodeResourcesFit
from plugins.node_unschedulable import NodeUnschedulable
from plugins.node_volume_limits import NodeVolumeLimits
from plugins.pod_topology_spread import PodTopologySpread
from plugins.priority_sort import PrioritySort
from plugins.scheduling_gates import SchedulingGates
from plugins.taint_toleration import TaintToleration
from plugins.volume_binding import VolumeBinding
from plugins.volume_restrictions import VolumeRestrictions
from plugins.volume_zone import VolumeZone

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plugins.framework.interfaces import Plugin

_CLASSES: Final[tuple[type[Plugin], ...]] = (
    DefaultBinder,
    DefaultPreemption,
    DynamicResources,
    ImageLocality,
    InterPodAffinity,
    NamespaceFairSort,
    NodeAffinity,
    NodeDeclaredFeatures,
    NodeName,
    NodePorts,
    NodeResourcesBalancedAllocation,
    NodeResourcesFit,
    NodeUnschedulable,
    NodeVolumeLimits,
    PodTopologySpread,
    PrioritySort,
    SchedulingGates,
    TaintToleration,
    VolumeBinding,
    VolumeRestrictions,
    VolumeZone,
)

PLUGINS: Final[Mapping[str, type[Plugin]]] = MappingProxyType({cls.name: cls for cls in _CLASSES})
"""The classes by the names that configurations use."""
