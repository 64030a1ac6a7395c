"""Find the cheapest changes for each group of nodes: single ones first, then pairs."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Final

from plugins import names
from scheduler.relaxations.amounts import Amounts
from scheduler.relaxations.budget import Budget, BudgetSpentError
from scheduler.relaxations.node_groups import NOMINATED
from scheduler.relaxations.node_options import (
    affinity_options,
    port_options,
    resource_options,
    selector_options,
    toleration_options,
    whole_options,
)
from scheduler.relaxations.option import LessOf
from scheduler.relaxations.pod_options import (
    claim_options,
    label_options,
    pod_term_options,
    spread_options,
    volume_options,
    whole_term_options,
)
from scheduler.relaxations.preemption import PreemptionSearch
from scheduler.relaxations.relaxation import NodeGroup, Relaxation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cache.storage import Storage
    from plugins.framework.results import BoolArray
    from scheduler.relaxations.node_groups import Rejected
    from scheduler.relaxations.option import Option
    from scheduler.relaxations.verifier import Verifier

MAX_RELAXATIONS: Final = 4
"""Relaxations for each group: the cheapest ones."""

MAX_NODES: Final = 8
"""Nodes that are named for each group, and for each of its relaxations."""

MAX_PAIRS: Final = 80
"""Pairs that are tried for each group, those first that may be cheapest."""

_SHARE_OF_KIND: Final = 0.2
"""The share of the time that is left that may be used to look for the changes of one kind."""

_READ_LABELS: Final = frozenset({names.INTER_POD_AFFINITY, names.POD_TOPOLOGY_SPREAD})


class RelaxationSearch:
    """Fills in the relaxations of groups, as far as the budget goes.

    Parameters
    ----------
    verifier
        Judges changed pods.
    groups
        The groups of nodes.

    Attributes
    ----------
    notes
        What was not looked at.
    """

    def __init__(self, verifier: Verifier, groups: list[Rejected]) -> None:
        self._verifier = verifier
        self._groups = groups
        self._amounts = Amounts(verifier)
        self._preemption = PreemptionSearch(verifier)
        self._found: list[list[Relaxation]] = [[] for _ in groups]
        self.notes: list[str] = []

    def run(self, storage: Storage) -> None:
        """Search; what was found before the budget is used up is kept.

        Raises
        ------
        BudgetSpentError
            When the budget is used up.
        """
        options = self._options(storage)
        self._try_each(options)
        for group, found in zip(self._groups, self._found, strict=True):
            found += self._preemption.of_group(group)
        for group, found in zip(self._groups, self._found, strict=True):
            if not found:
                found += self._pairs(options, group)

    def results(self) -> tuple[NodeGroup, ...]:
        """Return the groups with their relaxations, the cheapest first."""
        results = []
        for group, found in zip(self._groups, self._found, strict=True):
            cheapest = sorted(found, key=_preference)[:MAX_RELAXATIONS]
            names = self._names(group.mask)
            results.append(NodeGroup(group.reasons, len(group.rows), names, tuple(cheapest)))
        return tuple(results)

    # --- what can be changed ------------------------------------------------------------------

    def _options(self, storage: Storage) -> list[Option]:
        info, nodes = self._verifier.info, self._verifier.snapshot.all_nodes()
        # Those that take off most come first: they are cheap to verify, however large the pod is.
        found = [*whole_options(info), *whole_term_options(info)]
        part = self._part()
        crowded = any(NOMINATED in e.reasons for group in self._groups for e in group.reasons)
        resources = resource_options(info, nodes, part, is_crowded=crowded)
        found += self._collected("resources", resources)
        part = self._part()
        found += self._collected("taints", toleration_options(info, nodes, part))
        part = self._part()
        found += self._collected("keys of the nodeSelector", selector_options(info, nodes, part))
        part = self._part()
        affinity = affinity_options(info, nodes, part)
        found += self._collected("expressions of the node affinity", affinity)
        found += port_options(info, nodes, self._part())
        found += pod_term_options(info)
        found += spread_options(info)
        found += volume_options(info, storage)
        found += claim_options(info)
        if any(not group.plugins.isdisjoint(_READ_LABELS) for group in self._groups):
            found += label_options(info)
        return found

    def _part(self) -> Budget:
        """Return the time for changes of one kind, so that one kind does not use up all of it."""
        self._verifier.budget.check()
        return self._verifier.budget.part(_SHARE_OF_KIND)

    def _collected(self, what: str, options: Iterable[Option]) -> list[Option]:
        try:
            return list(options)
        except BudgetSpentError:
            self.notes.append(f"The pod has too many {what}: they were not tried one by one.")
            return []

    # --- single changes -----------------------------------------------------------------------

    def _try_each(self, options: list[Option]) -> None:
        for option in options:
            opened = self._verifier.opens(option)
            if not opened.any():
                continue
            for group, found in zip(self._groups, self._found, strict=True):
                if (opened & group.mask).any():
                    found.append(self._smallest((option,), group))

    def _smallest(self, options: tuple[Option, ...], group: Rejected) -> Relaxation:
        """Return the relaxation with the smallest amounts."""
        least = self._amounts.least(options, group.mask)
        opened = self._verifier.opens(*least) & group.mask
        return Relaxation(
            tuple(option.change for option in least),
            int(opened.sum()),
            self._names(opened),
        )

    def _names(self, mask: BoolArray) -> tuple[str, ...]:
        infos = self._verifier.snapshot.columns.node_infos
        return tuple(sorted(infos[row].name for row in mask.nonzero()[0].tolist())[:MAX_NODES])

    # --- pairs --------------------------------------------------------------------------------

    def _pairs(self, options: list[Option], group: Rejected) -> Iterator[Relaxation]:
        """Yield the pairs that help, or else a change after which preemption does."""
        best: list[Relaxation] = []
        for least_cost, pair in self._likely(options, group)[:MAX_PAIRS]:
            if best and least_cost >= min(each.cost for each in best):
                break
            if (self._verifier.opens(*pair) & group.mask).any():
                best.append(self._smallest(pair, group))
        if not best:
            best += self._preemption.after(self._before_preemption(options, group), group)
        yield from best

    def _before_preemption(self, options: list[Option], group: Rejected) -> list[Option]:
        """Return the changes after which preemption may help a group, the cheapest first."""
        rejecting = _names_of(group)
        fitting = [
            option
            for option in options
            if option.volume is None
            and not isinstance(option.tries, LessOf)
            and not rejecting.isdisjoint(option.touches)
        ]
        return sorted(fitting, key=lambda option: option.change.cost)

    def _likely(
        self, options: list[Option], group: Rejected
    ) -> list[tuple[float, tuple[Option, Option]]]:
        """Return the pairs that touch all plugins that reject the group, the cheapest first."""
        rejecting = _names_of(group)
        costs = {option: self._amounts.least_cost(option, group.mask) for option in options}
        likely = [
            (costs[one] + costs[other], (one, other))
            for one, other in combinations(options, 2)
            if rejecting <= one.touches | other.touches
        ]
        return sorted(likely, key=lambda each: each[0])


def _names_of(group: Rejected) -> set[str]:
    """Return the plugins that reject a group; several that left no node are one reason."""
    return {name for plugin in group.plugins for name in plugin.split(" ")}


def _preference(relaxation: Relaxation) -> tuple[float, int, list[str]]:
    changes = relaxation.changes
    return relaxation.cost, -relaxation.num_nodes, [each.subject for each in changes]
