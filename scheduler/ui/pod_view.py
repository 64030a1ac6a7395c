"""The view of one pod: what the scheduler says, and every node by every filter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from plugins.framework.attempt_budget import AttemptBudget, AttemptBudgetExceededError
from plugins.node_resources_fit import NodeResourcesFit
from scheduler.runtime.filter_outcome import PluginError
from scheduler.ui.condition_decisions import records_of
from scheduler.ui.offline_sources import find_pod, pending_form, state_of
from scheduler.ui.paging import PER_PAGE, page_of
from scheduler.ui.pod_matrix import matrix_of
from scheduler.ui.sources import SourceError
from scheduler.ui.times import seconds_of

if TYPE_CHECKING:
    from collections import OrderedDict
    from collections.abc import Callable, Mapping, Sequence

    from cache.node_info import NodeInfo
    from cache.objects import Pod
    from cache.pod_info import PodInfo
    from plugins.node_resources_fit import Shortfall
    from scheduler.runtime.framework_runner import FrameworkRunner
    from scheduler.ui.listing import Listing
    from scheduler.ui.pod_matrix import Matrix, Pattern

MAX_PATTERNS: Final = 40
"""How many rows the matrix shows: one for the nodes of which all filters say the same."""

MAX_RANKED: Final = 25

MAX_REFUSALS: Final = 100

MATRIX_CPU_S: Final = 10.0
"""A pod with ten requirements needs 0.1 s with 5 000 nodes; one with 40 000 keys uses all of it."""

_EXAMPLES: Final = 3


OVER_BUDGET: Final = f"judging the pod on all nodes takes more than {MATRIX_CPU_S:g} s of CPU time"


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the matrix, with some of its nodes."""

    index: int
    pattern: Pattern
    names: Sequence[str]


def pod_page(listing: Listing, namespace: str, name: str) -> dict[str, Any]:
    """Return what the template of a pod shows.

    Raises
    ------
    SourceError
        When there is no such pod, or a plugin fails.
    """
    pod = find_pod(listing, namespace, name)
    info, framework = (
        pending_form(listing, namespace, name),
        listing.framework(pod.spec.scheduler_name),
    )
    matrix, problem = None, ""
    try:
        if not listing.is_partial:
            matrix = matrix_of_pod(listing, framework, pod, info)
    except PluginError as error:
        problem = error.status.message
    except AttemptBudgetExceededError:
        problem = OVER_BUDGET
    return {
        "max_refusals": MAX_REFUSALS,
        "key": info.key,
        "namespace": namespace,
        "name": name,
        "pod": pod,
        "state": state_of(pod),
        "requests": info.requests,
        "priority": info.priority,
        "served_by": framework.profile_name,
        "age_s": max(listing.now_s - seconds_of(pod.metadata.creation_timestamp), 0.0),
        "records": [record for _, record in records_of(info.key, pod)],
        "gate": _gate(framework, pod),
        "matrix": matrix,
        "problem": problem,
        "rows": [] if matrix is None else _rows(listing, matrix),
        "ranked": [] if matrix is None else _ranked(listing, matrix),
        "node_name": pod.spec.node_name,
    }


def _gate(framework: FrameworkRunner, pod: Pod) -> str:
    status = framework.pre_enqueue(pod)
    return "" if status.is_success else status.message


def matrix_of_pod(listing: Listing, framework: FrameworkRunner, pod: Pod, info: PodInfo) -> Matrix:
    """Return the matrix of a pod as if it had no node; the last few are kept."""
    kept: OrderedDict[str, Matrix] = listing.matrices
    if info.key not in kept:
        with listing.without(pod) as snapshot:
            kept[info.key] = matrix_of(framework, snapshot, info, AttemptBudget(MATRIX_CPU_S))
        if len(kept) > listing.MAX_MATRICES:
            kept.popitem(last=False)
    return kept[info.key]


def _rows(listing: Listing, matrix: Matrix) -> list[Row]:
    infos = listing.snapshot.columns.node_infos
    return [
        Row(index, pattern, [infos[row].name for row in pattern.rows[:_EXAMPLES].tolist()])
        for index, pattern in enumerate(matrix.patterns[:MAX_PATTERNS])
        if matrix.refusing
    ]


def _ranked(listing: Listing, matrix: Matrix) -> list[tuple[str, int, list[int]]]:
    """Return the best nodes: name, total, and the scores of each plugin."""
    infos, ranking = listing.snapshot.columns.node_infos, matrix.ranking
    return [
        (
            infos[row].name,
            int(ranking.total[index]),
            [int(column[index]) for column in ranking.scores.values()],
        )
        for index, row in enumerate(ranking.rows[:MAX_RANKED].tolist())
    ]


def nodes_page(
    listing: Listing, namespace: str, name: str, query: Mapping[str, str]
) -> dict[str, Any]:
    """Return the nodes of one row of the matrix, with what each has free and lacks.

    Raises
    ------
    SourceError
        When there is no such pod or row, or a plugin fails.
    """
    pod = find_pod(listing, namespace, name)
    info = pending_form(listing, namespace, name)
    framework = listing.framework(pod.spec.scheduler_name)
    try:
        matrix = matrix_of_pod(listing, framework, pod, info)
    except PluginError as error:
        raise SourceError(error.status.message) from error
    except AttemptBudgetExceededError as error:
        raise SourceError(OVER_BUDGET) from error
    row = query.get("row", "0")
    index = int(row) if row.isascii() and row.isdigit() and len(row) < 6 else 0
    if index >= len(matrix.patterns):
        raise SourceError(f"the matrix of pod {info.key} has no row {index}")
    pattern = matrix.patterns[index]
    infos = listing.snapshot.columns.node_infos
    names = sorted(infos[row].name for row in pattern.rows.tolist())
    page = page_of(names, query.get("page", ""))
    lacks = lacking(framework, info)
    return {
        "key": info.key,
        "namespace": namespace,
        "name": name,
        "pattern": pattern,
        "index": index,
        "matrix": matrix,
        "page": page,
        "per_page": PER_PAGE,
        "resources": [each for each in info.requests if info.requests[each]],
        "requests": info.requests,
        "nodes": [
            (found, lacks(found)) for each in page.rows if (found := listing.snapshot.get(each))
        ],
    }


def lacking(framework: FrameworkRunner, info: PodInfo) -> Callable[[NodeInfo], Sequence[Shortfall]]:
    """Return a function from a node to what the pod lacks there."""
    fits = [plugin for plugin in framework.plugins if isinstance(plugin, NodeResourcesFit)]
    return lambda node: fits[0].shortfalls(info, node) if fits else ()
