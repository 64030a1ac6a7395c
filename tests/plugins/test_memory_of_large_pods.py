"""Pods as large as the API server takes them, that come and go: nothing of them stays."""

from __future__ import annotations

import gc
import tracemalloc
from typing import TYPE_CHECKING

from cache.columns import NodesView
from plugins.framework.cycle_state import CycleState
from plugins.node_affinity import NodeAffinity
from plugins.node_resources_fit import NodeResourcesFit
from plugins.taint_toleration import TaintToleration
from tests.builders import node, pod, requirement, term
from tests.plugins.conformance import RecordingHandle

if TYPE_CHECKING:
    from cache.pod_info import PodInfo

PLUGINS = (NodeAffinity, NodeResourcesFit, TaintToleration)


def large_pod(index: int) -> PodInfo:
    """Return a pod of some 100 kB like no other in each of its parts."""
    made = pod(f"p{index}").request({f"x.io/r{index}-{n}": "1" for n in range(400)})
    made = made.node_affinity(
        *(term(requirement("zone", "In", f"a{index}-{n}", f"b{n}")) for n in range(400))
    )
    made = made.prefers_node(
        1, term(*(requirement("zone", "NotIn", f"c{index}-{n}") for n in range(400)))
    )
    for n in range(100):
        made = made.toleration(f"t{index}-{n}")
    return made.node_selector("zone", f"z{index}").info()


def test_large_pods_that_come_and_go_leave_no_memory_behind() -> None:
    view = NodesView.of([node(f"n{n}").label("zone", "a").taint("t").info() for n in range(4)])
    plugins = [kind(None, RecordingHandle()) for kind in PLUGINS]

    def attempts(first: int, count: int) -> int:
        for index in range(first, first + count):
            state, info = CycleState(), large_pod(index)
            for plugin in plugins:
                plugin.signature(info)
                if not isinstance(plugin, TaintToleration):
                    plugin.pre_filter(state, info, view)
                plugin.filter(state, info, view).statuses()
                plugin.pre_score(state, info, view)
                plugin.score(state, info, view)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        warm = attempts(0, 60)
        after = attempts(60, 60)
    finally:
        tracemalloc.stop()
    assert after - warm < 1 << 20
