"""A replica of Berth in a simulation: the real parts, put together as :mod:`scheduler.app` does.

What is absent is what meets the outside in other ways than the API server: the HTTP server, users'
plugins and profiles at run time, the journal, and the process that answers questions.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from plugins.registry import PLUGINS
from scheduler import kinds
from scheduler.assembly import Setting, assemble
from scheduler.checks import make_checks
from scheduler.client.api import Api
from scheduler.client.connections import election_transport, scheduling_transport
from scheduler.client.credentials import Credentials
from scheduler.config import default_config, effective_profiles
from scheduler.event_handlers.catching_up import catch_up
from scheduler.event_handlers.watches import Watches
from scheduler.informers.reflector_options import ReflectorOptions
from scheduler.leader_election import leadership_of
from scheduler.metrics import Metrics
from scheduler.options import Options
from scheduler.process.ports import Ports
from scheduler.process.stopping import done_before
from scheduler.shutdown import Shutdown
from tests.profiles import build_profiles
from tests.storm.machine import SimExecutor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scheduler.event_handlers.other_objects import OtherObjects
    from scheduler.event_handlers.pods_and_nodes import EventHandlers
    from tests.storm.extras.extra import Extra
    from tests.storm.machine import Machine

PROFILE: Final = "berth"
SETTLE_S: Final = 5.0
HANDOVER_S: Final = 1.0

KINDS: Final = (
    kinds.NAMESPACES,
    kinds.SERVICES,
    kinds.REPLICA_SETS,
    kinds.POD_DISRUPTION_BUDGETS,
    kinds.STORAGE_CLASSES,
    kinds.CSI_DRIVERS,
    kinds.CSI_NODES,
    kinds.CSI_STORAGE_CAPACITIES,
    kinds.PERSISTENT_VOLUMES,
    kinds.PERSISTENT_VOLUME_CLAIMS,
)


class Replica:
    """One process of Berth, from its start to its end.

    Parameters
    ----------
    machine
        The process.
    on_exit
        Called with the exit status when it ends by itself.
    extras
        What it watches besides :data:`KINDS`, and where its profiles come from.

    Attributes
    ----------
    live
        What changes its profiles; None for those that never change.
    is_ready
        All first lists are complete.
    began_behind_s
        When it began to schedule though it may not know all that the leader before has done.
    """

    def __init__(
        self,
        machine: Machine,
        on_exit: Callable[[Replica, int], None],
        extras: Sequence[Extra] = (),
    ) -> None:
        self.machine = machine
        self.name = machine.name
        self.is_ready = False
        self.is_scheduling = False
        self.began_behind_s = -1e9
        self.status: int | None = None
        self._on_exit = on_exit
        self._extras = extras
        self.live: Any = None
        self._is_dying = False
        self.is_told_to_end = False
        self.stop = asyncio.Event()
        machine.on_death = lambda name, error: self._die()
        self._make_parts()
        self._main = machine.loop.create_task(self._run(), name="main")

    def _die(self) -> None:
        self._is_dying = True
        self.machine.loop.call_soon_threadsafe(self.stop.set)

    def terminate(self) -> None:
        """End in order, as SIGTERM asks for."""
        self.is_told_to_end = True
        self.machine.loop.call_soon_threadsafe(self.stop.set)

    # --- as scheduler.app does ----------------------------------------------------------------

    def _make_parts(self) -> None:
        machine, clock = self.machine, self.machine.clock
        self.config = default_config(PROFILE)
        self.metrics = Metrics()
        own = filter(None, (each.credentials(machine) for each in self._extras))
        credentials = next(own, None) or Credentials("http://api", clock=clock.monotonic)
        self._electing = election_transport(credentials, clock=clock.monotonic)
        self.leadership = leadership_of(
            self.config,
            self.name,
            self._electing,
            lambda: self.api.writes_in_flight,
            machine.rng,
            str,
            clock=clock.monotonic,
            wall_clock=clock.wall,
        )
        self.transport = scheduling_transport(
            credentials,
            self.config.client_connection,
            self.leadership.grant_s,
            clock=clock.monotonic,
        )
        self.api = Api(self.transport)
        self.executor = SimExecutor(machine)
        ports = Ports(self.api, self.executor, clock, machine.rng)
        options = Options(
            seed=machine.simulation.seed,
            identity=self.name,
            comparison_period_s=0.0,
            api_comparison_period_s=60.0,
        )
        setting = Setting(self.config, options, self.metrics)
        self.parts = parts = assemble(ports, self._watch, setting)
        self.known, self.acting, self.deciding = parts.known, parts.acting, parts.deciding
        self.watches = self.known.watched
        self.cache, self.queue = self.known.pods.cache, self.known.pods.queue
        self.live = next(filter(None, (each.make_profiles(self) for each in self._extras)), None)
        if self.live is None:
            (effective,) = effective_profiles(self.config)
            profiles = build_profiles([effective], PLUGINS, self.deciding.services)
            self.deciding.swap(list(profiles))
        self.shutdown = Shutdown(ports, self.known.pods, self.deciding.loop, self.acting)
        self.checks = make_checks(ports, parts, setting, self.leads, self._is_at_rest)

    def _watch(self, handlers: EventHandlers, others: OtherObjects) -> Watches:
        options = ReflectorOptions(clock=self.machine.clock.monotonic, rng=self.machine.rng)
        for extra in self._extras:
            options = extra.reading(options)
        died = self.machine.died
        kinds = [*KINDS, *(kind for extra in self._extras for kind in extra.KINDS)]
        return Watches(self.transport, kinds, handlers, others, on_death=died, options=options)

    def leads(self) -> bool:
        """Whether this process schedules."""
        return self.leadership.is_leading

    def _is_at_rest(self) -> bool:
        return not self.leads() or not (
            self.acting.bindings.in_flight or self.queue.counts().active
        )

    async def _run(self) -> None:
        reports, groups = self.acting.reports, self.acting.groups
        reports.events.start()
        reports.statuses.start()
        groups.statuses.start()
        self.watches.start()
        if self.live is not None:
            self.live.start()
        try:
            status = await self._lead()
        except Exception as error:  # noqa: BLE001 - a mistake: the process would end by it
            self.machine.died("main", error)
            status = 1
        # Not in a `finally`: a process that is killed does nothing more.
        await self.leadership.stop()
        await self.checks.stop()
        await groups.rounds.stop()
        await self.watches.stop()
        await reports.events.stop()
        await reports.statuses.stop()
        await groups.statuses.stop()
        await self.transport.close()
        await self._electing.close()
        self.status = 1 if self._is_dying else status
        self._on_exit(self, self.status)

    async def _lead(self) -> int:
        synced = asyncio.ensure_future(self.watches.wait_synced())
        if not await done_before(self.stop, synced, cancel=True):
            return 0
        self.is_ready = True
        self.checks.start()
        if not await self.leadership.win(self.stop):
            return 0
        await self._catch_up()
        self.acting.groups.statuses.lead()
        self.acting.groups.rounds.start()
        self.is_scheduling = True
        self.deciding.loop.start()
        self.acting.reaper.start()
        if await self.leadership.hold(self.stop):
            status = await self.shutdown.settle(HANDOVER_S)
            await self.leadership.hand_over(SETTLE_S)
            return status
        return await self.shutdown.abandon()

    async def _catch_up(self) -> None:
        version, sleep = self.leadership.version_to_know, self.executor.sleep
        waiting = asyncio.ensure_future(catch_up(self.watches.of_decisions, version, sleep))
        if not await done_before(self.stop, waiting, cancel=True) or not waiting.result():
            self.began_behind_s = self.machine.simulation.now_s

    # --- what can be asked --------------------------------------------------------------------

    def informers(self) -> tuple[Any, ...]:
        """Return the informers."""
        return tuple(self.watches.all)
