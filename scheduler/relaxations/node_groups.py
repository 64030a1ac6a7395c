"""Groups of nodes that a profile rejects alike: by the verdict of every filter, not of the first.

A cycle stops at the first filter that rejects a node. One change can only help where no other
filter rejects the node too, so that all of them are asked here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from plugins.framework.attempt_budget import AttemptBudgetExceededError
from plugins.framework.status import Code
from scheduler.relaxations.budget import BudgetSpentError
from scheduler.relaxations.relaxation import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cache.columns import NodesView
    from cache.pod_info import PodInfo
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.interfaces import FilterPlugin
    from plugins.framework.results import BoolArray, IntArray, RowArray
    from plugins.framework.status import Status
    from scheduler.relaxations.verifier import Verifier
    from scheduler.runtime.judgement import Judgement

MAX_GROUPS: Final = 20
"""Groups for which relaxations are searched: the largest ones."""

NOMINATED: Final = "pods that are nominated for the node count"


@dataclass(frozen=True, slots=True)
class Rejected:
    """Nodes that are rejected alike.

    Parameters
    ----------
    reasons
        The plugins that reject them, in the order in which they run.
    rows
        intp, ascending.
    mask
        bool (n_nodes,).
    """

    reasons: tuple[Reason, ...]
    rows: RowArray
    mask: BoolArray

    @property
    def plugins(self) -> frozenset[str]:
        """The plugins that reject them."""
        return frozenset(each.plugin for each in self.reasons)


class _Patterns:
    """Numbers for the combinations of reasons, filter by filter.

    ``ids`` is int64 (n_nodes,); ``reasons`` holds those of each id.
    """

    def __init__(self, num_nodes: int) -> None:
        self.ids: IntArray = np.zeros(num_nodes, dtype=np.int64)
        self.reasons: list[tuple[Reason, ...]] = [()]

    def add(self, plugin: str, which: IntArray, statuses: list[Status]) -> None:
        """Take in the verdicts of one plugin; ``which`` is -1 for a node that passes."""
        width = len(statuses) + 1
        codes, ids = np.unique(self.ids * width + which + 1, return_inverse=True)
        reasons = []
        for code in codes.tolist():
            before = self.reasons[code // width]
            at = code % width - 1
            reasons.append(
                before if at < 0 else (*before, Reason(plugin, tuple(statuses[at].reasons)))
            )
        self.ids, self.reasons = ids.astype(np.int64), reasons


def groups_of(verifier: Verifier, judged: Judgement, state: CycleState) -> list[Rejected]:
    """Return all groups of nodes that are not feasible, the largest first.

    Raises
    ------
    BudgetSpentError
        When the budget is used up.
    """
    snapshot, search = verifier.snapshot, judged.search
    pre = search.pre
    if search.outcome is None:
        everything = np.ones(len(snapshot), dtype=np.bool_)
        plugin = pre.status.plugin or " ".join(sorted(pre.narrowing_plugins))
        reason = Reason(plugin, tuple(pre.status.reasons))
        return [Rejected((reason,), np.flatnonzero(everything), everything)]
    nodes = snapshot.all_nodes()
    patterns = _Patterns(len(nodes))
    if pre.node_names is not None:
        rows = nodes.columns.row_of
        named = [rows[name] for name in pre.node_names if name in rows]
        away = np.zeros(len(nodes), dtype=np.int64)
        away[named] = -1
        patterns.add(" ".join(sorted(pre.narrowing_plugins)), away, [pre.narrowed_away()])
    try:
        for plugin, which, statuses in _verdicts(verifier, nodes, state):
            patterns.add(plugin, which, statuses)
        return _collected(patterns, judged)
    except AttemptBudgetExceededError as error:
        raise BudgetSpentError(verifier.budget.out_of_time) from error


def _collected(patterns: _Patterns, judged: Judgement) -> list[Rejected]:
    found = []
    for number, reasons in enumerate(patterns.reasons):
        mask = (patterns.ids == number) & ~judged.feasible
        rows = np.flatnonzero(mask)
        if not len(rows):
            continue
        if not reasons:
            # Each filter alone accepts them: they are full of pods that are only nominated.
            status = judged.status_of(int(rows[0]))
            reasons = (Reason(status.plugin, (*status.reasons, NOMINATED)),)
        found.append(Rejected(reasons, rows, mask))
    return sorted(found, key=lambda group: (-len(group.rows), int(group.rows[0])))


def _verdicts(
    verifier: Verifier, nodes: NodesView, state: CycleState
) -> Iterator[tuple[str, IntArray, list[Status]]]:
    """Yield what each filter says of all nodes; slow filters see only those that others pass."""
    info, passed = verifier.info, np.ones(len(nodes), dtype=np.bool_)
    plugins = [
        each for each in verifier.framework.judges.filters if each.name not in state.skip_filter
    ]
    for plugin in plugins:
        state.budget.check()
        rows = np.flatnonzero(passed) if plugin.judges_survivors else np.arange(len(nodes))
        if not len(rows):
            continue
        which, statuses = _ask(plugin, state, info, nodes, rows)
        if statuses:
            passed &= which < 0
            yield plugin.name, which, statuses


def _ask(
    plugin: FilterPlugin, state: CycleState, info: PodInfo, nodes: NodesView, rows: RowArray
) -> tuple[IntArray, list[Status]]:
    """Return the index of each node's status, -1 for a pass; nothing for a filter that fails."""
    which = np.full(len(nodes), -1, dtype=np.int64)
    view = nodes if len(rows) == len(nodes) else nodes.subset(rows)
    try:
        verdicts = plugin.filter(state, info, view)
        if verdicts.passed is None or verdicts.passed.all():
            return which, []
        of_some, statuses = verdicts.statuses()
    except Exception:  # noqa: BLE001 - it fails on nodes that other filters reject, as in a cycle
        return which, []
    refused = ~verdicts.passed
    which[rows[refused]] = np.asarray(of_some)[refused]
    said = [each if each.code is not Code.ERROR else each.by(plugin.name) for each in statuses]
    return which, said
