"""The nodes on which preemption would help, and whom it would cost there.

Columns come first: a pod that would not fit on a node even if everybody of lower priority were
gone needs no dry run there. The other nodes are tried one by one.

Source: kube-scheduler 1.36, pkg/scheduler/framework/preemption/preemption.go (findCandidates,
DryRunPreemption).
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, Final

import numpy as np

from plugins.default_preemption.choice import Candidate
from plugins.default_preemption.dry_run import NO_VICTIMS, select_victims
from plugins.default_preemption.dry_run_memory import NOBODY, DryRunMemory, Remembered
from plugins.default_preemption.emptied_nodes import LOWEST_PRIORITY, EmptiedNodes
from plugins.framework.status import Code, Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cache.columns import NodesView
    from cache.node_info import NodeInfo
    from cache.pod_info import PodInfo
    from plugins.default_preemption.dry_run_memory import Crowd, Outcome
    from plugins.default_preemption.node_memory import NodeMemory
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.handle import Handle, LoneVerdicts
    from plugins.framework.results import RowArray

MAX_FILTER_RUNS: Final = 500
"""Runs of all scalar filters over one node that are cheap enough for one decision: some 20 us
each. Until they are used up, candidates beyond the number that is wanted are looked at too."""

_CHUNK: Final = 512
"""Nodes that are brought up to date at once, some 20 us each."""

_MAX_PRIORITIES: Final = 4
"""Priorities of pods that preempt, for which emptied nodes are kept: each is a copy of every
node, without most of its pods."""


class Findings:
    """What a search for candidates came to.

    Attributes
    ----------
    candidates
        By node name.
    errors
        What went wrong in dry runs.
    """

    def __init__(self) -> None:
        self.candidates: dict[str, Candidate] = {}
        self.errors: list[str] = []
        self._has_harmless = False
        self._refusals: Counter[Status] = Counter()
        self._lone: list[LoneVerdicts] = []

    def add(self, name: str, outcome: Outcome) -> None:
        """Take in what one dry run came to."""
        if isinstance(outcome, Candidate):
            self.candidates[name] = outcome
            self._has_harmless = self._has_harmless or not outcome.victims.pdb_violations
        else:
            self.refuse(outcome)

    def refuse(self, status: Status, nodes: int = 1) -> None:
        """Take in that preemption does not help on some nodes."""
        if nodes:
            self._refusals[status] += nodes
        if status.code is Code.ERROR:
            self.errors += status.reasons

    def drop(self, verdicts: LoneVerdicts) -> None:
        """Take in what columns said of nodes."""
        self._lone.append(verdicts)

    def is_enough(self, wanted: int) -> bool:
        """Tell whether there are as many candidates as wanted, and one that breaks no promise."""
        return self._has_harmless and len(self.candidates) >= wanted

    def refusals(self) -> Counter[Status]:
        """Return why nodes that were looked at are no candidates, and how many of them.

        Only good until the nodes change.
        """
        refusals = Counter(self._refusals)
        for verdicts in self._lone:
            for status, nodes in verdicts.rejections():
                refusals[status] += nodes
        return refusals


class CandidateSearch:
    """Looks for candidates, and remembers what helps to find the next ones sooner.

    Parameters
    ----------
    handle
        Lends the filters, the budgets and the nominations.

    Notes
    -----
    *Concurrency*: confined to the scheduling thread.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._memory = DryRunMemory()
        self._emptied: OrderedDict[int, EmptiedNodes] = OrderedDict()
        self._start = 0

    def find(
        self,
        state: CycleState,
        info: PodInfo,
        nodes: NodesView,
        rows: RowArray,
        wanted: int | None,
    ) -> Findings:
        """Return the candidates among some rows.

        # Differs: kube-scheduler stops at ``wanted`` candidates from a random node on; here more
        are looked at for as long as that is cheap, and the start goes round.

        Parameters
        ----------
        nodes
            All nodes.
        rows
            Those that preemption may help on.
        wanted
            How many candidates are enough; None for all that there are.

        *Cost*: microseconds of vector operations for all nodes, some 20 us for each that has
        changed since a pod of this priority looked at it last, and a dry run for each that
        would do and that is not remembered.
        """
        found = Findings()
        columns, priority = nodes.columns, info.priority
        has_lower = columns.derived(LOWEST_PRIORITY)[rows] < priority
        found.refuse(NO_VICTIMS, len(rows) - int(np.count_nonzero(has_lower)))
        rows = rows[has_lower]
        if not len(rows):
            return found
        memory: NodeMemory[Remembered] | None = None
        crowds: Mapping[int, Crowd] = {}
        if self._handle.what_if.judges_alone(state):
            memory = self._memory.of(info.pod, self._handle.disruption_budgets.version)
            memory.follow(columns)
            # Who is nominated where changes without a sign on the node.
            crowds = self._crowds(info, nodes)
            rows = _recall(memory, nodes, rows, crowds, found)
        if not len(rows):
            return found
        start = 0 if wanted is None else self._start % len(rows)
        rows = np.roll(rows, -start)
        emptied = self._emptied_below(priority)
        emptied.follow(columns)
        runs = 0
        size = len(rows) if emptied.num_stale(rows) <= _CHUNK else _CHUNK
        for at in range(0, len(rows), size):
            view = emptied.view(columns, rows[at : at + size])
            verdicts = self._handle.what_if.filter_alone(state, info, view)
            found.drop(verdicts)
            mask = verdicts.feasible
            left = range(len(view)) if mask is None else np.flatnonzero(mask).tolist()
            for index in left:
                if wanted is not None and runs >= MAX_FILTER_RUNS and found.is_enough(wanted):
                    self._start += at + index
                    return found
                row = int(rows[at + index])
                node_info = columns.node_infos[row]
                is_alone = memory is not None and row not in crowds
                outcome = self._try(
                    state, info, node_info, view.node_info(index), fits_emptied=is_alone
                )
                found.add(node_info.name, outcome)
                if memory is not None:
                    memory.put(row, Remembered(crowds.get(row, NOBODY), outcome))
                runs += 1 + len(node_info.pods) - len(view.node_info(index).pods)
        return found

    def _crowds(self, info: PodInfo, nodes: NodesView) -> dict[int, Crowd]:
        """Return who else is nominated, by row."""
        row_of = nodes.columns.row_of
        crowds = {}
        for name in self._handle.nominated_node_names():
            row = row_of.get(name)
            if row is not None:
                nominated = self._handle.nominated_pods(name)
                crowds[row] = tuple(each for each in nominated if each.uid != info.uid)
        return crowds

    def _try(
        self,
        state: CycleState,
        info: PodInfo,
        node_info: NodeInfo,
        emptied: NodeInfo,
        *,
        fits_emptied: bool,
    ) -> Outcome:
        outcome = select_victims(
            self._handle.what_if,
            self._handle.disruption_budgets,
            state,
            info,
            node_info,
            emptied,
            fits_emptied=fits_emptied,
        )
        return outcome if isinstance(outcome, Status) else Candidate.of(outcome)

    def _emptied_below(self, priority: int) -> EmptiedNodes:
        emptied = self._emptied.get(priority)
        if emptied is None:
            emptied = self._emptied[priority] = EmptiedNodes(priority)
            if len(self._emptied) > _MAX_PRIORITIES:
                self._emptied.popitem(last=False)
        self._emptied.move_to_end(priority)
        return emptied


def _recall(
    memory: NodeMemory[Remembered],
    nodes: NodesView,
    rows: RowArray,
    crowds: Mapping[int, Crowd],
    found: Findings,
) -> RowArray:
    """Take in what is remembered, and return the rows that have to be looked at."""
    known = memory.known(rows)
    infos, values = nodes.columns.node_infos, memory.values
    changed = []
    for index in np.flatnonzero(known).tolist():
        row = int(rows[index])
        remembered = values[row]
        if remembered is None or remembered.crowd != crowds.get(row, NOBODY):
            changed.append(index)
        else:
            found.add(infos[row].name, remembered.outcome)
    known[changed] = False
    return rows[~known]
