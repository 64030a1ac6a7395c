"""The verdicts of the filters of one search on the nodes of a view, or their failure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from cache.distinct import distinct
from plugins.framework.results import NodeVerdicts
from plugins.framework.status import SUCCESS, Code, Status, failure
from scheduler.decision.decision import RejectedNodes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from cache.columns import NodesView
    from cache.pod_info import PodInfo
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.interfaces import FilterPlugin
    from plugins.framework.results import BoolArray, RowArray

    VectorFilter: TypeAlias = Callable[[CycleState, PodInfo, NodesView], NodeVerdicts]


class PluginError(Exception):
    """A plugin raised, or returned a value that its extension point does not allow."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


class Rejection(NamedTuple):
    """Nodes that one plugin rejected and that no earlier plugin rejected.

    ``newly`` is bool of shape (n_nodes,): entries of ``verdicts`` elsewhere have no meaning.
    """

    plugin: str
    verdicts: NodeVerdicts
    newly: BoolArray


class FilterOutcome:
    """The feasible nodes of a view, and the rejections of the others.

    ``feasible`` is None when every node is, else bool of shape (n_nodes,).
    """

    __slots__ = ("feasible", "rejections", "view")

    def __init__(self, view: NodesView) -> None:
        self.view = view
        self.feasible: BoolArray | None = None
        self.rejections: list[Rejection] = []

    def add(self, plugin: str, verdicts: NodeVerdicts) -> bool:
        """Take in the verdicts of the next plugin; return whether any node is still feasible."""
        passed = verdicts.passed
        if passed is None:
            return self.feasible is None or bool(self.feasible.any())
        if self.feasible is None:
            newly = ~passed
            self.feasible = passed
        else:
            newly = self.feasible & ~passed
            self.feasible = self.feasible & passed
        if newly.any():
            self.rejections.append(Rejection(plugin, verdicts, newly))
        return bool(self.feasible.any())

    def counting(self) -> BoolArray | None:
        """Return the nodes that are still feasible: what later filters say of others is lost."""
        return self.feasible

    def surviving(self) -> BoolArray | None:
        """Return the nodes that are still feasible."""
        return self.feasible

    def rejected(self) -> tuple[RejectedNodes, ...]:
        """Return the rejected nodes grouped by status.

        *Cost*: asks the filters for their reasons; only worth it when somebody wants them.
        """
        names: dict[Status, list[str]] = {}
        for plugin, verdicts, newly in self.rejections:
            which, statuses = verdicts.statuses()
            rows = np.flatnonzero(newly)
            codes = which[rows]
            for code in distinct(codes):
                found = names.setdefault(statuses[int(code)].by(plugin), [])
                found += [self.view.node_info(int(row)).name for row in rows[codes == code]]
        return tuple(RejectedNodes(status, tuple(found)) for status, found in names.items())

    def status_of(self, index: int) -> Status:
        """Return what was said of one node of the view, ``SUCCESS`` if it is feasible."""
        for plugin, verdicts, newly in self.rejections:
            if newly[index]:
                return verdicts.status_of(index).by(plugin)
        return SUCCESS

    def indices_with(self, code: Code) -> RowArray:
        """Return the indices into the view of the nodes that were rejected with a code."""
        found = np.zeros(len(self.view), dtype=np.bool_)
        for _, verdicts, newly in self.rejections:
            which, statuses = verdicts.statuses()
            indices = np.flatnonzero(newly)
            wanted = np.array([status.code is code for status in statuses], dtype=np.bool_)
            found[indices[wanted[which[indices]]]] = True
        return np.flatnonzero(found)


def run_vector_filter(
    plugin: FilterPlugin,
    ask: VectorFilter,
    state: CycleState,
    info: PodInfo,
    nodes: NodesView,
    counting: Callable[[], BoolArray | None],
    surviving: Callable[[], BoolArray | None] = lambda: None,
) -> NodeVerdicts:
    """Let one filter judge all nodes of a view.

    Parameters
    ----------
    ask
        The plugin's ``filter``, or what measures it.
    counting
        Returns the nodes whose verdicts count, bool of shape (n_nodes,); None for all of them. A
        filter that fails is asked about these alone.
    surviving
        Returns the nodes that no filter has rejected, in the same form. A filter that judges
        survivors is asked about these alone.

    Raises
    ------
    PluginError
        When it fails for nodes that count.
    """
    if plugin.judges_survivors:
        survivors = surviving()
        if survivors is not None and not survivors.all():
            return _judge_some(plugin, ask, state, info, nodes, survivors)
    try:
        return ask(state, info, nodes)
    except Exception as error:
        counts = counting()
        if counts is not None and not counts.all():
            return _judge_some(plugin, ask, state, info, nodes, counts)
        status = failure(error, f'running "{plugin.name}" filter plugin')
        raise PluginError(status.by(plugin.name)) from error


def _judge_some(
    plugin: FilterPlugin,
    ask: VectorFilter,
    state: CycleState,
    info: PodInfo,
    nodes: NodesView,
    counts: BoolArray,
) -> NodeVerdicts:
    """Return verdicts of which only those on the nodes that count have a meaning."""
    rows = np.flatnonzero(counts)
    some = run_vector_filter(plugin, ask, state, info, nodes.subset(rows), lambda: None)
    if some.passed is None:
        return some
    passed = np.ones(len(nodes), dtype=np.bool_)
    passed[rows] = some.passed

    def detail() -> tuple[npt.NDArray[np.integer], Sequence[Status]]:
        which_of_some, statuses = some.statuses()
        which = np.zeros(len(nodes), dtype=np.intp)
        which[rows] = which_of_some
        return which, statuses

    return NodeVerdicts(passed, detail=detail)
