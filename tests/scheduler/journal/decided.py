"""Journals of decisions about any objects, made without an API server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from cache.pod_info import PodInfo
from plugins.framework.attempt_budget import UNLIMITED
from plugins.framework.cycle_state import CycleState
from plugins.registry import PLUGINS
from scheduler.config import default_config, effective_profiles
from scheduler.journal.forms import NODE, decision_form
from scheduler.journal.frames import FORMAT, Header, encode, file_name, frame, header_frame
from scheduler.journal.records import RecordEncoder
from scheduler.journal.replay import Replay, plain
from scheduler.journal.replayed_services import Answers, ReplayedServices
from scheduler.journal.replayed_state import ReplayedState
from scheduler.runtime.profile_builder import build_framework

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import msgspec

    from cache.objects import Node, Pod
    from scheduler.config import EffectiveProfile

NOW_S: Final = 1_764_000_000.0
PROFILE: Final = "berth"


def default_profile() -> EffectiveProfile:
    """Return the profile that decides, unless another one is given."""
    (profile,) = effective_profiles(default_config(PROFILE))
    return profile


class DecidedJournal:
    """A journal of one file: what is known first, then one decision after another.

    Nobody is evicted: a pod that might preempt others does not.
    """

    def __init__(self, profile: EffectiveProfile | None = None) -> None:
        services = ReplayedServices(ReplayedState())
        framework = build_framework(profile or default_profile(), 0, PLUGINS, services)
        self._encoder = RecordEncoder()
        self._replay = Replay(PLUGINS)
        self._records: list[list[Any]] = []
        self._count = 0
        self._add("config", (1, (framework,)))
        self._add("cut", [])

    def _add(self, what: str, subject: Any, more: str = "") -> None:
        self._encoder.add((what, subject, more))
        for record in self._encoder.take():
            self._replay.take(record)
            self._records.append(record)

    def know(self, *objects: msgspec.Struct) -> None:
        """Record objects that are neither nodes nor pods."""
        for each in objects:
            self._add("object", ("", True, None, each))

    def nodes(self, nodes: Iterable[Node]) -> None:
        """Record nodes."""
        for node in nodes:
            self._add("node", node, node.metadata.name)

    def running(self, pods: Iterable[Pod]) -> None:
        """Record pods that have a node."""
        for pod in pods:
            self._add("add", PodInfo(pod), pod.spec.node_name)

    def decide(self, pod: Pod, *beside: list[Any]) -> list[Any]:
        """Decide about a pod, record it, and return the form of the decision.

        Parameters
        ----------
        beside
            What else was asked.
        """
        pod = replace(pod, spec=replace(pod.spec, preemption_policy="Never"))
        self._add("snapshot", None)
        self._count += 1
        number = self._encoder._objects.number(pod)
        for record in self._encoder.take():
            self._replay.take(record)
            self._records.append(record)
        reads = [["pod", pod.metadata.namespace, pod.metadata.name, number], *beside]
        asked = [self._count * 7919, 0, NOW_S, 1, reads]
        replay = self._replay
        replay.ties.begin(asked[0])
        replay.cycle.next_start = 0
        replay.services.answers = Answers(reads, NOW_S)
        framework = replay.profiles.get(1, PROFILE)
        assert framework is not None
        assert number is not None
        info = replay.state.info(number)
        decision = replay.cycle.decide(framework, CycleState(UNLIMITED), info)
        form: list[Any] = plain(decision_form(decision))
        self._records.append(["decision", asked, number, PROFILE, None, False, form, 0.0, 0.25])
        if form[NODE]:
            replay.settle()
            self._add("assume", info, form[NODE])
        return form

    def write(self, directory: Path) -> None:
        """Write the file."""
        directory.mkdir()
        header = Header(FORMAT, run="r", began_s=NOW_S)
        content = header_frame(header) + frame(encode(self._records))
        (directory / file_name(header)).write_bytes(content)
