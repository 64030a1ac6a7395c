from __future__ import annotations

import pytest

from cache.columns import NodesView
from plugins.framework.cycle_state import CycleState
from plugins.framework.interfaces import FilterPlugin, PreFilterPlugin, PreScorePlugin, ScorePlugin
from plugins.framework.results import PROCEED, SKIP_FILTER, NodeVerdicts
from plugins.framework.status import SKIP, SUCCESS, Code
from scheduler.runtime.filter_outcome import FilterOutcome, PluginError
from scheduler.runtime.instrumented_plugins import measured, measured_in_reuse
from scheduler.runtime.plugin_set import PluginSet
from tests.builders import node, pod
from tests.fakes.nobody import Nobody

NODES = NodesView.of([node(name).info() for name in "ab"])
INFO = pod().info()


class Everywhere(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Is at every point that judges nodes; skips the pod, or fails, where it is told to."""

    name = "Everywhere"
    skips = frozenset()
    fails = ""

    def pre_filter(self, state, info, nodes):
        return SKIP_FILTER if "PreFilter" in self.skips else PROCEED

    def filter(self, state, info, nodes):
        if self.fails == "Filter":
            raise ValueError("no")
        return NodeVerdicts(None)

    def pre_score(self, state, info, nodes):
        if self.fails == "PreScore":
            raise ValueError("no")
        return SKIP if "PreScore" in self.skips else SUCCESS

    def score_one(self, state, info, node_info):
        return 7


class Normalizing(Everywhere):
    name = "Normalizing"

    def normalize(self, state, info, scores):
        return scores


def noted(plugin, wrap, *, marks=True):
    """What is noted of one plugin, point by point, with how it answered."""
    state = CycleState()
    state.marks = [] if marks else None
    points = {point: [plugin] for point in ("preFilter", "filter", "preScore", "score")}
    plugins = PluginSet(points, {plugin.name: 1}, wrap)
    try:
        plugins.run_pre_filters(state, INFO, NODES)
        plugins.run_filters(state, INFO, NODES, FilterOutcome(NODES))
        plugins.run_pre_scores(state, INFO, NODES)
        for scorer, raw in plugins.raw_scores(state, INFO, NODES):
            scorer.weighted(state, INFO, raw, len(NODES))
    except PluginError:
        pass
    return None if state.marks is None else [(point, code) for point, _, code, _ in state.marks]


def plugin_of(kind, skips=(), fails=""):
    made = kind(None, Nobody())
    made.skips, made.fails = frozenset(skips), fails
    return made


OK, SKIPPED, ERROR = Code.SUCCESS, Code.SKIP, Code.ERROR
FILTERED = [("PreFilter", OK), ("Filter", OK)]


@pytest.mark.parametrize(
    ("plugin", "wrap", "expected"),
    [
        pytest.param(
            plugin_of(Everywhere),
            measured,
            [*FILTERED, ("PreScore", OK), ("Score", OK)],
            id="each call once",
        ),
        pytest.param(
            plugin_of(Normalizing),
            measured,
            [*FILTERED, ("PreScore", OK), ("Score", OK), ("ScoreExtensionNormalize", OK)],
            id="one that normalises, there too",
        ),
        pytest.param(
            plugin_of(Everywhere, skips=("PreFilter", "PreScore")),
            measured,
            [("PreFilter", SKIPPED), ("PreScore", SKIPPED)],
            id="skips",
        ),
        pytest.param(
            plugin_of(Everywhere, fails="PreScore"),
            measured,
            [*FILTERED, ("PreScore", ERROR)],
            id="a PreScore that raises answers Error",
        ),
        pytest.param(
            plugin_of(Everywhere, fails="Filter"),
            measured,
            [("PreFilter", OK)],
            id="a Filter that raises does not answer",
        ),
        pytest.param(
            plugin_of(Normalizing),
            measured_in_reuse,
            [*FILTERED, ("PreScore", OK), ("Score", OK)],
            id="scores once where verdicts are reused",
        ),
        pytest.param(
            plugin_of(Everywhere, skips=("PreFilter", "PreScore")),
            measured_in_reuse,
            [],
            id="no skips where verdicts are reused",
        ),
    ],
)
def test_what_is_noted_of_a_plugin(plugin, wrap, expected):
    assert noted(plugin, wrap) == expected


def test_nothing_is_noted_in_a_what_if():
    assert noted(plugin_of(Normalizing), measured, marks=False) is None
