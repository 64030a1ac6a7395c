"""Find what would help a refused pod, or what decided about a pod that would be placed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from scheduler.relaxations.budget import Budget, BudgetSpentError
from scheduler.relaxations.deciding import DecidingSearch
from scheduler.relaxations.new_node import find_new_node
from scheduler.relaxations.node_groups import MAX_GROUPS, groups_of
from scheduler.relaxations.relaxation import Relaxations
from scheduler.relaxations.search import RelaxationSearch
from scheduler.relaxations.verifier import Verifier
from scheduler.runtime.filter_outcome import PluginError

if TYPE_CHECKING:
    from cache.pod_info import PodInfo
    from cache.snapshot import Snapshot
    from cache.storage import Storage
    from plugins.framework.cycle_state import CycleState
    from scheduler.relaxations.relaxation import NewNode, NodeGroup
    from scheduler.runtime.framework_runner import FrameworkRunner
    from scheduler.runtime.judgement import Judgement


def find_relaxations(
    framework: FrameworkRunner,
    snapshot: Snapshot,
    storage: Storage,
    info: PodInfo,
    budget: Budget | None = None,
    placed_on: str = "",
) -> Relaxations:
    """Return the smallest changes that help a pod; for a pod that fits, why its node won.

    Each change has been verified: the filters of the profile accept the changed pod on the nodes
    that are named, among the pods and nodes of the snapshot.

    Parameters
    ----------
    framework, snapshot
        A profile that reads an offline cluster, and all nodes of that cluster.
    storage
        The volumes of that cluster. They and the snapshot are changed while this runs, and are
        afterwards as they were: never pass those of a running scheduler.
    info
        The pod, without a node.
    budget
        What the search may use; None for the default. When it is used up, a note says so, and what
        was found until then is returned.
    placed_on
        The node that the pod is on, if ``info`` stands for a placed pod.

    Notes
    -----
    *Cost*: bounded by the budget. With 5 000 nodes some 50 to 300 ms.
    """
    budget = Budget() if budget is None else budget
    verifier = Verifier(framework, snapshot, storage, info, budget)
    try:
        found = _found(verifier, storage, placed_on)
    except PluginError as error:
        found = Relaxations(info.key, notes=(f"A plugin failed: {error.status.message}",))
    except BudgetSpentError as error:
        found = Relaxations(info.key, notes=(_ended(error),))
    return _with_cost(found, budget)


def _found(verifier: Verifier, storage: Storage, placed_on: str) -> Relaxations:
    if not len(verifier.snapshot):
        node, notes = _new_node(verifier)
        return Relaxations(verifier.info.key, new_node=node, notes=notes)
    state = verifier.state()
    judged = verifier.judged(verifier.info, state, scored_from=1)
    if judged.count:
        return _decided(verifier, judged, placed_on)
    return _refused(verifier, judged, state, storage)


def _decided(verifier: Verifier, judged: Judgement, placed_on: str) -> Relaxations:
    search = DecidingSearch(verifier, judged, placed_on)
    notes: list[str] = []
    if placed_on and placed_on not in {each.name for each in judged.view.node_infos()}:
        notes.append(f"It would not be placed on {placed_on} again: that node is refused now.")
    try:
        search.run()
    except BudgetSpentError as error:
        notes.append(_ended(error))
    return Relaxations(verifier.info.key, deciding=search.result(), notes=tuple(notes))


def _refused(
    verifier: Verifier, judged: Judgement, state: CycleState, storage: Storage
) -> Relaxations:
    groups = groups_of(verifier, judged, state)
    search = RelaxationSearch(verifier, groups[:MAX_GROUPS])
    new_node, notes = None, []
    try:
        search.run(storage)
        new_node = find_new_node(verifier)
    except BudgetSpentError as error:
        notes.append(_ended(error))
    results: tuple[NodeGroup, ...] = search.results()
    return Relaxations(
        verifier.info.key,
        results,
        max(len(groups) - MAX_GROUPS, 0),
        new_node,
        notes=(*search.notes, *notes),
    )


def _new_node(verifier: Verifier) -> tuple[NewNode | None, tuple[str, ...]]:
    try:
        return find_new_node(verifier), ()
    except BudgetSpentError as error:
        return None, (_ended(error),)


def _ended(error: BudgetSpentError) -> str:
    return f"The search ended early: {error}. There may be cheaper changes."


def _with_cost(found: Relaxations, budget: Budget) -> Relaxations:
    return replace(found, verifications=budget.verifications, cpu_s=budget.used_s)
