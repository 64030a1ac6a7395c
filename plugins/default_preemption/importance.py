"""Orders pods by importance: by priority, then by the time for which a pod has been running.

*Source*: kube-scheduler 1.36, pkg/scheduler/util/utils.go (MoreImportantPod, GetPodStartTime,
GetEarliestPodStartTime).
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from cache.ages import AGES

if TYPE_CHECKING:
    from cache.objects import Pod
    from cache.pod_info import PodInfo

MAX_TIMES: Final = 8192
"""The cache of parsed times: 2 MiB. Every second adds a new time."""

_LONGEST: Final = 64

NOT_STARTED = math.inf
"""A pod that has not started is younger than any that has."""


def start_time_s(pod: Pod) -> float:
    """Return when the pod started, in seconds since the epoch; infinity when it has not started.

    # Differs: kube-scheduler reads the clock for a pod that has not started, once for each
    comparison, so that of two such pods either may come first; here they are equals.
    """
    text = pod.status.start_time
    return NOT_STARTED if text is None else parsed_time_s(text)


def parsed_time_s(text: str) -> float:
    """Return an RFC 3339 time in seconds since the epoch; infinity for an invalid time."""
    return _parsed_time_s(text) if len(text) <= _LONGEST else _parsed_time_s.__wrapped__(text)


@AGES.forgets(MAX_TIMES)
def _parsed_time_s(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return NOT_STARTED
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp()


def importance(info: PodInfo) -> tuple[int, float]:
    """Return a key: sorted by it, the most important pod comes first."""
    return -info.priority, start_time_s(info.pod)


def own_priority(info: PodInfo) -> int:
    """Return the priority of a pod itself."""
    return info.priority
