from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings

from cache.pod_info import PodInfo
from plugins.framework.attempt_budget import AttemptBudget, AttemptBudgetExceededError
from scheduler.config import default_config, effective_profiles
from scheduler.explain import explain
from scheduler.offline.cluster import Cluster
from scheduler.offline.offline_framework import offline_framework
from scheduler.ui.pod_matrix import PASSES, Matrix, matrix_of
from tests.builders import NodeBuilder, PodBuilder, names_term, node, pod
from tests.plugins.conformance import clusters, pending_pods

if TYPE_CHECKING:
    from cache.objects import Pod
    from tests.plugins.conformance import Cluster as DrawnCluster


def judged(asked: PodBuilder, *objects: NodeBuilder) -> tuple[Matrix, Cluster]:
    cluster = Cluster()
    for each in objects:
        cluster.add_node(each.build())
    framework = offline_framework(effective_profiles(default_config()), cluster)
    return matrix_of(framework, cluster.snapshot(), asked.info()), cluster


def test_all_plugins_that_refuse_a_node_are_shown() -> None:
    matrix, _ = judged(pod().request(cpu="2"), node("n").capacity(cpu="1").taint("gpu"))
    (pattern,) = matrix.patterns
    assert matrix.refusing == ("TaintToleration", "NodeResourcesFit")
    assert pattern.refused_by == 2


def test_nodes_of_which_all_plugins_say_the_same_are_one_row() -> None:
    matrix, _ = judged(
        pod().request(cpu="2"),
        *(node(f"small-{i}").capacity(cpu="1") for i in range(3)),
        node("big").capacity(cpu="4"),
    )
    assert [(len(each.rows), each.refused_by) for each in matrix.patterns] == [(1, 0), (3, 1)]


def test_a_node_that_was_not_looked_at_has_a_reason() -> None:
    asked = pod().node_affinity(names_term("n1"))
    matrix, _ = judged(asked, node("n1"), node("n2"))
    assert sum(len(each.rows) for each in matrix.patterns if each.refused_by == 0) == 1


def test_a_pod_that_takes_too_long_is_given_up() -> None:
    cluster = Cluster()
    cluster.add_node(node("n").build())
    framework = offline_framework(effective_profiles(default_config()), cluster)
    with pytest.raises(AttemptBudgetExceededError):
        matrix_of(framework, cluster.snapshot(), pod().info(), AttemptBudget(-1.0))


def test_no_nodes_are_no_rows() -> None:
    matrix, _ = judged(pod())
    assert (matrix.num_nodes, matrix.patterns) == (0, ())


@settings(max_examples=20)
@given(clusters(), pending_pods())
def test_the_matrix_says_of_each_node_what_an_explanation_says(
    drawn: DrawnCluster, asked: Pod
) -> None:
    cluster = Cluster()
    for each in drawn.nodes:
        cluster.add_node(each)
    for each in drawn.pods:
        cluster.add_pod(each)
    framework = offline_framework(effective_profiles(default_config()), cluster)
    snapshot, info = cluster.snapshot(), PodInfo(asked)
    matrix = matrix_of(framework, snapshot, info)
    told = explain(framework, snapshot, info)
    if matrix.before or not matrix.num_nodes:
        assert not told.ranked
        return
    names = [each.name for each in snapshot.all_nodes().node_infos()]
    first: dict[str, str] = {}
    for pattern in matrix.patterns:
        refusing = [
            p for p, cell in zip(matrix.refusing, pattern.cells, strict=True) if cell != PASSES
        ]
        first |= {names[row]: refusing[0] for row in pattern.rows.tolist() if refusing}
    assert first == {name: each.plugin for name, each in told.rejected.items()}
    ranked = [names[row] for row in matrix.ranking.rows.tolist()]
    assert ranked == list(told.ranked)
