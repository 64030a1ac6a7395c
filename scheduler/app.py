"""The one module that knows everyone: makes the parts, starts them in order, ends them in order."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import random
import time
from typing import TYPE_CHECKING

import structlog

from cache.disruption_budgets import DisruptionBudgets
from cache.namespaces import Namespaces
from cache.scheduler_cache import SchedulerCache
from cache.snapshot import Snapshot
from cache.storage import Storage
from cache.workloads import Workloads
from scheduler.binder import Binder
from scheduler.binding_cycle import MAX_BINDING, BindingCycles
from scheduler.binding_slots import BindingSlots
from scheduler.cache_debugger import CacheDebugger
from scheduler.client.api import Api, Permission
from scheduler.client.credential_search import load_credentials
from scheduler.client.errors import ApiError
from scheduler.client.limiter import InFlightLimiter, limiter_of
from scheduler.client.transport import Transport
from scheduler.config import ignored_fields
from scheduler.crd_operator import CrdOperator
from scheduler.device_events import may_watch_devices
from scheduler.event_handlers import EventHandlers
from scheduler.event_recorder import EventRecorder
from scheduler.eviction import Evictor
from scheduler.failure_handler import FailureHandler
from scheduler.host_selection import HostSelector
from scheduler.informers import InformerFactory
from scheduler.kubelet_rejections import KubeletRejections
from scheduler.leader_election import Leadership, leadership_of, lease_of
from scheduler.loop_lag import LoopLag
from scheduler.lost_events import LostEvents
from scheduler.metrics import Metrics
from scheduler.node_metrics import measure_nodes
from scheduler.nominated_nodes import NominatedNodes
from scheduler.permissions import DEVICE_CLASS_PERMISSIONS, required_permissions
from scheduler.plugin_handle import PluginHandle
from scheduler.pod_status_writer import PodStatusWriter
from scheduler.policy.extender_chains import ExtenderChains
from scheduler.policy.live_policies import LivePolicies
from scheduler.policy.plugin_supply import known_plugins
from scheduler.preemption_executor import PreemptionExecutor
from scheduler.queueing import SchedulingQueue
from scheduler.reaper import Reaper
from scheduler.schedule_one import SchedulingLoop
from scheduler.scheduling_cycle import SchedulingCycle
from scheduler.serving.late_server import LateServer
from scheduler.serving.listener import ServerError
from scheduler.serving.reviews import Reviews
from scheduler.shadow import Shadows
from scheduler.shutdown import Shutdown
from scheduler.storage_events import StorageEvents
from scheduler.storage_writer import StorageWriter
from scheduler.version import VERSION
from scheduler.waiting_pods import WaitingPods
from scheduler.wake_up_slices import WakeUpSlices
from scheduler.watches import Watches

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from cache.objects import Pod
    from scheduler.client.credentials import Credentials
    from scheduler.config import SchedulerConfig
    from scheduler.options import Options
    from scheduler.serving.listener import Listener
    from scheduler.serving.server import Server

    T = TypeVar("T")

log = structlog.get_logger(__name__)

MAX_REVIEWS_IN_FLIGHT = 4
"""Questions to the API server about who may read our pages: many strangers cost no more."""

EVENTS_WAITING = 20_000
"""Events that may wait behind binds; under lasting load the newest are dropped and counted."""

BINDS_BEFORE_EVENTS = 16
"""Bindings under way beyond which Events stand back."""

SHUTDOWN_S = 15.0
"""How long bindings, Events and statuses under way may take to settle at the end."""

HANDOVER_S = 1.0
"""The same where a standby waits: it shall not wait long for the last Events of a leader that is
told to stop. What is left of them is dropped and counted."""

SETTLE_S = 5.0
"""How long the last writes may be under way before the lease is given back. If they take longer
it is not: the next leader waits for its end."""


class StartError(Exception):
    """Berth cannot start; the message is one sentence for a person."""


class App:
    """A running scheduler.

    Parameters
    ----------
    config
        The configuration, checked.
    options
        The rest.

    Notes
    -----
    *Concurrency*: :meth:`run` on the I/O loop, once.
    """

    def __init__(self, config: SchedulerConfig, options: Options) -> None:
        self.config = config
        self.options = options
        self.metrics = Metrics()
        self.cache = SchedulerCache(ttl_s=options.ttl_s)
        self.waiting_pods = WaitingPods()
        self.ready = False
        self._stop = asyncio.Event()
        self._dead = ""
        self.debugger: CacheDebugger | None = None
        self.extender_chains: ExtenderChains | None = None
        self.leadership: Leadership | None = None
        """None where every replica schedules."""
        self.operator: CrdOperator | None = None
        """None where SchedulingProfiles are not wanted."""

    async def run(self, stop: asyncio.Event) -> int:
        """Schedule until ``stop`` is set, then settle what is under way.

        Returns
        -------
        The exit status: 0, or 1 when bindings were left unsettled, the leadership was lost, or a
        thread or task died that has to run (invariant I17).

        Raises
        ------
        StartError, ClientConfigError, ConfigError
            When it cannot start; one sentence each.
        """
        self.loop = asyncio.get_running_loop()
        self._stop = stop
        self.server = LateServer(
            self.options.serving, self._make_server, lambda: not self._is_at_rest(), stop.set
        )
        rng = random.Random(self.options.seed)
        credentials = await load_credentials(self._kubeconfig)
        electing = Transport(
            credentials,
            user_agent=f"berth/{VERSION} (leader-election)",
            max_connections=2,
            max_body_bytes=1 << 20,
        )
        self.leadership = self._make_leadership(electing, rng)
        transport = self.make_transport(credentials)
        reviewing = Transport(
            credentials,
            user_agent=f"berth/{VERSION} (serving)",
            limiter=InFlightLimiter(MAX_REVIEWS_IN_FLIGHT),
            max_connections=MAX_REVIEWS_IN_FLIGHT,
        )
        for each in (electing, transport, reviewing):
            each.measure = self.metrics.client
        self.reviews = Reviews(reviewing)
        try:
            self.api = Api(transport)
            await self._check_server()
            self._make_parts(transport, rng)
            status = await self._serve(stop)
            # Whatever it was in the middle of: without a server it has not been told to stop.
            failure = self.server.failure
            if isinstance(failure, ServerError):
                raise StartError(str(failure)) from failure
            if failure is not None:
                raise failure
            return 1 if self._dead else status
        finally:
            if self.extender_chains is not None:
                await self.extender_chains.close()
            await reviewing.close()
            await transport.close()
            await electing.close()

    def died(self, name: str, error: BaseException) -> None:
        """End the process as if told to, but with status 1: a thread or task has died. Any thread.

        What is under way is settled and the lease given back, so that a standby takes over.
        """
        if self._stop.is_set():
            return
        log.critical("ending, for a part has died", part=name, exc_info=error)
        self._dead = name
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self._stop.set)

    @property
    def _kubeconfig(self) -> str | None:
        return self.options.kubeconfig or self.config.client_connection.kubeconfig or None

    def make_transport(self, credentials: Credentials) -> Transport:
        """Return the way to the API server. The seam for whoever wants to stand in between."""
        connection = self.config.client_connection
        return Transport(
            credentials,
            user_agent=f"berth/{VERSION} (scheduler)",
            limiter=limiter_of(connection.qps, connection.burst),
            write_fence=self.write_fence,
        )

    @property
    def write_fence(self) -> Callable[[float], float] | None:
        """What every write to the API server has to pass, and every binding by an extender."""
        return None if self.leadership is None else self.leadership.grant_s

    def lost_while_stopped(self) -> bool:
        """Tell whether the leadership ran out; afterwards nothing is written if so.

        For a signal handler on the I/O thread, when the process goes on after it was stopped.
        """
        return self.leadership is not None and self.leadership.lost_meanwhile()

    def _make_leadership(self, transport: Transport, rng: random.Random) -> Leadership | None:
        if not self.config.leader_election.leader_elect:
            self.metrics.watch_leadership("", lambda: self.ready)
            return None
        identity, writes = self.options.identity, self._writes_in_flight
        leadership = leadership_of(self.config, identity, transport, writes, rng)
        name = lease_of(self.config).name
        self.metrics.watch_leadership(name, lambda: leadership.is_leading)
        return leadership

    def _writes_in_flight(self) -> int:
        chains = self.extender_chains
        return self.api.writes_in_flight + (0 if chains is None else chains.binds_in_flight)

    async def _check_server(self) -> None:
        version = await self.api.check_server()
        log.info("connected", server_version=version, berth_version=VERSION)
        required = required_permissions(self.config, known_plugins(self.options.supply))
        missing: list[Permission] = []
        try:
            missing = await self.api.missing_permissions((*required, *DEVICE_CLASS_PERMISSIONS))
        except* ApiError as group:
            log.warning("cannot ask for our permissions", error=str(group.exceptions[0]))
        lacking = [permission for permission in missing if permission in required]
        if lacking:
            rights = "; ".join(map(str, lacking))
            raise StartError(f"the API server does not allow us to: {rights}")
        self._has_devices = await may_watch_devices(self.api, missing)

    def _make_parts(self, transport: Transport, rng: random.Random) -> None:
        clock = time.monotonic
        loop, metrics = self.loop, self.metrics
        slots = BindingSlots(MAX_BINDING)
        binder = Binder(self.api, rng, slots=slots, on_abandoned=metrics.binding_abandoned)
        storage = Storage()
        handle = PluginHandle(
            binder=binder,
            namespaces=Namespaces(),
            workloads=Workloads(),
            disruption_budgets=DisruptionBudgets(),
            storage=storage,
            storage_writer=StorageWriter(self.api, rng),
            waiting_pods=self.waiting_pods,
            live_node=lambda name: self.watches.nodes.get("", name),
            cached_node=self.cache.node_info,
        )
        self.whole_objects = InformerFactory(transport, on_death=self.died)
        self.extender_chains = ExtenderChains(
            loop, self.api, self.whole_objects, binder.settle, self.write_fence
        )
        self.node_metrics = measure_nodes(self.options.node_metrics, handle, metrics)
        self.shadows = Shadows(storage)
        self.policies = LivePolicies(
            self.config,
            handle,
            self.extender_chains,
            metrics,
            self.shadows,
            self.options.supply,
            self.options.source,
            self.died,
        )
        self.profiles = self.policies.profiles
        self.queue = SchedulingQueue(
            clock=clock,
            sort_key=self.profiles.sort_key,
            pre_enqueue=metrics.cycles.timed(self.profiles.pre_enqueue),
            registrations=self.profiles.registrations,
            initial_backoff_s=float(self.config.pod_initial_backoff_seconds),
            max_backoff_s=float(self.config.pod_max_backoff_seconds),
            on_incoming=metrics.incoming,
            account=self.profiles.account if self.profiles.shares_attempts else None,
            attempt_budget_s=self.options.attempt_budget_s or float("inf"),
            cpu_clock=time.thread_time,
            wake_later=WakeUpSlices(loop, self._judge_backlog).wake_later,
        )
        self.recorder = EventRecorder(
            loop,
            self.api,
            instance=self.options.identity,
            capacity=EVENTS_WAITING,
            pressure=self._binds_press,
            on_death=self.died,
        )
        rejections = KubeletRejections(self.recorder, metrics, clock)
        handlers = EventHandlers(
            self.cache, self.queue, self.profiles, self.waiting_pods, metrics, rejections.see
        )
        self.watches = Watches(
            transport,
            handle,
            handlers,
            StorageEvents(storage, self.queue, metrics),
            has_devices=self._has_devices,
            on_death=self.died,
        )
        nodes, pods = self.watches.nodes, self.watches.pods
        if self.options.supply is not None:
            self.options.supply.lend(metrics, nodes.list, pods.list)
        self.status_writer = PodStatusWriter(
            loop, self.api, self.cache.is_placed_pod, on_death=self.died
        )
        failures = FailureHandler(
            self.queue, pods.get, self.recorder, self.status_writer, metrics, clock
        )
        self.bindings = BindingCycles(
            loop,
            self.cache,
            self.queue,
            self.waiting_pods,
            failures,
            self.recorder,
            metrics,
            clock,
            self.status_writer,
            slots,
        )
        self.preemptions = PreemptionExecutor(
            loop,
            Evictor(self.api, pods.get, self.bindings.turn_back, rng),
            pods.get,
            self.queue,
            self.status_writer,
            self.recorder,
            metrics,
            clock,
        )
        handle.start(preemption=self.preemptions, queue=self.queue, live_pod=pods.get)
        self.profiles.count_nominated(NominatedNodes(self.queue.nominator))
        self.policies.go_live(loop, self.queue, handlers, pods.list)
        if self.options.operator.enabled:
            self.operator = CrdOperator(
                loop,
                transport,
                self._kubeconfig,
                self.policies.policies,
                self.options.operator,
                metrics,
                self.leadership,
                self.shadows.plain_report,
            )
        self.scheduling = SchedulingLoop(
            loop,
            self.cache,
            self.queue,
            self.profiles,
            SchedulingCycle(Snapshot(), HostSelector(self.options.seed), rejections),
            self.bindings,
            self.waiting_pods,
            failures,
            self.recorder,
            metrics,
            self.options.slow_cycle_s,
            self.shadows,
            self.server.answer,
            on_death=self.died,
        )
        self.reaper = Reaper(
            self.cache,
            self.queue,
            self._get_pod,
            self._pods_are_stale,
            metrics,
            clock,
            on_loop=loop.call_soon_threadsafe,
            on_death=self.died,
        )
        self.shutdown = Shutdown(
            self.cache,
            self.queue,
            self.scheduling,
            self.reaper,
            self.bindings,
            self.preemptions,
            self.status_writer,
            self.recorder,
        )
        self.debugger = debugger = CacheDebugger(
            self.cache,
            self.queue,
            nodes.list,
            pods.list,
            clock,
            lambda: (self.scheduling.pod_under_way, self.scheduling.cycle_under_way_s),
        )
        self.audit = debugger.audit(self._is_at_rest, self.options.comparison_period_s)
        self.lost_events = LostEvents(
            self.watches.all,
            handlers,
            metrics,
            self._leads,
            period_s=self.options.api_comparison_period_s,
        )

        metrics.watch_profiles(self.profiles.names)
        metrics.watch_gauges(
            pending_pods=lambda: self.queue.counts().waiting(),
            cache_size=lambda: dataclasses.asdict(self.cache.counts()),
            watch_staleness_s=lambda: self.watches.staleness_s(clock()),
            watch_relists=self.watches.relists,
            unreadable_objects=handlers.unreadable,
            restores=self.watches.restores,
            unschedulable_pods=self.queue.refusals,
            inflight_events=self.queue.in_flight_events,
            wake_up_backlog=self.queue.backlog,
            oldest_active_pod_s=self.queue.oldest_active_s,
            tasks=lambda: {"binding": self.bindings.in_flight},
            cache_mismatches=lambda: debugger.mismatches,
            cache_comparisons=lambda: float(debugger.comparisons),
            events=self.recorder.statistics,
            pod_statuses=self.status_writer.statistics,
            cycle_under_way_s=lambda: self.scheduling.cycle_under_way_s,
        )

    async def _serve(self, stop: asyncio.Event) -> int:
        try:
            self.server.listen()
        except ServerError as error:
            raise StartError(str(error)) from error
        lag = LoopLag(self.metrics.loop_lag, time.monotonic)
        lag.start()
        self.recorder.start()
        self.status_writer.start()
        self.watches.start()
        self.whole_objects.start()
        self.policies.start()
        self.node_metrics.start()
        if self.operator is not None:
            self.operator.start()
        try:
            if not await self._synced(stop):
                return 0
            self.ready = True
            self._settle_memory()
            self.audit.start()
            self.lost_events.start()
            for field_name in ignored_fields(self.config, known_plugins(self.options.supply)):
                log.warning("accepted and ignored", field=field_name)
            if self.leadership is not None:
                log.info("standing by", address=self.server.address)
                self.server.answer()
                if not await self.leadership.win(stop):
                    return 0
            counts = self.cache.counts()
            log.info(
                "scheduling",
                profiles=sorted(self.profiles.names()),
                nodes=counts.nodes,
                pods=counts.pods,
                address=self.server.address,
                addresses=self.server.addresses,
            )
            self.scheduling.start()
            self.reaper.start()
            return await self._schedule_until(stop)
        finally:
            if self.leadership is not None:
                await self.leadership.stop()
            await self.audit.stop()
            await self.lost_events.stop()
            if self.operator is not None:
                await self.operator.stop()
            await asyncio.to_thread(self.policies.stop)
            await self.node_metrics.stop()
            await self.watches.stop()
            await self.whole_objects.stop()
            await self.recorder.stop()
            await self.status_writer.stop()
            await self.server.stop()
            lag.stop()

    def _make_server(self, listeners: Sequence[Listener]) -> Server:
        """Make what answers over HTTP; on a thread of its own, for its import takes long."""
        from scheduler.serving.pages import pages  # noqa: PLC0415 - see above
        from scheduler.serving.server import Server  # noqa: PLC0415 - see above
        from scheduler.table_sizes import table_sizes  # noqa: PLC0415 - see above

        assert self.debugger is not None  # noqa: S101 - made with the other parts
        return Server(
            self.options.serving,
            self.metrics,
            readiness={"informers": self._not_ready},
            liveness={
                "leaderElection": self._not_leading_any_more,
                "scheduling": self.scheduling.problem,
            },
            details={"scheduling": lambda: self.scheduling.pod_under_way or None},
            reviews=self.reviews,
            pages=pages(
                self.policies.describe,
                self.debugger,
                self.watches.pods.list,
                lambda: table_sizes(self),
            ),
            listeners=listeners,
        )

    async def _synced(self, stop: asyncio.Event) -> bool:
        """Wait for all first lists; return False when told to stop meanwhile."""
        synced = asyncio.ensure_future(self._wait_synced())
        stopped = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait({synced, stopped}, return_when=asyncio.FIRST_COMPLETED)
            return synced.done()
        finally:
            synced.cancel()
            stopped.cancel()

    async def _wait_synced(self) -> None:
        await self.watches.wait_synced()
        await self.whole_objects.wait_synced()
        if self.operator is not None:
            await self.operator.wait_first_list()

    def _settle_memory(self) -> None:
        """Take what the first lists brought out of the collector's sight: it stays for long."""
        gc.collect()
        gc.freeze()

    async def _schedule_until(self, stop: asyncio.Event) -> int:
        """Let the threads run until told to stop, or until the leadership is lost."""
        if self.leadership is None:
            await stop.wait()
            return await self.shutdown.settle(SHUTDOWN_S)
        if await self.leadership.hold(stop):
            status = await self.shutdown.settle(HANDOVER_S)
            await self.leadership.hand_over(SETTLE_S)
            return status
        return await self.shutdown.abandon()

    def tell_state(self) -> None:
        """Write cache and queue, and how the cache compares, into the log: SIGUSR2."""
        if self.debugger is not None and self.ready:
            self.debugger.tell()

    # --- services to the parts ----------------------------------------------------------------

    def _not_ready(self) -> str | None:
        return None if self.ready else "the first lists are not complete"

    def _not_leading_any_more(self) -> str | None:
        lost = self.leadership is not None and self.leadership.is_lost
        return "the leadership was lost" if lost else None

    def _judge_backlog(self, is_over: Callable[[], bool]) -> bool:
        return self.queue.judge_backlog(is_over)

    def _binds_press(self) -> bool:
        """Tell whether so many bindings are under way that Events should stand back."""
        return self.bindings.pressing > BINDS_BEFORE_EVENTS

    def _leads(self) -> bool:
        """Tell whether this process schedules."""
        return self.leadership is None or self.leadership.is_leading

    def _is_at_rest(self) -> bool:
        """Tell whether nothing is being scheduled here; on a standby that is always so."""
        return not self._leads() or not (self.bindings.in_flight or self.queue.counts().active)

    def _pods_are_stale(self) -> bool:
        return self.watches.pods.staleness_s(time.monotonic()) > self.options.stale_watch_s

    def _get_pod(self, namespace: str, name: str) -> Pod | None:
        """Ask the API from another thread."""
        call = self.api.get_pod(namespace, name)
        return asyncio.run_coroutine_threadsafe(call, self.loop).result(timeout=60)
