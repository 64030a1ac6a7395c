from __future__ import annotations

import threading

import pytest

from scheduler.decision import recent_decisions
from scheduler.decision.recent_decisions import OF_ONE_POD, RecentDecisions


def recent(*outcomes: tuple[str, str]) -> RecentDecisions:
    """Return the outcomes of pods: the node, or a message that begins with "no"."""
    made = RecentDecisions(lambda: 1.0)
    for pod, text in outcomes:
        made.add(pod, f"uid-{pod}", "berth", **{"message" if "no" in text else "node": text})
    made.collect()
    return made


@pytest.mark.parametrize(
    ("after", "limit", "seqs"),
    [
        pytest.param(0, 2, [3, 4], id="the newest first of all"),
        pytest.param(0, 9, [1, 2, 3, 4], id="all there are"),
        pytest.param(1, 2, [2, 3], id="the next ones"),
        pytest.param(4, 2, [], id="none is newer"),
        pytest.param(99, 2, [], id="a number of another leader"),
        pytest.param(0, 0, [], id="none wanted"),
    ],
)
def test_outcomes_in_their_order(after, limit, seqs):
    made = recent(("a/1", "n1"), ("a/2", "no"), ("a/1", "no"), ("a/3", "n1"))
    assert [each.seq for each in made.after(after, limit)] == seqs


def test_numbers_go_on_where_the_stream_has_dropped_the_oldest(monkeypatch):
    monkeypatch.setattr(recent_decisions, "STREAM", 2)
    made = recent(("a/1", "n1"), ("a/2", "n1"), ("a/3", "n1"))
    assert [each.seq for each in made.after(1, 9)] == [2, 3]


def test_the_runner_up_is_kept_with_its_score():
    made = RecentDecisions(lambda: 1.0)
    made.add("a/1", "uid", "berth", node="n1", score=7, runner_up=("n2", 5))
    made.add("a/2", "uid", "berth", node="n1", score=7)
    made.collect()
    found = [(each.runner_up, each.runner_up_score) for each in made.after(0, 2)]
    assert found == [("n2", 5), (None, None)]


def test_a_pod_keeps_its_refusals_when_it_is_placed():
    made = recent(("a/1", "no cpu"), ("a/2", "n2"), ("a/1", "n1"))
    assert [(each.node, each.message) for each in made.of_pod("a/1")] == [
        ("n1", ""),
        ("", "no cpu"),
    ]


def test_of_one_pod_only_the_last_are_kept():
    made = recent(*[("a/1", "no")] * (OF_ONE_POD + 3))
    assert len(made.of_pod("a/1")) == OF_ONE_POD


def test_placements_do_not_push_out_refusals(monkeypatch):
    monkeypatch.setattr(recent_decisions, "PLACED_BYTES", 2_000)
    made = recent(("a/waits", "no"), *((f"a/{number}", "n1") for number in range(100)))
    assert [each.message for each in made.of_pod("a/waits")] == ["no"]
    assert made.sizes()["placed_pods"] < 4


def test_refusals_are_bounded_in_bytes_with_their_messages(monkeypatch):
    monkeypatch.setattr(recent_decisions, "REFUSED_BYTES", 10_000)
    made = recent(*((f"a/{number}", "no" * 5_000) for number in range(100)))
    assert 1 <= made.sizes()["refused_pods"] < 10


def test_a_member_has_the_refusals_of_its_group():
    made = recent()
    made.add("", "", "berth", message="no room for 3", group="a/gang")
    made.add("a/m1", "uid", "berth", message="no")
    made.collect()
    assert [each.message for each in made.of_pod("a/m1", "a/gang")] == ["no", "no room for 3"]


def test_what_nobody_collects_is_bounded(monkeypatch):
    monkeypatch.setattr(recent_decisions, "_NEW", 3)
    made = RecentDecisions(lambda: 1.0)
    for number in range(10):
        made.add(f"a/{number}", "", "berth", node="n1")
    made.collect()
    assert [each.pod for each in made.after(0, 9)] == ["a/7", "a/8", "a/9"]


def test_outcomes_of_many_threads_are_all_numbered():
    made = RecentDecisions(lambda: 1.0)

    def add(name: str) -> None:
        for number in range(500):
            made.add(f"{name}/{number}", "", "berth", node="n1")

    threads = [threading.Thread(target=add, args=(f"ns{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made.collect()
    assert [each.seq for each in made.after(0, 5_000)] == list(range(1, 2_001))
