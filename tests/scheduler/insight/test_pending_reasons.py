from __future__ import annotations

import pytest

from scheduler.insight.pending_reasons import MAX_REASONS, SAMPLE, pending_reasons
from scheduler.queueing import QueuedPod, QueueState
from tests.builders import pod


def queued(name, *, namespace="a", plugins=(), at_s=0.0, first_s=None, gate=None) -> QueuedPod:
    made = QueuedPod(pod(name, namespace=namespace).info(), at_s, 1, (0.0,))
    made.unschedulable_plugins = frozenset(plugins)
    made.initial_attempt_s = first_s
    made.state = QueueState.UNSCHEDULABLE if plugins else QueueState.ACTIVE
    if gate is not None:
        made.gated_by, made.gate_reasons, made.state = gate, ("not yet",), QueueState.GATED
    return made


def reasons(*waiting, namespace=""):
    return pending_reasons(
        waiting,
        100.0,
        lambda each: f"said of {each.info.name}" if each.unschedulable_plugins else "",
        namespace,
    )


@pytest.mark.parametrize(
    ("waiting", "found"),
    [
        pytest.param([], [], id="nothing waits"),
        pytest.param([queued("p")], [("waits for its turn", [], 1)], id="a new pod"),
        pytest.param(
            [queued("p", gate="Gates"), queued("q", gate="Gates")],
            [("not yet", ["Gates"], 2)],
            id="gated",
        ),
        pytest.param(
            [queued("p", plugins=["B", "A"]), queued("q", plugins=["A", "B"], at_s=2.0)],
            [("said of q", ["A", "B"], 2)],
            id="rejected by the same: the newest text",
        ),
        pytest.param(
            [queued("p", plugins=["A"]), queued("q", plugins=["B"]), queued("r", plugins=["B"])],
            [("said of q", ["B"], 2), ("said of p", ["A"], 1)],
            id="the reason of the most pods first",
        ),
    ],
)
def test_reasons(waiting, found):
    answer = reasons(*waiting)
    assert [(r["reason"], list(r["plugins"]), r["pods"]) for r in answer["reasons"]] == found


def test_the_age_counts_from_the_first_attempt():
    answer = reasons(queued("p", plugins=["A"], at_s=90.0, first_s=10.0))
    assert answer["reasons"][0]["oldest_s"] == 90.0


def test_another_namespace_does_not_count():
    answer = reasons(queued("p"), queued("q", namespace="b"), namespace="b")
    assert (answer["pods"], answer["reasons"][0]["sample"]) == (1, ["b/q"])


def test_the_answer_is_bounded():
    waiting = [queued(f"p{n}-{m}", plugins=[f"P{n}"]) for n in range(200) for m in range(9)]
    answer = reasons(*waiting)
    assert len(answer["reasons"]) == MAX_REASONS
    assert {len(each["sample"]) for each in answer["reasons"]} == {SAMPLE}
