"""Create all parts of the program, start them in order, and stop them in order."""

from __future__ import annotations

import asyncio
import contextlib
import random
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import structlog

from scheduler.assembly import Setting, assemble
from scheduler.checks import make_checks
from scheduler.client.api import Api
from scheduler.client.connections import (
    election_transport,
    review_transport,
    scheduling_transport,
)
from scheduler.client.credential_search import load_credentials
from scheduler.client.leases import Leases
from scheduler.config import ignored_fields, shares_attempts
from scheduler.cycle.pool_rounds import PoolRounds, QueuedPods
from scheduler.event_handlers.available_kinds import kinds_to_watch
from scheduler.event_handlers.catching_up import catch_up
from scheduler.event_handlers.late_watches import LateWatches
from scheduler.event_handlers.watches import NUMEROUS, Watches
from scheduler.informers import InformerFactory, ReflectorOptions, pages_come_from_cache
from scheduler.insight.worker import InsightWorker, WorkerSources
from scheduler.journal import open_journal
from scheduler.leader_election import Leadership, leadership_of, lease_of
from scheduler.metrics import Metrics, declarations
from scheduler.node_metrics import measure_nodes
from scheduler.permissions import PermissionsError, missing_permissions, required_permissions
from scheduler.process.expected_error import ExpectedError
from scheduler.process.loop_lag import LoopLag
from scheduler.process.periodic_task import PeriodicTask
from scheduler.process.ports import SYSTEM_CLOCK, Ports
from scheduler.process.process_memory import Aging, settle_memory
from scheduler.process.stopping import done_before
from scheduler.process.thread_executor import ThreadExecutor
from scheduler.process.version import VERSION
from scheduler.profiles.available_plugins import known_plugins
from scheduler.profiles.extender_chains import ExtenderChains
from scheduler.profiles.known_profiles import KnownProfiles
from scheduler.profiles.live_profiles import LiveProfiles
from scheduler.profiles.operator import CrdOperator, add_operator_metrics
from scheduler.profiles.profile_compiler import ProfileCompiler
from scheduler.serving.access_reviews import Reviews
from scheduler.serving.late_server import LateServer
from scheduler.serving.listener import ServerError
from scheduler.shutdown import Shutdown
from scheduler.state_metrics import watch_state

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scheduler.client.credentials import Credentials
    from scheduler.client.transport import Transport
    from scheduler.config import SchedulerConfig
    from scheduler.event_handlers.other_objects import OtherObjects
    from scheduler.event_handlers.pods_and_nodes import EventHandlers
    from scheduler.journal import JournalWriter
    from scheduler.kinds import WatchedKind
    from scheduler.options import Options
    from scheduler.serving.listener import Listener
    from scheduler.serving.server import Server, UserPage
    from scheduler.tracing.tracing import Tracing

log = structlog.get_logger(__name__)

SHUTDOWN_S = 15.0
"""How long bindings, Events and statuses under way may take to settle at the end."""

HANDOVER_S = 1.0
"""The same where a standby waits: it shall not wait long for the last Events of a leader that is
told to stop. What is left of them is dropped and counted."""

SETTLE_S = 5.0
"""How long the last writes may be under way before the lease is given back. If they take longer
it is not: the next leader waits for its end."""


COLLECT_S: Final = 0.25
"""How often outcomes of attempts are taken over for those who ask."""


class StartError(ExpectedError):
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
        self.ready = False
        self._stop = asyncio.Event()
        self._dead = ""
        self.extender_chains: ExtenderChains | None = None
        self.leadership: Leadership | None = None
        """None where every replica schedules."""
        self.operator: CrdOperator | None = None
        """None where SchedulingProfiles are not wanted."""
        self.journal_writer: JournalWriter | None = None
        """None where no journal is wanted."""

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
        electing, reviewing = election_transport(credentials), review_transport(credentials)
        self.leadership = self._make_leadership(electing, rng)
        transport = self.make_transport(credentials)
        for each in (electing, transport, reviewing):
            each.measure = self.metrics.client
        self.reviews = Reviews(reviewing)
        try:
            self.tracing = self._make_tracing()
            self.api = Api(transport) if self.tracing is None else self.tracing.api(transport)
            version = await self.api.check_server()
            log.info("connected", server_version=version, berth_version=VERSION)
            paged = NUMEROUS if pages_come_from_cache(version) else ()
            self._reading = ReflectorOptions(paged=paged)
            self._kinds = await self._kinds_to_watch()
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
        log.critical("exiting: a component failed", part=name, exc_info=error)
        self._dead = name
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self._stop.set)

    @property
    def _kubeconfig(self) -> str | None:
        return self.options.kubeconfig or self.config.client_connection.kubeconfig or None

    def make_transport(self, credentials: Credentials) -> Transport:
        """Return the way to the API server. The seam for whoever wants to stand in between."""
        connection = self.config.client_connection
        return scheduling_transport(credentials, connection, self.write_fence)

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
            if self.options.pool.pools:
                raise StartError("--pools needs leader election: others read who leads a pool")
            self.metrics.watch_leadership("", lambda: self.ready)
            return None
        identity, writes = self.options.identity, self._writes_in_flight
        leadership = leadership_of(
            self.config, identity, transport, writes, rng, lambda: self.server.certificate
        )
        name = lease_of(self.config).name
        self.metrics.watch_leadership(name, lambda: leadership.is_leading)
        return leadership

    def _make_tracing(self) -> Tracing | None:
        options = self.options
        if not options.tracing.ratio:
            return None
        from scheduler.tracing.tracing import (  # noqa: PLC0415 - most trace nothing
            Tracing,
            TracingError,
        )

        executor = ThreadExecutor(self.loop, self.died)
        try:
            return Tracing(options.tracing, options.identity, executor, self.metrics)
        except TracingError as error:
            raise StartError(str(error)) from error

    def _writes_in_flight(self) -> int:
        chains = self.extender_chains
        return self.api.writes_in_flight + (0 if chains is None else chains.binds_in_flight)

    async def _kinds_to_watch(self) -> tuple[WatchedKind[Any], ...]:
        """Return what we may watch of what the cluster serves; all other rights we must have."""
        required = required_permissions(self.config, known_plugins(self.options.supply))
        try:
            missing = await missing_permissions(self.api, required)
        except PermissionsError as error:
            raise StartError(str(error)) from error
        return await kinds_to_watch(self.api, missing)

    def _make_parts(self, transport: Transport, rng: random.Random) -> None:
        options, metrics = self.options, self.metrics
        executor = ThreadExecutor(self.loop, self.died)
        ports = Ports(self.api, executor, SYSTEM_CLOCK, rng)
        self.node_metrics = measure_nodes(options.node_metrics, metrics)
        journal = None
        if options.journal is not None:
            journal, self.journal_writer = open_journal(options.journal, options.seed, metrics)
        plugins = known_plugins(options.supply)
        setting = Setting(
            self.config,
            options,
            metrics,
            shares_attempts(self.config, plugins),
            self.node_metrics.measured,
            None if self.tracing is None else self.tracing.traces,
            journal,
        )
        parts = assemble(ports, partial(self._watch, transport), setting)
        self.known, self.acting, self.deciding = parts.known, parts.acting, parts.deciding
        self.watches = self.known.watched
        self.late_watches = LateWatches(self.api, self.watches, executor.sleep)
        metrics.watch_each(declarations.UNREADABLE_APIS, self.late_watches.unreadable)
        if options.supply is not None:
            options.supply.lend(metrics, self.watches.nodes.list, self.watches.pods.list)
        self._make_profiles(transport)
        self.insight = InsightWorker(
            WorkerSources(
                lambda: self.watches.all,
                self.known.pods.cache.assumed_nodes,
                self.profiles.known.effective,
                None if options.supply is None else options.supply.directory,
            )
        )
        self.insight.follow()
        self.pool_rounds = self._make_pool_rounds(ports, transport)
        self.shutdown = Shutdown(ports, self.known.pods, self.deciding.loop, self.acting)
        self.checks = make_checks(ports, parts, setting, self._leads, self._is_at_rest)
        watch_state(
            metrics,
            parts,
            self.whole_objects,
            self.checks.debugger,
            SYSTEM_CLOCK.monotonic,
            options.pool,
        )

    def _make_pool_rounds(self, ports: Ports[Api], transport: Transport) -> PoolRounds:
        known, reports, pool = self.known, self.acting.reports, self.known.pool
        queue, live_pod = known.pods.queue, self.watches.pods.get
        peers = () if pool.ownership is None else pool.ownership.peers
        namespace = lease_of(self.config).namespace
        return PoolRounds(
            ports,
            pool,
            QueuedPods(queue, live_pod, known.handlers.requeue, reports),
            {peer.name: Leases(transport, namespace, peer.lease) for peer in peers},
            self.options.pool.hand_over_after_s,
            reports,
            queue,
        )

    def _watch(
        self, transport: Transport, handlers: EventHandlers, others: OtherObjects
    ) -> Watches:
        return Watches(
            transport,
            self._kinds,
            handlers,
            others,
            on_death=self.died,
            options=self._reading,
            node_selector=str(self.options.pool.node_selector),
        )

    def _make_profiles(self, transport: Transport) -> None:
        """Make the profiles, and whatever changes them while berth runs."""
        options, deciding, supply = self.options, self.deciding, self.options.supply
        self.whole_objects = InformerFactory(transport, on_death=self.died)
        self.extender_chains = ExtenderChains(
            self.loop,
            self.api,
            self.whole_objects,
            self.acting.binder.settle,
            self.write_fence,
            deciding.swap.executor.lock,
            str(options.pool.node_selector),
        )
        compiler = ProfileCompiler(
            lambda: known_plugins(supply),
            deciding.services,
            self.extender_chains,
            None if supply is None else supply.load_python,
        )
        self.profiles = LiveProfiles(
            self.config,
            KnownProfiles(compiler, deciding.shadows),
            deciding.swap,
            self.metrics,
            supply,
            options.source,
        )
        if options.operator.enabled:
            self.operator = CrdOperator(
                transport,
                self._kubeconfig,
                self.profiles,
                options.operator,
                self._leads,
                deciding.shadows.plain_report,
            )
            add_operator_metrics(self.metrics, self.operator)

    async def _serve(self, stop: asyncio.Event) -> int:
        try:
            self.server.listen()
        except ServerError as error:
            raise StartError(str(error)) from error
        lag = LoopLag(self.metrics.loop_lag, SYSTEM_CLOCK.monotonic)
        lag.start()
        aging = Aging()
        aging.start()
        collecting = PeriodicTask(self._collect_outcomes)
        collecting.start(COLLECT_S)
        self.acting.reports.events.start()
        self.acting.reports.statuses.start()
        self.acting.groups.statuses.start()
        if self.journal_writer is not None:
            self.journal_writer.start()
        self.watches.start()
        self.whole_objects.start()
        self.profiles.start()
        self.node_metrics.start()
        if self.tracing is not None:
            self.tracing.start(self.watches.pods.get)
        if self.operator is not None:
            self.operator.start()
        try:
            return await self._lead(stop)
        finally:
            if self.leadership is not None:
                await self.leadership.stop()
            await self.checks.stop()
            await self.acting.groups.rounds.stop()
            await self.pool_rounds.stop()
            if self.operator is not None:
                await self.operator.stop()
            await asyncio.to_thread(self.profiles.stop)
            await self.node_metrics.stop()
            await self.late_watches.stop()
            await self.watches.stop()
            await self.whole_objects.stop()
            await self.acting.reports.events.stop()
            await self.acting.reports.statuses.stop()
            await self.acting.groups.statuses.stop()
            if self.journal_writer is not None:
                await asyncio.to_thread(self.journal_writer.stop)
            await self.server.stop()
            await self.insight.stop()
            await collecting.stop()
            if self.tracing is not None:
                await asyncio.to_thread(self.tracing.stop)
            aging.stop()
            lag.stop()

    async def _lead(self, stop: asyncio.Event) -> int:
        """Schedule once everything is known and this process leads; return the exit status."""
        if not await self._synced(stop):
            return 0
        self.ready = True
        log.info("first lists are complete")
        settle_memory()
        self.checks.start()
        for field_name in ignored_fields(self.config, known_plugins(self.options.supply)):
            log.warning("accepted and ignored", field=field_name)
        if self.leadership is not None:
            log.info("standing by", address=self.server.address)
            self.server.answer()
            if not await self.leadership.win(stop):
                return 0
            await self._catch_up(self.leadership.version_to_know, stop)
        counts = self.known.cluster.cache.counts()
        log.info(
            "scheduling",
            profiles=sorted(self.deciding.profiles.names()),
            nodes=counts.nodes,
            pods=counts.pods,
            **({} if self.options.pool.has_all_nodes else {"pool": str(self.options.pool)}),
            address=self.server.address,
            addresses=self.server.addresses,
        )
        self.acting.groups.statuses.lead()
        self.acting.groups.rounds.start()
        self.pool_rounds.start()
        self.deciding.loop.start(self.server.answer)
        self.acting.reaper.start()
        return await self._schedule_until(stop)

    def _make_server(self, listeners: Sequence[Listener]) -> Server:
        """Make what answers over HTTP; on a thread of its own, for its import takes long."""
        from scheduler.debug.table_sizes import table_sizes  # noqa: PLC0415 - see above
        from scheduler.serving.health import Health  # noqa: PLC0415 - see above
        from scheduler.serving.pages import pages  # noqa: PLC0415 - see above
        from scheduler.serving.server import Server  # noqa: PLC0415 - see above

        own_pages = pages(
            self.profiles.describe,
            self.checks.debugger,
            self.watches.pods.list,
            lambda: table_sizes(self),
        )
        return Server(
            self.options.serving,
            listeners,
            self.metrics,
            Health(
                readiness={"informers": self._not_ready},
                liveness={
                    "leaderElection": self._not_leading_any_more,
                    "scheduling": self.deciding.loop.problem,
                },
                details={"scheduling": lambda: self.deciding.loop.pod_under_way or None},
            ),
            reviews=self.reviews,
            pages=[*own_pages, *self._insight_pages()],
        )

    def _insight_pages(self) -> Sequence[UserPage]:
        """Make what answers questions; on that thread too."""
        from scheduler.insight.pages import InsightPages, Sources  # noqa: PLC0415 - see above
        from scheduler.insight.pod_state import pod_state  # noqa: PLC0415 - see above
        from scheduler.insight.policies import describe_policies  # noqa: PLC0415 - see above

        sources = Sources(
            self.acting.reports.recent,
            self.known.pods.queue,
            self.insight,
            self.watches.pods.get,
            partial(
                pod_state,
                self.known.pods,
                self.deciding.profiles,
                is_given_away=self.known.pool.is_given_away,
            ),
            self._leads,
            lambda: describe_policies(
                self.deciding.profiles, self.profiles.known, self.deciding.shadows
            ),
            SYSTEM_CLOCK.monotonic,
            "" if self.options.pool.has_all_nodes else str(self.options.pool),
        )
        return InsightPages(sources).pages()

    async def _synced(self, stop: asyncio.Event) -> bool:
        """Wait for all first lists; return False when told to stop meanwhile."""
        synced = asyncio.ensure_future(self._wait_synced())
        return await done_before(stop, synced, cancel=True)

    async def _wait_synced(self) -> None:
        await self.late_watches.start()
        await self.watches.wait_synced()
        await self.whole_objects.wait_synced()
        if self.operator is not None:
            await self.operator.wait_first_list()

    async def _catch_up(self, lease_version: str, stop: asyncio.Event) -> None:
        """Wait until all that the leader before us has bound is known, or told to stop."""
        sleep = self.deciding.swap.executor.sleep
        waiting = asyncio.ensure_future(catch_up(self.watches.of_decisions, lease_version, sleep))
        await done_before(stop, waiting, cancel=True)

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
        if self.ready:
            self.checks.debugger.tell()

    async def _collect_outcomes(self) -> float:
        self.acting.reports.recent.collect()
        return COLLECT_S

    # --- services to the parts ----------------------------------------------------------------

    def _not_ready(self) -> str | None:
        return None if self.ready else "the first lists are not complete"

    def _not_leading_any_more(self) -> str | None:
        lost = self.leadership is not None and self.leadership.is_lost
        return "the leadership was lost" if lost else None

    def _leads(self) -> bool:
        """Tell whether this process schedules."""
        return self.leadership is None or self.leadership.is_leading

    def _is_at_rest(self) -> bool:
        """Tell whether nothing is being scheduled here; on a standby that is always so."""
        return not self._leads() or not (
            self.acting.bindings.in_flight or self.known.pods.queue.counts().active
        )
