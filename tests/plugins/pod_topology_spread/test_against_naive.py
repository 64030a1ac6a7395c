"""The plugin over columns and the term index says what looking at every pod says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cache.objects import TopologySpreadConstraint
from cache.pod_info import PodInfo
from plugins.framework.cycle_state import CycleState
from plugins.framework.status import Code
from plugins.pod_topology_spread import PodTopologySpread, PodTopologySpreadArgs
from tests.plugins.pod_topology_spread.naive import Naive
from tests.plugins.related_pods import pods, worlds

if TYPE_CHECKING:
    from cache.objects import Pod
    from tests.plugins.related_pods import World

LIST = (
    TopologySpreadConstraint(1, "topology.kubernetes.io/zone", "DoNotSchedule"),
    TopologySpreadConstraint(2, "rack", "ScheduleAnyway"),
    TopologySpreadConstraint(1, "kubernetes.io/hostname", "ScheduleAnyway"),
)

BY_DEFAULTS = pytest.mark.parametrize(
    ("args", "defaults"),
    [
        pytest.param({}, None, id="system defaults"),
        pytest.param(
            {
                "defaultingType": "List",
                "defaultConstraints": [
                    {
                        "maxSkew": each.max_skew,
                        "topologyKey": each.topology_key,
                        "whenUnsatisfiable": each.when_unsatisfiable,
                    }
                    for each in LIST
                ],
            },
            LIST,
            id="listed defaults",
        ),
        pytest.param({"defaultingType": "List"}, (), id="no defaults"),
    ],
)


@BY_DEFAULTS
@given(world=worlds(), pod=pods())
@settings(max_examples=2 * settings().max_examples, deadline=None)
def test_each_node_gets_the_same_verdict(
    world: World,
    pod: Pod,
    args: dict[str, object],
    defaults: tuple[TopologySpreadConstraint, ...] | None,
) -> None:
    plugin = PodTopologySpread(msgspec.convert(args, PodTopologySpreadArgs), world.handle())
    state, info, view = CycleState(), PodInfo(pod), world.cluster.snapshot().all_nodes()
    expected = Naive(pod, world, view.node_infos(), defaults).statuses()
    status = plugin.pre_filter(state, info, view).status
    if expected is None:
        assert status.code is Code.SKIP
        return
    assert status.is_success
    verdicts = plugin.filter(state, info, view)
    for row, node_info in enumerate(view.node_infos()):
        assert verdicts.status_of(row) == expected[node_info.name]
        assert plugin.filter_one(state, info, node_info) == expected[node_info.name]


@BY_DEFAULTS
@given(world=worlds(min_nodes=1), pod=pods(), data=st.data())
@settings(max_examples=2 * settings().max_examples, deadline=None)
def test_each_node_gets_the_same_score(
    world: World,
    pod: Pod,
    args: dict[str, object],
    defaults: tuple[TopologySpreadConstraint, ...] | None,
    data: st.DataObject,
) -> None:
    plugin = PodTopologySpread(msgspec.convert(args, PodTopologySpreadArgs), world.handle())
    state, info, view = CycleState(), PodInfo(pod), world.cluster.snapshot().all_nodes()
    rows = data.draw(st.lists(st.integers(0, len(view) - 1), unique=True, min_size=1))
    feasible = view.subset(np.array(rows, dtype=np.intp))
    expected = Naive(pod, world, view.node_infos(), defaults).scores(feasible.node_infos())
    status = plugin.pre_score(state, info, feasible)
    if expected is None:
        assert status.code is Code.SKIP
        return
    assert status.is_success
    raw = plugin.score(state, info, feasible)
    assert raw.tolist() == expected[0]
    alone = [plugin.score_one(state, info, each) for each in feasible.node_infos()]
    assert alone == expected[0]
    assert plugin.normalize(state, info, raw).tolist() == expected[1]
