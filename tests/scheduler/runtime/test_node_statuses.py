from __future__ import annotations

import numpy as np
import pytest

from cache.columns import NodesView
from plugins.framework.results import NodeVerdicts
from plugins.framework.status import SUCCESS, Code, Status, unresolvable, unschedulable
from scheduler.decision.decision import RejectedNodes
from scheduler.extenders import Exclusions
from scheduler.runtime.filter_outcome import FilterOutcome
from scheduler.runtime.node_statuses import SearchStatuses
from scheduler.runtime.plugin_set import PreFilterOutcome
from tests.builders import node

NODES = NodesView.of([node(name).info() for name in "abcde"])
PASSED = PreFilterOutcome(SUCCESS, None, frozenset())
FULL, NEVER = unschedulable("full"), unresolvable("never")


def outcome(view: NodesView, **rejected: Status) -> FilterOutcome:
    """What one filter says: a status by node name, the others pass."""
    names = [each.name for each in view.node_infos()]
    found = FilterOutcome(view)
    statuses = list(dict.fromkeys(rejected.values()))
    which = np.array([statuses.index(rejected.get(n, statuses[0])) for n in names])
    passed = np.array([name not in rejected for name in names])
    found.add("Filter", NodeVerdicts(passed, detail=lambda: (which, statuses)))
    return found


def helpable(statuses: SearchStatuses) -> str:
    return "".join(NODES.node_info(int(row)).name for row in statuses.helpable_rows())


def test_unschedulable_nodes_can_be_helped():
    found = outcome(NODES, a=FULL, b=NEVER, c=FULL, d=NEVER, e=FULL)
    assert helpable(SearchStatuses(NODES, PASSED, found)) == "ace"


def test_each_node_keeps_its_own_status():
    statuses = SearchStatuses(NODES, PASSED, outcome(NODES, a=FULL, b=NEVER))
    assert [statuses.status_of(each).message for each in "ab"] == ["full", "never"]


def test_statuses_are_signed():
    statuses = SearchStatuses(NODES, PASSED, outcome(NODES, a=FULL))
    assert statuses.status_of("a").plugin == "Filter"


@pytest.mark.parametrize(
    ("status", "helps"),
    [pytest.param(FULL, "abcde", id="for now"), pytest.param(NEVER, "", id="for good")],
)
def test_a_rejection_by_a_pre_filter_holds_for_all_nodes(status, helps):
    statuses = SearchStatuses(NODES, PreFilterOutcome(status, None, frozenset()), None)
    assert helpable(statuses) == helps
    assert {statuses.status_of(each) for each in "abcde"} == {status}


class TestNarrowed:
    """A PreFilter left only some nodes."""

    VIEW = NODES.subset(np.array([3, 1]))
    PRE = PreFilterOutcome(SUCCESS, frozenset({"d", "b"}), frozenset({"Narrow"}))

    def statuses(self) -> SearchStatuses:
        return SearchStatuses(NODES, self.PRE, outcome(self.VIEW, d=FULL, b=FULL))

    def test_rows_are_those_of_all_nodes_in_ascending_order(self):
        assert self.statuses().helpable_rows().tolist() == [1, 3]

    def test_nodes_that_were_narrowed_away_cannot_be_helped(self):
        status = self.statuses().status_of("a")
        assert (status.code, status.message) == (
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            "node(s) didn't satisfy plugin(s) [Narrow]",
        )


class TestExcludedByExtenders:
    """All nodes but ``a`` passed the filters, and extenders left none of them."""

    def statuses(self) -> SearchStatuses:
        groups = (RejectedNodes(FULL, ("b", "c")), RejectedNodes(NEVER, ("d",)))
        excluded = Exclusions(np.array([], dtype=np.int64), groups)
        return SearchStatuses(NODES, PASSED, outcome(NODES, a=FULL), excluded)

    def test_those_with_a_reason_can_be_helped_or_not_as_it_says(self):
        assert helpable(self.statuses()) == "abc"
        assert self.statuses().status_of("d") == NEVER

    def test_one_that_was_left_out_without_a_word_cannot_be_helped(self):
        assert self.statuses().status_of("e").code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_a_node_that_does_not_exist_cannot_be_helped():
    statuses = SearchStatuses(NODES, PASSED, outcome(NODES, a=FULL))
    assert statuses.status_of("gone").code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
