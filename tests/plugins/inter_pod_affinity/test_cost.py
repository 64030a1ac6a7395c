"""What thousands of terms of one pod may cost, counted."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from cache.affinity_terms import AffinityTerm
from cache.label_columns import LabelColumns
from cache.objects import (
    Affinity,
    LabelSelector,
    PodAffinity,
    PodAffinityTerm,
    WeightedPodAffinityTerm,
)
from cache.pod_info import PodInfo
from cache.pod_table import PodQuery, PodTable
from cache.snapshot import Snapshot
from cache.term_index import TermIndex
from plugins.framework.attempt_budget import AttemptBudget, AttemptBudgetExceededError
from plugins.framework.cycle_state import CycleState
from plugins.framework.status import unresolvable
from plugins.inter_pod_affinity import InterPodAffinity
from tests.builders import node, pod
from tests.plugins.conformance import RecordingHandle

HOSTNAME = "kubernetes.io/hostname"


def snapshot() -> Snapshot:
    """Four nodes with five pods each."""
    return Snapshot.of(
        node(f"n{i}")
        .label(HOSTNAME, f"n{i}")
        .info(*(pod(f"p{i}-{j}").label("app", f"a{j}").on(f"n{i}") for j in range(i + 1)))
        for i in range(4)
    )


def term(topology: str, key: str, value: str) -> PodAffinityTerm:
    return PodAffinityTerm(topology, LabelSelector({key: value}))


def asking(affinity: Affinity) -> PodInfo:
    built = pod("asked").build()
    return PodInfo(replace(built, spec=replace(built.spec, affinity=affinity)))


def apart(*terms: PodAffinityTerm) -> PodInfo:
    return asking(
        Affinity(
            pod_anti_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=terms)
        )
    )


def feasible(info: PodInfo, nodes: Snapshot, state: CycleState | None = None) -> list[bool]:
    plugin = InterPodAffinity(None, RecordingHandle())
    state = CycleState() if state is None else state
    assert plugin.pre_filter(state, info, nodes.all_nodes()).status.is_success
    passed = plugin.filter(state, info, nodes.all_nodes()).passed
    return [True] * len(nodes) if passed is None else passed.tolist()


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is asked of columns and of the table of all pods, as it is asked."""
    asked: list[str] = []
    label, column, count = LabelColumns.get, PodTable._column, TermIndex.count

    def of_nodes(columns: LabelColumns, key: str) -> object:
        asked.append(f"node label {key}")
        return label(columns, key)

    def of_pods(table: PodTable, key: str) -> object:
        asked.append(f"pod label {key}")
        return column(table, key)

    def pods(index: TermIndex, query: PodQuery) -> object:
        asked.append("query")
        return count(index, query)

    monkeypatch.setattr(LabelColumns, "get", of_nodes)
    monkeypatch.setattr(PodTable, "_column", of_pods)
    monkeypatch.setattr(TermIndex, "count", pods)
    return asked


def test_an_anti_affinity_term_of_a_topology_that_no_node_has_costs_no_column(
    counted: list[str],
) -> None:
    info = apart(*(term(f"rack-{i}", "app", f"a{i}") for i in range(2000)))
    assert feasible(info, snapshot()) == [True] * 4
    assert not counted


def test_an_affinity_term_of_a_topology_that_no_node_has_decides_alone(counted: list[str]) -> None:
    terms = (term(HOSTNAME, "app", "a0"), *(term(f"r{i}", "app", "a0") for i in range(2000)))
    required = PodAffinity(required_during_scheduling_ignored_during_execution=terms)
    info = asking(Affinity(pod_affinity=required))
    nodes = snapshot()
    assert feasible(info, nodes) == [False] * 4
    assert not counted
    plugin, state = InterPodAffinity(None, RecordingHandle()), CycleState()
    plugin.pre_filter(state, info, nodes.all_nodes())
    assert {plugin.filter_one(state, info, each) for each in nodes.columns.node_infos} == {
        unresolvable("node(s) didn't match pod affinity rules")
    }


def test_thousands_of_selectors_with_keys_of_their_own_need_no_column_of_pods(
    counted: list[str],
) -> None:
    terms = [term(HOSTNAME, f"key-{i}", "v") for i in range(2000)]
    nodes = snapshot()
    assert feasible(apart(*terms, term(HOSTNAME, "app", "a2")), nodes) == [True, True, False, False]
    assert set(counted) == {f"node label {HOSTNAME}"}
    assert len(counted) < 5


def test_thousands_of_queries_of_one_pod_push_out_no_others() -> None:
    nodes = snapshot()
    feasible(apart(term(HOSTNAME, "app", "a1")), nodes)
    counts = nodes.columns.terms._counts
    assert counts is not None
    held = list(counts._columns)
    feasible(apart(*(term(HOSTNAME, "app", f"a{i}") for i in range(2000))), nodes)
    assert list(counts._columns) == held


def test_terms_that_mean_the_same_are_asked_once(counted: list[str]) -> None:
    same = tuple(WeightedPodAffinityTerm(1, term(HOSTNAME, "app", "a1")) for _ in range(1000))
    preferred = PodAffinity(preferred_during_scheduling_ignored_during_execution=same)
    info = asking(Affinity(pod_affinity=preferred))
    nodes, state = snapshot(), CycleState()
    plugin = InterPodAffinity(None, RecordingHandle())
    assert plugin.pre_score(state, info, nodes.all_nodes()).is_success
    assert plugin.score(state, info, nodes.all_nodes()).tolist() == [0, 1000, 1000, 1000]
    assert counted.count("query") == 1


def test_an_attempt_that_is_broken_off_between_terms_leaves_true_counts() -> None:
    nodes = snapshot()
    info = apart(*(term(HOSTNAME, "app", f"a{i}") for i in range(3, 1000)))
    for allowed in range(1, 200, 7):
        ticks = iter(range(10**6))
        state = CycleState(AttemptBudget(allowed, clock=lambda ticks=ticks: next(ticks)))
        with pytest.raises(AttemptBudgetExceededError):
            feasible(info, nodes, state)
        assert feasible(info, nodes) == [True, True, True, False]


def test_a_what_if_about_one_pod_looks_at_its_terms_once(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = snapshot()
    info = apart(*(term(HOSTNAME, "app", f"a{i}") for i in range(100)))
    other = PodInfo(apart(*(term(HOSTNAME, "app", f"b{i}") for i in range(100))).pod)
    plugin, state = InterPodAffinity(None, RecordingHandle()), CycleState()
    plugin.pre_filter(state, info, nodes.all_nodes())
    evaluated: list[AffinityTerm] = []
    matches = AffinityTerm.matches

    def noting(term: AffinityTerm, *asked: Any) -> bool:
        evaluated.append(term)
        return matches(term, *asked)

    monkeypatch.setattr(AffinityTerm, "matches", noting)
    for _ in range(5):
        what_if = state.copy()
        (node_info, *_) = nodes.columns.node_infos
        plugin.is_concerned_by(what_if, info, other)
        plugin.add_pod(what_if, info, other, node_info)
        plugin.remove_pod(what_if, info, other, node_info)
    assert len(evaluated) == 100
