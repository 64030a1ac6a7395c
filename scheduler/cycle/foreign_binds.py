"""What other schedulers bind: collisions with our own bindings, and how often it happens on a node.

Two schedulers may bind pods to one node at the same time, each within what it knows to be free. The
:mod:`guard <scheduler.cycle.bind_guard>` sees what the watch has reported by the time of a binding.
What it reports after that comes too late: the node is overcommitted, and its kubelet rejects one of
the two pods. That is a collision, and it is counted.

    our binding is sent ------ WINDOW_S ------>
               a pod that we did not place shows up on the node, which is overcommitted: collision

Nodes on which this happens, and those on which others bind often, are worth being left to others
where other nodes are as good: see
:class:`~scheduler.cycle.host_selection.HostSelector`. How large their pods are says how much space
a node should keep for them: see :mod:`scheduler.cycle.soft_reserve`.

Pods that have their nodes already when the watch shows them first count from the time at which they
were bound, by the condition ``PodScheduled``, which the API server writes with each binding. So a
scheduler that has just started knows who else is at work. Pods that wait for others never count:
anybody may create them, for a scheduler that does not exist.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import structlog

from cache.api_times import parsed_time_s
from cache.node_usage import overcommitted
from cache.resource_table import FIXED_RESOURCES
from cache.resources import PODS
from scheduler.cycle.soft_reserve import MOST

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cache.pod_info import PodInfo
    from cache.scheduler_cache import SchedulerCache
    from scheduler.cycle.soft_reserve import Sizes
    from scheduler.metrics import Metrics

WINDOW_S: Final = 5.0
"""So long after a binding was sent, a pod of others on the same node counts as one that was not
known when the binding was sent. A watch is a few milliseconds late as a rule, and seconds under
load."""

HALF_LIFE_S: Final = 60.0
"""After so long without another one, bindings of others count half."""

FORGOTTEN_S: Final = 10 * HALF_LIFE_S
"""After so long without a binding of others, all of them are forgotten, and no space is left to
them. Others that pause may go on at any moment, and a hundred pods are placed before the watch of a
busy API server shows the first binding of theirs."""

MAX_NODES: Final = 8192
"""Nodes whose bindings by others are counted, about 1 MB. Beyond it those are dropped that count
less than one binding, and all if that does not help."""

RECENT_S: Final = 30.0
"""While others bind, the sizes of their pods count for so long, and for twice as long at most. The
last ones count until others are forgotten."""

MAX_RESOURCES: Final = 32
"""Resources whose sizes are kept, besides the usual ones: more than the pods of a cluster request
as a rule. Of further ones no space is left."""

_NO_SIZES: Final[Sizes] = {}

_SCHEDULED: Final = "PodScheduled"

_NODE_LOCAL: Final = frozenset({"DaemonSet", "Node"})
"""Controllers whose pods say nothing about the choices of others: they go to every node."""

log = structlog.get_logger(__name__)


class ForeignBinds:
    """Count collisions, and return how often others bind on a node.

    Parameters
    ----------
    clock, wall_clock
        Seconds of a monotonic clock, and since the epoch.
    reserves
        Whether space is left for pods of others.

    Notes
    -----
    *Concurrency*: :meth:`rates`, :meth:`is_any` and :meth:`sizes` on any thread, the rest on the
    I/O loop.

    *Cost*: 1 us for each binding, 3 us for each pod of others.
    """

    def __init__(
        self,
        cache: SchedulerCache,
        metrics: Metrics,
        clock: Callable[[], float],
        wall_clock: Callable[[], float],
        *,
        reserves: bool = True,
    ) -> None:
        self._cache = cache
        self._metrics = metrics
        self._clock = clock
        self._wall_clock = wall_clock
        # When our last binding to a node was sent, in the order of these times.
        self._sent_s: dict[str, float] = {}
        # How many bindings of others a node had, as of when.
        self._counts: dict[str, tuple[float, float]] = {}
        self._last_s = -FORGOTTEN_S
        self._recent = RecentSizes() if reserves else None

    def sends(self, node_name: str) -> None:
        """Take note that a binding of ours to a node is sent now."""
        now_s, sent_s = self._clock(), self._sent_s
        sent_s.pop(node_name, None)
        sent_s[node_name] = now_s
        while (oldest := next(iter(sent_s))) != node_name:
            if now_s - sent_s[oldest] <= WINDOW_S:
                break
            del sent_s[oldest]

    def arrived(self, info: PodInfo, *, is_choice: bool, was_pending: bool) -> None:
        """Take note of a pod that has a node now, which we did not place there.

        The cache counts it already.

        Parameters
        ----------
        is_choice
            Whether another scheduler may have chosen the node.
        was_pending
            Whether the watch has shown the pod without a node before.
        """
        node_name, now_s = info.node_name, self._clock()
        if is_choice and not _is_node_local(info):
            age_s = 0.0 if was_pending else self._age_s(info)
            if age_s < FORGOTTEN_S:
                self._count(node_name, now_s, age_s)
                if self._recent is not None:
                    self._recent.add(info, now_s)
        sent_s = self._sent_s.get(node_name)
        if sent_s is None or now_s - sent_s > WINDOW_S:
            return
        usage = self._cache.usage_around(info.uid)
        resource = "" if usage is None else overcommitted(info, usage)
        if resource:
            self._metrics.collision(resource)
            log.info(
                "collision with another scheduler",
                node=node_name,
                pod=info.key,
                scheduler=info.pod.spec.scheduler_name,
                resource=resource,
                after_s=now_s - sent_s,
            )

    def rates(self, node_names: Sequence[str]) -> Sequence[float]:
        """Return how many pods others bound to each node of late, the older ones counting less."""
        now_s, counts = self._clock(), self._counts
        found = [counts.get(name, (0.0, now_s)) for name in node_names]
        return [_decayed(count, now_s - at_s) for count, at_s in found]

    def is_any(self) -> bool:
        """Return whether others have bound anything of late."""
        return self._clock() - self._last_s < FORGOTTEN_S

    def sizes(self) -> Sizes:
        """Return the sizes of the pods that others bound lately; empty if no space is left to them.

        *Cost*: 0.2 us.
        """
        recent = self._recent
        return _NO_SIZES if recent is None or not self.is_any() else recent.sizes

    def _age_s(self, info: PodInfo) -> float:
        """Return how long ago a pod was bound; infinity if that is not known.

        Clocks may differ: a time that is yet to come counts as now, unless it is far off.
        """
        for condition in info.pod.status.conditions:
            if condition.type == _SCHEDULED and condition.status == "True":
                age_s = self._wall_clock() - parsed_time_s(condition.last_transition_time or "")
                return max(age_s, 0.0) if age_s > -FORGOTTEN_S else math.inf
        return math.inf

    def _count(self, node_name: str, now_s: float, age_s: float) -> None:
        if not self.is_any():
            self._counts = {}
        count, at_s = self._counts.get(node_name, (0.0, now_s))
        if node_name not in self._counts and len(self._counts) >= MAX_NODES:
            self._drop(now_s)
        self._counts[node_name] = (_decayed(count, now_s - at_s) + _decayed(1.0, age_s), now_s)
        self._last_s = max(self._last_s, now_s - age_s)

    def _drop(self, now_s: float) -> None:
        kept = {
            name: (count, at_s)
            for name, (count, at_s) in self._counts.items()
            if _decayed(count, now_s - at_s) >= 1.0
        }
        self._counts = kept if len(kept) < MAX_NODES else {}


class RecentSizes:
    """The largest amounts that recent pods request, by resource and power of two.

    Attributes
    ----------
    sizes
        Amounts in ascending order by resource; never changed, but replaced.

    Notes
    -----
    *Cost*: 1 us for a pod of a known size. It keeps at most 63 amounts for each resource.
    """

    def __init__(self) -> None:
        self.sizes: Sizes = _NO_SIZES
        self._since_s = -FORGOTTEN_S
        self._now: dict[str, dict[int, int]] = {}
        """The largest amount by resource and number of bits, since then."""
        self._before: dict[str, dict[int, int]] = {}
        """The same for the time before."""

    def add(self, info: PodInfo, now_s: float) -> None:
        """Add a pod."""
        age_s, is_news = now_s - self._since_s, False
        if age_s >= RECENT_S:
            self._before = self._now if age_s < FORGOTTEN_S else {}
            self._now, self._since_s, is_news = {}, now_s, True
        now = self._now
        for resource, requested in ((PODS, 1), *info.requests.items()):
            if (
                len(now) >= MAX_RESOURCES
                and resource not in now
                and resource not in FIXED_RESOURCES
            ):
                continue
            amount = min(requested, MOST)
            largest = now.setdefault(resource, {})
            if amount > largest.get(amount.bit_length(), 0):
                largest[amount.bit_length()] = amount
                is_news = True
        if is_news:
            self.sizes = self._by_resource()

    def _by_resource(self) -> Sizes:
        sizes = {}
        for name in self._before.keys() | self._now.keys():
            before, now = self._before.get(name, {}), self._now.get(name, {})
            bits = sorted(before.keys() | now.keys())
            if bits:
                sizes[name] = [max(before.get(each, 0), now.get(each, 0)) for each in bits]
        return sizes


def _is_node_local(info: PodInfo) -> bool:
    return any(owner.kind in _NODE_LOCAL for owner in info.pod.metadata.owner_references)


def _decayed(count: float, age_s: float) -> float:
    return float(count * 0.5 ** (age_s / HALF_LIFE_S))
