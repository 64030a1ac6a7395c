"""Rehearsal: scheduling cycles for a pod that does not exist, before the first real cycle.

The first evaluation of selectors indexes all running pods, the first use of a label reads it from
all nodes, and numpy loads parts of itself on first use. Together that takes some tenths of a
second, for which the first pods would otherwise wait one after another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import structlog

from cache.objects import Pod
from cache.pod_info import PodInfo
from plugins.framework.attempt_budget import AttemptBudget

if TYPE_CHECKING:
    from cache.scheduler_cache import SchedulerCache
    from scheduler.cycle.scheduling_cycle import SchedulingCycle
    from scheduler.runtime.profile_map import Profiles

log = structlog.get_logger(__name__)

REHEARSAL_S: Final = 1.0
"""CPU seconds that a profile may use to read ahead before the first pod; the rest follows whenever
no pod is active."""

_POD: Final = b"""{
  "metadata": {
    "name": "rehearsal", "namespace": "berth", "uid": "rehearsal", "labels": {"app": "rehearsal"}
  },
  "spec": {
    "containers": [{"name": "one", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}],
    "affinity": {
      "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "podAffinityTerm": {"topologyKey": "topology.kubernetes.io/zone",
          "labelSelector": {"matchLabels": {"app": "rehearsal"}}}}]},
      "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname",
          "labelSelector": {"matchLabels": {"app": "rehearsal"}}}]}
    },
    "topologySpreadConstraints": [
      {"maxSkew": 5, "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "rehearsal"}}},
      {"maxSkew": 3, "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "rehearsal"}}}
    ]
  }
}"""


def rehearse(cache: SchedulerCache, cycle: SchedulingCycle, profiles: Profiles) -> None:
    """Go through the filters and scores of every profile for a demanding and for a plain pod.

    No node is chosen, nothing is counted or reported, and no other program is called. A failure
    here occurs again, and is reported, in the cycle of a real pod.

    *Concurrency*: scheduling thread. *Cost*: that of the first cycles: 20 000 pods 0.1 s.
    """
    demanding = msgspec.json.decode(_POD, type=Pod)
    plain = msgspec.structs.replace(
        demanding,
        spec=msgspec.structs.replace(demanding.spec, affinity=None, topology_spread_constraints=()),
    )
    cache.update_snapshot(cycle.snapshot)
    for framework in profiles:
        for pod in (demanding, plain):
            try:
                cycle.rehearse(framework, PodInfo(pod))
            except Exception as error:  # noqa: BLE001 - a plugin's failure; scheduling goes on
                log.debug("rehearsal", profile=framework.profile_name, error=str(error))
    read_ahead(cache, cycle, profiles, REHEARSAL_S)


def read_ahead(
    cache: SchedulerCache, cycle: SchedulingCycle, profiles: Profiles, limit_s: float
) -> bool:
    """Prepare what the next pods need besides; return whether anything is left to be done.

    Parameters
    ----------
    limit_s
        CPU seconds that each profile may use.

    *Concurrency*: scheduling thread, between two cycles.
    """
    cache.update_snapshot(cycle.snapshot)
    is_left = False
    for framework in profiles:
        try:
            is_left |= cycle.read_ahead(framework, AttemptBudget(limit_s))
        except Exception as error:  # noqa: BLE001 - as above
            log.debug("read ahead", profile=framework.profile_name, error=str(error))
    return is_left
