"""Provide the gauges, which are read at each scrape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from cache.device_counts import DeviceCounts
from scheduler.cycle.partial_gangs import count_partial
from scheduler.informers import relists, restores, staleness_s
from scheduler.metrics import declarations
from scheduler.metrics.instruments import Pulled
from scheduler.pools import ALL_NODES
from scheduler.queueing.group_causes import waiting_by_cause

if TYPE_CHECKING:
    from collections.abc import Callable

    from scheduler.assembly import Assembly
    from scheduler.debug.cache_debugger import CacheDebugger
    from scheduler.event_handlers.watches import Watches
    from scheduler.informers import Informer, InformerFactory
    from scheduler.metrics import Metrics
    from scheduler.pools import PoolOptions


def watch_state(
    metrics: Metrics,
    parts: Assembly[Watches],
    whole_objects: InformerFactory,
    debugger: CacheDebugger,
    clock: Callable[[], float],
    pool: PoolOptions = ALL_NODES,
) -> None:
    """Have the state of all parts exposed.

    Parameters
    ----------
    whole_objects
        The watches that only extenders need.
    clock
        Seconds of the watches' monotonic clock.
    pool
        The pool of this process.
    """
    cache, queue = parts.known.pods.cache, parts.known.pods.queue
    acting, loop = parts.acting, parts.deciding.loop
    groups, profiles = parts.known.cluster.pod_groups, parts.deciding.profiles

    def watches() -> tuple[Informer[Any], ...]:
        return (*parts.known.watched.all, *whole_objects.all)

    metrics.watch_profiles(profiles.names)
    for state, read_each in (
        (declarations.PENDING_PODS, lambda: queue.counts().waiting()),
        (declarations.CACHE_SIZE, lambda: msgspec.structs.asdict(cache.counts())),
        (declarations.WATCH_STALENESS, lambda: staleness_s(watches(), clock())),
        (declarations.WATCH_RELISTS, lambda: relists(watches())),
        (declarations.UNREADABLE, parts.known.handlers.unreadable),
        (declarations.RESTORES, lambda: restores(watches())),
        (declarations.INFLIGHT_EVENTS, queue.in_flight_events),
        (declarations.TASKS, lambda: {"binding": acting.bindings.in_flight}),
        (
            declarations.POD_GROUPS_WAITING,
            lambda: waiting_by_cause(queue.groups(), groups.standing),
        ),
    ):
        metrics.watch_each(state, read_each)
    metrics.pull(Pulled(*declarations.UNSCHEDULABLE_PODS, queue.refusals))
    metrics.pull(Pulled(*declarations.DEVICES, DeviceCounts(parts.known.cluster.devices).read))
    events, statuses = acting.reports.events.statistics, acting.reports.statuses.statistics
    group_statuses = acting.groups.statuses.statistics
    if not pool.has_all_nodes:
        metrics.name_pool(pool.name, str(pool.node_selector))
        metrics.watch(declarations.PODS_ELSEWHERE, parts.known.handlers.elsewhere)
        metrics.watch_each(declarations.POD_OF_POOLS, parts.known.pool.counts)
    for state, read in (
        (declarations.WAKE_UP_BACKLOG, queue.backlog),
        (declarations.OLDEST_ACTIVE_POD, queue.oldest_active_s),
        (declarations.MISMATCHES, lambda: debugger.mismatches),
        (declarations.COMPARISONS, lambda: float(debugger.comparisons)),
        (declarations.CYCLE_UNDER_WAY, lambda: loop.cycle_under_way_s),
        (declarations.EVENTS_SENT, lambda: events().sent),
        (declarations.EVENTS_DROPPED, lambda: events().dropped),
        (declarations.EVENTS_FAILED, lambda: events().failed),
        (declarations.STATUSES_SENT, lambda: statuses().written),
        (declarations.STATUSES_DROPPED, lambda: statuses().dropped),
        (declarations.STATUSES_FAILED, lambda: statuses().failed),
        (declarations.POD_GROUP_STATUSES_SENT, lambda: group_statuses().written),
        (declarations.POD_GROUP_STATUSES_DROPPED, lambda: group_statuses().dropped),
        (declarations.POD_GROUP_STATUSES_FAILED, lambda: group_statuses().failed),
        (declarations.POD_GROUPS_PARTIAL, lambda: count_partial(groups, profiles.names())),
    ):
        metrics.watch(state, read)
