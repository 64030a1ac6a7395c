"""Many pods that are alike, placed by counting: one on each of the best nodes, again and again.

Where a node's verdict depends on nothing but the node, a pod on one of several equally good nodes
leaves the others as good as they were. So the next pods take the others, in any order, and only the
columns of amounts are needed to see which nodes are the best afterwards. The pods themselves are
made at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec.structs import replace

from cache.objects import PodStatus
from cache.pod_info import PodInfo, has_affinity
from plugins.framework.attempt_budget import AttemptBudgetExceededError
from plugins.names import IN_TREE
from scheduler.pod_groups.shapes import has_claims

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cache.objects import Pod
    from scheduler.runtime.framework_runner import FrameworkRunner
    from scheduler.runtime.judgement import LikePods
    from scheduler.what_if.placer import Placer

_RUNNING: Final = PodStatus(phase="Running")

_SHARE: Final = 8
"""The part of the pods that are left which is placed at one time, once scores have risen."""


def may_be_counted(framework: FrameworkRunner, pod: Pod) -> bool:
    """Return whether nothing but amounts and the Node objects may decide about a pod."""
    info = PodInfo(pod)
    spec = pod.spec
    return not (
        spec.scheduling_group is not None
        or spec.topology_spread_constraints
        or spec.scheduling_gates
        or has_affinity(spec.affinity)
        or has_claims(info)
        or info.host_ports
        or any(plugin.name not in IN_TREE for plugin in framework.plugins)
    )


def place_alike(
    placer: Placer, framework: FrameworkRunner, pod: Pod, count: int, like: LikePods
) -> Iterator[int]:
    """Yield the row of each of ``count`` pods like one that was placed, as far as counting goes.

    The columns have their amounts afterwards, and the cache does not know of them yet: see
    :func:`made`.

    *Cost*: one run of the vector forms for as many pods as there are best nodes.
    """
    placer.cluster.cache.update_snapshot(placer.snapshot)
    columns, info = placer.snapshot.columns, PodInfo(pod)
    level, has_risen = -1, False
    while count:
        try:
            best = placer.cycle.best_rows(framework, info, like, placer.budget())
        except AttemptBudgetExceededError:
            return
        if best is None:
            return
        best.settle()
        rows = np.array(best.all(), dtype=np.intp)
        score = int(best.scores[rows[0]])
        # A node that gets better with each pod takes all until it is full or as good as others.
        # Nodes that do so at one time must not be left half way when the last pod is placed.
        has_risen = has_risen or 0 <= level < score
        level = score
        most = max(count // _SHARE, 1) if has_risen else count
        rows = placer.shuffled(rows)[:most]
        columns.add_amounts(np.sort(rows), info)
        count -= len(rows)
        yield from rows.tolist()


def made(placer: Placer, pod: Pod, names: Iterator[str], rows: list[int]) -> Iterator[PodInfo]:
    """Yield the pods on the nodes of some rows, as they run."""
    node_infos = placer.snapshot.columns.node_infos
    first, changed = PodInfo(pod), placer.changed
    specs = {row: replace(pod.spec, node_name=node_infos[row].name) for row in set(rows)}
    for row, name in zip(rows, names, strict=False):
        metadata = replace(pod.metadata, name=name, uid=changed.next_uid())
        yield first.twin(replace(pod, metadata=metadata, spec=specs[row], status=_RUNNING))
