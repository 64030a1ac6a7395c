"""The services of plugins in a replay: the state of the journal, and the answers recorded in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from plugins.authoring.guard import ABSENT
from plugins.default_preemption import EVERYTHING, DefaultPreemption, Extent
from plugins.dynamic_resources import DynamicResources
from plugins.framework.attempt_budget import UNLIMITED, AttemptBudget, ReplayedBudget
from plugins.framework.status import Code, Status
from scheduler.journal.records import OFF, RESERVE, SEARCHED, SPENT, TIMEOUT
from scheduler.offline.offline_framework import NoClaimWriter, NoPreemption, OfflineServices
from scheduler.user_plugins.containment.guard import PluginFailedError
from scheduler.user_plugins.containment.plugin_code import PluginCode
from scheduler.user_plugins.plugin_errors import told

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from cache.objects import Pod
    from cache.pod_info import PodInfo
    from plugins.authoring.adapter import PolicyPlugin
    from plugins.authoring.guard import Absent
    from plugins.framework.node_metrics import MetricReading
    from plugins.framework.victims import Victims
    from scheduler.cycle.soft_reserve import Sizes
    from scheduler.journal.replayed_state import ReplayedState
    from scheduler.runtime.framework_runner import FrameworkRunner

T = TypeVar("T")


class Answers:
    """What was recorded of one decision.

    Attributes
    ----------
    now_s
        The time of the decision, in seconds since the epoch.
    others
        What was asked, or chosen, other than what was recorded: empty in an equal replay.
    off
        Why calls into users' plugins were not made, by plugin and method.
    """

    def __init__(self, reads: Sequence[Sequence[Any]] = (), now_s: float = 0.0) -> None:
        self.now_s = now_s
        self.others: list[str] = []
        self._by_kind: dict[str, list[Sequence[Any]]] = {}
        for read in reads:
            self._by_kind.setdefault(read[0], []).append(read[1:])
        self.off: Mapping[tuple[str, str], str] = {
            (plugin, point): why for plugin, point, why in self._by_kind.get(OFF, ())
        }

    def next(self, kind: str) -> Sequence[Any] | None:
        """Return the next answer of a kind, or None."""
        left = self._by_kind.get(kind)
        return left.pop(0) if left else None

    def has(self, kind: str, *told: Any) -> bool:
        """Return whether there is an answer of a kind that tells this."""
        return list(told) in map(list, self._by_kind.get(kind, ()))

    def budget(self) -> AttemptBudget:
        """Return a budget of a group that decides what was decided by time then."""
        read = self.last(SPENT)
        if read is None:
            return UNLIMITED
        limit_s, ran_out_at, late_at = read
        return ReplayedBudget(limit_s, ran_out_at, dict(late_at))

    def last(self, kind: str) -> Sequence[Any] | None:
        """Return the last answer of a kind, however often it is asked for, or None."""
        left = self._by_kind.get(kind)
        return left[-1] if left else None


class ReplayedServices(OfflineServices):
    """The services for the plugins of replayed profiles.

    Attributes
    ----------
    answers
        What was recorded of the current decision.
    before_post_filter
        Called when preemption begins within a decision.
    """

    def __init__(self, state: ReplayedState) -> None:
        super().__init__(state.cluster)
        self.nominations = state.cluster.nominator.frozen
        self._state = state
        self.answers = Answers()
        self.before_post_filter: Callable[[], object] = lambda: None
        self.preemption = ReplayedPreemption(self)
        self.claim_writer = ReplayedClock(self)
        self.node_metrics = self

    def latest(self, name: str) -> MetricReading | None:
        """Return a node metric's reading at the time of the decision."""
        return self._state.metrics.get(name)

    def live_pod(self, namespace: str, name: str) -> Pod | None:
        """Return the pod that was returned then."""
        self.before_post_filter()
        read = self.answers.next("pod")
        if read is None or list(read[:2]) != [namespace, name]:
            self.answers.others.append(f"pod {namespace}/{name} was asked for")
            return None
        found: Pod | None = self._state.decoder.object(read[2])
        return found

    def wall(self) -> float:
        """Return the time of the decision."""
        return self.answers.now_s

    def extent(self) -> Extent:
        """Return what a search for candidates looked at then."""
        read = self.answers.next(SEARCHED)
        return EVERYTHING if read is None else Extent(*read)

    def has_timed_out(self, pod_uid: str, node_name: str) -> bool:
        """Return whether a search for the devices of a pod took too long then."""
        return self.answers.has(TIMEOUT, pod_uid, node_name)

    def follow(self, framework: FrameworkRunner) -> None:
        """Let the plugins of a profile decide by the time of the decision, not by that of now."""
        for plugin in framework.plugins:
            if hasattr(plugin, "wall_clock"):
                plugin.wall_clock = self.wall
            if isinstance(plugin, DefaultPreemption):
                plugin.candidate_search.extent = self.extent
            if isinstance(plugin, DynamicResources):
                plugin.search_times.clock = self.wall
                plugin.search_times.has_timed_out = self.has_timed_out

    def avoided(self, _: Pod) -> Mapping[str, float]:
        """Return the nodes that the pod was to avoid."""
        read = self.answers.last("avoided")
        found: Mapping[str, float] = {} if read is None else read[0]
        return found


class ReplayedRates:
    """Returns what others had bound, and how often on which nodes, at the time of the decision."""

    def __init__(self, services: ReplayedServices) -> None:
        self._services = services

    def is_any(self) -> bool:
        """Return whether it was asked for then."""
        return self._services.answers.last("foreign") is not None

    def rates(self, node_names: Sequence[str]) -> Sequence[float]:
        """Return what was returned then; 0 for a node that was not asked about."""
        read = self._services.answers.last("foreign")
        by_node: Mapping[str, float] = {} if read is None else read[0]
        return [by_node.get(name, 0.0) for name in node_names]

    def sizes(self) -> Sizes:
        """Return the sizes that were returned then; empty if no room was left to others."""
        read = self._services.answers.last(RESERVE)
        found: Sizes = {} if read is None else read[0]
        return found


class ReplayedGuard:
    """Skips the calls into a user's plugin that were skipped then, and tells of failures alike.

    A plugin that failed or was slow is switched off for a while: that depends on time.
    """

    def __init__(self, plugin: PolicyPlugin, services: ReplayedServices) -> None:
        self._inner = plugin.guard
        self._file = PluginCode.of(plugin.policy).file
        self._services = services
        self._off: Mapping[tuple[str, str], str] = {}
        self._changes = 0

    @property
    def calls(self) -> int:
        """A counter that grows when other calls are skipped than before."""
        off = self._services.answers.off
        if off != self._off:
            self._off = off
            self._changes += 1
        return self._changes

    def call(self, plugin: str, point: str, function: Callable[[], T]) -> T | Absent:
        """Return what the function returns, unless it was not called then."""
        why = self._services.answers.off.get((plugin, point))
        if why is None:
            try:
                return self._inner.call(plugin, point, function)
            except Exception as error:
                raise PluginFailedError(f"{point}: {told(error, self._file)}") from error
        if why:
            raise PluginFailedError(why)
        return ABSENT


class ReplayedClock(NoClaimWriter):
    """Writes nothing; its clock shows the time of the decision."""

    def __init__(self, services: ReplayedServices) -> None:
        self._services = services

    def now_s(self) -> float:
        """Return the time of the decision, in seconds since the epoch."""
        return self._services.wall()


class ReplayedPreemption(NoPreemption):
    """Evicts no pods, and compares the victims with those that were evicted."""

    def __init__(self, services: ReplayedServices) -> None:
        self._services = services

    def leaving(self) -> Collection[str]:
        """Return the chosen victims that no watch had shown to be leaving."""
        read = self._services.answers.next("leaving")
        return () if read is None else read[0]

    def start(self, info: PodInfo, node_name: str, victims: Victims, plugin: str) -> Status:
        """Return what was returned then."""
        answers = self._services.answers
        read = answers.next("start")
        uids = [each.uid for each in victims.pods]
        if read is None or list(read[:3]) != [node_name, uids, victims.pdb_violations]:
            answers.others.append(f"other victims: {uids} on {node_name}, then {read and read[:3]}")
        if read is None:
            return Status(Code.ERROR, ("nobody was evicted then",))
        code, *reasons = read[3:]
        return Status(Code(code), tuple(reasons))
