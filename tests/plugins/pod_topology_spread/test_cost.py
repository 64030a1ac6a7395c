"""What thousands of constraints of one pod may cost, counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cache.label_columns import LabelColumns
from cache.objects import LabelSelector, TopologySpreadConstraint
from cache.snapshot import Snapshot
from cache.term_index import TermIndex
from plugins.framework.attempt_budget import AttemptBudget, AttemptBudgetExceededError
from plugins.framework.cycle_state import CycleState
from plugins.framework.status import unresolvable
from plugins.pod_topology_spread import PodTopologySpread
from tests.builders import node, pod
from tests.plugins.conformance import RecordingHandle

if TYPE_CHECKING:
    from cache.pod_info import PodInfo

ZONE = "topology.kubernetes.io/zone"


def spread(action: str, count: int) -> PodInfo:
    """A pod whose first constraint can be met, and whose others name topologies of their own."""
    builder = pod("asked").label("app", "a")
    constraints = tuple(
        TopologySpreadConstraint(
            max_skew=1,
            topology_key=ZONE if not i else f"rack-{i}",
            when_unsatisfiable=action,
            label_selector=LabelSelector({"app": f"a{i}"}),
        )
        for i in range(count)
    )
    return builder._spec(topology_spread_constraints=constraints).info()


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The columns and the counts that are asked for."""
    asked: list[str] = []
    label, count = LabelColumns.get, TermIndex.count

    def of_nodes(columns: LabelColumns, key: str) -> object:
        asked.append(key)
        return label(columns, key)

    def pods(index: TermIndex, query: object) -> object:
        asked.append("query")
        return count(index, query)

    monkeypatch.setattr(LabelColumns, "get", of_nodes)
    monkeypatch.setattr(TermIndex, "count", pods)
    return asked


def snapshot() -> Snapshot:
    return Snapshot.of(
        node(f"n{i}").zone(f"z{i % 2}").info(pod(f"p{i}").label("app", "a").on(f"n{i}"))
        for i in range(4)
    )


def test_hard_constraints_that_no_node_can_meet_are_known_without_counting(
    counted: list[str],
) -> None:
    nodes, state = snapshot(), CycleState()
    info = spread("DoNotSchedule", 10_000)
    plugin = PodTopologySpread(None, RecordingHandle())
    assert plugin.pre_filter(state, info, nodes.all_nodes()).status.is_success
    passed = plugin.filter(state, info, nodes.all_nodes()).passed
    assert passed is not None
    assert not passed.any()
    missing = "node(s) didn't match pod topology spread constraints (missing required label)"
    first, *_ = nodes.columns.node_infos
    other = pod("other").label("app", "a").info()
    for what_if in (state, state.copy()):
        plugin.add_pod(what_if, info, other, first)
        assert plugin.filter_one(what_if, info, first) == unresolvable(missing)
        plugin.remove_pod(what_if, info, other, first)
        assert not plugin.is_concerned_by(what_if, info, other)
    assert not counted


def test_soft_constraints_that_no_node_can_be_scored_by_are_known_without_counting(
    counted: list[str],
) -> None:
    nodes, state = snapshot(), CycleState()
    info = spread("ScheduleAnyway", 10_000)
    plugin = PodTopologySpread(None, RecordingHandle())
    assert plugin.pre_score(state, info, nodes.all_nodes()).is_success
    scores = plugin.score(state, info, nodes.all_nodes())
    assert plugin.normalize(state, info, scores).tolist() == [0] * 4
    assert {plugin.score_one(state, info, each) for each in nodes.columns.node_infos} == {0}
    assert not counted


@pytest.mark.parametrize("action", ["DoNotSchedule", "ScheduleAnyway"])
def test_an_attempt_is_broken_off_while_constraints_are_compiled(action: str) -> None:
    ticks = iter(range(10**6))
    state = CycleState(AttemptBudget(100, clock=lambda: next(ticks)))
    plugin, info = PodTopologySpread(None, RecordingHandle()), spread(action, 10_000)
    step = plugin.pre_filter if action == "DoNotSchedule" else plugin.pre_score
    with pytest.raises(AttemptBudgetExceededError):
        step(state, info, snapshot().all_nodes())
