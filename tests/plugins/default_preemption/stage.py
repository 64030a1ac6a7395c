"""A cluster in which DefaultPreemption is asked, with the real filters of the default profile."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from plugins.default_preemption import DefaultPreemption
from plugins.framework.cycle_state import CycleState
from plugins.framework.status import SUCCESS, Status
from plugins.registry import PLUGINS
from scheduler.config import default_config, effective_profiles
from scheduler.offline.cluster import Cluster
from scheduler.offline.offline_framework import OfflineServices
from scheduler.runtime.judgement import pre_filter, search
from scheduler.runtime.node_statuses import SearchStatuses
from scheduler.runtime.nominated_nodes import NominatedNodes
from scheduler.runtime.profile_builder import build_framework
from tests.builders import NodeBuilder, PodBuilder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cache.node_info import NodeInfo
    from cache.objects import Node, Pod
    from cache.pod_info import PodInfo
    from cache.snapshot import Snapshot
    from cache.workload_objects import PodDisruptionBudget
    from plugins.default_preemption import DefaultPreemptionArgs, Survey
    from plugins.default_preemption.candidates import Findings
    from plugins.framework.victims import Victims
    from scheduler.config import EffectiveProfile
    from scheduler.runtime.framework_runner import FrameworkRunner


@cache
def _profile() -> EffectiveProfile:
    (profile,) = effective_profiles(default_config())
    return profile


class RecordingPreemption:
    """Evicts nobody, and remembers who was to be evicted."""

    def __init__(self) -> None:
        self.running: set[str] = set()
        self.about_to_leave: set[str] = set()
        self.asked: dict[str, list[str]] = {}
        self.started: list[tuple[str, str, Victims]] = []
        self.answer: Status = SUCCESS
        self.extenders_leave: frozenset[str] | None = None
        self.extenders_fail = False

    @property
    def asks_extenders(self) -> bool:
        return self.extenders_leave is not None or self.extenders_fail

    def is_running(self, uid: str) -> bool:
        return uid in self.running

    def leaving(self) -> set[str]:
        return self.about_to_leave

    def start(self, info: PodInfo, node_name: str, victims: Victims, plugin: str) -> Status:
        self.started.append((info.key, node_name, victims))
        return self.answer

    def ask_extenders(
        self, info: PodInfo, candidates: Mapping[str, Victims], nodes: Mapping[str, NodeInfo]
    ) -> Mapping[str, Victims]:
        self.asked = {name: [info.name for info in each.pods] for name, each in candidates.items()}
        if self.extenders_fail:
            raise OSError("extender http://x: no answer")
        if self.extenders_leave is None:
            return candidates
        return {name: candidates[name] for name in candidates if name in self.extenders_leave}


class Stage:
    """One cluster, one profile and its DefaultPreemption.

    Attributes
    ----------
    preemption
        What the plugin lets be done.
    """

    def __init__(
        self,
        *objects: NodeBuilder | PodBuilder | PodDisruptionBudget,
        args: DefaultPreemptionArgs | None = None,
    ) -> None:
        self.cluster = Cluster()
        self.preemption = RecordingPreemption()
        for each in objects:
            if isinstance(each, NodeBuilder):
                self.add_node(each.build())
            elif isinstance(each, PodBuilder):
                self.cluster.add_pod(each.build())
            else:
                self.cluster.known.disruption_budgets.budget_changed(None, each)
        self._snapshot: Snapshot = self.cluster.snapshot()
        self.framework = self._framework(args)
        (self.plugin,) = (p for p in self.framework.plugins if isinstance(p, DefaultPreemption))

    def _framework(self, args: DefaultPreemptionArgs | None) -> FrameworkRunner:
        profile = _profile()
        if args is not None:
            profile = replace(profile, args={**profile.args, "DefaultPreemption": args})
        handle = OfflineServices(self.cluster)
        handle.preemption = self.preemption
        framework = build_framework(profile, 0, PLUGINS, handle)
        framework.nominated = NominatedNodes(self.cluster.nominator.latest)
        return framework

    def add_node(self, node: Node) -> None:
        self.cluster.add_node(node)

    @property
    def snapshot(self) -> Snapshot:
        """The nodes as they are now; the same object each time."""
        self.cluster.cache.update_snapshot(self._snapshot)
        return self._snapshot

    def search(self, info: PodInfo) -> tuple[CycleState, SearchStatuses]:
        """Run the filters as a cycle would."""
        snapshot, state = self.snapshot, CycleState()
        nodes = snapshot.all_nodes()
        pre = pre_filter(self.framework, state, info, nodes)
        found = search(self.framework, state, info, nodes, pre)
        return state, SearchStatuses(nodes, found.pre, found.outcome)

    def post_filter(
        self, asked: PodBuilder, *, live: Pod | None = None
    ) -> tuple[str | None, Status]:
        """Ask the plugin about a pod that the filters have rejected everywhere."""
        info = asked.info()
        pod = asked.build() if live is None else live
        self.cluster.pods[f"{pod.metadata.namespace}/{pod.metadata.name}"] = pod
        state, statuses = self.search(info)
        return self.plugin.post_filter(state, info, self.snapshot.all_nodes(), statuses)

    def survey(self, asked: PodBuilder) -> Survey:
        """Ask for all candidates of a pod."""
        info = asked.info()
        state, statuses = self.search(info)
        return self.plugin.survey(state, info, self.snapshot.all_nodes(), statuses)

    def find(self, info: PodInfo, wanted: int | None) -> Findings:
        """Search for candidates among the nodes that preemption may help on."""
        state, statuses = self.search(info)
        nodes = self.snapshot.all_nodes()
        return self.plugin.candidate_search.find(
            state, info, nodes, statuses.helpable_rows(), wanted
        )

    def victims(self, asked: PodBuilder) -> dict[str, tuple[list[str], int]]:
        """Return names of victims and violations by candidate."""
        return {
            name: ([info.name for info in each.victims.pods], each.victims.pdb_violations)
            for name, each in self.survey(asked).candidates.items()
        }
