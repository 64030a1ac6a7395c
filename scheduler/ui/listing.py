"""Everything that the lists of a cluster, or the files of a dump, say at one moment."""

from __future__ import annotations

import time
from collections import OrderedDict
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import msgspec

from cache.pod_info import is_terminal, readable_info
from plugins.framework.attempt_budget import AttemptBudget, AttemptBudgetExceededError
from scheduler.explain import ExplainError
from scheduler.offline.cluster import Cluster, kind_of
from scheduler.offline.offline_framework import offline_framework
from scheduler.runtime.filter_outcome import PluginError
from scheduler.shadow import ShadowReport
from scheduler.ui.condition_decisions import conditions_as_decisions
from scheduler.ui.node_map import node_table
from scheduler.ui.pending_pods import by_reason, pending_pods
from scheduler.ui.pod_matrix import matrix_of
from scheduler.ui.sources import PolicySummary
from scheduler.ui.times import seconds_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cache.objects import Pod
    from cache.snapshot import Snapshot
    from plugins.framework.interfaces import Plugin
    from scheduler.config import EffectiveProfile
    from scheduler.runtime.framework_runner import FrameworkRunner
    from scheduler.ui.node_map import NodeTable
    from scheduler.ui.pending_pods import PendingPod, ReasonGroup
    from scheduler.ui.pod_matrix import Matrix
    from scheduler.ui.sources import DecisionRecord

MAX_LEFT_OUT: Final = 20
"""How many objects that cannot be read are named."""

_PREPARE_CPU_S: Final = 5.0

POLICY_KIND: Final = "SchedulingProfile.scheduling.berth.dev"


@dataclass(frozen=True, slots=True)
class Policy:
    """What configures the decisions: the profiles, and the plugins that exist."""

    profiles: Sequence[EffectiveProfile]
    plugins: Mapping[str, type[Plugin]]
    origin: str


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the objects of a listing come from.

    Parameters
    ----------
    address
        Of the API server; empty for a dump.
    namespace
        The namespace whose pods are all that was listed; empty for a whole cluster.
    """

    address: str = ""
    namespace: str = ""


class Listing:
    """A cluster as it was listed, with what every page needs of it.

    Parameters
    ----------
    cluster
        Filled; nobody changes it any more but for moments, and puts back what it took.
    read_at_s
        When it was read, in seconds since the epoch; 0 for a dump: the newest time in it counts.
    left_out
        The sentences about objects that cannot be read.
    policies
        The SchedulingProfiles.
    origin
        Where the objects come from.

    Notes
    -----
    *Concurrency*: confined to the thread that works for the page, but for its attributes, which
    do not change.
    """

    MAX_MATRICES: Final = 8

    def __init__(
        self,
        cluster: Cluster,
        policy: Policy,
        read_at_s: float = 0.0,
        left_out: Sequence[str] = (),
        policies: Sequence[PolicySummary] = (),
        origin: Origin | None = None,
    ) -> None:
        self.cluster = cluster
        self.policy = policy
        self.left_out = left_out
        self.policies = policies
        self.origin = origin or Origin()
        self.now_s = read_at_s or _newest(cluster.pods.values()) or time.time()
        self.pending: list[PendingPod] = pending_pods(cluster.pods.items())
        self.reasons: list[ReasonGroup] = by_reason(self.pending, self.now_s)
        self.snapshot = cluster.snapshot()
        self.matrices: OrderedDict[str, Matrix] = OrderedDict()
        """The last few matrices, by ``namespace/name``."""
        self._frameworks: dict[str, FrameworkRunner] = {}

    def prepare(self) -> None:
        """Compute what every view needs, so that the first one does not wait for it."""
        _ = self.table, self.decisions
        framework = self.framework("")
        for each in self.pending[:1]:
            # Plugins fill their columns with the first pod that they judge.
            with suppress(PluginError, AttemptBudgetExceededError):
                info = readable_info(each.pod)
                matrix_of(framework, self.snapshot, info, AttemptBudget(_PREPARE_CPU_S))

    @property
    def is_partial(self) -> bool:
        """Whether it has the pods of one namespace alone, so that nothing can be judged."""
        return bool(self.origin.namespace)

    @cached_property
    def table(self) -> NodeTable:
        """The nodes with what is requested, free and fragmented."""
        nodes = self.snapshot.all_nodes().node_infos() if len(self.snapshot) else []
        return node_table(nodes, (each.pod for each in self.pending))

    @cached_property
    def namespaces(self) -> list[str]:
        """The namespaces of pending pods, by name."""
        return sorted({each.pod.metadata.namespace for each in self.pending})

    @cached_property
    def decisions(self) -> tuple[DecisionRecord, ...]:
        """What the pods' conditions say, as decisions; the oldest first."""
        return conditions_as_decisions(self.cluster.pods.items())

    @contextmanager
    def without(self, pod: Pod) -> Iterator[Snapshot]:
        """Return the snapshot as if a pod had no node; afterwards it is as it was."""
        if not pod.spec.node_name or is_terminal(pod):
            yield self.snapshot
            return
        cache, info = self.cluster.cache, readable_info(pod)
        cache.remove_pod(info)
        cache.update_snapshot(self.snapshot)
        try:
            yield self.snapshot
        finally:
            cache.add_pod(info)
            cache.update_snapshot(self.snapshot)

    def framework(self, scheduler_name: str) -> FrameworkRunner:
        """Return the profile that serves a schedulerName, or the first one."""
        names = [profile.scheduler_name for profile in self.policy.profiles]
        name = scheduler_name if scheduler_name in names else names[0]
        if name not in self._frameworks:
            policy = self.policy
            self._frameworks[name] = offline_framework(
                policy.profiles, self.cluster, name, policy.plugins
            )
        return self._frameworks[name]


def listing_of(
    objects: Iterable[tuple[msgspec.Raw, str]],
    policy: Policy,
    read_at_s: float = 0.0,
    origin: Origin | None = None,
) -> Listing:
    """Return the listing of some objects with their presumed kinds.

    An object that cannot be read is left out, and named.

    *Cost*: about 20 us for each pod.
    """
    cluster, left_out, policies = Cluster(), [], []
    known: list[tuple[msgspec.Raw, str]] = []
    for raw, kind in objects:
        if (kind_of(raw) or kind) == POLICY_KIND:
            policies.append(raw)
        else:
            known.append((raw, kind))
    errors = cluster.add_all(known)
    left_out = [str(error) for error in errors[:MAX_LEFT_OUT]]
    if len(errors) > MAX_LEFT_OUT:
        left_out.append(f"and {len(errors) - MAX_LEFT_OUT} more objects")
    if not (cluster.nodes or cluster.pods or (origin and origin.namespace)):
        raise ExplainError("there is neither a node nor a pod to show")
    summaries = [summary for raw in policies if (summary := policy_summary(raw)) is not None]
    return Listing(cluster, policy, read_at_s, left_out, summaries, origin)


def _newest(pods: Iterable[Pod]) -> float:
    newest = 0.0
    for pod in pods:
        newest = max(newest, seconds_of(pod.metadata.creation_timestamp))
        for condition in pod.status.conditions:
            newest = max(newest, seconds_of(condition.last_transition_time))
    return newest


# --- policies ---------------------------------------------------------------------------------


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    scheduler_name: str = ""
    mode: str = "Active"


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class _Status(msgspec.Struct, frozen=True):
    conditions: tuple[_Condition, ...] = ()
    shadow: ShadowReport | None = None


class _PolicyObject(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()
    status: _Status = _Status()


def policy_summary(raw: msgspec.Raw | bytes) -> PolicySummary | None:
    """Return what a SchedulingProfile says of itself; None if it cannot be read."""
    try:
        profile = msgspec.json.decode(raw, type=_PolicyObject)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    wrong = [
        each
        for each in profile.status.conditions
        if each.status == ("True" if each.type == "Degraded" else "False")
    ]
    right = [each for each in profile.status.conditions if each not in wrong]
    chosen = (wrong or right or [_Condition(reason="no status yet")])[0]
    return PolicySummary(
        name=profile.metadata.name,
        scheduler_name=profile.spec.scheduler_name,
        mode=profile.spec.mode,
        phase=chosen.reason,
        message=chosen.message,
        shadow=profile.status.shadow,
    )
