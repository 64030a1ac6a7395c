"""The decision of a scheduling cycle with its reasons, as one frozen value.

Metrics, Events, the pod's condition, the log and ``explain`` are derived from the same Decision, so
they cannot contradict each other.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from cache.value import Value
from plugins.framework.status import SUCCESS, Code, Status
from scheduler.decision.profile_origin import DEFAULT_ORIGIN, PolicyOrigin

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cache.pod_info import PodInfo
    from plugins.framework.results import IntArray, RowArray

NO_NODES_AVAILABLE = "no nodes available to schedule pods"

EXTENDER_NAME = "Extender"
"""Stands for all extenders among the plugins that rejected a pod. It registers no events, so that
any event wakes the pod. Source: pkg/scheduler/framework/types.go, ExtenderName (1.36)."""


class RejectedNodes(Value, frozen=True):
    """The nodes that were rejected with one status."""

    status: Status
    node_names: tuple[str, ...]


class Diagnosis(Value, frozen=True):
    """The reasons why nodes were not feasible.

    Parameters
    ----------
    num_nodes
        The number of nodes in the snapshot.
    pre_filter
        The rejection of a PreFilter, which applies to every node; else None.
    absent
        The status of the nodes that a PreFilter narrowed away; None if it did not narrow.
    rejected
        The nodes that filters rejected, grouped by status: each node once, with the first
        filter that rejected it.
    post_filter_message
        The message of PostFilter.
    narrowing_plugins
        The plugins whose PreFilter limited the search to some nodes.
    by_extenders
        Whether extenders excluded any node, with or without a reason.
    """

    num_nodes: int = 0
    pre_filter: Status | None = None
    absent: Status | None = None
    rejected: tuple[RejectedNodes, ...] = ()
    post_filter_message: str = ""
    narrowing_plugins: frozenset[str] = frozenset()
    by_extenders: bool = False

    def histogram(self) -> Counter[str]:
        """Return how many nodes each reason kept out."""
        counts: Counter[str] = Counter()
        explicit = 0
        for group in self.rejected:
            explicit += len(group.node_names)
            for reason in group.status.reasons:
                counts[reason] += len(group.node_names)
        if self.absent is not None and explicit < self.num_nodes:
            for reason in self.absent.reasons:
                counts[reason] += self.num_nodes - explicit
        return counts

    def message(self) -> str:
        """Return the sentence for people, in kube-scheduler's words and order.

        *Source*: pkg/scheduler/framework/types.go, FitError.Error (1.36).
        """
        text = f"0/{self.num_nodes} nodes are available:"
        if self.pre_filter is not None and self.pre_filter.message:
            text += f" {self.pre_filter.message}."
        else:
            reasons = sorted(f"{count} {reason}" for reason, count in self.histogram().items())
            if reasons:
                text += f" {', '.join(reasons)}."
        if self.post_filter_message:
            text += f" {self.post_filter_message}"
        return text

    def failure(self) -> Status | None:
        """Return the Error of a filter that could not judge a node, if there is any.

        Then nobody knows whether the pod is unschedulable.

        *Source*: pkg/scheduler/framework/runtime/framework.go, RunFilterPlugins (1.36).
        """
        for group in self.rejected:
            status = group.status
            if not status.is_rejection:
                why = f'running "{status.plugin}" filter plugin: {status.message}'
                return Status(Code.ERROR, (why,), status.plugin, status.error)
        return None

    def plugins_with(self, code: Code | None = None) -> frozenset[str]:
        """Return the plugins that rejected the pod, or those that did so with one code."""
        names = {
            status.plugin for status in self._statuses() if code is None or status.code is code
        }
        if code is None or code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            names |= self.narrowing_plugins
        if code is None and self.by_extenders:
            names.add(EXTENDER_NAME)
        return frozenset(names - {""})

    @property
    def pending_plugins(self) -> frozenset[str]:
        """The plugins that said "not now, I shall tell you when"."""
        return self.plugins_with(Code.PENDING)

    @property
    def unschedulable_plugins(self) -> frozenset[str]:
        """The plugins whose events may make the pod schedulable."""
        return self.plugins_with() - self.pending_plugins

    def _statuses(self) -> Iterable[Status]:
        if self.pre_filter is not None:
            yield self.pre_filter
        for group in self.rejected:
            yield group.status


NO_DIAGNOSIS: Final = Diagnosis()
"""Of a pod that was placed."""


class Scores(Value, frozen=True):
    """The scores of the feasible nodes.

    ``rows`` and all arrays have the same length and order; rows are valid in this cycle only.
    """

    rows: RowArray
    weighted: Mapping[str, IntArray]
    """Weighted score by plugin name."""
    total: IntArray


class Decision(Value, frozen=True):
    """The outcome of one scheduling cycle.

    A decision names the node and its UID, never a row, because rows are recycled.
    """

    cycle: int
    profile: str
    info: PodInfo
    status: Status = SUCCESS
    """Success, a rejection of the pod, or an Error of the scheduler's own."""
    node_name: str = ""
    node_uid: str = ""
    evaluated_nodes: int = 0
    feasible_nodes: int = 0
    score: int | None = None
    """The total score of the chosen node; None when a single feasible node needed none."""
    runner_up: tuple[str, int] | None = None
    """Name and total score of the second best node; None where it was not at hand. The score is
    higher than that of the chosen node where room was left to other schedulers."""
    diagnosis: Diagnosis = NO_DIAGNOSIS
    nominated_node_name: str | None = None
    """The node to nominate the pod for; the empty string clears a nomination."""
    post_filtered: bool = False
    """Whether PostFilter plugins were asked for a way out: preemption."""
    duration_s: float = 0.0
    budget_s: float = float("inf")
    """CPU seconds that the attempt might use."""
    ran_out_at: int | None = None
    """At which look at its budget that was used up; None when it was not. With ``budget_s`` all
    that a replay needs to end alike: see :class:`~plugins.framework.attempt_budget.ReplayedBudget`.
    """
    used_s: float = 0.0
    """CPU seconds used until the budget ran out; 0 when it did not."""
    policy: PolicyOrigin = DEFAULT_ORIGIN
    """What the profile was made of that decided."""

    @property
    def is_over_budget(self) -> bool:
        """Whether the attempt was stopped because its budget was exceeded: there is no verdict."""
        return self.ran_out_at is not None

    @property
    def is_placed(self) -> bool:
        """Whether a node was found."""
        return self.status.is_success

    def message(self) -> str:
        """Return why the pod was not placed, for its condition and its Event."""
        if self.status.code is Code.ERROR:
            return self.status.message
        if self.diagnosis.num_nodes == 0:
            return NO_NODES_AVAILABLE
        return self.diagnosis.message()
