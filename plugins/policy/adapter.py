"""From a user's class to a plugin of the framework."""

from __future__ import annotations

import inspect
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

import msgspec
import numpy as np

from plugins.framework.args import ArgsError
from plugins.framework.interfaces import FilterPlugin, Plugin, ScorePlugin
from plugins.framework.node_metrics import NoMetrics
from plugins.framework.results import ALL_PASS, NodeVerdicts
from plugins.framework.status import SUCCESS, Status, unschedulable
from plugins.policy.answers import (
    PolicyAnswerError,
    checked_mask,
    checked_score,
    checked_scores,
    checked_verdict,
    to_scale,
)
from plugins.policy.args import Args
from plugins.policy.guard import ABSENT, Unguarded
from plugins.policy.node import Node
from plugins.policy.nodes import Nodes
from plugins.policy.own_columns import OwnColumns
from plugins.policy.pod import Pod

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    import numpy.typing as npt

    from cache.columns import NodesView
    from cache.node_info import NodeInfo
    from cache.pod_info import PodInfo
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.handle import Handle
    from plugins.framework.results import IntArray
    from plugins.policy.guard import Guard

METHODS: Final = ("filter", "filter_one", "score", "score_one")
"""What a class needs at least one of."""


class PolicyClassError(TypeError):
    """A class that cannot be a plugin; the message names the class and what is wrong."""


def is_policy(candidate: object) -> bool:
    """Tell whether something is a class that means to be a user's plugin.

    One that has a filter or a score and is not of the framework's own kind.
    """
    return (
        isinstance(candidate, type)
        and not issubclass(candidate, (Plugin, msgspec.Struct))
        and any(callable(getattr(candidate, method, None)) for method in METHODS)
    )


def policy_name(cls: type) -> str:
    """Return the name by which profiles know a user's class: its ``name``, or the class's own."""
    name = cls.__dict__.get("name", cls.__name__)
    return name if isinstance(name, str) and name else cls.__name__


def adapt(cls: type, *, guard: Guard | None = None) -> type[Plugin]:
    """Return a plugin class that serves exactly the extension points that a user's class has.

    Parameters
    ----------
    cls
        A plain class, see docs/plugins.md.
    guard
        Runs every call; None lets failures through.

    Raises
    ------
    PolicyClassError
        When the class cannot be a plugin.
    """
    _check_class(cls)
    bases: list[type] = []
    normalized = bool(getattr(cls, "normalized", False))
    # The order counts: a vector form comes before the one that is derived from the scalar form.
    if _has(cls, "signature"):
        bases.append(_Signed)
    if _has(cls, "score", "score_one") and not normalized:
        bases.append(_Stretched)
    for method, base in _FORMS.items():
        if _has(cls, method):
            bases.append(base)
    members: dict[str, Any] = {
        "__doc__": cls.__doc__,
        "__module__": cls.__module__,
        "name": policy_name(cls),
        "args_type": _args_type(cls),
        "policy": cls,
        "guard": Unguarded() if guard is None else guard,
        "is_normalized": normalized,
    }
    return cast("type[Plugin]", type(cls.__name__, tuple(bases), members))


class PolicyPlugin(Plugin):
    """Base of what :func:`adapt` returns.

    Class attributes: ``policy`` is the user's class, ``guard`` runs the calls into it.
    """

    policy: ClassVar[type]
    guard: ClassVar[Guard]
    is_normalized: ClassVar[bool]
    """Whether its scores are within 0..100 as they come."""

    def __init__(self, args: msgspec.Struct | None, handle: Handle) -> None:
        super().__init__(args, handle)
        try:
            self.user: Any = self.policy(args) if _takes_args(self.policy) else self.policy()
        except ArgsError:
            raise
        except Exception as error:
            why = str(error) or type(error).__name__
            raise ArgsError("", f"{self.name} refuses them: {why}") from error
        self._metrics = _LentMetrics(handle)
        self.own_columns = OwnColumns(self._metrics)

    def nodes(self, view: NodesView) -> Nodes:
        """Return a view as the user's class sees it."""
        return Nodes(view, self.own_columns)


class _LentMetrics:
    """The handle's metrics: a constructor must not use its handle, a plugin on trial has none."""

    __slots__ = ("_handle",)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def latest(self, name: str) -> Any:
        return getattr(self._handle, "node_metrics", _NO_METRICS).latest(name)


_NO_METRICS: Final = NoMetrics()


class _Signed(PolicyPlugin):
    def signature(self, info: PodInfo) -> Hashable | None:
        """Return what the user's class returns, for as long as the guard calls it or does not."""
        guard = self.guard
        answer = guard.call(self.name, "signature", lambda: self._signature(info))
        return None if answer is None or answer is ABSENT else (answer, guard.calls)

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
        """Judge all nodes of the view."""
        count = len(nodes)

        def ask() -> npt.NDArray[np.bool_]:
            return checked_mask(self.user.filter(Pod(info), self.nodes(nodes)), count)

        passed = self.guard.call(self.name, "filter", ask)
        if passed is ABSENT or passed.all():
            return ALL_PASS
        return NodeVerdicts(passed.copy(), status=unschedulable(self._reason))


class _ScalarFilter(_Filter, FilterPlugin):
    def filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> NodeVerdicts:
        """Judge all nodes of the view, one after the other."""
        infos = nodes.node_infos()

        def ask() -> list[str | None]:
            pod, judge, reason = Pod(info), self.user.filter_one, self._reason
            own = self.own_columns
            return [checked_verdict(judge(pod, Node(each, own)), reason) for each in infos]

        reasons = self.guard.call(self.name, "filter_one", ask)
        if reasons is ABSENT or not any(reasons):
            return ALL_PASS
        passed = np.fromiter((each is None for each in reasons), np.bool_, len(reasons))

        def detail() -> tuple[npt.NDArray[np.integer], Sequence[Status]]:
            distinct = {each: at for at, each in enumerate(dict.fromkeys(reasons))}
            which = np.fromiter((distinct[each] for each in reasons), np.intp, len(reasons))
            return which, [SUCCESS if each is None else unschedulable(each) for each in distinct]

        return NodeVerdicts(passed, detail=detail)

    def filter_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> Status:
        """Judge one node."""

        def ask() -> str | None:
            answer = self.user.filter_one(Pod(info), Node(node_info, self.own_columns))
            return checked_verdict(answer, self._reason)

        reason = self.guard.call(self.name, "filter_one", ask)
        return SUCCESS if reason is None or reason is ABSENT else unschedulable(reason)


class _Score(PolicyPlugin):
    """Raw scores are integers to the framework; here they stand for floats, see ``_encoded``."""

    def _encoded(self, scores: npt.NDArray[np.float64]) -> IntArray:
        """Return raw scores as the framework carries them: int64.

        Those of a plugin that is stretched to the scale afterwards are the floats bit by bit:
        nothing is lost, and one node's does not depend on the others.
        """
        if self.is_normalized:
            return np.rint(scores, out=scores).astype(np.int64)
        return scores.view(np.int64)


class _VectorScore(_Score, ScorePlugin):
    def score(self, state: CycleState, info: PodInfo, nodes: NodesView) -> IntArray:
        """Return raw scores of all nodes of the view."""

        def ask() -> npt.NDArray[np.float64]:
            seen = self.nodes(nodes)
            answer = self.user.score(Pod(info), seen)
            return checked_scores(answer, seen.names, normalized=self.is_normalized)

        scores = self.guard.call(self.name, "score", ask)
        return np.zeros(len(nodes), np.int64) if scores is ABSENT else self._encoded(scores)


class _ScalarScore(_Score, ScorePlugin):
    def score(self, state: CycleState, info: PodInfo, nodes: NodesView) -> IntArray:
        """Return raw scores of all nodes of the view, asked one after the other."""
        infos = nodes.node_infos()

        def ask() -> npt.NDArray[np.float64]:
            pod, judge, own = Pod(info), self.user.score_one, self.own_columns
            normalized = self.is_normalized
            return np.fromiter(
                (
                    checked_score(judge(pod, Node(each, own)), each.name, normalized=normalized)
                    for each in infos
                ),
                np.float64,
                len(infos),
            )

        scores = self.guard.call(self.name, "score_one", ask)
        return np.zeros(len(infos), np.int64) if scores is ABSENT else self._encoded(scores)

    def score_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> int:
        """Return the raw score of one node."""

        def ask() -> float:
            answer = self.user.score_one(Pod(info), Node(node_info, self.own_columns))
            return checked_score(answer, node_info.name, normalized=self.is_normalized)

        score = self.guard.call(self.name, "score_one", ask)
        return 0 if score is ABSENT else int(self._encoded(np.array([score]))[0])


class _Stretched(PolicyPlugin):
    def normalize(self, state: CycleState, info: PodInfo, scores: IntArray) -> IntArray:
        """Bring raw scores to 0..100: the best becomes 100, the worst 0."""
        higher = bool(getattr(self.user, "higher_is_better", True))
        return to_scale(scores.view(np.float64), higher_is_better=higher)


_FORMS: Final[Mapping[str, type[PolicyPlugin]]] = MappingProxyType(
    {
        "filter": _VectorFilter,
        "filter_one": _ScalarFilter,
        "score": _VectorScore,
        "score_one": _ScalarScore,
    }
)


def _has(cls: type, *methods: str) -> bool:
    return any(callable(getattr(cls, method, None)) for method in methods)


def _check_class(cls: type) -> None:
    if not _has(cls, *METHODS):
        raise PolicyClassError(
            f"{cls.__name__} has none of {', '.join(METHODS)}: it would decide nothing"
        )
    for method in (*METHODS, "signature"):
        function = getattr(cls, method, None)
        wanted = 1 if method == "signature" else 2
        if function is not None and not _accepts(function, wanted + 1):
            takes = "(self, pod)" if wanted == 1 else _TAKES[method]
            raise PolicyClassError(f"{cls.__name__}.{method} must take {takes}")
    reason = getattr(cls, "reason", "")
    if not isinstance(reason, str):
        raise PolicyClassError(f"{cls.__name__}.reason must be a text")
    name = cls.__dict__.get("name")
    if name is not None and (not isinstance(name, str) or not name):
        raise PolicyClassError(f"{cls.__name__}.name must be a text that is not empty")
    _args_type(cls)
    if _takes_args(cls) and _args_type(cls) is None:
        raise PolicyClassError(
            f"{cls.__name__}.__init__ takes arguments, but the class has no Args: "
            "write `class Args(plugins.policy.Args)` within it"
        )


_TAKES: Final = {
    "filter": "(self, pod, nodes)",
    "filter_one": "(self, pod, node)",
    "score": "(self, pod, nodes)",
    "score_one": "(self, pod, node)",
}


def _args_type(cls: type) -> type[msgspec.Struct] | None:
    found = getattr(cls, "Args", None)
    if found is None or found is Args:
        return None
    if not isinstance(found, type) or not issubclass(found, Args):
        raise PolicyClassError(f"{cls.__name__}.Args must be a subclass of plugins.policy.Args")
    return found


def _takes_args(cls: type) -> bool:
    constructor = cls.__dict__.get("__init__") or inspect.getattr_static(cls, "__init__")
    return constructor is not object.__init__ and _accepts(constructor, 2)


def _accepts(function: Any, count: int) -> bool:
    """Tell whether a function can be called with so many positional arguments."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:
        return True
    return True
