"""Finds a node for a pod whose like was there before, at the cost of what changed since.

Every plugin is asked to sign the pod. The answers of those that do are shared by all pods with
the same signatures; those that do not (spreading and affinity, whose verdicts depend on all other
pods) are asked anew, in the vector form, about the nodes that the others leave.

Source of the idea: pkg/scheduler/framework/runtime/batch.go of kube-scheduler 1.36, which hands
the next best node to the next pod of a signature as long as a node takes one pod only.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import msgspec
import numpy as np

from cache.byte_bounded import deep_bytes
from plugins.framework.attempt_budget import UNLIMITED
from plugins.framework.cycle_state import CycleState
from plugins.framework.interfaces import (
    BindPlugin,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PreBindPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
)
from plugins.framework.status import Code
from scheduler.filter_outcome import PluginError
from scheduler.metrics.cycle_metrics import REUSE
from scheduler.reuse.kept_verdicts import KeptVerdicts, NotShareableError
from scheduler.score_check import check_scores

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from cache.columns import NodesView
    from cache.objects import Pod
    from cache.pod_info import PodInfo
    from cache.snapshot import Snapshot
    from plugins.framework.attempt_budget import AttemptBudget
    from plugins.framework.results import BoolArray
    from scheduler.framework_runner import FrameworkRunner
    from scheduler.host_selection import HostSelector

    _Key: TypeAlias = tuple[FrameworkRunner, Hashable]

P = TypeVar("P", bound=Plugin)

MAX_SIGNATURES: Final = 64
"""Kept at one time: more than the workloads that usually wait side by side."""

MAX_KEPT_NODES: Final = 2_000_000
"""Rows of all that is kept together; each takes some 40 bytes."""

MAX_POD_BYTES: Final = 1 << 18
"""What a pod may weigh whose verdicts are kept, since it is kept with them: 256 KiB, some thirty
times an ordinary one."""

MOST_BYTES_BY_PACKED: Final = 128
"""A pod takes at most so many times the bytes that it has when packed; an ordinary one seven times,
and one with thousands of the smallest parts that are valid some twenty times."""

pack: Final = msgspec.msgpack.Encoder().encode

_POINTS: Final = ("preFilter", "filter", "preScore", "score")
_BOOKKEEPERS: Final = (ReservePlugin, PermitPlugin, PreBindPlugin, BindPlugin, PostBindPlugin)


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a pod goes, as a cycle over all nodes might have chosen too."""

    row: int
    score: int | None
    """None when a single feasible node needed none."""
    feasible_nodes: int


class _Others:
    """The plugins that did not sign a pod, by extension point, and those that did."""

    __slots__ = ("filters", "pre_filters", "pre_scorers", "scorers", "signing")

    def __init__(self, points: Mapping[str, Sequence[Plugin]], signed: frozenset[str]) -> None:
        self.signing: dict[str, Sequence[Plugin]] = {
            point: tuple(p for p in points.get(point, ()) if p.name in signed) for point in _POINTS
        }

        def others(point: str, kind: type[P]) -> tuple[P, ...]:
            plugins = points.get(point, ())
            return tuple(p for p in plugins if isinstance(p, kind) and p.name not in signed)

        self.pre_filters = others("preFilter", PreFilterPlugin)
        self.filters = others("filter", FilterPlugin)
        self.pre_scorers = others("preScore", PreScorePlugin)
        self.scorers = others("score", ScorePlugin)


class _Profile:
    """The plugins of one profile that can sign, and the others for each set that did."""

    __slots__ = ("_others", "_points", "signers", "weights")

    def __init__(self, framework: FrameworkRunner) -> None:
        self._points = framework.points
        self.weights = framework.score_weights
        judges = dict.fromkeys(p for point in _POINTS for p in framework.points.get(point, ()))
        self.signers = tuple(
            plugin
            for plugin in judges
            if type(plugin).signature is not Plugin.signature
            and not isinstance(plugin, _BOOKKEEPERS)
        )
        self._others: dict[frozenset[str], _Others] = {}

    def others(self, signed: frozenset[str]) -> _Others:
        found = self._others.get(signed)
        if found is None:
            found = self._others[signed] = _Others(self._points, signed)
        return found


class SignatureReuse:
    """Keeps verdicts by signature.

    Parameters
    ----------
    snapshot
        The nodes; brought up to date by the caller before each :meth:`place`.
    selector
        Chooses among equally good nodes.

    Notes
    -----
    *Concurrency*: confined to the scheduling thread.
    """

    def __init__(self, snapshot: Snapshot, selector: HostSelector) -> None:
        self._snapshot = snapshot
        self._selector = selector
        self._kept: OrderedDict[_Key, KeptVerdicts | None] = OrderedDict()
        self._had_verdicts = False
        self._profiles: dict[FrameworkRunner, _Profile] = {}

    def __len__(self) -> int:
        """Return how many signatures are kept."""
        return len(self._kept)

    def retain_profiles(self, frameworks: Iterable[FrameworkRunner]) -> None:
        """Forget all profiles but these, with all that is kept for them."""
        retained = set(frameworks)
        for framework in self._profiles.keys() - retained:
            del self._profiles[framework]
        for key in [key for key in self._kept if key[0] not in retained]:
            del self._kept[key]

    def place(
        self, framework: FrameworkRunner, state: CycleState, info: PodInfo
    ) -> Placement | None:
        """Return where a pod goes, or None when that has to be found the long way.

        None stands for everything that is not a plain success: no feasible node, a PreFilter that
        rejects or narrows, any failure. What the plugins that are asked anew noted stands in
        ``state`` after a success; after None it is as it was made.

        *Cost*: some 50 us where every plugin signs or skips; else that of the other plugins' vector
        forms.
        """
        self._had_verdicts = False
        try:
            placement = self._place(framework, state, info)
        except Exception:  # noqa: BLE001 - the long way meets it again and says whose fault it is
            placement = None
        if placement is None:
            state.reset()
        if state.marks is not None:
            outcome = "no_hint"
            if self._had_verdicts:
                outcome = "hint_not_used" if placement is None else "hint_used"
            state.marks.append((REUSE, outcome, Code.SUCCESS, perf_counter()))
        return placement

    def warm(self, framework: FrameworkRunner, info: PodInfo) -> None:
        """Work out the verdicts for a pod's signature if they can be shared; choose nothing.

        Raises
        ------
        Exception
            Whatever a plugin's signature raises.
        """
        profile, signed = self._signed(framework, info)
        others = profile.others(frozenset(signed))
        self._kept_verdicts((framework, tuple(signed.items())), others, profile.weights, info)

    def _place(
        self, framework: FrameworkRunner, state: CycleState, info: PodInfo
    ) -> Placement | None:
        profile, signed = self._signed(framework, info)
        others = profile.others(frozenset(signed))
        key = (framework, tuple(signed.items()))
        kept = self._kept_verdicts(key, others, profile.weights, info, state.budget)
        if kept is None:
            return None
        marks = state.marks
        nodes = self._snapshot.all_nodes()
        asked = _filtered(others, state, info, nodes)
        if asked is None:
            return None
        crowded = _crowded(framework, info, nodes, state.budget)
        if crowded is not None:
            asked.append(crowded)
        feasible = kept.feasible
        for passed in asked:
            feasible = feasible & passed
        count = int(np.count_nonzero(feasible)) if asked else kept.count
        if marks is not None:
            marks.append(("Filter", "", Code.SUCCESS, perf_counter()))
        if count <= 1:
            return Placement(_first(feasible), None, 1) if count else None
        view = _restricted(nodes, feasible) if asked else kept.view()
        scorers = _active_scorers(others, state, info, view)
        if not (scorers or asked):
            best = kept.best()
            row = best.pick(self._selector.pick)
            if marks is not None:
                marks.append(("Score", "", Code.SUCCESS, perf_counter()))
            return Placement(row, int(best.scores[row]), count)
        total = kept.scores(view)
        for scorer in scorers:
            state.budget.check()
            scores = scorer.normalize(state, info, scorer.score(state, info, view))
            check_scores(scorer, scores, count)
            total += scores * profile.weights[scorer.name]
            if marks is not None:
                marks.append(("Score", scorer.name, Code.SUCCESS, perf_counter()))
        chosen = self._selector.select(total)
        if marks is not None:
            marks.append(("Score", "", Code.SUCCESS, perf_counter()))
        row = chosen if view.rows is None else int(view.rows[chosen])
        return Placement(row, int(total[chosen]), count)

    def _signed(
        self, framework: FrameworkRunner, info: PodInfo
    ) -> tuple[_Profile, dict[str, Hashable]]:
        """Return what is known of a profile, and the signatures of its plugins that sign."""
        profile = self._profile(framework)
        signed = {}
        for plugin in profile.signers:
            signature = plugin.signature(info)
            if signature is not None:
                signed[plugin.name] = signature
        return profile, signed

    def _profile(self, framework: FrameworkRunner) -> _Profile:
        known = self._profiles.get(framework)
        if known is None:
            known = self._profiles[framework] = _Profile(framework)
        return known

    def _kept_verdicts(
        self,
        key: _Key,
        others: _Others,
        weights: Mapping[str, int],
        info: PodInfo,
        budget: AttemptBudget = UNLIMITED,
    ) -> KeptVerdicts | None:
        """Return the verdicts of a signature, up to date; None when they cannot be shared."""
        columns = self._snapshot.columns
        if key in self._kept:
            # Out while it follows: whatever a plugin raises there, nothing half followed is kept.
            kept = self._kept.pop(key)
            if kept is None or kept.follow(budget):
                self._kept[key] = kept
                self._had_verdicts = kept is not None
                return kept
        if _is_heavy(info.pod):
            return None
        try:
            kept = KeptVerdicts(others.signing, weights, info, columns, budget)
        except (NotShareableError, PluginError):
            kept = None
        self._kept[key] = kept
        while len(self._kept) > max(1, min(MAX_SIGNATURES, MAX_KEPT_NODES // (len(columns) + 1))):
            self._kept.popitem(last=False)
        return kept


def _is_heavy(pod: Pod) -> bool:
    """Tell whether a pod weighs more than MAX_POD_BYTES.

    *Cost*: half a microsecond for an ordinary pod, which is packed and not looked into; 20 us and
    more for one that is large when packed.
    """
    if len(pack(pod)) * MOST_BYTES_BY_PACKED <= MAX_POD_BYTES:
        return False
    return deep_bytes(pod, at_most=MAX_POD_BYTES) > MAX_POD_BYTES


def _filtered(
    others: _Others, state: CycleState, info: PodInfo, nodes: NodesView
) -> list[BoolArray] | None:
    """Return the masks of the filters that are asked anew; None when the long way is needed."""
    check = state.budget.check
    for pre_filter in others.pre_filters:
        check()
        result = pre_filter.pre_filter(state, info, nodes)
        if result.status.code is Code.SKIP:
            # Not marked: it took no time, and marks are a good part of what such a cycle costs.
            state.skip_filter.add(pre_filter.name)
            continue
        if state.marks is not None:
            state.marks.append(("PreFilter", pre_filter.name, result.status.code, perf_counter()))
        if not result.status.is_success or result.node_names is not None:
            return None
    masks = []
    for plugin in others.filters:
        if plugin.name not in state.skip_filter:
            check()
            passed = plugin.filter(state, info, nodes).passed
            if state.marks is not None:
                state.marks.append(("Filter", plugin.name, Code.SUCCESS, perf_counter()))
            if passed is not None:
                masks.append(passed)
    return masks


def _crowded(
    framework: FrameworkRunner, info: PodInfo, nodes: NodesView, budget: AttemptBudget
) -> BoolArray | None:
    """Return a mask without the nodes that have no room beside the pods nominated for them.

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


def _active_scorers(
    others: _Others, state: CycleState, info: PodInfo, view: NodesView
) -> list[ScorePlugin]:
    for pre_scorer in others.pre_scorers:
        state.budget.check()
        status = pre_scorer.pre_score(state, info, view)
        if status.code is Code.SKIP:
            state.skip_score.add(pre_scorer.name)
            continue
        if state.marks is not None:
            state.marks.append(("PreScore", pre_scorer.name, status.code, perf_counter()))
        if not status.is_success:
            raise NotShareableError(status.message)
    return [scorer for scorer in others.scorers if scorer.name not in state.skip_score]


def _first(feasible: BoolArray) -> int:
    """Return the first row that is feasible.

    ``argmax`` lets go of the GIL whatever the size; to have it back beside a busy I/O thread cost
    80 us, this costs 1 us.
    """
    return feasible.tobytes().index(1)


def _restricted(nodes: NodesView, feasible: BoolArray) -> NodesView:
    rows = np.flatnonzero(feasible)
    return nodes if len(rows) == len(feasible) else nodes.subset(rows)
