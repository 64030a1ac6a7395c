"""The services of plugins in a replay: the state of the journal, and the answers recorded in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plugins.framework.status import Code, Status
from scheduler.offline.offline_framework import NoClaimWriter, NoPreemption, OfflineServices

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from cache.objects import Pod
    from cache.pod_info import PodInfo
    from plugins.framework.node_metrics import MetricReading
    from plugins.framework.victims import Victims
    from scheduler.journal.replayed_state import ReplayedState


class Answers:
    """What was recorded of one decision.

    Attributes
    ----------
    now_s
        The time of the decision, in seconds since the epoch.
    others
        What was asked, or chosen, other than what was recorded: empty in an equal replay.
    """

    def __init__(self, reads: Sequence[Sequence[Any]] = (), now_s: float = 0.0) -> None:
        self.now_s = now_s
        self.others: list[str] = []
        self._by_kind: dict[str, list[Sequence[Any]]] = {}
        for read in reads:
            self._by_kind.setdefault(read[0], []).append(read[1:])

    def next(self, kind: str) -> Sequence[Any] | None:
        """Return the next answer of a kind, or None."""
        left = self._by_kind.get(kind)
        return left.pop(0) if left else None

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
    """

    def __init__(self, state: ReplayedState) -> None:
        super().__init__(state.cluster)
        self._state = state
        self.answers = Answers()
        self.preemption = ReplayedPreemption(self)
        self.claim_writer = ReplayedClock(self)
        self.node_metrics = self

    def latest(self, name: str) -> MetricReading | None:
        """Return a node metric's reading at the time of the decision."""
        return self._state.metrics.get(name)

    def live_pod(self, namespace: str, name: str) -> Pod | None:
        """Return the pod that was returned then."""
        read = self.answers.next("pod")
        if read is None or list(read[:2]) != [namespace, name]:
            self.answers.others.append(f"pod {namespace}/{name} was asked for")
            return None
        found: Pod | None = self._state.decoder.object(read[2])
        return found

    def wall(self) -> float:
        """Return the time of the decision."""
        return self.answers.now_s

    def avoided(self, _: Pod) -> Mapping[str, float]:
        """Return the nodes that the pod was to avoid."""
        read = self.answers.last("avoided")
        found: Mapping[str, float] = {} if read is None else read[0]
        return found


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
