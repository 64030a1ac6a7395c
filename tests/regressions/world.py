"""The scheduler's real parts put together as in :mod:`scheduler.app`, without threads or sockets.

Whatever happens, happens in a step of a scenario: cycles run when they are called, time stands
still until it is moved, and the watches tell what :class:`~tests.regressions.cluster.Cluster`
lets them tell. What is asynchronous (bindings, evictions, statuses) gets its turns in
:meth:`World.settle`.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING
from unittest.mock import patch

from cache.disruption_budgets import DisruptionBudgets
from cache.namespaces import Namespaces
from cache.scheduler_cache import SchedulerCache
from cache.snapshot import Snapshot
from cache.storage import Storage
from cache.workloads import Workloads
from plugins.registry import PLUGINS
from scheduler.binder import Binder
from scheduler.binding_cycle import MAX_BINDING, BindingCycles
from scheduler.binding_slots import BindingSlots
from scheduler.config import default_config, effective_profiles
from scheduler.event_handlers import EventHandlers
from scheduler.event_recorder import EventRecorder
from scheduler.eviction import Evictor
from scheduler.extension_points import points_of
from scheduler.failure_handler import FailureHandler
from scheduler.host_selection import HostSelector
from scheduler.informers.store import Delta, Store
from scheduler.kubelet_rejections import KubeletRejections
from scheduler.lost_events import LostEvents
from scheduler.metrics import Metrics
from scheduler.nominated_nodes import NominatedNodes
from scheduler.plugin_handle import PluginHandle
from scheduler.pod_status_writer import PodStatusWriter
from scheduler.policy.profile_swap import ProfileSwap
from scheduler.preemption_executor import PreemptionExecutor
from scheduler.profile_builder import build_profiles
from scheduler.queueing import SchedulingQueue
from scheduler.reaper import Reaper
from scheduler.schedule_one import SchedulingLoop
from scheduler.scheduling_cycle import SchedulingCycle
from scheduler.storage_writer import StorageWriter
from scheduler.waiting_pods import WaitingPods
from tests.fakes.clock import FakeClock
from tests.fakes.object_api import FakeObjectApi
from tests.fakes.write_api import FakeWriteApi
from tests.regressions.bystander import Bystander, Judge, made_for
from tests.regressions.cluster import Cluster
from tests.regressions.watched_store import WatchedStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Self

    from cache.objects import Node, Pod
    from plugins.framework.cluster_events import EventRegistration, Hint, HintFunction
    from plugins.framework.interfaces import Plugin
    from plugins.framework.status import Status
    from scheduler.profiles import Profiles

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


class World:
    """A cluster and a scheduler for it.

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

    def __init__(self) -> None:
        self.tried: str | None = None
        self.questions = 0
        self.busy_loop = False
        self._handed_over: list[Callable[[], None]] = []
        self.has_died = False
        self._patches = ExitStack()
        self.clock = FakeClock()
        self.cluster = Cluster(self.wall_clock)
        self.pods: Store[Pod] = Store()
        self.nodes: Store[Node] = Store()
        self._make_parts(asyncio.get_running_loop(), random.Random(1))

    def wall_clock(self) -> float:
        """Return seconds since the epoch."""
        return EPOCH_S + self.clock()

    def _make_parts(self, loop: asyncio.AbstractEventLoop, rng: random.Random) -> None:
        clock, cluster, metrics = self.clock, self.cluster, Metrics()
        self.cache = SchedulerCache()
        self.waiting_pods = WaitingPods()
        budgets = DisruptionBudgets()
        slots = BindingSlots(MAX_BINDING)
        handle = PluginHandle(
            binder=Binder(
                cluster,
                rng,
                _no_wait,
                slots=slots,
                on_abandoned=metrics.binding_abandoned,
                clock=clock,
            ),
            namespaces=Namespaces(),
            workloads=Workloads(),
            disruption_budgets=budgets,
            storage=Storage(),
            storage_writer=StorageWriter(FakeObjectApi(), rng, _no_wait),
            waiting_pods=self.waiting_pods,
            live_node=lambda name: self.nodes.get("", name),
            cached_node=self.cache.node_info,
        )
        self._handle = handle
        profiles = self._profiles = self._build_profiles(PROFILE)
        self.bystander = made_for(profiles, Bystander)
        self.judge = made_for(profiles, Judge)
        self.queue = SchedulingQueue(
            clock=clock,
            sort_key=profiles.sort_key,
            pre_enqueue=self._counted_gate(profiles.pre_enqueue),
            registrations=self._counted_hints(profiles.registrations),
        )
        self._recorder = EventRecorder(
            loop, FakeWriteApi(), instance="test", wall_clock=self.wall_clock, sleep=_no_wait
        )
        rejections = KubeletRejections(self._recorder, metrics, clock)
        self._handlers = EventHandlers(
            self.cache, self.queue, profiles, self.waiting_pods, metrics, rejections.see
        )
        self._swap = ProfileSwap(loop, profiles, self.queue, self._handlers, self.pods.objects)
        self._writer = PodStatusWriter(
            loop,
            cluster,
            self.cache.is_placed_pod,
            clock=clock,
            wall_clock=self.wall_clock,
            rng=rng,
            sleep=_no_wait,
        )
        failures = FailureHandler(
            self.queue, self.pods.get, self._recorder, self._writer, metrics, clock
        )
        self.bindings = BindingCycles(
            loop,
            self.cache,
            self.queue,
            self.waiting_pods,
            failures,
            self._recorder,
            metrics,
            clock,
            self._writer,
            slots,
        )
        evictor = Evictor(
            cluster,
            self.pods.get,
            self.bindings.turn_back,
            rng,
            wall_clock=self.wall_clock,
            sleep=_no_wait,
        )
        self.preemptions = PreemptionExecutor(
            loop, evictor, self.pods.get, self.queue, self._writer, self._recorder, metrics, clock
        )
        handle.start(preemption=self.preemptions, queue=self.queue, live_pod=self.pods.get)
        profiles.count_nominated(NominatedNodes(self.queue.nominator))
        self.scheduling = SchedulingLoop(
            loop,
            self.cache,
            self.queue,
            profiles,
            SchedulingCycle(Snapshot(), HostSelector(1), rejections),
            self.bindings,
            self.waiting_pods,
            failures,
            self._recorder,
            metrics,
            cpu_clock=self.bystander.cpu,
        )
        self.reaper = Reaper(
            self.cache,
            self.queue,
            cluster.pod,
            lambda: False,
            metrics,
            clock,
            on_loop=self._when_the_loop_is_free,
        )
        self.watched = (
            WatchedStore("nodes", self.nodes, cluster, self._handlers.on_nodes),
            WatchedStore("pods", self.pods, cluster, self._handlers.on_pods),
        )
        self.lost_events = LostEvents(
            self.watched,  # type: ignore[arg-type]
            self._handlers,
            metrics,
            lambda: True,
            sleep=_no_wait,
        )

    def _build_profiles(self, scheduler_name: str) -> Profiles:
        (effective,) = effective_profiles(default_config(scheduler_name))
        points = {
            point: (*_named(Judge, point), *names, *_named(Bystander, point))
            for point, names in effective.points.items()
        }
        known: dict[str, type[Plugin]] = {
            **PLUGINS,
            Bystander.name: Bystander,
            Judge.name: Judge,
        }
        return build_profiles([replace(effective, points=points)], known, self._handle)

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

    def serve(self, scheduler_name: str) -> None:
        """Put the default profile for a schedulerName in place of the one that there is."""
        self._swap(list(self._build_profiles(scheduler_name)))

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

    def _when_the_loop_is_free(self, call: Callable[[], None]) -> None:
        if self.busy_loop:
            self._handed_over.append(call)
        else:
            call()

    def hear(self) -> bool:
        """Hand over what the watches tell; return whether there was anything."""
        heard = False
        for event_type, node in self.cluster.take_events("nodes"):
            changed: list[Delta[Node]] = []
            self.nodes.apply(event_type, node, changed)
            self._handlers.on_nodes(changed)
            heard = True
        for event_type, pod in self.cluster.take_events("pods"):
            moved: list[Delta[Pod]] = []
            self.pods.apply(event_type, pod, moved)
            self._handlers.on_pods(moved)
            heard = True
        return heard

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
        self, registrations: Callable[[str], Mapping[str, Sequence[EventRegistration]]]
    ) -> Callable[[str], Mapping[str, Sequence[EventRegistration]]]:
        def counted(hint: HintFunction) -> HintFunction:
            def ask(pod: Pod, old: object, new: object) -> Hint:
                self.questions += 1
                return hint(pod, old, new)

            return ask

        def all_counted(profile: str) -> Mapping[str, Sequence[EventRegistration]]:
            return {
                plugin: tuple(
                    each if each.hint is None else replace(each, hint=counted(each.hint))
                    for each in wanted
                )
                for plugin, wanted in registrations(profile).items()
            }

        return all_counted
