"""Filters that are asked about survivors alone, and scores of pods that PreFilter skipped."""

from __future__ import annotations

import numpy as np

from cache.snapshot import Snapshot
from plugins.framework.cycle_state import CycleState
from plugins.framework.interfaces import FilterPlugin, PreFilterPlugin, ScorePlugin
from plugins.framework.results import SKIP_FILTER
from plugins.framework.status import SUCCESS, unschedulable
from scheduler.runtime.filter_outcome import FilterOutcome
from scheduler.runtime.plugin_set import Mask, PluginSet
from tests.builders import cache_of, node, pod
from tests.fakes.nobody import Nobody


class EarlierFilter(FilterPlugin):
    name = "Earlier"

    def filter_one(self, state, info, node_info):
        return SUCCESS if node_info.name != "n1" else unschedulable("not n1")


class LaterFilter(FilterPlugin):
    name = "Later"
    judges_survivors = True

    def __init__(self, args, handle) -> None:
        super().__init__(args, handle)
        self.asked: list[str] = []

    def filter_one(self, state, info, node_info):
        self.asked.append(node_info.name)
        return SUCCESS if node_info.name != "n2" else unschedulable("not n2")


class SkippedScore(PreFilterPlugin, ScorePlugin):
    name = "Skipped"
    scores_only_what_it_filters = True

    def pre_filter(self, state, info, nodes):
        return SKIP_FILTER

    def score_one(self, state, info, node_info):
        raise AssertionError("a plugin that skipped the pod scores it")


def nodes():
    snapshot = Snapshot()
    cache_of([node(f"n{i}").build() for i in range(4)]).update_snapshot(snapshot)
    return snapshot.all_nodes()


def test_a_filter_of_survivors_is_not_asked_about_rejected_nodes() -> None:
    later, view = LaterFilter(None, Nobody()), nodes()
    outcome = FilterOutcome(view)
    plugins = PluginSet({"filter": (EarlierFilter(None, Nobody()), later)}, {})
    plugins.run_filters(CycleState(), pod().info(), view, outcome)
    assert sorted(later.asked) == ["n0", "n2", "n3"]


def test_verdicts_on_survivors_are_verdicts_on_all_nodes() -> None:
    view = nodes()
    outcome = FilterOutcome(view)
    plugins = (EarlierFilter(None, Nobody()), LaterFilter(None, Nobody()))
    PluginSet({"filter": plugins}, {}).run_filters(CycleState(), pod().info(), view, outcome)
    said = {each.status.message: each.node_names for each in outcome.rejected()}
    assert said == {"not n1": ("n1",), "not n2": ("n2",)}


def test_a_mask_leaves_out_what_was_rejected_before() -> None:
    later, view = LaterFilter(None, Nobody()), nodes()
    before = np.array([name != "n3" for name in (each.name for each in view.node_infos())])
    mask = Mask(before)
    PluginSet({"filter": (later,)}, {}).run_filters(CycleState(), pod().info(), view, mask)
    assert sorted(later.asked) == ["n0", "n1", "n2"]
    assert mask.feasible.sum() == 2


def test_a_plugin_that_skipped_the_pod_does_not_score_it() -> None:
    plugin, view, state = SkippedScore(None, Nobody()), nodes(), CycleState()
    plugins = PluginSet({"preFilter": (plugin,), "score": (plugin,)}, {"Skipped": 1})
    plugins.run_pre_filters(state, pod().info(), view)
    plugins.run_pre_scores(state, pod().info(), view)
    assert list(plugins.raw_scores(state, pod().info(), view)) == []
