"""Adapts a user's class to the plugin interfaces of the framework."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

import numpy as np

from cache.columns import NodesView
from plugins.authoring.checked_results import (
    PolicyAnswerError,
    checked_mask,
    checked_score,
    checked_scores,
    checked_verdict,
    to_scale,
)
from plugins.authoring.guard import ABSENT, Unguarded
from plugins.authoring.node import Node
from plugins.authoring.nodes import Nodes
from plugins.authoring.other_nodes import OtherNodes
from plugins.authoring.own_columns import OwnColumns
from plugins.authoring.pod import Pod
from plugins.authoring.user_class import args_type_of, check_class, has_any, policy_name, takes_args
from plugins.framework.args import ArgsError
from plugins.framework.interfaces import FilterPlugin, Plugin, ScorePlugin
from plugins.framework.node_metrics import NoMetrics
from plugins.framework.results import ALL_PASS, NodeVerdicts
from plugins.framework.status import SUCCESS, Status, unschedulable

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import msgspec
    import numpy.typing as npt

    from cache.node_info import NodeInfo
    from cache.pod_info import PodInfo
    from plugins.authoring.guard import Guard
    from plugins.framework.cluster_events import EventRegistration
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.handle import Handle
    from plugins.framework.results import IntArray


def adapt(cls: type, *, guard: Guard | None = None) -> type[Plugin]:
    """Return a plugin class with exactly the extension points that a user's class implements.

    Parameters
    ----------
    cls
        A plain class, see docs/plugins.md.
    guard
        Runs every call; None lets exceptions propagate.

    Raises
    ------
    PolicyClassError
        When the class cannot be a plugin.
    """
    check_class(cls)
    bases: list[type] = []
    normalized = bool(getattr(cls, "normalized", False))
    # The order matters: a vector form comes before the form that is derived from the scalar form.
    if has_any(cls, "signature"):
        bases.append(_Signed)
    if has_any(cls, "score", "score_one") and not normalized:
        bases.append(_Scaled)
    for vector, scalar, *forms in _FORMS:
        written = (has_any(cls, vector), has_any(cls, scalar))
        bases += [form for form, of in zip(forms, _WRITTEN, strict=True) if written == of]
    members: dict[str, Any] = {
        "__doc__": cls.__doc__,
        "__module__": cls.__module__,
        "name": policy_name(cls),
        "args_type": args_type_of(cls),
        "policy": cls,
        "guard": Unguarded() if guard is None else guard,
        "is_normalized": normalized,
        "looks_at_others": bool(getattr(cls, "looks_at_other_nodes", False)),
    }
    return cast("type[Plugin]", type(cls.__name__, tuple(bases), members))


class PolicyPlugin(Plugin):
    """Base of the classes that :func:`adapt` returns.

    Class attributes: ``policy`` is the user's class, ``guard`` runs the calls into it.
    """

    policy: ClassVar[type]
    guard: ClassVar[Guard]
    is_normalized: ClassVar[bool]
    """Whether the user's scores are within 0..100 without normalization."""
    looks_at_others: ClassVar[bool]
    """Whether the result for one node depends on other nodes, through ``Nodes.all_nodes``."""

    def __init__(self, args: msgspec.Struct | None, handle: Handle) -> None:
        super().__init__(args, handle)
        try:
            self.user: Any = self.policy(args) if takes_args(self.policy) else self.policy()
        except ArgsError:
            raise
        except Exception as error:
            why = str(error) or type(error).__name__
            raise ArgsError("", f"{self.name} rejects the arguments: {why}") from error
        self.own_columns = OwnColumns(_LateMetrics(handle))
        self.others = OtherNodes()

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Return every event if the class filters, as it may depend on any object; else none."""
        return super().events_to_register() if isinstance(self, FilterPlugin) else ()

    def nodes(self, view: NodesView) -> Nodes:
        """Return the nodes of a view as the user's class receives them."""
        if self.looks_at_others:
            self.others.saw(view)
        return Nodes(view, self.own_columns)

    def alone(self, node_info: NodeInfo) -> NodesView:
        """Return a view of one node; its columns have all other nodes if the class uses them."""
        return self.others.view_of(node_info) if self.looks_at_others else NodesView.of([node_info])


class _LateMetrics:
    """The handle's node metrics, read late: a constructor must not use its handle.

    The handle of a plugin on trial has no node metrics.
    """

    __slots__ = ("_handle",)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def latest(self, name: str) -> Any:
        return getattr(self._handle, "node_metrics", _NO_METRICS).latest(name)


_NO_METRICS: Final = NoMetrics()


class _Signed(PolicyPlugin):
    def signature(self, info: PodInfo) -> Hashable | None:
        """Return the user's signature with ``guard.calls``; None if there is no signature."""
        guard = self.guard
        result = guard.call(self.name, "signature", lambda: self._signature(info))
        return None if result is None or result is ABSENT else (result, guard.calls)

    def _signature(self, info: PodInfo) -> Hashable | None:
        signature: Hashable | None = self.user.signature(Pod(info))
        try:
            hash(signature)
        except TypeError as error:
            raise PolicyAnswerError(
                "dtype", f"signature returned {type(signature).__name__}, which cannot be hashed"
            ) from error
        return signature


class _Filter(PolicyPlugin):
    @property
    def _reason(self) -> str:
        return str(getattr(self.user, "reason", "") or f"node(s) didn't suit plugin {self.name}")


class _VectorFilter(_Filter, FilterPlugin):
    def filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> NodeVerdicts:
        """Filter all nodes of the view."""
        count = len(nodes)

        def call() -> npt.NDArray[np.bool_]:
            return checked_mask(self.user.filter(Pod(info), self.nodes(nodes)), count)

        passed = self.guard.call(self.name, "filter", call)
        if passed is ABSENT or passed.all():
            return ALL_PASS
        return NodeVerdicts(passed.copy(), status=unschedulable(self._reason))

    def filter_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> Status:
        """Judge one node."""
        return self.filter(state, info, self.alone(node_info)).status_of(0)


class _ScalarFilter(_Filter, FilterPlugin):
    def filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> NodeVerdicts:
        """Filter all nodes of the view, one after the other."""
        infos = nodes.node_infos()

        def call() -> list[str | None]:
            pod, judge, reason = Pod(info), self.user.filter_one, self._reason
            own = self.own_columns
            return [
                checked_verdict(judge(pod, Node(node_info, own)), reason) for node_info in infos
            ]

        reasons = self.guard.call(self.name, "filter_one", call)
        if reasons is ABSENT or not any(reasons):
            return ALL_PASS
        passed = np.fromiter((reason is None for reason in reasons), np.bool_, len(reasons))

        def detail() -> tuple[npt.NDArray[np.integer], Sequence[Status]]:
            distinct = list(dict.fromkeys(reason for reason in reasons if reason is not None))
            index_of = {reason: index for index, reason in enumerate(distinct)}
            which = np.fromiter(
                (0 if reason is None else index_of[reason] for reason in reasons),
                np.intp,
                len(reasons),
            )
            return which, [unschedulable(reason) for reason in distinct]

        return NodeVerdicts(passed, detail=detail)

    def filter_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> Status:
        """Judge one node."""

        def call() -> str | None:
            result = self.user.filter_one(Pod(info), Node(node_info, self.own_columns))
            return checked_verdict(result, self._reason)

        reason = self.guard.call(self.name, "filter_one", call)
        return SUCCESS if reason is None or reason is ABSENT else unschedulable(reason)


class _BothFilter(_VectorFilter):
    filter_one = _ScalarFilter.filter_one


class _Score(PolicyPlugin):
    """Base of scores. The framework's raw scores are integers, which encode floats here."""

    def _encoded(self, scores: npt.NDArray[np.float64]) -> IntArray:
        """Return raw scores as the framework stores them: int64.

        The scores of a plugin that are scaled later keep the bits of the floats: no precision is
        lost, and the score of one node does not depend on the others.
        """
        if self.is_normalized:
            return np.rint(scores, out=scores).astype(np.int64)
        return scores.view(np.int64)


class _VectorScore(_Score, ScorePlugin):
    def score(self, state: CycleState, info: PodInfo, nodes: NodesView) -> IntArray:
        """Return the raw scores of all nodes of the view."""

        def call() -> npt.NDArray[np.float64]:
            result = self.user.score(Pod(info), self.nodes(nodes))
            return checked_scores(
                result,
                len(nodes),
                lambda at: nodes.node_info(at).name,
                normalized=self.is_normalized,
            )

        scores = self.guard.call(self.name, "score", call)
        return np.zeros(len(nodes), np.int64) if scores is ABSENT else self._encoded(scores)

    def score_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> int:
        """Return the raw score of one node."""
        return int(self.score(state, info, self.alone(node_info))[0])


class _ScalarScore(_Score, ScorePlugin):
    def score(self, state: CycleState, info: PodInfo, nodes: NodesView) -> IntArray:
        """Return the raw scores of all nodes of the view, computed one after the other."""
        infos = nodes.node_infos()

        def call() -> npt.NDArray[np.float64]:
            pod, judge, own = Pod(info), self.user.score_one, self.own_columns
            normalized = self.is_normalized
            return np.fromiter(
                (
                    checked_score(
                        judge(pod, Node(node_info, own)), node_info.name, normalized=normalized
                    )
                    for node_info in infos
                ),
                np.float64,
                len(infos),
            )

        scores = self.guard.call(self.name, "score_one", call)
        return np.zeros(len(infos), np.int64) if scores is ABSENT else self._encoded(scores)

    def score_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> int:
        """Return the raw score of one node."""

        def call() -> float:
            result = self.user.score_one(Pod(info), Node(node_info, self.own_columns))
            return checked_score(result, node_info.name, normalized=self.is_normalized)

        score = self.guard.call(self.name, "score_one", call)
        return 0 if score is ABSENT else int(self._encoded(np.array([score]))[0])


class _Scaled(PolicyPlugin):
    def normalize(self, state: CycleState, info: PodInfo, scores: IntArray) -> IntArray:
        """Scale raw scores to 0..100: the best becomes 100, the worst 0."""
        higher = bool(getattr(self.user, "higher_is_better", True))
        return to_scale(scores.view(np.float64), higher_is_better=higher)


class _BothScore(_VectorScore):
    score_one = _ScalarScore.score_one


_WRITTEN: Final = ((True, False), (False, True), (True, True))
_FORMS: Final = (
    ("filter", "filter_one", _VectorFilter, _ScalarFilter, _BothFilter),
    ("score", "score_one", _VectorScore, _ScalarScore, _BothScore),
)
"""The base of a class that has the vector form, the scalar form, or both."""
