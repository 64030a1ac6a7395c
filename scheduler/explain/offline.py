"""Profiles that decide about a cluster and never act on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plugins.framework.status import Code, Status
from plugins.registry import PLUGINS
from scheduler.profile_builder import build_framework

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cache.namespaces import Namespaces
    from cache.pod_info import PodInfo
    from cache.workloads import Workloads
    from scheduler.config import EffectiveProfile
    from scheduler.explain.cluster import Cluster
    from scheduler.framework_runner import FrameworkRunner


@dataclass(frozen=True, slots=True)
class OfflineHandle:
    """The services that plugins get where nothing may be changed."""

    namespaces: Namespaces
    workloads: Workloads

    async def bind_pod(self, info: PodInfo, node_name: str) -> Status:
        """Refuse: whoever explains does not bind."""
        return Status(Code.ERROR, ("nothing is bound while explaining",))


def offline_framework(
    profiles: Sequence[EffectiveProfile], cluster: Cluster, scheduler_name: str = ""
) -> FrameworkRunner:
    """Make the profile that serves a schedulerName, the first one where none does.

    Its plugins are new and know of nothing but this cluster.

    Raises
    ------
    ConfigError
        When a plugin's arguments cannot be used.
    """
    names = [profile.scheduler_name for profile in profiles]
    index = names.index(scheduler_name) if scheduler_name in names else 0
    handle = OfflineHandle(cluster.namespaces, cluster.workloads)
    return build_framework(profiles[index], index, PLUGINS, handle)
