"""The default plugins of a profile, in their order.

*Source*: pkg/scheduler/apis/config/v1/default_plugins.go (1.36) with the feature gates as they
stand by default: DynamicResources and NodeDeclaredFeatures are in, GangScheduling,
TopologyPlacementGenerator and PodGroupPodsCount are not.
"""

from __future__ import annotations

from typing import Final

from cache.value import Value
from plugins import names


class ProfileEntry(Value, frozen=True):
    """A plugin of a profile, at every extension point that it serves.

    Parameters
    ----------
    name
        The plugin.
    weight
        The factor of its scores; 0 for a plugin that does not score.
    """

    name: str
    weight: int = 0


KUBE_SCHEDULER_PROFILE: Final = (
    ProfileEntry(names.SCHEDULING_GATES),
    ProfileEntry(names.PRIORITY_SORT),
    ProfileEntry(names.NODE_UNSCHEDULABLE),
    ProfileEntry(names.NODE_NAME),
    ProfileEntry(names.TAINT_TOLERATION, 3),
    ProfileEntry(names.NODE_AFFINITY, 2),
    ProfileEntry(names.NODE_PORTS),
    ProfileEntry(names.NODE_RESOURCES_FIT, 1),
    ProfileEntry(names.VOLUME_RESTRICTIONS),
    ProfileEntry(names.NODE_VOLUME_LIMITS),
    ProfileEntry(names.VOLUME_BINDING, 1),
    ProfileEntry(names.VOLUME_ZONE),
    ProfileEntry(names.POD_TOPOLOGY_SPREAD, 2),
    ProfileEntry(names.INTER_POD_AFFINITY, 2),
    ProfileEntry(names.DYNAMIC_RESOURCES, 2),
    ProfileEntry(names.DEFAULT_PREEMPTION),
    ProfileEntry(names.NODE_RESOURCES_BALANCED_ALLOCATION, 1),
    ProfileEntry(names.IMAGE_LOCALITY, 1),
    ProfileEntry(names.DEFAULT_BINDER),
    ProfileEntry(names.NODE_DECLARED_FEATURES),
)
"""kube-scheduler's default plugins. The order decides which filter first rejects a node."""
