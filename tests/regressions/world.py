"""The parts as :mod:`scheduler.assembly` puts them together, without threads or sockets.

Whatever happens, happens in a step of a scenario: cycles run when they are called, time stands
still until it is moved, and the watches tell what :class:`~tests.regressions.cluster.Cluster`
lets them tell. What is asynchronous (bindings, evictions, statuses) gets its turns in
:meth:`World.settle`.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import ExitStack
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar
from unittest.mock import patch

from msgspec.structs import replace

from plugins.registry import PLUGINS
from scheduler.assembly import Setting, assemble
from scheduler.config import default_config, effective_profiles
from scheduler.config.extension_points import points_of
from scheduler.event_handlers.lost_events import LostEvents
from scheduler.informers.store import Store
from scheduler.metrics import Metrics
from scheduler.options import Options
from scheduler.process.ports import Clock, Ports
from tests.fakes.clock import FakeClock
from tests.fakes.ports import FakeExecutor
from tests.profiles import build_profiles
from tests.regressions.bystander import Bystander, Judge, made_for
from tests.regressions.cluster import Cluster
from tests.regressions.other_watches import watch_others
from tests.regressions.watched_store import WatchedStore

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence
    from typing import Self

    from cache.objects import Pod
    from plugins.framework.cluster_events import EventRegistration, Hint, HintFunction
    from plugins.framework.interfaces import Plugin
    from plugins.framework.status import Status
    from scheduler.event_handlers.other_objects import OtherObjects
    from scheduler.event_handlers.pods_and_nodes import EventHandlers
    from scheduler.journal import Journal
    from scheduler.runtime.profile_map import Profiles

T = TypeVar("T")

PASSES = 60
"""Turns of the loop between two looks at the watches. Nothing here waits for anything but the
loop, and no chain of requests is as long as this."""

PROFILE = "berth"
"""The schedulerName of all pods."""

EPOCH_S = 1_767_225_600.0
"""The time when a scenario starts: 2026-01-01."""


def _named(plugin: type[Plugin], point: str) -> tuple[str, ...]:
    return (plugin.name,) if point in points_of(plugin) else ()


async def _no_wait(seconds: float) -> None:
    await asyncio.sleep(0)


class WorldExecutor(FakeExecutor):
    """Runs everything on the loop, and pauses take no time."""

    def __init__(self, world: World) -> None:
        super().__init__(_no_wait, world.when_the_loop_is_free)

    def wait_on_loop(self, coroutine: Coroutine[Any, Any, T], timeout_s: float) -> T:
        """Run a coroutine at once: it only asks the cluster, and nothing there takes time."""
        while True:
            try:
                coroutine.send(None)
            except StopIteration as ended:
                return ended.value


@dataclass(frozen=True)
class WorldWatches:
    """The watches: see :class:`scheduler.informers.watched.Watched`."""

    nodes: WatchedStore
    pods: WatchedStore
    all: tuple[WatchedStore, ...]


class World:
    """A cluster and a scheduler for it.

    Parameters
    ----------
    make_cluster
        Makes the cluster, given its clock.

    Attributes
    ----------
    tried
        UID of the pod of the last cycle; None when there was no pod to try.
    has_died
        The scheduling thread would have ended.
    questions
        How often a plugin was asked about a gate or an event since this was set to 0.
    busy_loop
        Whether what other threads hand to the loop has to wait.

    Notes
    -----
    *Concurrency*: everything on one loop; use it as an asynchronous context.
    """

    def __init__(self, make_cluster: Callable[[Callable[[], float]], Cluster] = Cluster) -> None:
        self.tried: str | None = None
        self.questions = 0
        self.busy_loop = False
        self._handed_over: list[Callable[[], None]] = []
        self.has_died = False
        self._patches = ExitStack()
        self.clock = FakeClock()
        self.cluster = make_cluster(self.wall_clock)
        self._make_parts()

    def make_journal(self) -> Journal | None:
        """Return the journal of the scheduler, if it has one."""
        return None

    def wall_clock(self) -> float:
        """Return seconds since the epoch."""
        return EPOCH_S + self.clock()

    def _make_parts(self) -> None:
        clock = Clock(self.clock, self.wall_clock, self._cpu)
        ports = Ports(self.cluster, WorldExecutor(self), clock, random.Random(1))
        self.metrics = Metrics()
        setting = Setting(
            default_config(PROFILE),
            Options(seed=1, identity="test"),
            self.metrics,
            journal=self.make_journal(),
        )
        parts = assemble(ports, self._watch, setting)
        self.cache, self.queue = parts.known.pods.cache, parts.known.pods.queue
        # No thread waits for pods here: what budgets earn by is time itself.
        self.queue._accounts._cpu_clock = None
        self.waiting_pods = parts.known.pods.waiting
        self.bindings, self.preemptions = parts.acting.bindings, parts.acting.preemptions
        self.reaper, self.scheduling = parts.acting.reaper, parts.deciding.loop
        self.held_groups = parts.acting.groups.rounds.held
        self._recorder, self._writer = parts.acting.reports.events, parts.acting.reports.statuses
        self._services, self._swap = parts.deciding.services, parts.deciding.swap
        self.watched = parts.known.watched.all
        handlers = parts.known.handlers
        self.lost_events = LostEvents(
            ports, lambda: self.watched, handlers, setting.metrics, lambda: True
        )
        profiles = self._build_profiles(PROFILE)
        self.bystander = made_for(profiles, Bystander)
        self.judge = made_for(profiles, Judge)
        self._swap(list(profiles))

    def _cpu(self) -> float:
        """Return the CPU seconds that the bystander has used."""
        return self.bystander.cpu()

    def _watch(self, handlers: EventHandlers, others: OtherObjects) -> WorldWatches:
        nodes = WatchedStore("nodes", Store(), self.cluster, handlers.on_nodes)
        pods = WatchedStore("pods", Store(), self.cluster, handlers.on_pods)
        return WorldWatches(nodes, pods, (*watch_others(self.cluster, others), nodes, pods))

    def _build_profiles(self, scheduler_name: str, without: str = "") -> Profiles:
        (effective,) = effective_profiles(default_config(scheduler_name))
        points = {
            point: (
                *_named(Judge, point),
                *(name for name in names if name != without),
                *_named(Bystander, point),
            )
            for point, names in effective.points.items()
        }
        known: dict[str, type[Plugin]] = {
            **PLUGINS,
            Bystander.name: Bystander,
            Judge.name: Judge,
        }
        profiles = build_profiles([replace(effective, points=points)], known, self._services)
        for framework in profiles:
            gate, registrations = framework.pre_enqueue, framework.event_registrations
            framework.pre_enqueue = self._counted_gate(gate)  # type: ignore[method-assign]
            framework.event_registrations = (  # type: ignore[method-assign]
                self._counted_hints(registrations)
            )
        return profiles

    async def __aenter__(self) -> Self:
        self._recorder.start()
        self._writer.start()
        # Preemption asks the wall clock itself whether a victim is late.
        now = SimpleNamespace(time=self.wall_clock)
        self._patches.enter_context(patch("plugins.default_preemption.plugin.time", now))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._patches.close()
        await self._recorder.stop()
        await self._writer.stop()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    # --- what happens -------------------------------------------------------------------------

    def cycle(self) -> None:
        """Try the pod whose turn it is, if there is one and the thread has not died."""
        queued = None if self.has_died else self.queue.pop(timeout_s=0)
        self.tried = None if queued is None else queued.info.uid
        if queued is not None:
            try:
                self.scheduling.attempt(queued)
            except Exception:  # noqa: BLE001 - as the thread would end by whatever it is
                self.has_died = True

    def serve(self, scheduler_name: str, without: str = "") -> None:
        """Put the default profile for a schedulerName, or all of it but one plugin, in place."""
        profiles = self._build_profiles(scheduler_name, without)
        self._swap(list(profiles))
        self.bystander = made_for(profiles, Bystander).in_place_of(self.bystander)
        self.judge = made_for(profiles, Judge)

    def break_next(self, what: str) -> None:
        """Let a step of the scheduler's own raise an exception the next time."""
        owner, attribute = {
            "hand-over": (self.scheduling._watch, "end"),
            "report": (self._recorder, "event"),
        }[what]
        real = getattr(owner, attribute)

        def broken(*args: object, **more: object) -> None:
            setattr(owner, attribute, real)
            raise RuntimeError("as the scenario wants it")

        setattr(owner, attribute, broken)

    def advance(self, seconds: float) -> None:
        """Let time pass, and the reaper have a round at its end."""
        self.clock.advance(seconds)
        self.reaper.round()
        self.held_groups.round()

    def look(self) -> None:
        """Look for events that the watches have lost, until the next step."""
        self._looking = asyncio.get_running_loop().create_task(self._look())

    async def _look(self) -> None:
        await self.lost_events.round()

    def restore(self) -> None:
        """Let etcd go back to its backup, and all watches find out."""
        self.cluster.restore()
        for each in self.watched:
            each.restored()

    def free_loop(self) -> None:
        """Do what other threads have handed to the loop, and what they hand to it from now on."""
        self.busy_loop = False
        calls, self._handed_over = self._handed_over, []
        for call in calls:
            call()

    def when_the_loop_is_free(self, call: Callable[[], None]) -> None:
        """Do what another thread hands to the loop, unless that is busy."""
        if self.busy_loop:
            self._handed_over.append(call)
        else:
            call()

    def hear(self) -> bool:
        """Hand over what the watches tell; return whether there was anything."""
        return sum(each.hear() for each in self.watched) > 0

    async def settle(self) -> None:
        """Let everything that is under way come to its end, or to where it is held."""
        while True:
            heard = self.hear()
            for _ in range(PASSES):
                await asyncio.sleep(0)
            if not heard and not self.hear():
                return

    # --- how often plugins are asked ----------------------------------------------------------

    def _counted_gate(self, ask: Callable[[Pod], Status]) -> Callable[[Pod], Status]:
        def counted(pod: Pod) -> Status:
            self.questions += 1
            return ask(pod)

        return counted

    def _counted_hints(
        self, registrations: Callable[[], Mapping[str, Sequence[EventRegistration]]]
    ) -> Callable[[], Mapping[str, Sequence[EventRegistration]]]:
        def counted(hint: HintFunction) -> HintFunction:
            def ask(pod: Pod, old: object, new: object) -> Hint:
                self.questions += 1
                return hint(pod, old, new)

            return ask

        def all_counted() -> Mapping[str, Sequence[EventRegistration]]:
            return {
                plugin: tuple(
                    each if each.hint is None else replace(each, hint=counted(each.hint))
                    for each in wanted
                )
                for plugin, wanted in registrations().items()
            }

        return all_counted
