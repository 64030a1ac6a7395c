"""Stores the results of dry runs for alike pods.

Pods of one workload preempt one after another, and between two of them few nodes change. The
result of a dry run on a node is valid for the next pod as long as the node does not change, the
pod requests the same, and every filter that takes part judges each node by itself. Pods that
differ only in the names of their claims are alike to these filters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from msgspec.structs import replace

from cache.byte_bounded import deep_bytes
from cache.objects import ClaimVolumeSource, Volume
from plugins.default_preemption.choice import Candidate, Harm
from plugins.default_preemption.node_memory import NodeMemory
from plugins.framework.status import Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from cache.columns import Columns
    from cache.objects import Pod
    from cache.pod_info import PodInfo
    from plugins.default_preemption.gangs import Gangs, Stakes
    from plugins.framework.results import BoolArray, RowArray

_RUNGS: Final = len(Harm._fields)

Outcome: TypeAlias = Candidate | Status

Crowd: TypeAlias = "tuple[PodInfo, ...]"
"""The pods that are nominated for a node, except the preemptor."""

NOBODY: Final[Crowd] = ()

_ANY_CLAIM: Final = Volume(persistent_volume_claim=ClaimVolumeSource())

MAX_SHAPES: Final = 8
"""More than the workloads that preempt at one time."""

MAX_SHAPE_BYTES: Final = 1 << 18
"""Of what a pod is known by: 2 MiB for all. A pod may have four times as much, and has dry runs of
its own then."""


class Outcomes:
    """The results of dry runs on single nodes, with the harm of candidates as columns.

    Thousands of candidates are common when many nodes are alike, and a loop over them would cost
    more than everything else.

    Notes
    -----
    *Concurrency*: confined to the thread of the columns.
    """

    def __init__(self) -> None:
        self._nodes = NodeMemory["tuple[Crowd, Outcome, Stakes]"]()
        self._crowded: set[int] = set()
        self._stakes: dict[int, Stakes] = {}
        self._is_candidate: BoolArray = np.empty(0, dtype=np.bool_)
        self._harm: npt.NDArray[np.float64] = np.empty((_RUNGS, 0), dtype=np.float64)

    def follow(self, columns: Columns) -> None:
        """Update the mapping of rows to nodes."""
        if not self._nodes.follow(columns):
            return
        self._crowded.clear()
        self._stakes.clear()
        values = self._nodes.values
        self._is_candidate = np.zeros(len(values), dtype=np.bool_)
        self._harm = np.zeros((_RUNGS, len(values)), dtype=np.float64)
        for row, value in enumerate(values):
            if value is not None:
                self._note(row, *value)

    def put(self, row: int, crowd: Crowd, outcome: Outcome, stakes: Stakes = ()) -> None:
        """Store the result of a dry run, and what it depended on besides the node.

        Parameters
        ----------
        crowd
            The pods that were nominated for the node.
        stakes
            The groups that have members among the pods of the node.
        """
        self._nodes.put(row, (crowd, outcome, stakes))
        self._crowded.discard(row)
        self._stakes.pop(row, None)
        self._note(row, crowd, outcome, stakes)

    def _note(self, row: int, crowd: Crowd, outcome: Outcome, stakes: Stakes) -> None:
        if crowd:
            self._crowded.add(row)
        if stakes:
            self._stakes[row] = stakes
        is_candidate = isinstance(outcome, Candidate)
        self._is_candidate[row] = is_candidate
        if isinstance(outcome, Candidate):
            self._harm[:, row] = outcome.harm

    def known(
        self, rows: RowArray, crowds: Mapping[int, Crowd], gangs: Gangs | None = None
    ) -> BoolArray:
        """Return bool (n,): whether the result of each row is known and still valid.

        *Cost*: a pass over a column, and one check for each node that has nominated pods, or
        members of groups.
        """
        known = self._nodes.known(rows)
        changed = [
            row
            for row in self._crowded.union(crowds)
            if (value := self._nodes.values[row]) is None or value[0] != crowds.get(row, NOBODY)
        ]
        if self._stakes and gangs is not None:
            changed += [
                row for row, stakes in self._stakes.items() if not gangs.are_current(stakes)
            ]
        if changed:
            known &= ~np.isin(rows, changed)
        return known

    def outcome(self, row: int) -> Outcome:
        """Return the result of the dry run on a known row."""
        value = self._nodes.values[row]
        assert value is not None, "only rows that are known"  # noqa: S101 - misuse
        return value[1]

    def candidates(self, rows: RowArray) -> RowArray:
        """Return the candidates among some known rows."""
        return rows[self._is_candidate[rows]]

    def any_harmless(self, rows: RowArray) -> bool:
        """Return whether any of some candidates violates no budget."""
        return bool((self._harm[0, rows] == 0).any())

    def best(self, rows: RowArray) -> int:
        """Return the candidate, of at least one, that does the least harm: of equals the first."""
        for rung in self._harm:
            harm = rung[rows]
            rows = rows[harm == harm.min()]
            if len(rows) == 1:
                break
        return int(rows[0])


class DryRunMemory:
    """Results by node, for the latest few shapes of pods.

    Notes
    -----
    *Concurrency*: confined to the scheduling thread.
    """

    def __init__(self) -> None:
        self._shapes: list[tuple[tuple[Any, ...], Outcomes]] = []
        self._budgets_version = -1

    def __len__(self) -> int:
        """Return the number of stored shapes."""
        return len(self._shapes)

    def of(self, pod: Pod, budgets_version: int) -> Outcomes:
        """Return the stored results for pods alike this one; empty when there was none.

        Results of very large pods are not stored.

        All results are dropped when a budget changed.
        """
        if budgets_version != self._budgets_version:
            self._shapes.clear()
            self._budgets_version = budgets_version
        shape = _shape(pod)
        for index, (known, memory) in enumerate(self._shapes):
            if known == shape:
                self._shapes.insert(0, self._shapes.pop(index))
                return memory
        memory = Outcomes()
        if deep_bytes(shape, at_most=MAX_SHAPE_BYTES) > MAX_SHAPE_BYTES:
            return memory
        self._shapes.insert(0, (shape, memory))
        del self._shapes[MAX_SHAPES:]
        return memory


def _shape(pod: Pod) -> tuple[Any, ...]:
    """Return all fields of a pod that filters which judge nodes by themselves may read."""
    spec, status = pod.spec, pod.status
    return (
        replace(spec, volumes=tuple(_sourced(spec.volumes))),
        pod.metadata.namespace,
        pod.metadata.labels,
        status.container_statuses,
        status.init_container_statuses,
        status.resources,
    )


def _sourced(volumes: tuple[Volume, ...]) -> Iterator[Volume]:
    """Yield the volumes with a source that scheduling reads.

    The others have only a name, and the token's volume has another name in each pod. So has a
    claim, but filters that judge nodes by themselves do not read its name.
    """
    for volume in volumes:
        if volume.persistent_volume_claim is not None:
            yield _ANY_CLAIM
        elif volume != type(volume)(name=volume.name):
            yield volume
