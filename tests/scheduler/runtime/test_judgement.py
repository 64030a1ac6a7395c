from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cache.pod_info import PodInfo
from cache.snapshot import Snapshot
from plugins.framework.interfaces import PreFilterPlugin
from plugins.framework.results import PreFilterResult
from plugins.framework.status import SUCCESS, unresolvable
from scheduler.config import default_config, running_profiles
from scheduler.explain import explain
from scheduler.offline.cluster import Cluster
from scheduler.offline.offline_framework import offline_framework
from scheduler.runtime.filter_outcome import PluginError
from scheduler.runtime.judgement import judge
from tests import strategies
from tests.builders import node, pod
from tests.scheduler.shadow.policies import Acts, Broken, Handle, Only, Points, nodes, policy


class Narrow(PreFilterPlugin):
    name = "Narrow"

    def __init__(self, result: PreFilterResult) -> None:
        super().__init__(None, Handle())
        self.result = result

    def pre_filter(self, state, info, nodes):
        return self.result


def names_of(judgement, rows) -> list[str]:
    return [judgement.snapshot.columns.node_infos[row].name for row in rows]


def test_every_node_is_judged_and_every_feasible_one_scored():
    judged = judge(
        policy(Only("a", "c"), Points(a=3, b=9, c=5)), nodes("a", "b", "c"), pod().info()
    )
    assert names_of(judged, np.flatnonzero(judged.feasible)) == ["a", "c"]
    assert names_of(judged, judged.best_rows()) == ["c"]


def test_without_scores_every_feasible_node_is_best():
    judged = judge(policy(Only("a", "c")), nodes("a", "b", "c"), pod().info())
    assert names_of(judged, judged.best_rows()) == ["a", "c"]


def test_a_single_feasible_node_is_not_scored_where_only_a_choice_matters():
    judged = judge(policy(Only("b"), Points(a=1)), nodes("a", "b"), pod().info(), scored_from=2)
    assert judged.scores is None
    assert names_of(judged, judged.best_rows()) == ["b"]


def test_a_search_that_was_narrowed_speaks_of_the_right_nodes():
    narrow = Narrow(PreFilterResult(SUCCESS, frozenset({"b", "c"})))
    judged = judge(policy(narrow, Points(b=1, c=2)), nodes("a", "b", "c"), pod().info())
    assert names_of(judged, np.flatnonzero(judged.feasible)) == ["b", "c"]
    assert names_of(judged, judged.best_rows()) == ["c"]


@pytest.mark.parametrize(
    ("plugins", "reason"),
    [
        pytest.param([Only("b")], "not on the list", id="by a filter"),
        pytest.param(
            [Narrow(PreFilterResult(SUCCESS, frozenset({"b"})))],
            "node(s) didn't satisfy plugin(s) [Narrow]",
            id="narrowed away",
        ),
        pytest.param(
            [Narrow(PreFilterResult(unresolvable("no node at all")))], "no node at all", id="all"
        ),
    ],
)
def test_it_says_why_a_node_is_not_feasible(plugins, reason):
    judged = judge(policy(*plugins), nodes("a", "b"), pod().info())
    assert judged.status_of(0).message == reason


def test_nobody_is_asked_to_act_for_a_pod_that_fits_nowhere():
    acts = Acts()
    judge(policy(Only(), acts), nodes("a", "b"), pod().info())
    assert acts.asked == []


def test_a_failing_plugin_is_an_error_with_its_name():
    with pytest.raises(PluginError, match='running "Broken" filter plugin: it fell over'):
        judge(policy(Broken()), nodes("a"), pod().info())


@given(
    found=st.lists(strategies.nodes(), min_size=1, max_size=6, unique_by=lambda n: n.metadata.name),
    asked=strategies.pods(),
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_it_tells_the_same_as_an_explanation(found, asked):
    cluster = Cluster()
    for each in found:
        cluster.add_node(each)
    framework = offline_framework(running_profiles(default_config()), cluster)
    snapshot, info = cluster.snapshot(), PodInfo(asked)
    explained = explain(framework, snapshot, info)
    judged = judge(framework, snapshot, info)
    feasible = names_of(judged, np.flatnonzero(judged.feasible))
    assert sorted(feasible) == sorted(explained.ranked)
    if explained.ranked:
        best = max(scores.total for scores in explained.ranked.values())
        expected = [name for name, scores in explained.ranked.items() if scores.total == best]
        assert sorted(names_of(judged, judged.best_rows())) == sorted(expected)


def test_time_is_measured():
    ticks = iter((10.0, 10.25))
    judged = judge(policy(Only("a")), nodes("a"), pod().info(), clock=lambda: next(ticks))
    assert judged.seconds == 0.25


def test_a_full_node_is_not_feasible_to_the_default_profile():
    framework = offline_framework(running_profiles(default_config()), Cluster())
    snapshot = Snapshot.of([node("small").capacity(cpu="1", pods="9").info()])
    assert judge(framework, snapshot, pod().request(cpu="2").info()).count == 0
