"""Decisions beside other schedulers come out the same from what was recorded of these."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler.journal.forms import NODE
from scheduler.journal.replayed_services import ReplayedRates
from tests.builders import node, pod
from tests.scheduler.journal.decided import DecidedJournal
from tests.scheduler.journal.journaled import play_steps, replayed
from tests.scheduler.journal.test_redaction import assert_redacted

if TYPE_CHECKING:
    from pathlib import Path

STEPS = (
    "node a cpu=4",
    "node b cpu=40",
    "pod large cpu=16 on=b",
    "pod theirs cpu=2 scheduler=other",
    "another scheduler binds theirs to b",
    "pod ours cpu=1",
    "cycle",
)
"""A node with room for others is preferred to one with a higher score."""


def test_room_that_was_left_to_others_is_left_again(tmp_path: Path):
    play_steps(STEPS, tmp_path / "journal")
    counts = replayed(tmp_path / "journal")
    assert (counts.equal, counts.differences) == (1, [])


BEFORE_THE_WATCH = (
    *STEPS[:3],
    "hold watch of pods",
    "pod theirs cpu=2 scheduler=other",
    "another scheduler binds theirs to b",
    "lose events of pods",
    "release watch of pods",
    "look for lost events",
    *STEPS[-2:],
)
"""The watch shows the pod of the other scheduler with its node only."""


def test_it_is_left_again_where_others_had_bound_before_the_watch(tmp_path: Path):
    play_steps(BEFORE_THE_WATCH, tmp_path / "journal")
    counts = replayed(tmp_path / "journal")
    assert (counts.equal, counts.differences) == (1, [])


def test_that_would_not_be_without_what_was_recorded_either(tmp_path: Path, monkeypatch):
    play_steps(BEFORE_THE_WATCH, tmp_path / "journal")
    monkeypatch.setattr(ReplayedRates, "sizes", lambda self: {})
    assert len(replayed(tmp_path / "journal").differences) == 1


def test_it_would_not_be_without_what_was_recorded(tmp_path: Path, monkeypatch):
    play_steps(STEPS, tmp_path / "journal")
    monkeypatch.setattr(ReplayedRates, "sizes", lambda self: {})
    assert len(replayed(tmp_path / "journal").differences) == 1


def test_a_redacted_journal_leaves_it_too(tmp_path: Path):
    journal = DecidedJournal()
    gpu = "gpus.example/large"
    full = pod("f").request({"cpu": "8", gpu: "2"}).on("b").build()
    journal.nodes(
        node(name).capacity({"cpu": cpu, "memory": "64Gi", "pods": "99", gpu: gpus}).build()
        for name, cpu, gpus in (("a", "40", "2"), ("b", "40", "20"))
    )
    journal.running([full])
    beside = ["foreign", {"a": 0.0}], ["reserve", {"pods": [1], gpu: [2]}]
    assert journal.decide(pod("p").request({gpu: "1"}).build(), *beside)[NODE] == "b"
    journal.write(tmp_path / "journal")
    assert_redacted(tmp_path / "journal", tmp_path / "redacted")
    assert replayed(tmp_path / "redacted").equal == 1
