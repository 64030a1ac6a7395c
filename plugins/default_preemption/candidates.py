"""Finds candidates: nodes on which preemption would help, with their victims.

Columns are evaluated first: a pod that would not fit on a node even without all pods of lower
priority needs no dry run there. The other nodes get a dry run, one after another.

*Source*: kube-scheduler 1.36, pkg/scheduler/framework/preemption/preemption.go (findCandidates,
DryRunPreemption).
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from cache.value import Value
from plugins.default_preemption.choice import Candidate, pick_node
from plugins.default_preemption.dry_run import NO_VICTIMS, select_victims
from plugins.default_preemption.dry_run_memory import NOBODY, DryRunMemory, Outcomes
from plugins.default_preemption.emptied_nodes import LOWEST_PRIORITY, EmptiedNodes
from plugins.default_preemption.gang_dry_run import GangDryRun
from plugins.default_preemption.gangs import Gangs
from plugins.default_preemption.importance import own_priority
from plugins.framework.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cache.columns import Columns, NodesView
    from cache.node_info import NodeInfo
    from cache.pod_info import PodInfo
    from plugins.default_preemption.dry_run_memory import Crowd, Outcome
    from plugins.default_preemption.gangs import Stakes
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.handle import Handle, LoneVerdicts
    from plugins.framework.results import BoolArray, RowArray

MAX_FILTER_RUNS: Final = 500
"""Runs of all scalar filters over one node that are cheap enough for one decision: some 20 us
each. Until they are used up, candidates beyond the wanted number are examined too."""

_CHUNK: Final = 512
"""Nodes that are updated at once, some 20 us each."""

_MAX_PRIORITIES: Final = 4
"""Priorities of pods that preempt, for which emptied nodes are kept: each is a copy of every
node, without most of its pods."""


class Extent(NamedTuple):
    """What a search takes from those before it: with the same extent, it finds the same.

    Attributes
    ----------
    start
        The row that is the first among equals.
    passed_over
        The rows that were not examined, because enough candidates were known: a bit for each row
        (``numpy.packbits``), empty if there are none.
    """

    start: int = 0
    passed_over: bytes = b""

    @classmethod
    def of(cls, start: int, passed_over: RowArray, num_rows: int) -> Extent:
        """Return the extent of a search over a number of rows."""
        if not len(passed_over):
            return cls(start)
        mask = np.zeros(num_rows, dtype=np.bool_)
        mask[passed_over] = True
        return cls(start, np.packbits(mask).tobytes())

    def in_order(self, rows: RowArray) -> RowArray:
        """Return ascending rows, those from ``start`` on first."""
        return np.roll(rows, -int(np.searchsorted(rows, self.start))) if self.start else rows

    def split(self, rows: RowArray) -> tuple[RowArray, RowArray]:
        """Return the rows that were examined, and those that were passed over."""
        if not self.passed_over:
            return rows, rows[:0]
        mask = np.unpackbits(np.frombuffer(self.passed_over, dtype=np.uint8)).astype(np.bool_)
        passed = np.zeros(len(rows), dtype=np.bool_)
        known = rows < len(mask)
        passed[known] = mask[rows[known]]
        return rows[~passed], rows[passed]


EVERYTHING: Final = Extent()
"""All rows, the first one first."""


class Findings:
    """The result of a search for candidates; valid until the nodes change.

    Stored candidates are only read when a caller requests all candidates.

    Parameters
    ----------
    start
        The row that is the first among equals. Which of them were stored does not matter.
    """

    def __init__(self, nodes: NodesView, start: int = 0) -> None:
        self._nodes = nodes
        self._start = start
        self._tried: dict[str, Candidate] = {}
        self._recalled: RowArray = np.empty(0, dtype=np.intp)
        self._outcomes: Outcomes | None = None
        self._has_harmless = False
        self._refusals: Counter[Status] = Counter()
        self._refused: RowArray = self._recalled
        self._lone: list[LoneVerdicts] = []

    def add(self, name: str, outcome: Outcome) -> None:
        """Add the result of one dry run."""
        if isinstance(outcome, Candidate):
            self._tried[name] = outcome
            self._has_harmless = self._has_harmless or not outcome.victims.pdb_violations
        else:
            self._refusals[outcome] += 1

    def recall(self, outcomes: Outcomes, rows: RowArray) -> None:
        """Add the stored results of earlier dry runs, for known rows."""
        self._outcomes = outcomes
        recalled = outcomes.candidates(rows)
        refused = np.setdiff1d(rows, recalled, assume_unique=True)
        self._recalled = np.concatenate((self._recalled, recalled))
        self._refused = np.concatenate((self._refused, refused))
        self._has_harmless = self._has_harmless or outcomes.any_harmless(recalled)

    def refuse(self, status: Status, nodes: int) -> None:
        """Record that preemption does not help on some nodes."""
        if nodes:
            self._refusals[status] += nodes

    def drop(self, verdicts: LoneVerdicts) -> None:
        """Record the reasons that columns gave for nodes."""
        self._lone.append(verdicts)

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self._recalled) + len(self._tried)

    def is_enough(self, wanted: int) -> bool:
        """Return whether there are enough candidates, and one of them violates no budget."""
        return self._has_harmless and len(self) >= wanted

    def best(self) -> tuple[str, Candidate]:
        """Return the candidate, of at least one, that does the least harm, and its name."""
        best: list[tuple[str, Candidate]] = []
        if len(self._recalled):
            assert self._outcomes is not None  # noqa: S101 - where they were recalled from
            best.append(self._recall_one(self._outcomes, self._outcomes.best(self._recalled)))
        if self._tried:
            name = pick_node(self._tried)
            best.append((name, self._tried[name]))
        return min(best, key=lambda found: (found[1].harm, self._place(found[0])))

    def _place(self, name: str) -> int:
        """Return the place of a node in the order of the search."""
        columns = self._nodes.columns
        return (columns.row_of[name] - self._start) % len(columns)

    def candidates(self) -> dict[str, Candidate]:
        """Return all candidates by node name, in the order of the search.

        *Cost*: up to a microsecond for each.
        """
        outcomes = self._outcomes
        if outcomes is None:
            return self._tried
        rows = self._recalled.tolist()
        found = dict(self._recall_one(outcomes, row) for row in rows)
        if not self._tried:
            return found
        found |= self._tried
        return {name: found[name] for name in sorted(found, key=self._place)}

    def _recall_one(self, outcomes: Outcomes, row: int) -> tuple[str, Candidate]:
        outcome = outcomes.outcome(row)
        assert isinstance(outcome, Candidate)  # noqa: S101 - only candidates are recalled
        return self._nodes.columns.node_infos[row].name, outcome

    def refusals(self) -> Counter[Status]:
        """Return the reasons why examined nodes are not candidates, and the number of nodes."""
        refusals = Counter(self._refusals)
        if self._outcomes is not None:
            for row in self._refused.tolist():
                outcome = self._outcomes.outcome(row)
                if isinstance(outcome, Status):
                    refusals[outcome] += 1
        for verdicts in self._lone:
            for status, nodes in verdicts.rejections():
                refusals[status] += nodes
        return refusals


class _Trials(Value, frozen=True, eq=False):
    """The dry runs of one search.

    Parameters
    ----------
    crowds
        The other nominated pods, by row.
    settled, lone_state, outcomes
        See :meth:`CandidateSearch._settle`.
    """

    state: CycleState
    info: PodInfo
    nodes: NodesView
    crowds: Mapping[int, Crowd]
    settled: BoolArray
    lone_state: CycleState
    outcomes: Outcomes | None
    found: Findings

    def recall(self, rows: RowArray, gangs: Gangs) -> RowArray:
        """Recall the stored results of some rows; return the other rows."""
        if self.outcomes is None:
            return rows
        known = self.settled[rows] & self.outcomes.known(rows, self.crowds, gangs)
        self.found.recall(self.outcomes, rows[known])
        return rows[~known]


class CandidateSearch:
    """Finds candidates, and stores results that speed up the next search.

    Parameters
    ----------
    handle
        Gives access to the filters, the budgets and the nominations.

    Attributes
    ----------
    extent
        Returns the extent of the next search; None to choose it. A replay puts its own here.
    on_extent
        Receives the extent of each search for a number of candidates; a journal puts its own here.

    Notes
    -----
    *Concurrency*: confined to the scheduling thread.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._memory = DryRunMemory()
        self._emptied: OrderedDict[int, EmptiedNodes] = OrderedDict()
        self._start = 0
        """The first row that the last search passed over."""
        self.extent: Callable[[], Extent | None] = lambda: None
        self.on_extent: Callable[[Extent], object] = lambda _: None
        self.gangs = Gangs(lambda: handle.pod_groups, lambda: handle.preemption)

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
        nodes are examined while that is cheap, and the start rotates.

        Parameters
        ----------
        nodes
            All nodes.
        rows
            The rows on which preemption may help.
        wanted
            How many candidates are enough; None for all candidates.

        *Cost*: microseconds of vector operations for all nodes, some 20 us for each that has
        changed since the last search for a pod of this priority, and a dry run for each that
        could be a candidate and has no stored result.
        """
        columns = nodes.columns
        self.gangs.begin(columns)
        repeated = None if wanted is None else self.extent()
        extent = repeated or Extent(0 if wanted is None else self._start)
        found = Findings(nodes, extent.start)
        has_lower = columns.derived(LOWEST_PRIORITY)[rows] < info.priority
        found.refuse(NO_VICTIMS, len(rows) - int(np.count_nonzero(has_lower)))
        rows = rows[has_lower]
        if not len(rows):
            return found
        rows = extent.in_order(rows)
        # Nominations change without a change of the node.
        crowds = self._crowds(info, nodes)
        settlement = self._settle(state, info, nodes, rows, crowds)
        trials = _Trials(state, info, nodes, crowds, *settlement, found)
        if repeated is None:
            self._choose_extent(trials, rows, wanted, extent.start)
        else:
            self._repeat_extent(trials, rows, wanted, repeated)
        return found

    def _choose_extent(
        self, trials: _Trials, rows: RowArray, wanted: int | None, start: int
    ) -> None:
        """Examine rows until enough candidates are known."""
        rows = trials.recall(rows, self.gangs)
        passed_over = self._examine(trials, rows, wanted) if len(rows) else rows
        if len(passed_over):
            self._start = int(passed_over[0])
        if wanted is not None:
            self.on_extent(Extent.of(start, passed_over, len(trials.nodes)))

    def _repeat_extent(
        self, trials: _Trials, rows: RowArray, wanted: int | None, extent: Extent
    ) -> None:
        """Examine the rows of an extent, and the others if there are too few candidates."""
        for some in extent.split(rows):
            if len(some) and not trials.found.is_enough(wanted or 0):
                left = trials.recall(some, self.gangs)
                if len(left):
                    self._examine(trials, left, None)

    def _examine(self, trials: _Trials, rows: RowArray, wanted: int | None) -> RowArray:
        """Make dry runs on rows until enough candidates are known; return the rows that are left.

        None of ``wanted`` stands for all candidates.
        """
        state, info, found, outcomes = trials.state, trials.info, trials.found, trials.outcomes
        columns = trials.nodes.columns
        runs = 0
        for at, emptied in self._fitting_when_emptied(state, info, columns, rows, found):
            if wanted is not None and runs >= MAX_FILTER_RUNS and found.is_enough(wanted):
                return rows[at:]
            state.budget.check()
            row = int(rows[at])
            node_info, crowd = columns.node_infos[row], trials.crowds.get(row, NOBODY)
            outcome, stakes = self._try(trials, row, emptied, crowd)
            found.add(node_info.name, outcome)
            if outcomes is not None and trials.settled[row]:
                outcomes.put(row, crowd, outcome, stakes)
            runs += 1 + len(node_info.pods) - len(emptied.pods)
        return rows[:0]

    def _fitting_when_emptied(
        self,
        state: CycleState,
        info: PodInfo,
        columns: Columns,
        rows: RowArray,
        found: Findings,
    ) -> Iterator[tuple[int, NodeInfo]]:
        """Yield the positions of rows whose emptied nodes fit the pod, with these nodes.

        The reasons that columns give for the others are added to ``found``.
        """
        emptied = self._emptied_below(info.priority)
        emptied.follow(columns)
        size = len(rows) if emptied.num_stale(rows) <= _CHUNK else _CHUNK
        for first in range(0, len(rows), size):
            view = emptied.view(columns, rows[first : first + size], state.budget)
            verdicts = self._handle.what_if.filter_alone(state, info, view)
            found.drop(verdicts)
            mask = verdicts.feasible
            left = range(len(view)) if mask is None else np.flatnonzero(mask).tolist()
            for index in left:
                yield first + index, view.node_info(index)

    def _settle(
        self,
        state: CycleState,
        info: PodInfo,
        nodes: NodesView,
        rows: RowArray,
        crowds: Mapping[int, Crowd],
    ) -> tuple[BoolArray, CycleState, Outcomes | None]:
        """Return the rows on which only filters that judge nodes by themselves take part.

        Returns
        -------
        settled
            bool (n_nodes,): the rows for which the other two values are valid.
        lone_state
            The cycle's state without the other filters.
        outcomes
            The stored results of dry runs for alike pods; None when no row is settled.
        """
        settled: BoolArray = np.zeros(len(nodes), dtype=np.bool_)
        settlement = self._handle.what_if.settle(state, info, nodes.subset(rows))
        if settlement is None:
            return settled, state, None
        lone_state, settled[rows] = settlement
        if lone_state is not state and crowds:
            # A filter that was left out may depend on the nominated pods.
            settled[list(crowds)] = False
        outcomes = self._memory.of(info.pod, self._handle.disruption_budgets.version)
        outcomes.follow(nodes.columns)
        return settled, lone_state, outcomes

    def _crowds(self, info: PodInfo, nodes: NodesView) -> dict[int, Crowd]:
        """Return the other nominated pods, by row."""
        row_of = nodes.columns.row_of
        crowds = {}
        for name in self._handle.nominated_node_names():
            row = row_of.get(name)
            if row is not None:
                nominated = self._handle.nominated_pods(name)
                crowds[row] = tuple(each for each in nominated if each.uid != info.uid)
        return crowds

    def _try(
        self, trials: _Trials, row: int, emptied: NodeInfo, crowd: Crowd
    ) -> tuple[Outcome, Stakes]:
        """Return the result of a dry run, and the groups that it depends on."""
        what_if, budgets = self._handle.what_if, self._handle.disruption_budgets
        columns, info, is_settled = trials.nodes.columns, trials.info, bool(trials.settled[row])
        state = trials.lone_state if is_settled else trials.state
        node_info = columns.node_infos[row]
        stakes = self.gangs.stakes(node_info.pods.values(), info.priority)
        displaced = sum(each.priority < info.priority for each in crowd)
        if any(gang is not None for _, gang in stakes):
            node_of = None if is_settled else partial(_node_of, columns)
            dry_run = GangDryRun(what_if, budgets, self.gangs, node_of)
            victims = dry_run.select_victims(state, info, node_info)
            priority_of = self.gangs.priority_of
        else:
            fits = is_settled and not crowd
            victims = select_victims(
                what_if, budgets, state, info, node_info, emptied, fits_emptied=fits
            )
            priority_of = own_priority
        if isinstance(victims, Status):
            return victims, stakes
        return Candidate.of(victims, displaced, priority_of), stakes

    def _emptied_below(self, priority: int) -> EmptiedNodes:
        emptied = self._emptied.get(priority)
        if emptied is None:
            emptied = self._emptied[priority] = EmptiedNodes(priority)
            if len(self._emptied) > _MAX_PRIORITIES:
                self._emptied.popitem(last=False)
        self._emptied.move_to_end(priority)
        return emptied


def _node_of(columns: Columns, info: PodInfo) -> NodeInfo | None:
    row = columns.row_of.get(info.node_name)
    return None if row is None else columns.node_infos[row]
