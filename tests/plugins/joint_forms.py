"""What a filter and a score say of several pods in one go: the check, and pods to ask about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import strategies as st

from cache.pod_info import PodInfo
from plugins.framework.cycle_state import CycleState
from plugins.framework.interfaces import FilterPlugin, ScorePlugin
from tests import builders
from tests.plugins.conformance import pre_filter_of, pre_score_of

if TYPE_CHECKING:
    from cache.objects import Pod
    from tests.plugins.conformance import Cluster, Recipe


def check_joint_forms(recipe: Recipe, cluster: Cluster, pods: list[Pod], rows: list[int]) -> bool:
    """What is said of several pods in one go is what is said of each; return whether it was said.

    A score may say anything of a node that the filter rejects.
    """
    plugin, view = recipe.make(), cluster.snapshot().all_nodes().subset(np.array(rows, np.intp))
    judged = [(CycleState(), PodInfo(pod)) for pod in pods]
    was_said = False
    if any(plugin.signature(info) is None for _, info in judged):
        return was_said
    passing = [pre_filter_of(plugin, *each, view).status.is_success for each in judged]
    if isinstance(plugin, FilterPlugin) and all(passing):
        passed = plugin.filter_jointly(judged, view)
        if passed is not None:
            was_said = True
            alone = [plugin.filter(*each, view).passed for each in judged]
            assert passed.tolist() == [
                [True] * len(view) if each is None else each.tolist() for each in alone
            ]
    if isinstance(plugin, ScorePlugin) and type(plugin).normalize is ScorePlugin.normalize:
        if not all(pre_score_of(plugin, *each, view).is_success for each in judged):
            return was_said
        scores = plugin.score_jointly(judged, view)
        if scores is not None:
            was_said = True
            assert scores.tolist() == [plugin.score(*each, view).tolist() for each in judged]
    return was_said


def pods_of_several_requests() -> st.SearchStrategy[list[Pod]]:
    """Pods that differ in how much CPU and memory they request, and in nothing else."""
    amounts = st.tuples(st.sampled_from(["1m", "500m", "3", "70"]), st.integers(1, 1 << 45))
    several = st.lists(amounts, min_size=1, max_size=4)
    return several.map(
        lambda each: [
            builders.pod().request(cpu=cpu, memory=str(memory)).build() for cpu, memory in each
        ]
    )
