from __future__ import annotations

import pytest

from plugins.framework.status import Code, Status, unresolvable, unschedulable
from scheduler.decision.decision import Decision, Diagnosis, RejectedNodes
from tests.builders import pod


def group(status: Status, *names: str) -> RejectedNodes:
    return RejectedNodes(status, names)


CPU = unschedulable("Insufficient cpu").by("NodeResourcesFit")
CPU_AND_MEMORY = unschedulable("Insufficient cpu", "Insufficient memory").by("NodeResourcesFit")
TAINT = unresolvable("node(s) had untolerated taint(s)").by("TaintToleration")


@pytest.mark.parametrize(
    ("diagnosis", "message"),
    [
        pytest.param(
            Diagnosis(5, rejected=(group(CPU, "a", "b", "c"), group(TAINT, "d", "e"))),
            "0/5 nodes are available: 2 node(s) had untolerated taint(s), 3 Insufficient cpu.",
            id="reasons are counted and sorted as text",
        ),
        pytest.param(
            Diagnosis(3, rejected=(group(CPU, "a"), group(CPU_AND_MEMORY, "b", "c"))),
            "0/3 nodes are available: 2 Insufficient memory, 3 Insufficient cpu.",
            id="a node counts for each of its reasons",
        ),
        pytest.param(
            Diagnosis(4, pre_filter=unresolvable("no such claim").by("VolumeBinding")),
            "0/4 nodes are available: no such claim.",
            id="a pre-filter speaks for all nodes",
        ),
        pytest.param(
            Diagnosis(
                4,
                absent=unresolvable("node(s) didn't satisfy plugin(s) [NodeAffinity]"),
                rejected=(group(CPU, "a"),),
            ),
            "0/4 nodes are available: 1 Insufficient cpu, "
            "3 node(s) didn't satisfy plugin(s) [NodeAffinity].",
            id="nodes that were narrowed away",
        ),
        pytest.param(
            Diagnosis(1, rejected=(group(CPU, "a"),), post_filter_message="preemption: no."),
            "0/1 nodes are available: 1 Insufficient cpu. preemption: no.",
            id="post-filter has the last word",
        ),
    ],
)
def test_the_message_has_kube_scheduler_s_form(diagnosis, message):
    assert diagnosis.message() == message


def test_plugins_are_told_apart_by_what_they_said():
    pending = Status(Code.PENDING, ("wait for quota",), "Quota")
    diagnosis = Diagnosis(3, rejected=(group(CPU, "a"), group(TAINT, "b"), group(pending, "c")))
    assert diagnosis.unschedulable_plugins == {"NodeResourcesFit", "TaintToleration"}
    assert diagnosis.pending_plugins == {"Quota"}


def test_an_error_of_ours_is_told_as_it_is():
    decision = Decision(1, "berth", pod("a").info(), Status(Code.ERROR, ("it broke",)))
    assert decision.message() == "it broke"


def test_a_cluster_without_nodes():
    decision = Decision(1, "berth", pod("a").info(), unschedulable("x"), diagnosis=Diagnosis(0))
    assert decision.message() == "no nodes available to schedule pods"
