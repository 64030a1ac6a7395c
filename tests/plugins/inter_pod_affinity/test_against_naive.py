"""The plugin over columns and the term index says what looking at every pod says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings

from cache.pod_info import PodInfo
from plugins.framework.cycle_state import CycleState
from plugins.framework.status import Code
from plugins.inter_pod_affinity import InterPodAffinity, InterPodAffinityArgs
from tests.plugins.inter_pod_affinity.naive import Naive, normalized
from tests.plugins.related_pods import pods, worlds

if TYPE_CHECKING:
    from cache.objects import Pod
    from tests.plugins.related_pods import World

MANY = settings(max_examples=4 * settings().max_examples, deadline=None)


def naive(world: World, pod: Pod) -> Naive:
    return Naive(pod, world.cluster.nodes, world.cluster.pods, world.namespaces)


@given(world=worlds(), pod=pods(spread=False))
@MANY
def test_each_node_gets_the_same_verdict(world: World, pod: Pod) -> None:
    plugin = InterPodAffinity(None, world.handle())
    state, info, view = CycleState(), PodInfo(pod), world.cluster.snapshot().all_nodes()
    expected = naive(world, pod).statuses()
    status = plugin.pre_filter(state, info, view).status
    if expected is None:
        assert status.code is Code.SKIP
        return
    assert status.is_success
    verdicts = plugin.filter(state, info, view)
    for row, node_info in enumerate(view.node_infos()):
        assert verdicts.status_of(row) == expected[node_info.name]
        assert plugin.filter_one(state, info, node_info) == expected[node_info.name]


@pytest.mark.parametrize(
    "args",
    [
        pytest.param({}, id="defaults"),
        pytest.param({"hardPodAffinityWeight": 0}, id="no hard weight"),
        pytest.param(
            {"hardPodAffinityWeight": 100, "ignorePreferredTermsOfExistingPods": True},
            id="existing preferences ignored",
        ),
    ],
)
@given(world=worlds(min_nodes=1), pod=pods(spread=False))
@settings(max_examples=2 * settings().max_examples, deadline=None)
def test_each_node_gets_the_same_score(world: World, pod: Pod, args: dict[str, object]) -> None:
    converted = msgspec.convert(args, InterPodAffinityArgs)
    plugin = InterPodAffinity(converted, world.handle())
    state, info, view = CycleState(), PodInfo(pod), world.cluster.snapshot().all_nodes()
    expected = naive(world, pod).scores(
        hard_weight=converted.hard_pod_affinity_weight,
        ignore_existing=converted.ignore_preferred_terms_of_existing_pods,
    )
    status = plugin.pre_score(state, info, view)
    if expected is None:
        assert status.code is Code.SKIP
        return
    assert status.is_success
    in_order = [expected[node_info.name] for node_info in view.node_infos()]
    raw = plugin.score(state, info, view)
    assert raw.tolist() == in_order
    assert [plugin.score_one(state, info, each) for each in view.node_infos()] == in_order
    stretched = normalized(expected)
    final = plugin.normalize(state, info, raw)
    assert final.tolist() == [stretched[each.name] for each in view.node_infos()]
    some = view.subset(np.arange(0, len(view), 2))
    assert plugin.score(state, info, some).tolist() == in_order[::2]
