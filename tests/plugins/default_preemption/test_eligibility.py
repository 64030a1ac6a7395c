from __future__ import annotations

import pytest

from cache.api_times import parsed_time_s
from plugins.default_preemption.eligibility import (
    NEVER,
    STUCK_VICTIM_LIMIT_S,
    VICTIMS_ARE_LEAVING,
    Eligibility,
    eligibility,
    is_preempted,
)
from tests.builders import NodeBuilder, PodBuilder, node, pod
from tests.plugins.default_preemption.stage import Stage

DEADLINE = "2025-01-01T00:00:30Z"
"""When the victims' grace period ends."""

IN_TIME_S = parsed_time_s(DEADLINE) + STUCK_VICTIM_LIMIT_S
TOO_LATE_S = IN_TIME_S + 1

NODE = node("n1").capacity(cpu="1")
PREEMPTOR = pod("web").priority(100).request(cpu="1").nominated("n1")
VICTIM = pod("victim").request(cpu="1").on("n1")
LEAVING = VICTIM.preempted(DEADLINE)


def judged(
    asked: PodBuilder, *objects: NodeBuilder | PodBuilder, wall_s: float = IN_TIME_S
) -> Eligibility:
    stage = Stage(*objects)
    _, statuses = stage.search(asked.info())
    return eligibility(asked.info(), stage.snapshot.all_nodes(), statuses, wall_s)


@pytest.mark.parametrize(
    ("asked", "victim", "refusal"),
    [
        pytest.param(PREEMPTOR.nominated(""), LEAVING, "", id="not nominated"),
        pytest.param(PREEMPTOR.never_preempts(), VICTIM, NEVER, id="policy Never"),
        pytest.param(PREEMPTOR, LEAVING, VICTIMS_ARE_LEAVING, id="victims are leaving"),
        pytest.param(PREEMPTOR, VICTIM, "", id="victims stay"),
        pytest.param(PREEMPTOR, VICTIM.terminating(DEADLINE), "", id="somebody else deleted it"),
        pytest.param(PREEMPTOR, LEAVING.priority(100), "", id="an equal pod is leaving"),
        pytest.param(PREEMPTOR.nominated("gone"), LEAVING, "", id="the node is gone"),
    ],
)
def test_who_may_preempt(asked: PodBuilder, victim: PodBuilder, refusal: str) -> None:
    assert judged(asked, NODE, victim) == Eligibility(refusal)


def test_a_node_that_can_never_do_is_not_waited_for() -> None:
    assert judged(PREEMPTOR, NODE.taint("closed"), LEAVING) == Eligibility()


def test_a_victim_that_will_not_die_is_waited_for_no_longer() -> None:
    stuck = judged(PREEMPTOR, NODE, LEAVING, wall_s=TOO_LATE_S)
    assert stuck == Eligibility(avoided_node="n1")


def test_other_conditions_do_not_make_a_victim() -> None:
    assert is_preempted(LEAVING.build())
    assert not is_preempted(VICTIM.terminating().build())
    assert not is_preempted(VICTIM.build())
