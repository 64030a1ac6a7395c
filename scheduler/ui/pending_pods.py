"""The pending pods of a cluster, grouped by what the scheduler says of them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from cache.pod_info import is_terminal
from plugins import names
from scheduler.ui.times import seconds_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cache.objects import Pod

MAX_REASONS: Final = 200
"""Users choose the texts of reasons, by names of taints and gates; what is beyond is one group."""

MAX_REASON_CHARACTERS: Final = 400

AGE_LIMITS_S: Final = (60, 300, 900, 3600, 6 * 3600, 24 * 3600)
"""The upper ends of the classes of age; the last class has none."""

AGE_CLASSES: Final = ("< 1m", "< 5m", "< 15m", "< 1h", "< 6h", "< 24h", "older")

TREND_S: Final = 3600
TREND_POINTS: Final = 30

UNDECIDED: Final = "no decision yet"
OTHERS: Final = "other reasons"

_SEVERAL_NODES: Final = re.compile(r"^\d+/(\d+) nodes are available: ?(.*)$", re.DOTALL)
_COUNT: Final = re.compile(r"(?:^|, )(\d+) (?=\D)")

_PLUGIN_OF: Final = (
    ("Insufficient ", names.NODE_RESOURCES_FIT),
    ("Too many pods", names.NODE_RESOURCES_FIT),
    ("node affinity/selector", names.NODE_AFFINITY),
    ("untolerated taint", names.TAINT_TOLERATION),
    ("were unschedulable", names.NODE_UNSCHEDULABLE),
    ("topology spread", names.POD_TOPOLOGY_SPREAD),
    ("affinity rules", names.INTER_POD_AFFINITY),
    ("free ports", names.NODE_PORTS),
    ("volume node affinity", names.VOLUME_BINDING),
    ("persistentvolumeclaim", names.VOLUME_BINDING),
    ("max volume count", names.NODE_VOLUME_LIMITS),
    ("resourceclaim", names.DYNAMIC_RESOURCES),
    ("scheduling gate", names.SCHEDULING_GATES),
)
"""Which plugin uses which words: conditions name no plugins. Source: the ErrReason constants of
pkg/scheduler/framework/plugins (1.36)."""


@dataclass(frozen=True, slots=True)
class PendingPod:
    """A pod without a node."""

    key: str
    pod: Pod
    created_s: float
    reason: str


@dataclass(frozen=True, slots=True)
class ReasonGroup:
    """The pending pods with one reason.

    Parameters
    ----------
    reason
        The text that identifies the group.
    pods
        The oldest first.
    ages
        The number of pods in each of ``AGE_CLASSES``.
    trend
        How many of these pods were waiting at ``TREND_POINTS`` moments of the last hour.
    recent
        How many came in the last ten minutes.
    """

    reason: str
    plugins: tuple[str, ...]
    pods: Sequence[PendingPod]
    ages: tuple[int, ...]
    trend: tuple[int, ...]
    recent: int
    oldest_s: float
    median_s: float


def is_pending(pod: Pod) -> bool:
    """Return whether the pod waits for a node."""
    return (
        not pod.spec.node_name and not is_terminal(pod) and pod.metadata.deletion_timestamp is None
    )


def pending_pods(pods: Iterable[tuple[str, Pod]]) -> list[PendingPod]:
    """Return the pods that wait, the oldest first; pods are given as ``namespace/name``, pod."""
    found = [
        PendingPod(key, pod, seconds_of(pod.metadata.creation_timestamp), reason_of(pod))
        for key, pod in pods
        if is_pending(pod)
    ]
    found.sort(key=lambda each: (each.created_s, each.key))
    frequent = {text for text, _ in Counter(each.reason for each in found).most_common(MAX_REASONS)}
    return [
        each if each.reason in frequent else PendingPod(each.key, each.pod, each.created_s, OTHERS)
        for each in found
    ]


def reason_of(pod: Pod) -> str:
    """Return what the scheduler says of the pod in its condition, without the numbers of nodes."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            return common_part(condition.message) or condition.reason or UNDECIDED
    if pod.spec.scheduling_gates:
        return f"waiting for scheduling gates: {_gates(pod)}"[:MAX_REASON_CHARACTERS]
    return UNDECIDED


@lru_cache(maxsize=2 * MAX_REASONS)
def reason_id(reason: str) -> str:
    """Return a short name of a reason, for addresses."""
    return sha256(reason.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _gates(pod: Pod) -> str:
    return ", ".join(gate.name for gate in pod.spec.scheduling_gates)


def common_part(message: str) -> str:
    """Return the reasons of a message without the numbers of nodes, the most frequent first.

    ``0/9 nodes are available: 2 Insufficient cpu, 7 node(s) had taints. preemption: ...`` becomes
    ``node(s) had taints · Insufficient cpu``.
    """
    message = message.partition(" preemption: ")[0].rstrip(". ")
    matched = _SEVERAL_NODES.match(message)
    if matched is None:
        return message[:MAX_REASON_CHARACTERS]
    body = matched[2].partition(". ")[0]  # PostFilter's message follows
    starts = list(_COUNT.finditer(body))
    if not starts or starts[0].start() != 0:
        return body[:MAX_REASON_CHARACTERS]
    ends = [start.start() for start in starts[1:]] + [len(body)]
    parts = [
        (int(start[1][:18]), body[start.end() : end].strip(". "))
        for start, end in zip(starts, ends, strict=True)
    ]
    parts.sort(key=lambda part: (-part[0], part[1]))
    return " · ".join(text for _, text in parts)[:MAX_REASON_CHARACTERS]


def plugins_of(reason: str) -> tuple[str, ...]:
    """Return the plugins whose words a reason contains."""
    return tuple(dict.fromkeys(plugin for words, plugin in _PLUGIN_OF if words in reason))


def by_reason(pods: Iterable[PendingPod], now_s: float) -> list[ReasonGroup]:
    """Return the pending pods by reason, the largest group first."""
    groups: dict[str, list[PendingPod]] = {}
    for each in pods:
        groups.setdefault(each.reason, []).append(each)
    found = [group_of(reason, members, now_s) for reason, members in groups.items()]
    found.sort(key=lambda group: (-len(group.pods), group.reason))
    return found


def group_of(reason: str, pods: Sequence[PendingPod], now_s: float) -> ReasonGroup:
    """Return the group of some pods, which are given the oldest first."""
    ages_s = [max(now_s - each.created_s, 0.0) for each in pods]
    return ReasonGroup(
        reason,
        plugins_of(reason),
        pods,
        age_classes(ages_s),
        trend(ages_s),
        sum(age < 600 for age in ages_s),
        ages_s[0],
        ages_s[len(ages_s) // 2],
    )


def age_classes(ages_s: Iterable[float]) -> tuple[int, ...]:
    """Return the number of ages in each of ``AGE_CLASSES``."""
    counts = [0] * len(AGE_CLASSES)
    for age in ages_s:
        counts[sum(age >= limit for limit in AGE_LIMITS_S)] += 1
    return tuple(counts)


def trend(ages_s: Iterable[float]) -> tuple[int, ...]:
    """Return how many pods of these ages were waiting at moments of the last hour, to now."""
    step = TREND_S / TREND_POINTS
    born = [0] * (TREND_POINTS + 1)
    for age in ages_s:
        born[max(TREND_POINTS - int(age // step), 0)] += 1
    total, counts = 0, []
    for count in born:
        total += count
        counts.append(total)
    return tuple(counts[1:])
