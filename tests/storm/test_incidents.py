"""Each incident comes to its end with Berth as it is, and shows what the one it is for protects."""

from __future__ import annotations

import pytest

from tests.storm.extras import incidents
from tests.storm.extras.incident_scripts import BETWEEN_STEPS, NEEDS, SCRIPTS
from tests.storm.mutations import without
from tests.storm.playing import Setting, play

SHOWS = {
    "room_of_a_failed_binding": ("undo-wakes-nobody", "I3"),
    "bound_elsewhere": ("bound-elsewhere-is-no-news", "I3"),
    "room_while_a_status_is_written": ("bindings-overtake-statuses", "I7"),
    "bound_there_by_another": ("bound-pods-are-judged-again", "I7"),
    "one_race_after_another": ("withheld-pods-are-tried-at-once-for-ever", "I16"),
    "confirmation_that_is_late": ("answers-count-whatever-has-happened-since", "I4"),
    "room_during_an_attempt": ("events-pass-pods-in-flight-by", "I3"),
    "pod_that_is_skipped": ("skipped-pod-stays-in-flight", "I5"),
    "update_during_an_attempt": ("update-of-a-pod-in-flight-is-an-addition", "I3"),
    "successor_that_nobody_has_announced": ("store-knows-objects-by-name", "I3"),
    "node_of_a_member_is_taken": ("members-of-a-gang-look-for-themselves", "I18"),
    "node_of_a_claim_is_taken": ("claims-are-bound-without-a-look", "I21"),
    "nomination_that_is_late": ("nominations-count-once-the-api-tells-of-them", "I3"),
    "nomination_that_nobody_has_heard_of": (
        "nominations-end-only-if-the-api-has-told-of-them",
        "I3",
    ),
    "nomination_without_room": ("nominated-pods-wait-for-room", "I3"),
    "victim_that_does_not_end": ("victims-are-waited-for-without-limit", "I3"),
    "preemptor_that_goes": ("victims-go-whatever-becomes-of-the-preemptor", "I8"),
    "profiles_that_are_replaced": ("B7", "I9"),
    "label_of_many_values": ("B9", "I9"),
    "deletion_that_is_denied": ("not-found-means-evicted", "I3"),
}


def play_alone(monkeypatch, script, mutation, seed=5):
    monkeypatch.setattr(incidents, "SCRIPTS", {script: SCRIPTS[script]})
    monkeypatch.setattr(incidents, "IN_A_CALM", 2)
    extras = tuple(filter(None, ("incidents", NEEDS.get(script))))
    setting = Setting(1, 2, 0.2 if script in BETWEEN_STEPS else 0.0, extras)
    with without(mutation):
        return play(seed, setting=setting, history=[(1.0, [])])


def test_each_script_is_listed():
    assert set(SHOWS) == set(SCRIPTS)


@pytest.mark.parametrize("script", SCRIPTS)
def test_berth_passes(monkeypatch, script):
    played = play_alone(monkeypatch, script, "")

    assert not played.message
    assert played.counts[f"incident {script}"] == 1


@pytest.mark.parametrize("script", SCRIPTS)
def test_it_is_noticed(monkeypatch, script):
    mutation, invariant = SHOWS[script]
    # Not every seed has it between two steps of an attempt.
    seeds = range(1, 40) if script in BETWEEN_STEPS else (5,)

    broken = (play_alone(monkeypatch, script, mutation, seed).broken for seed in seeds)

    assert next(filter(None, broken), "") == invariant
