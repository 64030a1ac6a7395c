"""What every plugin must keep to, as checks that take any plugin.

A check is a function that raises AssertionError. It draws nothing itself: it is given a way to
make the plugin, clusters and pods. The strategies at the end draw those.
"""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from hypothesis import strategies as st

from cache.devices import Devices
from cache.namespaces import Namespaces
from cache.pod_info import PodInfo
from cache.scheduler_cache import SchedulerCache
from cache.snapshot import Snapshot
from cache.storage import Storage
from cache.workloads import Workloads
from plugins.framework.cluster_events import EventRegistration
from plugins.framework.cycle_state import CycleState
from plugins.framework.interfaces import (
    BindPlugin,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
)
from plugins.framework.normalize import MAX_NODE_SCORE, MIN_NODE_SCORE
from plugins.framework.results import PreFilterResult
from plugins.framework.status import SUCCESS, Code, Status
from plugins.registry import PLUGINS
from tests import strategies
from tests.builders import cache_of
from tests.fakes.nobody import Nobody

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from cache.columns import NodesView
    from cache.node_info import NodeInfo
    from cache.objects import Namespace, Node, Pod

_NODE_NAMES = [f"node-{index}" for index in range(6)]

_PRE_FILTER_CODES = {
    Code.SUCCESS,
    Code.SKIP,
    Code.UNSCHEDULABLE,
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
}
_FILTER_CODES = {Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE}


class IdlePreemption(Nobody):
    """Carries nothing out: nobody is being evicted."""

    def is_running(self, uid: str) -> bool:
        return False

    def leaving(self) -> Collection[str]:
        return ()


class IdleClaimWriter(Nobody):
    """Writes nothing; all new claims and shares have the same id."""

    def new_uid(self) -> str:
        return "uid"


class RecordingHandle:
    """The services that a plugin is lent: notes what is bound and answers Success."""

    def __init__(
        self,
        namespaces: Iterable[Namespace] = (),
        workloads: Workloads | None = None,
        storage: Storage | None = None,
    ) -> None:
        self.preemption = IdlePreemption()
        self.bound: list[tuple[str, str]] = []
        self.namespaces = Namespaces()
        for namespace in namespaces:
            self.namespaces.changed(None, namespace)
        self.workloads = Workloads() if workloads is None else workloads
        self.storage = Storage() if storage is None else storage
        self.devices = Devices()
        self.claim_writer = IdleClaimWriter()
        self.cached_nodes: dict[str, NodeInfo] = {}

    def cached_node(self, name: str) -> NodeInfo | None:
        return self.cached_nodes.get(name)

    async def bind_pod(self, info: PodInfo, node_name: str) -> Status:
        self.bound.append((info.uid, node_name))
        return SUCCESS


@dataclass(frozen=True)
class Recipe:
    """How to make a plugin: its class, its arguments as a configuration file has them, and what
    it is lent."""

    plugin: type[Plugin]
    args: dict[str, Any] | None = None
    handle: Callable[[], RecordingHandle] = RecordingHandle

    def make(self) -> Plugin:
        args_type = self.plugin.args_type
        args = None if args_type is None else msgspec.convert(self.args or {}, args_type)
        return self.plugin(args, self.handle())


@dataclass(frozen=True)
class Cluster:
    """Nodes, and pods that run on them."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]

    def snapshot(self) -> Snapshot:
        """Return what a cache that saw nothing else makes of it."""
        snapshot = Snapshot()
        cache_of(self.nodes, map(PodInfo, self.pods)).update_snapshot(snapshot)
        return snapshot

    def with_pod(self, pod: Pod) -> Cluster:
        return Cluster(self.nodes, (*self.pods, pod))


@dataclass(frozen=True)
class Answers:
    """Everything that a plugin says about one pod, by node name."""

    pre_filter: Status | None
    node_names: frozenset[str] | None
    statuses: dict[str, Status]
    pre_score: Status | None
    scores: dict[str, int]
    normalized: dict[str, int]


def ask(plugin: Plugin, info: PodInfo, view: NodesView) -> Answers:
    """Return the vector answers of a plugin at PreFilter, Filter, PreScore and Score."""
    state = CycleState()
    listed = [node_info.name for node_info in view.node_infos()]
    pre_filter, pre_score = pre_filter_of(plugin, state, info, view), None
    statuses: dict[str, Status] = {}
    scores: dict[str, int] = {}
    normalized: dict[str, int] = {}
    if isinstance(plugin, FilterPlugin) and pre_filter.status.is_success:
        verdicts = plugin.filter(state, info, view)
        statuses = {name: verdicts.status_of(row) for row, name in enumerate(listed)}
    if isinstance(plugin, ScorePlugin):
        pre_score = pre_score_of(plugin, state, info, view)
        if pre_score.is_success:
            raw = plugin.score(state, info, view)
            scores = dict(zip(listed, raw.tolist(), strict=True))
            final = plugin.normalize(state, info, raw)
            normalized = dict(zip(listed, final.tolist(), strict=True))
    return Answers(
        pre_filter.status, pre_filter.node_names, statuses, pre_score, scores, normalized
    )


# --- checks -----------------------------------------------------------------------------------


def check_identity(recipe: Recipe) -> None:
    """A plugin has a known name, takes arguments strictly and may be made more than once."""
    plugin = recipe.make()
    assert plugin.name in PLUGINS
    assert recipe.make() is not plugin
    if recipe.plugin.args_type is not None:
        try:
            msgspec.convert({"noSuchField": 1}, recipe.plugin.args_type)
        except msgspec.ValidationError:
            pass
        else:
            raise AssertionError("an unknown field in the arguments is not refused")
        msgspec.convert(
            {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": f"{plugin.name}Args"},
            recipe.plugin.args_type,
        )


def check_contract_is_written(recipe: Recipe) -> None:
    """The class says what it does."""
    assert inspect.getdoc(recipe.plugin) != inspect.getdoc(Plugin)
    assert recipe.plugin.__doc__


def check_events(recipe: Recipe) -> None:
    """A plugin says itself which events matter, each hint once, and never "all of them"."""
    registered = recipe.make().events_to_register()
    assert all(isinstance(each, EventRegistration) for each in registered)
    assert "events_to_register" in {
        name for cls in recipe.plugin.__mro__ if cls is not Plugin for name in vars(cls)
    }
    events = [each.event for each in registered]
    assert len({(each.event, each.hint) for each in registered}) == len(registered)
    for event in events:
        assert event.action
        assert not event.is_wildcard
    rejects = (PreEnqueuePlugin, PreFilterPlugin, FilterPlugin, ReservePlugin, PermitPlugin)
    if not issubclass(recipe.plugin, rejects):
        assert not events, "a plugin that rejects no pod has nothing to wait for"


def check_legal_statuses(recipe: Recipe, cluster: Cluster, pod: Pod) -> None:
    """Rejections have a legal code and a reason; Success and Skip have none."""
    answers = ask(recipe.make(), PodInfo(pod), cluster.snapshot().all_nodes())
    if answers.pre_filter is not None:
        assert answers.pre_filter.code in _PRE_FILTER_CODES
        assert bool(answers.pre_filter.reasons) == answers.pre_filter.is_rejection
        assert answers.node_names is None or answers.pre_filter.is_success
    for status in answers.statuses.values():
        assert status.is_success or status.code in _FILTER_CODES
        assert bool(status.reasons) == (not status.is_success)
        assert status.plugin in ("", recipe.plugin.name)


def check_filter_twins(recipe: Recipe, cluster: Cluster, pod: Pod) -> None:
    """The vector filter and its scalar twin agree on code and reasons of each node."""
    plugin = recipe.make()
    if not isinstance(plugin, FilterPlugin):
        return
    info, view, state = PodInfo(pod), cluster.snapshot().all_nodes(), CycleState()
    if not pre_filter_of(plugin, state, info, view).status.is_success:
        return
    verdicts = plugin.filter(state, info, view)
    assert verdicts.passed is None or verdicts.passed.shape == (len(view),)
    assert verdicts.passed is None or verdicts.passed.dtype == np.bool_
    which, distinct = verdicts.statuses()
    assert all(not status.is_success for status in distinct)
    if verdicts.passed is not None:
        assert which.shape == (len(view),)
    for row, node_info in enumerate(view.node_infos()):
        alone = plugin.filter_one(state, info, node_info)
        assert verdicts.status_of(row) == alone, node_info.name


def check_score_twins(recipe: Recipe, cluster: Cluster, pod: Pod) -> None:
    """The vector score and its scalar twin agree, and normalised scores are within 0..100."""
    plugin = recipe.make()
    if not isinstance(plugin, ScorePlugin):
        return
    info, view, state = PodInfo(pod), cluster.snapshot().all_nodes(), CycleState()
    if not pre_score_of(plugin, state, info, view).is_success:
        return
    raw = plugin.score(state, info, view)
    _check_score_array(raw, len(view))
    alone = [plugin.score_one(state, info, node_info) for node_info in view.node_infos()]
    assert raw.tolist() == alone
    kept = raw.copy()
    final = plugin.normalize(state, info, raw)
    _check_score_array(final, len(view))
    assert raw.tolist() == kept.tolist() or final is raw, "normalize changed its input"
    assert ((final >= MIN_NODE_SCORE) & (final <= MAX_NODE_SCORE)).all()


def check_no_nodes(recipe: Recipe, pod: Pod) -> None:
    """A view without nodes is a view like any other."""
    plugin, info = recipe.make(), PodInfo(pod)
    view, state = Cluster((), ()).snapshot().all_nodes(), CycleState()
    if (
        isinstance(plugin, FilterPlugin)
        and pre_filter_of(plugin, state, info, view).status.is_success
    ):
        passed = plugin.filter(state, info, view).passed
        assert passed is None or passed.shape == (0,)
    if isinstance(plugin, ScorePlugin) and pre_score_of(plugin, state, info, view).is_success:
        raw = plugin.score(state, info, view)
        _check_score_array(raw, 0)
        _check_score_array(plugin.normalize(state, info, raw), 0)


def check_some_rows(recipe: Recipe, cluster: Cluster, pod: Pod, rows: list[int]) -> None:
    """A view of some rows, in any order, gives those nodes the answers that they get in all.

    Raw scores are compared: what normalisation makes of them depends on the other nodes.
    """
    plugin, info = recipe.make(), PodInfo(pod)
    view, state = cluster.snapshot().all_nodes(), CycleState()
    some = view.subset(np.array(rows, dtype=np.intp))
    if (
        isinstance(plugin, FilterPlugin)
        and pre_filter_of(plugin, state, info, view).status.is_success
    ):
        all_verdicts, verdicts = plugin.filter(state, info, view), plugin.filter(state, info, some)
        for index, row in enumerate(rows):
            assert verdicts.status_of(index) == all_verdicts.status_of(row)
    if isinstance(plugin, ScorePlugin) and pre_score_of(plugin, state, info, view).is_success:
        scores = plugin.score(state, info, some)
        _check_score_array(scores, len(rows))
        assert scores.tolist() == plugin.score(state, info, view)[rows].tolist()


def check_inputs_unchanged(recipe: Recipe, cluster: Cluster, pod: Pod) -> None:
    """Neither nodes nor columns nor the pod change under a plugin."""
    snapshot, info = cluster.snapshot(), PodInfo(pod)
    columns = snapshot.columns
    arrays = {
        name: getattr(columns, name)
        for name in (
            "allocatable",
            "requested",
            "nonzero_requested",
            "unschedulable",
            "taint_set_ids",
        )
    }
    before = {name: array.copy() for name, array in arrays.items()}
    facts = [node_info.clone().facts() for node_info in columns.node_infos]
    requests = dict(info.requests)
    plugin = recipe.make()
    ask(plugin, info, snapshot.all_nodes())
    for node_info in columns.node_infos:
        _ask_twins(plugin, info, snapshot.all_nodes(), node_info)
    for name, array in before.items():
        now = getattr(columns, name)
        assert np.array_equal(now, array), name
        assert not now.flags.writeable, name
    assert facts == [node_info.facts() for node_info in columns.node_infos]
    assert requests == dict(info.requests)


def check_same_again(recipe: Recipe, cluster: Cluster, pod: Pod) -> None:
    """The same question gets the same answer: from the same plugin, a new one, a new snapshot,
    and whatever the order of the nodes."""
    plugin, info = recipe.make(), PodInfo(pod)
    snapshot = cluster.snapshot()
    first = ask(plugin, info, snapshot.all_nodes())
    assert ask(plugin, info, snapshot.all_nodes()) == first
    assert ask(recipe.make(), PodInfo(pod), cluster.snapshot().all_nodes()) == first
    reverse = Cluster(cluster.nodes[::-1], cluster.pods[::-1])
    assert ask(recipe.make(), PodInfo(pod), reverse.snapshot().all_nodes()) == first


def check_judges_nodes_alone(recipe: Recipe, cluster: Cluster, pod: Pod) -> None:
    """A filter that says it judges nodes alone says the same where there is no other node."""
    plugin = recipe.make()
    if not (isinstance(plugin, FilterPlugin) and plugin.judges_nodes_alone):
        return
    if isinstance(plugin, PreFilterPlugin):
        for method in ("add_pod", "remove_pod"):
            assert getattr(recipe.plugin, method) is getattr(PreFilterPlugin, method)
    together = ask(plugin, PodInfo(pod), cluster.snapshot().all_nodes())
    for node in cluster.nodes:
        name = node.metadata.name
        if name not in together.statuses:
            continue
        guests = tuple(each for each in cluster.pods if each.spec.node_name == name)
        alone = Cluster((node,), guests).snapshot().all_nodes()
        assert ask(recipe.make(), PodInfo(pod), alone).statuses[name] == together.statuses[name]


def check_nothing_leaks(
    recipe: Recipe, others: list[tuple[Cluster, Pod]], cluster: Cluster, pod: Pod
) -> None:
    """What a plugin said of other pods and of other clusters has no bearing on the next pod."""
    plugin = recipe.make()
    for other_cluster, other in others:
        ask(plugin, PodInfo(other), other_cluster.snapshot().all_nodes())
    view = cluster.snapshot().all_nodes()
    for _, other in others:
        ask(plugin, PodInfo(other), view)
    fresh = ask(recipe.make(), PodInfo(pod), cluster.snapshot().all_nodes())
    assert ask(plugin, PodInfo(pod), view) == fresh


def check_follows_changes(recipe: Recipe, before: Cluster, after: Cluster, pods: list[Pod]) -> None:
    """Answers about a snapshot that has changed are those about a snapshot made anew.

    First the pods go while their nodes stay as they are, then the nodes change, then other pods
    come.
    """
    cache, snapshot, plugin = SchedulerCache(), Snapshot(), recipe.make()

    def compare(now: Cluster) -> None:
        cache.update_snapshot(snapshot)
        fresh_view, view = now.snapshot().all_nodes(), snapshot.all_nodes()
        for pod in pods:
            fresh = ask(recipe.make(), PodInfo(pod), fresh_view)
            assert ask(plugin, PodInfo(pod), view) == fresh

    for node in before.nodes:
        cache.add_node(node)
    for pod in before.pods:
        cache.add_pod(PodInfo(pod))
    compare(before)
    for pod in before.pods:
        cache.remove_pod(PodInfo(pod))
    compare(Cluster(before.nodes, ()))
    staying = {node.metadata.name for node in after.nodes}
    for node in before.nodes:
        if node.metadata.name not in staying:
            cache.remove_node(node.metadata.name)
    for node in after.nodes:
        cache.update_node(node)
    compare(Cluster(after.nodes, ()))
    for pod in after.pods:
        cache.add_pod(PodInfo(pod))
    compare(after)


def check_what_if(recipe: Recipe, cluster: Cluster, added: Pod, pod: Pod) -> None:
    """Putting a pod on a node in a what-if is as good as having it there, and can be undone."""
    plugin, info = recipe.make(), PodInfo(pod)
    if not isinstance(plugin, PreFilterPlugin) or not isinstance(plugin, FilterPlugin):
        return
    snapshot, state = cluster.snapshot(), CycleState()
    view = snapshot.all_nodes()
    if not pre_filter_of(plugin, state, info, view).status.is_success:
        return
    before = _filter_each(plugin, state, info, snapshot)
    found = snapshot.get(added.spec.node_name)
    assert found is not None
    target, newcomer, what_if = found.clone(), PodInfo(added), state.copy()
    target.add_pod(newcomer)
    assert plugin.add_pod(what_if, info, newcomer, target).is_success
    there = cluster.with_pod(added).snapshot()
    fresh = CycleState()
    if pre_filter_of(plugin, fresh, info, there.all_nodes()).status.is_success:
        expected = _filter_each(plugin, fresh, info, there)
        seen = {
            each.name: plugin.filter_one(what_if, info, target if each is found else each)
            for each in snapshot.columns.node_infos
        }
        assert seen == expected
    target.remove_pod(newcomer.uid)
    assert plugin.remove_pod(what_if, info, newcomer, target).is_success
    assert _filter_each(plugin, what_if, info, snapshot) == before
    assert plugin.filter_one(what_if, info, target) == before[target.name]
    assert _filter_each(plugin, state, info, snapshot) == before, "the copy was no copy"


def check_what_if_vector(recipe: Recipe, cluster: Cluster, added: Pod, pod: Pod) -> None:
    """After a what-if has changed the state, the vector filter and its twin still agree."""
    plugin, info, state = recipe.make(), PodInfo(pod), CycleState()
    if not isinstance(plugin, PreFilterPlugin) or not isinstance(plugin, FilterPlugin):
        return
    snapshot = cluster.snapshot()
    view = snapshot.all_nodes()
    if not pre_filter_of(plugin, state, info, view).status.is_success:
        return
    target = snapshot.get(added.spec.node_name)
    assert target is not None
    assert plugin.add_pod(state, info, PodInfo(added), target).is_success
    for nodes in (view, type(view).of(view.node_infos())):
        verdicts = plugin.filter(state, info, nodes)
        for row, node_info in enumerate(nodes.node_infos()):
            assert verdicts.status_of(row) == plugin.filter_one(state, info, node_info)


def check_eased_by_removals(
    recipe: Recipe, cluster: Cluster, leavers: Iterable[Pod], pod: Pod
) -> None:
    """A node that passes still passes when some of its pods leave, where a plugin says so."""
    plugin, info, state = recipe.make(), PodInfo(pod), CycleState()
    if not isinstance(plugin, FilterPlugin):
        return
    snapshot = cluster.snapshot()
    if not pre_filter_of(plugin, state, info, snapshot.all_nodes()).status.is_success:
        return
    if not plugin.is_eased_for(state):
        return
    before = _filter_each(plugin, state, info, snapshot)
    emptied = {each.name: each.clone() for each in snapshot.columns.node_infos}
    for leaver in leavers:
        gone, target = PodInfo(leaver), emptied[leaver.spec.node_name]
        target.remove_pod(gone.uid)
        if isinstance(plugin, PreFilterPlugin):
            assert plugin.remove_pod(state, info, gone, target).is_success
    for name, status in before.items():
        if status.is_success:
            assert plugin.filter_one(state, info, emptied[name]).is_success, name


def check_other_points(recipe: Recipe, pod: Pod) -> None:
    """The points that look at no nodes give what their interface says."""
    plugin, info, state = recipe.make(), PodInfo(pod), CycleState()
    if isinstance(plugin, PreEnqueuePlugin):
        status = plugin.pre_enqueue(pod)
        assert status.is_success or (status.is_rejection and status.reasons)
    if isinstance(plugin, QueueSortPlugin):
        assert plugin.sort_key(pod, 1.0) == plugin.sort_key(pod, 1.0)
        assert plugin.sort_key(pod, 1.0) < plugin.sort_key(pod, 2.0)
    if isinstance(plugin, ReservePlugin):
        plugin.unreserve(state, info, "node-0")
        plugin.unreserve(state, info, "node-0")
    if isinstance(plugin, PreBindPlugin):
        flight = plugin.pre_bind_pre_flight(state, info, "node-0")
        assert flight.status.code in (Code.SUCCESS, Code.SKIP)
    if isinstance(plugin, BindPlugin):
        status = asyncio.run(plugin.bind(state, info, "node-0"))
        assert status.code in (Code.SUCCESS, Code.SKIP)


def pre_filter_of(
    plugin: Plugin, state: CycleState, info: PodInfo, view: NodesView
) -> PreFilterResult:
    if not isinstance(plugin, PreFilterPlugin):
        return PreFilterResult()
    return plugin.pre_filter(state, info, view)


def pre_score_of(plugin: Plugin, state: CycleState, info: PodInfo, view: NodesView) -> Status:
    return plugin.pre_score(state, info, view) if isinstance(plugin, PreScorePlugin) else SUCCESS


def _ask_twins(plugin: Plugin, info: PodInfo, view: NodesView, node_info: Any) -> None:
    state = CycleState()
    if (
        isinstance(plugin, FilterPlugin)
        and pre_filter_of(plugin, state, info, view).status.is_success
    ):
        plugin.filter_one(state, info, node_info)
    if isinstance(plugin, ScorePlugin) and pre_score_of(plugin, state, info, view).is_success:
        plugin.score_one(state, info, node_info)


def _filter_each(
    plugin: FilterPlugin, state: CycleState, info: PodInfo, snapshot: Snapshot
) -> dict[str, Status]:
    return {
        node_info.name: plugin.filter_one(state, info, node_info)
        for node_info in snapshot.columns.node_infos
    }


def _check_score_array(scores: Any, count: int) -> None:
    assert isinstance(scores, np.ndarray)
    assert scores.dtype == np.int64
    assert scores.shape == (count,)


# --- strategies -------------------------------------------------------------------------------


@st.composite
def clusters(draw: st.DrawFn, *, min_nodes: int = 0) -> Cluster:
    """Clusters of a few nodes with a few pods on them."""
    listed = draw(st.lists(st.sampled_from(_NODE_NAMES), unique=True, min_size=min_nodes))
    nodes = tuple(draw(strategies.nodes(name=name)) for name in listed)
    hosts = draw(st.lists(st.sampled_from(listed), max_size=4)) if listed else []
    pods = tuple(
        draw(strategies.pods(name=f"placed-{index}", node_name=host))
        for index, host in enumerate(hosts)
    )
    return Cluster(nodes, pods)


def pending_pods() -> st.SearchStrategy[Pod]:
    """Pods to ask about; a few of them name their node."""
    named = st.sampled_from(_NODE_NAMES).flatmap(lambda name: strategies.pods(node_name=name))
    plain = strategies.pods(with_affinity=False)
    return st.one_of(strategies.pods(), strategies.pods(with_status=True), plain, named)


@st.composite
def clusters_and_newcomers(draw: st.DrawFn) -> tuple[Cluster, Pod]:
    """A cluster, and a pod that could be put on one of its nodes."""
    cluster = draw(clusters(min_nodes=1))
    host = draw(st.sampled_from([node.metadata.name for node in cluster.nodes]))
    return cluster, draw(strategies.pods(name="newcomer", node_name=host))
