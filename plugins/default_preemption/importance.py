"""Orders pods by importance: by priority, then by the time for which a pod has been running.

*Source*: kube-scheduler 1.36, pkg/scheduler/util/utils.go (MoreImportantPod, GetPodStartTime,
GetEarliestPodStartTime).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cache.api_times import NO_TIME, parsed_time_s

if TYPE_CHECKING:
    from cache.objects import Pod
    from cache.pod_info import PodInfo

NOT_STARTED: Final = NO_TIME
"""A pod that has not started is younger than any that has."""


def start_time_s(pod: Pod) -> float:
    """Return when the pod started, in seconds since the epoch; infinity when it has not started.

    # Differs: kube-scheduler reads the clock for a pod that has not started, once for each
    comparison, so that of two such pods either may come first; here they are equals.
    """
    text = pod.status.start_time
    return NOT_STARTED if text is None else parsed_time_s(text)


def importance(info: PodInfo) -> tuple[int, float]:
    """Return a key: sorted by it, the most important pod comes first."""
    return -info.priority, start_time_s(info.pod)


def own_priority(info: PodInfo) -> int:
    """Return the priority of a pod itself."""
    return info.priority
