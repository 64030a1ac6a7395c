"""Find a node for a pod with a known signature by computing only the changed rows.

Every plugin may sign the pod. The results of the plugins that do are shared by all pods with the
same signatures. The plugins that do not (spreading and affinity, whose verdicts depend on all other
pods) run again, in the vector form, for the nodes that the others accept.

Source of the idea: pkg/scheduler/framework/runtime/batch.go of kube-scheduler 1.36, which hands
the next best node to the next pod of a signature as long as a node takes one pod only.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, TypeAlias
from weakref import WeakValueDictionary

import msgspec
import numpy as np

from cache.byte_bounded import ByteBounded, deep_bytes
from cache.value import Value
from plugins.framework.attempt_budget import UNLIMITED
from plugins.framework.cycle_state import CycleState
from plugins.framework.interfaces import (
    BindPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PreBindPlugin,
    ReservePlugin,
)
from plugins.framework.status import Code
from scheduler.cycle.host_selection import second_best
from scheduler.cycle.kept_verdicts import (
    MAX_JOINT,
    KeptVerdicts,
    NotShareableError,
    Signers,
    dtype_of_scores,
    follow_jointly,
)
from scheduler.cycle.ranking import Ranking
from scheduler.metrics.cycle_metrics import REUSE
from scheduler.runtime.filter_outcome import PluginError
from scheduler.runtime.instrumented_plugins import mark, measured_in_reuse, measured_point
from scheduler.runtime.plugin_set import Mask, PluginSet

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from cache.columns import NodesView
    from cache.objects import Pod
    from cache.pod_info import PodInfo
    from cache.snapshot import Snapshot
    from plugins.framework.attempt_budget import AttemptBudget
    from plugins.framework.results import BoolArray
    from scheduler.cycle.best_rows import BestRows
    from scheduler.cycle.host_selection import HostSelector
    from scheduler.runtime.framework_runner import FrameworkRunner
    from scheduler.runtime.judgement import Candidates, LikePods

    _Key: TypeAlias = tuple[FrameworkRunner, Hashable]
    _Keys: TypeAlias = tuple[_Key, _Key]

MAX_KEPT_BYTES: Final = 1 << 26
"""64 MiB for the verdicts of each half of the plugins: a thousand kinds of pods and 15 000 nodes
count as 50 MB."""

MAX_RANKINGS: Final = 64
"""Kept at one time: more than the workloads that usually wait side by side."""

MAX_RANKED_NODES: Final = 2_000_000
"""Rows of all rankings together; each takes some 10 bytes, or 40 while most nodes are equal."""

MAX_POD_BYTES: Final = 1 << 18
"""What a pod may weigh whose verdicts are kept, since it is kept with them: 256 KiB, some thirty
times an ordinary one."""

MOST_BYTES_BY_PACKED: Final = 128
"""A pod takes at most so many times the bytes that it has when packed; an ordinary one seven times,
and one with thousands of the smallest parts that are valid some twenty times."""

ORDINARY_BYTES_BY_PACKED: Final = 32
"""What a pod is counted with that is kept, for each byte that it has when packed."""

pack: Final = msgspec.msgpack.Encoder().encode

_POINTS: Final = ("preFilter", "filter", "preScore", "score")  # who judges nodes
_BOOKKEEPERS: Final = (ReservePlugin, PermitPlugin, PreBindPlugin, BindPlugin, PostBindPlugin)


def no_pods(_: int) -> Sequence[PodInfo]:
    """Return nothing: it is not known which pods come."""
    return ()


class Placement(Value, frozen=True):
    """The node for a pod, which a cycle over all nodes could have chosen too."""

    row: int
    score: int | None
    """None when a single feasible node needed none."""
    feasible_nodes: int
    second: tuple[int, int] | None = None
    """Row and score of the second best node; None where that was not at hand."""


class _Division:
    """The plugins that signed a pod, in two halves, and the others, which run again."""

    __slots__ = ("halves", "nobody", "others")

    def __init__(self, judges: PluginSet, signed: frozenset[str]) -> None:
        self.nobody = judges.where(lambda _: False)
        signers = judges.where(lambda plugin: plugin.name in signed)
        # That of all plugins: the halves of two divisions may meet.
        dtype = dtype_of_scores(judges)
        self.halves = (
            Signers(signers.where(lambda plugin: not plugin.reads_pods), dtype, of_pods=False),
            Signers(signers.where(lambda plugin: plugin.reads_pods), dtype, of_pods=True),
        )
        """Those that read no pods, and those that do."""
        self.others = judges.where(lambda plugin: plugin.name not in signed, measured_in_reuse)


class _Idle(Value, frozen=True):
    """The skips of a pod for which all plugins that did not sign had nothing to do."""

    division: _Division
    keys: _Keys
    skip_filter: frozenset[str]
    skip_score: frozenset[str]

    def skip(self, state: CycleState, *, is_scored: bool) -> None:
        """Let the same plugins skip another pod."""
        state.skip_filter = set(self.skip_filter)
        if is_scored:
            state.skip_score = set(self.skip_score)


class _Profile:
    """The plugins of one profile that can sign, and a division for each set that signed."""

    __slots__ = ("_divisions", "_judges", "_names", "signers")

    def __init__(self, framework: FrameworkRunner) -> None:
        self._judges = framework.judges
        judges = dict.fromkeys(p for point in _POINTS for p in framework.points.get(point, ()))
        signers = tuple(
            plugin
            for plugin in judges
            if type(plugin).signature is not Plugin.signature
            and not isinstance(plugin, _BOOKKEEPERS)
        )
        self.signers = tuple(
            tuple((p.name, p.signature) for p in signers if p.reads_pods is of_pods)
            for of_pods in (False, True)
        )
        """Names and signatures of the plugins that can sign, by whether they read pods."""
        self._names = frozenset(plugin.name for plugin in signers)
        self._divisions: dict[frozenset[str], _Division] = {}

    def division(self, refused: frozenset[str]) -> _Division:
        """Return the division for pods that some of the plugins did not sign."""
        found = self._divisions.get(refused)
        if found is None:
            found = self._divisions[refused] = _Division(self._judges, self._names - refused)
        return found


class SignatureReuse:
    """Store kept verdicts by signature, and place pods with them.

    Parameters
    ----------
    snapshot
        The nodes; brought up to date by the caller before each :meth:`place`.
    selector
        Chooses among nodes with equal scores.
    coming
        Returns so many pods, or fewer, that will probably be placed next.

    Notes
    -----
    *Concurrency*: confined to the scheduling thread.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        selector: HostSelector,
        coming: Callable[[int], Sequence[PodInfo]] = no_pods,
    ) -> None:
        self._snapshot = snapshot
        self._selector = selector
        self._coming = coming
        self._kept: tuple[ByteBounded[_Key, KeptVerdicts | _Unshared], ...] = tuple(
            ByteBounded(MAX_KEPT_BYTES, _weight) for _ in range(2)
        )
        """The verdicts of the plugins that read no pods, and of those that do, by signature."""
        self._by_requests: WeakValueDictionary[Hashable, KeptVerdicts] = WeakValueDictionary()
        """Those of plugins that read pods, by what the pods request; one of them where several
        signatures do."""
        self._rankings: OrderedDict[tuple[KeptVerdicts, KeptVerdicts], Ranking] = OrderedDict()
        self._had_verdicts = False
        self._profiles: dict[FrameworkRunner, _Profile] = {}

    def retain_profiles(self, frameworks: Iterable[FrameworkRunner]) -> None:
        """Forget all profiles but these, with all that is kept for them."""
        retained = set(frameworks)
        for framework in self._profiles.keys() - retained:
            del self._profiles[framework]
        for kept in self._kept:
            for key in [key for key in kept if key[0] not in retained]:
                kept.pop(key)
        self._rankings.clear()

    def place(
        self,
        framework: FrameworkRunner,
        state: CycleState,
        info: PodInfo,
        among: Candidates | None = None,
        like: LikePods | None = None,
    ) -> Placement | None:
        """Return where a pod goes, or None when that has to be found the long way.

        Only nodes of ``among`` are chosen; None for all nodes. ``like`` are pods that it is one of.

        None stands for everything that is not a plain success: no feasible node, a PreFilter that
        rejects or narrows, any failure. What the plugins that are asked anew noted stands in
        ``state`` after a success; after None it is as it was made.

        *Cost*: some 50 us where every plugin signs or skips; else that of the other plugins' vector
        forms.
        """
        self._had_verdicts = False
        try:
            placement = self._place(framework, state, info, among, like)
        except Exception:  # noqa: BLE001 - the long way meets it again and says whose fault it is
            placement = None
        if placement is None:
            state.reset()
        outcome = "no_hint"
        if self._had_verdicts:
            outcome = "hint_not_used" if placement is None else "hint_used"
        mark(state, REUSE, outcome, Code.SUCCESS)
        return placement

    def best_rows(
        self, framework: FrameworkRunner, info: PodInfo, like: LikePods, budget: AttemptBudget
    ) -> BestRows | None:
        """Return the best rows for one more of some pods that are alike, by the columns alone.

        None where none is feasible, and where more than the columns of a node decide about it: a
        plugin that did not sign, a score relative to those of others, pods that are nominated. A
        member of ``like`` was placed before.

        *Cost*: that of the vector forms for the changed rows.
        """
        idle = like.memo
        if not isinstance(idle, _Idle):
            return None
        nominated = framework.nominated
        try:
            if nominated is not None and nominated.crowded(info, self._snapshot.all_nodes()):
                return None
            ranking = self._ranking(idle.division, idle.keys, info, budget, by_columns=True)
            if ranking is None or ranking.is_relative or not ranking.count:
                return None
            return ranking.best()
        except Exception:  # noqa: BLE001 - the usual way meets it again and says whose fault it is
            return None

    def forget_best(self) -> None:
        """Let the next choices among equals depend on the rows, not on what was chosen before.

        *Cost*: a pass over the nodes for each signature that is used again.
        """
        for ranking in self._rankings.values():
            ranking.forget_best()

    def warm(self, framework: FrameworkRunner, info: PodInfo) -> None:
        """Work out the verdicts for a pod's signature if they can be shared; choose nothing.

        Raises
        ------
        Exception
            Whatever a plugin's signature raises.
        """
        division, keys = self._signed(framework, info)
        self._ranking(division, keys, info, UNLIMITED)

    def _place(
        self,
        framework: FrameworkRunner,
        state: CycleState,
        info: PodInfo,
        among: Candidates | None,
        like: LikePods | None,
    ) -> Placement | None:
        idle = like.memo if like is not None and isinstance(like.memo, _Idle) else None
        if idle is None:
            division, keys = self._signed(framework, info)
            others = division.others
        else:
            division, keys, others = idle.division, idle.keys, idle.division.nobody
        ranking = self._ranking(division, keys, info, state.budget)
        if ranking is None:
            return None
        feasible = self._filter(state, framework, info, others, ranking)
        if among is not None:
            feasible = (ranking.feasible if feasible is None else feasible) & among.mask
        count = ranking.count if feasible is None else int(np.count_nonzero(feasible))
        if count > 1:
            if feasible is None:
                view = ranking.view()
            else:
                view = _restricted(self._snapshot.all_nodes(), feasible)
            leaving = None if framework.prefers_full_nodes else info
            placement: Placement | None = self._choose(state, info, others, ranking, view, leaving)
            if like is not None and idle is None:
                like.memo = _idle(state, division, keys)
        elif count:
            only = _first(ranking.feasible if feasible is None else feasible)
            placement = Placement(only, None, 1)
        else:
            placement = None
        if idle is not None:
            idle.skip(state, is_scored=count > 1)
        return placement

    @measured_point("Filter")
    def _filter(
        self,
        state: CycleState,
        framework: FrameworkRunner,
        info: PodInfo,
        others: PluginSet,
        ranking: Ranking,
    ) -> BoolArray | None:
        """Return the nodes that all plugins accept: None for those of the ranking."""
        nodes = self._snapshot.all_nodes()
        pre = others.run_pre_filters(state, info, nodes)
        if not pre.status.is_success or pre.node_names is not None:
            raise NotShareableError("a PreFilter rejects the pod or narrows the search")
        feasible: BoolArray | None = None
        if not others.filter_names <= state.skip_filter:
            mask = Mask(ranking.feasible)
            others.run_filters(state, info, nodes, mask)
            if mask.feasible is not ranking.feasible:
                feasible = mask.feasible
        crowded = _crowded(framework, info, nodes, state.budget)
        if crowded is None:
            return feasible
        return (ranking.feasible if feasible is None else feasible) & crowded

    @measured_point("Score")
    def _choose(
        self,
        state: CycleState,
        info: PodInfo,
        others: PluginSet,
        ranking: Ranking,
        view: NodesView,
        leaving: PodInfo | None,
    ) -> Placement:
        """Return the best of several nodes that all plugins accept."""
        others.run_pre_scores(state, info, view)
        if view is ranking.view() and others.scorer_names <= state.skip_score:
            best = ranking.best()
            row = self._selector.select_row(best, view.columns, leaving)
            return Placement(row, int(best.scores[row]), len(view), best.second(row))
        total = ranking.totals(view)
        others.add_scores(total, state, info, view)
        chosen = self._selector.select(total, view, leaving)
        second, score = second_best(total, chosen)
        rows = (chosen, second) if view.rows is None else view.rows[[chosen, second]].tolist()
        return Placement(rows[0], int(total[chosen]), len(view), (rows[1], score))

    def _signed(self, framework: FrameworkRunner, info: PodInfo) -> tuple[_Division, _Keys]:
        """Return the plugins that sign a pod, the others, and the keys of the kept verdicts."""
        profile = self._profile(framework)
        refused: frozenset[str] = _NOBODY
        halves = []
        for signers in profile.signers:
            signatures = []
            for name, sign in signers:
                signature = sign(info)
                if signature is None:
                    refused |= {name}
                signatures.append(signature)
            halves.append(tuple(signatures))
        of_nodes, of_pods = halves
        return profile.division(refused), ((framework, of_nodes), (framework, of_pods))

    def _profile(self, framework: FrameworkRunner) -> _Profile:
        known = self._profiles.get(framework)
        if known is None:
            known = self._profiles[framework] = _Profile(framework)
        return known

    def _ranking(
        self,
        division: _Division,
        keys: _Keys,
        info: PodInfo,
        budget: AttemptBudget,
        *,
        by_columns: bool = False,
    ) -> Ranking | None:
        """Return the verdicts of all plugins that signed; None when they cannot be shared."""
        kept, signers = self._kept, division.halves
        of_nodes, were_kept = self._half(
            kept[0], signers[0], keys[0], info, budget, by_columns=by_columns
        )
        if of_nodes is None:
            return None
        of_pods, are_kept = self._half(
            kept[1], signers[1], keys[1], info, budget, by_columns=by_columns
        )
        if of_pods is None:
            return None
        self._had_verdicts = were_kept and are_kept
        pair = of_nodes, of_pods
        ranking = self._rankings.pop(pair, None)
        if ranking is None or not ranking.follow(by_columns=by_columns):
            ranking = Ranking(*pair)
            most = MAX_RANKED_NODES // (len(self._snapshot.columns) + 1)
            while len(self._rankings) >= max(1, min(MAX_RANKINGS, most)):
                self._rankings.popitem(last=False)
        self._rankings[pair] = ranking
        return ranking

    def _follow_jointly(self, kept: KeptVerdicts) -> None:
        """Bring verdicts up to date that are far behind, and those for the next pods with them.

        The plugins are called once for all these pods, where they can be. The next pods are not
        signed for it, which costs more than to be wrong about some of them.
        """
        joint = [kept]
        for info in self._coming(MAX_JOINT - 1):
            other = self._by_requests.get(_requests(info))
            if other is not None and other not in joint and kept.is_like(other):
                joint.append(other)
        if len(joint) > 1:
            follow_jointly(joint)

    def _half(
        self,
        every: ByteBounded[_Key, KeptVerdicts | _Unshared],
        signers: Signers,
        key: _Key,
        info: PodInfo,
        budget: AttemptBudget,
        *,
        by_columns: bool,
    ) -> tuple[KeptVerdicts | None, bool]:
        """Return the verdicts of one half, up to date, and whether they were kept before."""
        kept = every.get(key)
        if isinstance(kept, _Unshared):
            return None, False
        if kept is not None:
            try:
                if signers.of_pods and kept.is_far_behind():
                    self._follow_jointly(kept)
                if kept.follow(budget, by_columns=by_columns):
                    return kept, True
            except BaseException:
                # Whatever a plugin raises, nothing half followed is kept.
                every.pop(key)
                raise
        packed = len(pack(info.pod))
        if _is_heavy(info.pod, packed):
            every.pop(key)
            return None, False
        found: KeptVerdicts | _Unshared
        try:
            pod_bytes = packed * ORDINARY_BYTES_BY_PACKED
            found = KeptVerdicts(signers, info, self._snapshot.columns, budget, pod_bytes)
        except NotShareableError:
            found = _UNSHARED
        except PluginError as error:
            if error.status.error is not None:
                raise  # it raised, and need not do so the next time
            found = _UNSHARED
        every.put(key, found)
        if isinstance(found, _Unshared):
            return None, False
        if signers.of_pods:
            self._by_requests[_requests(info)] = found
        return found, False


_NOBODY: Final[frozenset[str]] = frozenset()


class _Unshared:
    """Stands for a signature whose verdicts cannot be shared."""

    nbytes = ORDINARY_BYTES_BY_PACKED << 10


_UNSHARED: Final = _Unshared()


def _requests(info: PodInfo) -> Hashable:
    return tuple(info.requests.items())


def _weight(_key: _Key, kept: KeptVerdicts | _Unshared) -> int:
    return kept.nbytes


def _idle(state: CycleState, division: _Division, keys: _Keys) -> _Idle | None:
    """Return the skips of a pod, or None if a plugin that did not sign has something to do."""
    others = division.others
    if not others.filter_names <= state.skip_filter or not others.scorer_names <= state.skip_score:
        return None
    return _Idle(division, keys, frozenset(state.skip_filter), frozenset(state.skip_score))


def _is_heavy(pod: Pod, packed: int) -> bool:
    """Return whether a pod weighs more than MAX_POD_BYTES.

    *Cost*: nothing for an ordinary pod, which is not looked into; 20 us and more for one that is
    large when packed.
    """
    if packed * MOST_BYTES_BY_PACKED <= MAX_POD_BYTES:
        return False
    return deep_bytes(pod, at_most=MAX_POD_BYTES) > MAX_POD_BYTES


def _crowded(
    framework: FrameworkRunner, info: PodInfo, nodes: NodesView, budget: AttemptBudget
) -> BoolArray | None:
    """Return a mask of the nodes that also suit the pod beside the pods nominated for them.

    None where no pod that is nominated matters to this one.
    """
    if framework.nominated is None:
        return None
    crowds = framework.nominated.crowded(info, nodes)
    if not crowds:
        return None
    rows = np.concatenate([each.at for each in crowds])
    state = CycleState(budget)
    if not framework.run_pre_filter(state, info, nodes).status.is_success:
        raise NotShareableError("a PreFilter rejects the pod")
    mask = np.ones(len(nodes), dtype=np.bool_)
    passed = framework.run_filter(state, info, nodes.subset(rows)).feasible
    if passed is not None:
        mask[rows] = passed
    return mask


def _first(feasible: BoolArray) -> int:
    """Return the first row that is feasible.

    ``argmax`` lets go of the GIL whatever the size; to have it back beside a busy I/O thread cost
    80 us, this costs 1 us.
    """
    return feasible.tobytes().index(1)


def _restricted(nodes: NodesView, feasible: BoolArray) -> NodesView:
    rows = np.flatnonzero(feasible)
    return nodes if len(rows) == len(feasible) else nodes.subset(rows)
