"""Assemble the scheduler's parts: those that know, those that act, and those that decide.

    Known     the cluster, the queued pods, and the watches that keep both up to date
    Acting    the writers: bindings, evictions, conditions, Events
    Deciding  the profiles with their plugins, and the loop that runs one cycle after another

Read from top to bottom: each part is given what stands above it. Where two parts need each other,
one of them is set later by a call: the queue passes
:class:`~scheduler.queueing.requeue_slices.WakeUpSlices` its callback, and profiles arrive by
:class:`~scheduler.profiles.profile_swap.ProfileSwap`, the first ones as all later ones.
:mod:`scheduler.app` starts and stops these parts.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from cache.known import Known
from cache.snapshot import Snapshot
from cache.value import Value
from scheduler.api_writes.binder import Binder, BindingApi
from scheduler.api_writes.binding_slots import BindingSlots
from scheduler.api_writes.claim_patcher import ClaimApi
from scheduler.api_writes.claim_writer import ClaimWriter
from scheduler.api_writes.event_recorder import EventApi, EventRecorder
from scheduler.api_writes.eviction import EvictionApi, Evictor
from scheduler.api_writes.member_conditions import MemberConditions
from scheduler.api_writes.pod_group_status_writer import PodGroupStatusWriter
from scheduler.api_writes.pod_status_writer import PodStatusApi, PodStatusWriter
from scheduler.api_writes.volume_writer import StorageWriter
from scheduler.cycle.bind_guard import BindGuard
from scheduler.cycle.binding_cycle import MAX_BINDING, BindingCycles
from scheduler.cycle.device_reports import BindingDeviceReports
from scheduler.cycle.failure_handler import FailureHandler
from scheduler.cycle.foreign_binds import ForeignBinds
from scheduler.cycle.group_cycle import GroupCycles, GroupDeciders, GroupOutcomes
from scheduler.cycle.group_reports import GroupReports
from scheduler.cycle.group_rounds import GroupRounds
from scheduler.cycle.held_groups import HeldGroups
from scheduler.cycle.host_selection import HostSelector
from scheduler.cycle.kubelet_rejections import KubeletRejections
from scheduler.cycle.partial_gangs import PartialGangs
from scheduler.cycle.preemption_executor import PreemptionExecutor, PreemptionReports
from scheduler.cycle.reaper import Reaper
from scheduler.cycle.reports import Reports
from scheduler.cycle.schedule_one import Deciders, Outcomes, SchedulingLoop
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from scheduler.decision.recent_decisions import RecentDecisions
from scheduler.event_handlers.other_objects import OtherObjects
from scheduler.event_handlers.pods_and_nodes import EventHandlers
from scheduler.event_handlers.pods_elsewhere import PodsElsewhere
from scheduler.informers.watched import Watched, WatchedObjects
from scheduler.kinds import ResourceKind
from scheduler.pod_groups.planner import GroupPlanner
from scheduler.pod_groups.preemption import GroupPreemption
from scheduler.pools.own_pool import OwnPool
from scheduler.profiles.profile_swap import ProfileSwap
from scheduler.queueing import (
    BudgetAccounts,
    QueueLimits,
    QueueListeners,
    QueueRules,
    SchedulingQueue,
)
from scheduler.queueing.requeue_slices import WakeUpSlices
from scheduler.runtime.known_pods import KnownPods
from scheduler.runtime.plugin_handle import PluginActions, PluginServices
from scheduler.runtime.profile_map import Profiles
from scheduler.runtime.waiting_pods import WaitingPods
from scheduler.shadow import Shadows

if TYPE_CHECKING:
    from cache.objects import Pod
    from cache.pod_group_objects import GroupSource
    from cache.pod_groups import PodGroups
    from cache.pod_info import PodInfo
    from cache.scheduler_cache import SchedulerCache
    from plugins.framework.node_metrics import NodeMetrics
    from scheduler.config import SchedulerConfig
    from scheduler.journal import Journal
    from scheduler.metrics import Metrics
    from scheduler.options import Options
    from scheduler.process.ports import Ports
    from scheduler.tracing.traces import Traces

EVENTS_WAITING: Final = 20_000
"""Events that may wait behind binds; under lasting load the newest are dropped and counted."""

BINDS_BEFORE_EVENTS: Final = 16
"""Bindings under way beyond which Events stand back."""

GET_POD_S: Final = 60.0
"""How long the reaper waits for an answer."""


class SchedulerApi(BindingApi, EvictionApi, EventApi, PodStatusApi, ClaimApi, Protocol):
    """All calls to the API server that the parts need."""


WatchedT = TypeVar("WatchedT", bound=Watched)
WatchedT_co = TypeVar("WatchedT_co", bound=Watched, covariant=True)


class Watch(Protocol[WatchedT_co]):
    """Makes the watches: what they bring goes to these two."""

    def __call__(self, handlers: EventHandlers, others: OtherObjects) -> WatchedT_co:
        """Return the watches, which are not started yet."""
        ...


class Knowing(Value, Generic[WatchedT_co], frozen=True):
    """What is known.

    Attributes
    ----------
    cluster
        Nodes, and all else that decisions depend on.
    pods
        Where every pod is.
    rejections
        Which nodes pods should avoid, for their kubelets rejected them.
    foreign
        What other schedulers bind.
    handlers
        What keeps nodes and pods up to date.
    watched
        What the watches brought.
    pool
        Which nodes there are, and which pods are to go to them.
    """

    cluster: Known
    pods: KnownPods
    rejections: KubeletRejections
    foreign: ForeignBinds
    handlers: EventHandlers
    watched: WatchedT_co
    pool: OwnPool


class ActingOnGroups(Value, frozen=True):
    """Whatever writes about groups of pods.

    Attributes
    ----------
    statuses
        Writes the statuses of groups.
    reports
        Says what becomes of each group.
    partial
        Counts gangs below their minimum, and evicts the rest of some.
    rounds
        Looks after held and partial groups once a second.
    """

    statuses: PodGroupStatusWriter
    reports: GroupReports
    partial: PartialGangs
    rounds: GroupRounds


class Acting(Value, frozen=True):
    """Whatever writes.

    Attributes
    ----------
    reports
        Events, conditions, metrics.
    groups
        Whatever writes about groups of pods.
    slots
        How many bindings may press on the API server.
    binder, storage_writer, claim_writer
        Bind pods, write volumes and their claims, and write claims of devices.
    failures, bindings
        What becomes of decisions.
    preemptions
        Evicts victims.
    reaper
        Settles assumed pods that were never confirmed.
    """

    reports: Reports
    groups: ActingOnGroups
    binder: Binder
    storage_writer: StorageWriter
    claim_writer: ClaimWriter
    failures: FailureHandler
    bindings: BindingCycles
    preemptions: PreemptionExecutor
    reaper: Reaper


class Deciding(Value, frozen=True):
    """Who decides.

    Attributes
    ----------
    profiles
        Those that decide at the moment: none before the first ones are handed to ``swap``.
    services
        What plugins are lent.
    swap
        Puts profiles in place of others.
    shadows
        Policies that look on.
    loop
        The scheduling thread.
    """

    profiles: Profiles
    services: PluginServices
    swap: ProfileSwap
    shadows: Shadows
    loop: SchedulingLoop


class Assembly(Value, Generic[WatchedT_co], frozen=True):
    """All parts."""

    known: Knowing[WatchedT_co]
    acting: Acting
    deciding: Deciding


class Setting(Value, frozen=True):
    """What is decided before anything is made.

    Attributes
    ----------
    config, options
        What the user wants.
    metrics
        Where everything is counted.
    shares_attempts
        Whether the QueueSort plugin shares attempts between accounts.
    node_metrics
        Numbers about nodes that somebody measures; None where nobody does.
    traces
        Takes in what traced pods go through; None where no pod is traced.
    journal
        Records what is known and decided; None for no journal.
    """

    config: SchedulerConfig
    options: Options
    metrics: Metrics
    shares_attempts: bool = False
    node_metrics: NodeMetrics | None = None
    traces: Traces | None = None
    journal: Journal | None = None


def assemble(
    ports: Ports[SchedulerApi], watch: Watch[WatchedT], setting: Setting
) -> Assembly[WatchedT]:
    """Put the parts together; nothing is started.

    *Concurrency*: on the I/O loop.
    """
    profiles = Profiles()
    slots = BindingSlots(MAX_BINDING, ports.executor)
    reports, known = _know(ports, watch, setting, profiles, slots)
    acting = _act(ports, known, reports, slots, profiles, setting)
    return Assembly(known, acting, _decide(ports, known, acting, profiles, setting))


def _know(
    ports: Ports[SchedulerApi],
    watch: Watch[WatchedT],
    setting: Setting,
    profiles: Profiles,
    slots: BindingSlots,
) -> tuple[Reports, Knowing[WatchedT]]:
    executor, clock, metrics = ports.executor, ports.clock.monotonic, setting.metrics
    cluster = Known.nothing(setting.options.ttl_s, executor.lock)
    pool = OwnPool.of(setting.options.pool, clock, executor.lock)
    queue = _queue(ports, setting, profiles, cluster.pod_groups, pool)
    if setting.journal is not None:
        setting.journal.watch(cluster, queue.nominator)
    pods = KnownPods(cluster.cache, queue, WaitingPods(executor.lock), cluster.pod_groups)
    cluster.pod_groups.subscribe(queue.group_changed)
    events = EventRecorder(
        ports,
        instance=setting.options.identity,
        capacity=EVENTS_WAITING,
        pressure=lambda: len(slots) > BINDS_BEFORE_EVENTS,
    )
    rejections = KubeletRejections(events, metrics, clock, executor.lock)
    foreign = ForeignBinds(
        cluster.cache, metrics, clock, ports.clock.wall, reserves=setting.options.reserves
    )
    handlers = EventHandlers(
        pods,
        cluster.pod_groups,
        profiles,
        metrics,
        rejections.see,
        foreign.arrived,
        None if setting.options.pool.has_all_nodes else PodsElsewhere(),
        pool.ownership,
    )
    watched = watch(handlers, OtherObjects(cluster, pods.queue, metrics))
    statuses = PodStatusWriter(ports, partial(_is_settled, cluster.cache, watched.pods, pool))
    recent = RecentDecisions(ports.clock.wall)
    reports = Reports(events, statuses, metrics, recent, setting.traces)
    return reports, Knowing(cluster, pods, rejections, foreign, handlers, watched, pool)


def _group_kind(watched: Watched, source: GroupSource) -> ResourceKind[Any] | None:
    """Return the kind of the PodGroups of an API as they are watched, or None if they are not."""
    for informer in watched.all:
        kind = informer.kind
        if not isinstance(kind, ResourceKind) or kind.resource != "podgroups":
            continue
        if kind.group == source.value:
            return kind
    return None


def _queue(
    ports: Ports[SchedulerApi],
    setting: Setting,
    profiles: Profiles,
    groups: PodGroups,
    pool: OwnPool,
) -> SchedulingQueue:
    config, options, metrics = setting.config, setting.options, setting.metrics
    slices = WakeUpSlices(ports.executor.loop, ports.clock.monotonic)
    return SchedulingQueue(
        QueueRules(
            profiles.sort_key,
            pool.gated(metrics.cycles.timed(profiles.pre_enqueue)),
            profiles.registrations,
            profiles.account if setting.shares_attempts else None,
            groups.standing,
        ),
        ports.clock.monotonic,
        limits=QueueLimits(
            initial_backoff_s=float(config.pod_initial_backoff_seconds),
            max_backoff_s=float(config.pod_max_backoff_seconds),
            max_group_members=options.max_pod_group_members,
        ),
        accounts=BudgetAccounts(options.attempt_budget_s or float("inf"), ports.clock.thread_cpu),
        listeners=QueueListeners(metrics.incoming, slices.wake_later),
        locks=ports.executor,
    )


def _act(
    ports: Ports[SchedulerApi],
    known: Knowing[Watched],
    reports: Reports,
    slots: BindingSlots,
    profiles: Profiles,
    setting: Setting,
) -> Acting:
    executor, clock = ports.executor, ports.clock
    pods, live_pod, metrics = known.pods, known.watched.pods.get, setting.metrics
    pool = known.pool
    guard = BindGuard(
        pods.cache,
        profiles,
        known.foreign,
        enabled=setting.options.bind_guard,
        owns=partial(pool.still_owns, live_pod),
    )
    binder = Binder(
        ports, slots, metrics.binding_abandoned, guard.check, partial(pool.version, live_pod)
    )
    storage_writer = StorageWriter(ports)
    claims = known.cluster.devices.claims
    claim_writer = ClaimWriter(
        ports, claims.stored, metrics.device_bindings.claim_created, claims.get, slots.release
    )
    failures = FailureHandler(
        pods.queue,
        live_pod,
        reports,
        clock.monotonic,
        None if pool.ownership is None else pool.refusals,
    )
    bindings = BindingCycles(ports, pods, failures, reports, slots, guard)
    evictor = Evictor(ports, live_pod, bindings.turn_back, pods.cache.is_placed_pod)
    groups = _look_after_groups(ports, known, reports, slots, profiles, evictor, setting)
    preemptions = PreemptionExecutor(
        executor.loop,
        clock.monotonic,
        evictor,
        live_pod,
        pods,
        PreemptionReports(reports, groups.reports),
    )
    reaper = Reaper(
        executor,
        clock.monotonic,
        pods,
        partial(_get_pod, ports),
        metrics,
    )
    return Acting(
        reports,
        groups,
        binder,
        storage_writer,
        claim_writer,
        failures,
        bindings,
        preemptions,
        reaper,
    )


def _look_after_groups(
    ports: Ports[SchedulerApi],
    known: Knowing[Watched],
    reports: Reports,
    slots: BindingSlots,
    profiles: Profiles,
    evictor: Evictor,
    setting: Setting,
) -> ActingOnGroups:
    groups, live_pod, pods = known.pods.groups, known.watched.pods.get, known.pods

    def kinds(source: GroupSource) -> ResourceKind[Any] | None:
        return _group_kind(known.watched, source)

    statuses = PodGroupStatusWriter(
        ports,
        groups,
        kinds,
        profiles.names,
        writes_x_statuses=setting.options.pod_group_status,
        pressure=lambda: len(slots) > BINDS_BEFORE_EVENTS,
    )
    conditions = MemberConditions(ports.executor, reports.statuses, live_pod)
    told = GroupReports(ports, groups, kinds, statuses, reports.events, conditions)

    def give_up_room(info: PodInfo) -> None:
        if known.handlers.give_up_room(info):
            reports.statuses.nominate(info.pod, "")

    held = HeldGroups(ports, groups, pods.queue.why_held, told, give_up_room)
    partial = PartialGangs(ports, groups, live_pod, profiles.names, evictor, told)
    return ActingOnGroups(statuses, told, partial, GroupRounds(ports.executor, held, partial))


def _is_settled(cache: SchedulerCache, pods: WatchedObjects[Pod], pool: OwnPool, uid: str) -> bool:
    """Return whether there is nothing to be said of a pod: it has a node, or is another pool's."""
    return _has_node(cache, pods, uid) or pool.is_given_away(pods.get_by_uid(uid))


def _has_node(cache: SchedulerCache, pods: WatchedObjects[Pod], uid: str) -> bool:
    """Return whether a pod has a node, or had one: one that has ended has left the cache."""
    if cache.is_placed_pod(uid):
        return True
    pod = pods.get_by_uid(uid)
    return pod is not None and bool(pod.spec.node_name)


def _get_pod(ports: Ports[BindingApi], namespace: str, name: str) -> Pod | None:
    return ports.executor.wait_on_loop(ports.api.get_pod(namespace, name), GET_POD_S)


def _decide(
    ports: Ports[SchedulerApi],
    known: Knowing[Watched],
    acting: Acting,
    profiles: Profiles,
    setting: Setting,
) -> Deciding:
    services = PluginServices(
        known.cluster,
        known.watched,
        known.pods,
        PluginActions(
            acting.binder,
            acting.storage_writer,
            acting.preemptions,
            acting.claim_writer,
            BindingDeviceReports(acting.reports),
        ),
        setting.node_metrics,
    )
    journal, seed = setting.journal, setting.options.seed
    coming = known.pods.queue.coming
    swap = ProfileSwap(
        ports.executor, profiles, known.pods.queue, known.handlers, known.watched.pods.list, journal
    )
    shadows = Shadows(known.cluster.storage, ports.executor.lock)
    if journal is None:
        selector = HostSelector(seed)
        selector.others = known.foreign
        cycle = SchedulingCycle(Snapshot(), selector, known.rejections, coming)
        preemption = GroupPreemption(cycle.snapshot, services)
    else:
        journal.listen_to(services)
        journal.break_ties_by(known.foreign)
        cycle = SchedulingCycle(Snapshot(), journal.ties, journal.told_by(known.rejections), coming)
        preemption = GroupPreemption(cycle.snapshot, services, journal.wall)
    outcomes = Outcomes(acting.bindings, acting.failures, known.rejections.count_assumed)
    groups = GroupCycles(
        ports,
        known.pods,
        GroupDeciders(cycle, GroupPlanner(cycle), preemption, journal),
        GroupOutcomes(
            outcomes,
            acting.preemptions,
            acting.reports.statuses.nominate,
            acting.groups.reports,
            setting.metrics.pod_groups,
            acting.reports.recent,
        ),
    )
    loop = SchedulingLoop(
        ports,
        known.pods,
        Deciders(profiles, cycle, shadows, groups, journal),
        outcomes,
        acting.reports,
        setting.options.slow_cycle_s,
    )
    return Deciding(profiles, services, swap, shadows, loop)
