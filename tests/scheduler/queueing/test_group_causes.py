from __future__ import annotations

import msgspec
import pytest

from cache.pod_groups import GroupCounts, GroupStanding
from plugins import names
from scheduler.queueing.group_causes import CAUSES, waiting_by_cause
from scheduler.queueing.group_entries import GROUP_GATE
from scheduler.queueing.pending_pods import WaitingGroup
from scheduler.queueing.queue_states import QueueState
from tests.pod_group_builders import KEY, group, known_groups

RULES = known_groups(group(3)).rules(KEY)
REFUSED = msgspec.structs.replace(RULES, problem="spec.minMember: -1 is negative")
GATED = QueueState.GATED


@pytest.mark.parametrize(
    ("state", "gate", "standing", "cause"),
    [
        pytest.param(QueueState.ACTIVE, None, None, "active", id="next"),
        pytest.param(QueueState.BACKOFF, None, None, "backoff", id="pauses"),
        pytest.param(QueueState.UNSCHEDULABLE, None, None, "refused", id="did not fit"),
        pytest.param(GATED, names.DEFAULT_PREEMPTION, None, "preemption", id="victims leave"),
        pytest.param(GATED, "Mine", None, "plugin", id="a plugin of somebody"),
        pytest.param(GATED, GROUP_GATE, (None, {}, 1), "object", id="no object"),
        pytest.param(GATED, GROUP_GATE, (REFUSED, {"waiting": 5}, 2), "rules", id="bad rules"),
        pytest.param(GATED, GROUP_GATE, (RULES, {"waiting": 5}, 2), "scheduler_names", id="names"),
        pytest.param(GATED, GROUP_GATE, (RULES, {"waiting": 2}, 1), "members", id="too few"),
        pytest.param(
            GATED, GROUP_GATE, (RULES, {"waiting": 2, "gated": 1}, 1), "gates", id="one is gated"
        ),
        pytest.param(GATED, GROUP_GATE, (RULES, {"waiting": 9}, 1), "size", id="too many"),
    ],
)
def test_a_group_counts_for_what_it_waits_for(state, gate, standing, cause):
    def stands(_):
        rules, counts, number = standing
        return GroupStanding(rules, GroupCounts(**counts), ("a", "b")[:number])

    counts = waiting_by_cause([WaitingGroup(KEY, state, gate, ())], stands)
    assert [name for name, count in counts.items() if count] == [cause]


def test_a_cause_that_nobody_waits_for_is_shown_as_zero():
    assert waiting_by_cause([], lambda _: None) == dict.fromkeys(CAUSES, 0.0)
