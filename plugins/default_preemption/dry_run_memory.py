"""What dry runs came to, for pods that are alike.

Pods of one workload preempt one after another, and between two of them few nodes change. What a
dry run found on a node holds for the next pod as long as the node stays, the pod asks for the
same, and every filter that has a say judges nodes by themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from plugins.default_preemption.choice import Candidate
from plugins.default_preemption.node_memory import NodeMemory
from plugins.framework.status import Status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cache.objects import Pod, Volume
    from cache.pod_info import PodInfo

Outcome: TypeAlias = Candidate | Status

Crowd: TypeAlias = "tuple[PodInfo, ...]"
"""The pods that are nominated for a node, but for the one that is asked about."""

NOBODY: Final[Crowd] = ()


class Remembered(NamedTuple):
    """What came of a dry run, and who was nominated for the node then."""

    crowd: Crowd
    outcome: Outcome


MAX_SHAPES: Final = 8
"""More than the workloads that preempt at one time."""


class DryRunMemory:
    """Outcomes by node, for the latest few shapes of pods.

    Notes
    -----
    *Concurrency*: confined to the scheduling thread.
    """

    def __init__(self) -> None:
        self._shapes: list[tuple[tuple[Any, ...], NodeMemory[Remembered]]] = []
        self._budgets_version = -1

    def of(self, pod: Pod, budgets_version: int) -> NodeMemory[Remembered]:
        """Return what is remembered for pods like this one, nothing when there was none.

        Everything is forgotten when a budget changed.
        """
        if budgets_version != self._budgets_version:
            self._shapes.clear()
            self._budgets_version = budgets_version
        shape = _shape(pod)
        for index, (known, memory) in enumerate(self._shapes):
            if known == shape:
                self._shapes.insert(0, self._shapes.pop(index))
                return memory
        memory = NodeMemory[Remembered]()
        self._shapes.insert(0, (shape, memory))
        del self._shapes[MAX_SHAPES:]
        return memory


def _shape(pod: Pod) -> tuple[Any, ...]:
    """Return everything of a pod that a filter which judges nodes by themselves may look at."""
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
    """Yield the volumes with a source that scheduling looks at.

    The others are but a name, and that of the token's volume is another one for each pod.
    """
    for volume in volumes:
        if volume != type(volume)(name=volume.name):
            yield volume
