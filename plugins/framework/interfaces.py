"""The extension points: when and on which thread each is called, and what it may return.

A pod passes through them in this order::

    PreEnqueue -> (queue, ordered by QueueSort) -> PreFilter -> Filter -> [PostFilter]
    -> PreScore -> Score -> NormalizeScore -> Reserve -> Permit
    -> (binding cycle) -> PreBindPreFlight, PreBind -> [guard] -> Bind -> PostBind
    a failure after Reserve -> Unreserve, in reverse order

A filter and a score each exist in two forms: the vector form over all nodes at once, and a
scalar form over one NodeInfo for what-if calls. A plugin implements at least one of them and the
base class derives the other; the conformance suite checks that both return equal results. A third
form judges several pods at once; it is optional.

Everything up to Permit runs on the scheduling thread and must not wait. ``async`` methods run
on the I/O loop and may wait. An exception from any method becomes an ``Error`` status of that
plugin for that pod and has no other effect.

*Source*: k8s.io/kube-scheduler framework/interface.go (1.36).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np

from cache.columns import NodesView
from plugins.framework.cluster_events import ALL_EVENTS, EventRegistration
from plugins.framework.results import (
    PRE_BIND,
    IntArray,
    NodeVerdicts,
    PreFilterResult,
    PreFlight,
)
from plugins.framework.status import SUCCESS, Status

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import msgspec

    from cache.node_info import NodeInfo
    from cache.node_usage import NodeUsage
    from cache.objects import Pod
    from cache.pod_info import PodInfo
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.handle import Handle
    from plugins.framework.node_statuses import NodeStatuses
    from plugins.framework.results import BoolArray

    Judged: TypeAlias = tuple[CycleState, PodInfo]


class Plugin(ABC):
    """Base of all plugins.

    Subclasses set ``name`` (kube-scheduler's spelling for in-tree ones) and, if they take
    arguments, ``args_type``, a msgspec Struct whose field defaults are the defaults.
    """

    name: ClassVar[str]
    args_type: ClassVar[type[msgspec.Struct] | None] = None

    reads_pods: ClassVar[bool] = True
    """Whether a filter's verdicts or raw scores depend on the pods of a node other than through
    the cycle state. A plugin that says no is spared a second look at the nodes that pods are
    nominated for, and, if it signs, at nodes to which nothing but pods came."""

    def __init__(self, args: msgspec.Struct | None, handle: Handle) -> None:
        """Take arguments (an ``args_type``, or None) that have been decoded and checked.

        Raises
        ------
        ArgsError
            When the arguments contradict each other; names the path within ``args``.
        """
        self.handle = handle

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Return the events that may make a pod schedulable which this plugin rejected.

        Called once at start. The default is every event, which is safe and wasteful.
        """
        return (EventRegistration(ALL_EVENTS),)

    def signature(self, info: PodInfo) -> Hashable | None:
        """Return all of the pod that this plugin's filter and score of a node depend on.

        Pods with equal signatures of all plugins share masks and scores, of which only the rows
        of changed nodes are worked out again. None, the default, means that the verdict on one
        node depends on more than the pod, that node and :meth:`cluster_facts`: the plugin is then
        asked anew for each pod, and only the other plugins' verdicts are shared.

        Whoever signs promises besides: PreFilter and PreScore look at the pod and at the facts
        alone; PreFilter names nodes or rejects by the pod alone; ``normalize`` gives nodes with
        the same raw scores the same result, whatever their number and order. A plugin that also
        reserves, permits or binds is always asked anew: it may count on its notes of the cycle.

        *Source* of the idea: SignPlugin in k8s.io/kube-scheduler framework/interface.go (1.36).
        """
        return None

    def cluster_facts(self, info: PodInfo, nodes: NodesView) -> Hashable:
        """Return what else the verdicts depend on that a change of some Node object may change.

        Asked again whenever one did; verdicts that are shared die when the answer changes.
        ``nodes`` are all nodes. Default: nothing.
        """
        return None


class PreEnqueuePlugin(Plugin):
    """May keep a pod out of the active queue."""

    @abstractmethod
    def pre_enqueue(self, pod: Pod) -> Status:
        """Return Success to let the pod in; a rejection holds it as *gated*.

        Called under the queue's lock whenever the pod would become active: must be quick.
        """


class QueueSortPlugin(Plugin):
    """Orders the active queue; exactly one in each profile, the same in all."""

    @abstractmethod
    def sort_key(self, pod: Pod, since_s: float) -> tuple[float, ...]:
        """Return a key: the pod with the smallest one is popped first.

        ``since_s`` is when the pod was last queued (when it came, or when its last attempt
        failed), in seconds of a monotonic clock.
        """

    def account(self, pod: Pod) -> tuple[str, float] | None:
        """Return the account that is charged with what the pod's attempts cost, and its weight.

        Of pods whose keys begin with the same number, those of the account that has been charged
        least go first. None, the default: the key alone counts. All pods or none have one.
        """
        return None


class PreFilterPlugin(Plugin):
    """Reads the pod once before the nodes are filtered."""

    @abstractmethod
    def pre_filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> PreFilterResult:
        """Return Success (with a limit to some nodes, if one is known), Skip or a rejection.

        A rejection means that no node can do, now. ``nodes`` holds all nodes.
        """

    def add_pod(
        self, state: CycleState, info: PodInfo, added: PodInfo, node_info: NodeInfo
    ) -> Status:
        """Account in ``state`` for a pod that a what-if puts on a node. Default: nothing."""
        return SUCCESS

    def remove_pod(
        self, state: CycleState, info: PodInfo, removed: PodInfo, node_info: NodeInfo
    ) -> Status:
        """Account in ``state`` for a pod that a what-if takes off a node. Default: nothing.

        Undoes an :meth:`add_pod` of the same pod, and the other way round.
        """
        return SUCCESS

    def is_concerned_by(self, state: CycleState, info: PodInfo, other: PodInfo) -> bool:
        """Return whether adding or removing ``other`` on some node may change a verdict.

        Only asked of plugins with an :meth:`add_pod` of their own, about pods that are nominated
        for nodes. The default is yes, which is safe and slow.
        """
        return True


class FilterPlugin(Plugin):
    """Decides which nodes can run the pod."""

    judges_nodes_alone: ClassVar[bool] = False
    """Whether a verdict depends on nothing but the pod and that one NodeInfo: not on other nodes,
    not on what :meth:`PreFilterPlugin.add_pod` was told, not on anything that a Handle lends; and
    of the pod on nothing but its spec, namespace, labels and containers' resources. Preemption
    asks such filters about all nodes at once, and remembers what they said for the next pod. They
    do not look at the names of claims, so that pods that differ in these alone are alike."""

    judges_survivors: ClassVar[bool] = False
    """Whether the vector form is only asked about the nodes that every filter before it passed:
    for filters that look at one node after the other. Their failures elsewhere do not count."""

    is_eased_by_removals: ClassVar[bool] = False
    """Whether a node that passes still passes when any pods leave it. Preemption asks such a
    filter about the nodes as they are, and not again in each dry run on a node that passed."""

    def is_eased_for(self, state: CycleState) -> bool:
        """Return whether :attr:`is_eased_by_removals` holds for the pod of a cycle."""
        return self.is_eased_by_removals

    def count(self, state: CycleState, info: PodInfo, nodes: NodesView) -> IntArray | None:
        """Return how many pods with the same spec fit on each node of the view, beside each other.

        Called after PreFilter. None, the default: that is not known, so that such pods are judged
        one after another. Not asked of a plugin that signs the pod and reads no pods: nothing
        changes for it when pods come.

        Returns
        -------
        int64 (len(nodes),), not negative; where the filter rejects the node 0, or anything.
        """
        return None

    def filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> NodeVerdicts:
        """Judge all nodes of the view.

        Legal statuses for a node: Success, Unschedulable, UnschedulableAndUnresolvable. Any other
        stands for "cannot say": the node is left out, and where no other is left the attempt ends
        with an error instead of a verdict on the pod.
        """
        statuses = [self.filter_one(state, info, node) for node in nodes.node_infos()]
        passed = np.fromiter((s.is_success for s in statuses), dtype=np.bool_, count=len(statuses))
        return NodeVerdicts(passed, detail=lambda: (np.arange(len(statuses)), statuses))

    def filter_jointly(self, pods: Sequence[Judged], nodes: NodesView) -> BoolArray | None:
        """Return which nodes of the view pass for each of some pods, in one go.

        Only asked of a plugin that signed all of them, after PreFilter. None, the default: they are
        to be judged one after another.

        Returns
        -------
        bool (len(pods), len(nodes)): as the verdicts of :meth:`filter`.
        """
        return None

    def filter_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> Status:
        """Judge one node, which may be a what-if that is in no snapshot."""
        return self.filter(state, info, NodesView.of([node_info])).status_of(0)

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        _needs_one_of(cls, FilterPlugin, "filter", "filter_one")


class PostFilterPlugin(Plugin):
    """Called when no node passed the filters; preemption is such a plugin."""

    @abstractmethod
    def post_filter(
        self, state: CycleState, info: PodInfo, nodes: NodesView, verdicts: NodeStatuses
    ) -> tuple[str | None, Status]:
        """Try to free resources for the pod.

        ``nodes`` holds all nodes, ``verdicts`` what the filters said of each.

        Returns
        -------
        nominated
            The node to nominate the pod for; the empty string takes a nomination away, None
            leaves it as it is.
        status
            Success when the pod will be schedulable. The first plugin that answers Success or
            Error ends the round.
        """


class PreScorePlugin(Plugin):
    """Reads the pod and the feasible nodes once before scoring."""

    @abstractmethod
    def pre_score(self, state: CycleState, info: PodInfo, nodes: NodesView) -> Status:
        """Return Success, or Skip to pass over the plugin's Score. ``nodes`` are feasible."""


class ScorePlugin(Plugin):
    """Scores the feasible nodes for the pod."""

    scores_only_what_it_filters: ClassVar[bool] = False
    """Whether every node gets the score 0 for a pod that the plugin's PreFilter skipped: it is
    passed over then, which has the same result."""

    prefers_full_nodes: bool = False
    """Whether it is there to fill nodes: then no room is left on them for other schedulers."""

    def score(self, state: CycleState, info: PodInfo, nodes: NodesView) -> IntArray:
        """Return raw scores, int64 of shape (len(nodes),)."""
        infos = nodes.node_infos()
        return np.fromiter(
            (self.score_one(state, info, node) for node in infos), np.int64, count=len(infos)
        )

    def score_jointly(self, pods: Sequence[Judged], nodes: NodesView) -> IntArray | None:
        """Return the raw scores of all nodes of the view for each of some pods, in one go.

        Only asked of a plugin that signed all of them and does not normalize, after PreScore, also
        about nodes that filters reject: what it says of those does not count. None, the default:
        they are to be scored one after another.

        Returns
        -------
        int64 (len(pods), len(nodes)): as :meth:`score`.
        """
        return None

    def score_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> int:
        """Return the raw score of one node."""
        return int(self.score(state, info, NodesView.of([node_info]))[0])

    def normalize(self, state: CycleState, info: PodInfo, scores: IntArray) -> IntArray:
        """Bring raw scores of all feasible nodes to 0..100. Default: they are there already."""
        return scores

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        _needs_one_of(cls, ScorePlugin, "score", "score_one")


class ReservePlugin(Plugin):
    """Keeps its own records of the nodes that pods are assigned to."""

    @abstractmethod
    def reserve(self, state: CycleState, info: PodInfo, node_name: str) -> Status:
        """Record that the pod is assigned to the node; a rejection undoes the cycle."""

    @abstractmethod
    def unreserve(self, state: CycleState, info: PodInfo, node_name: str) -> None:
        """Undo :meth:`reserve`. Must be idempotent; also called when reserve itself failed."""


class PermitPlugin(Plugin):
    """May hold a pod between its decision and its binding."""

    @abstractmethod
    def permit(self, state: CycleState, info: PodInfo, node_name: str) -> tuple[Status, float]:
        """Return Success, Wait with a time-out in seconds, or a rejection."""


class PreBindPlugin(Plugin):
    """Makes the changes in the API that must precede the binding."""

    def pre_bind_pre_flight(self, state: CycleState, info: PodInfo, node_name: str) -> PreFlight:
        """Tell whether :meth:`pre_bind` has something to do, and whether others may run beside it.

        Called once for each pod that is about to be bound, before it waits on Permit. Must not
        wait. Default: it has, and they may not.
        """
        return PRE_BIND

    @abstractmethod
    async def pre_bind(self, state: CycleState, info: PodInfo, node_name: str) -> Status:
        """Prepare the binding; any status but Success undoes the cycle.

        Cancelled when a plugin that runs at the same time has failed.
        """


class GuardPlugin(Plugin):
    """Checks, right before a pod is bound, that its node has not been taken by others meanwhile.

    Only filters are asked: what a profile does not filter by, it does not check here either.
    """

    @abstractmethod
    def still_fits(self, info: PodInfo, usage: NodeUsage) -> Status:
        """Return Success while a pod that counts on its node already has its place there.

        Otherwise a rejection: the binding is not sent, and the pod is tried again. Called on the
        I/O loop for every pod: it takes a microsecond, and reads nothing but its arguments and the
        plugin's own.

        Parameters
        ----------
        usage
            The newest known usage of the node, which is newer than the cycle's snapshot.
        """


class BindPlugin(Plugin):
    """Binds the pod."""

    @abstractmethod
    async def bind(self, state: CycleState, info: PodInfo, node_name: str) -> Status:
        """Bind the pod, or return Skip to leave it to the next Bind plugin."""


class PostBindPlugin(Plugin):
    """Called after a pod was bound."""

    @abstractmethod
    def post_bind(self, state: CycleState, info: PodInfo, node_name: str) -> None:
        """Record the binding, or clean up. Runs on the I/O loop and must not wait."""


def _needs_one_of(cls: type, base: type, vector: str, scalar: str) -> None:
    """Refuse, where it is written, a class that has neither form: each would derive the other."""
    if getattr(cls, vector) is getattr(base, vector) and (
        getattr(cls, scalar) is getattr(base, scalar)
    ):
        raise TypeError(f"{cls.__name__} must define {vector} or {scalar}")
