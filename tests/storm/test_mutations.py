"""The simulation can fail: it notices that a protection is missing, in a few short histories."""

from __future__ import annotations

import pytest

from tests.storm.mutations import MUTATIONS, without
from tests.storm.plans import Action
from tests.storm.playing import Setting, play
from tests.storm.themes import THEMES

QUIET = (5.0, [Action(1.0, "delete_pod", 1), Action(2.0, "delete_pod", 2)])
PAUSE = (25.0, [Action(2.0 + 0.1 * number, "pause_leader", number) for number in range(3)])
LOSSES = (45.0, [Action(2.0 + number, "lose_events", number) for number in range(6)])
GANGS = (30.0, [Action(5.0 + 3.0 * number, "new_gang", number) for number in range(6)])


@pytest.mark.parametrize(
    ("name", "invariant", "replicas", "stretch"),
    [
        pytest.param("nothing-is-assumed", "I1", 1, QUIET, id="assume"),
        pytest.param("attempts-do-not-end", "I5", 1, QUIET, id="done"),
        pytest.param("pods-that-left-stay", "I4", 1, QUIET, id="remove"),
        pytest.param("generations-begin-anew-with-each-node", "I4", 1, QUIET, id="generation"),
        pytest.param("nothing-is-fenced", "I6", 2, PAUSE, id="fence"),
        pytest.param("overdue-pods-are-given-up-unasked", "I2", 1, LOSSES, id="ask"),
        pytest.param("members-of-a-gang-are-placed-one-by-one", "I18", 1, GANGS, id="gather"),
    ],
)
def test_it_is_noticed(name, invariant, replicas, stretch):
    extras = MUTATIONS[name].extra.split()
    setting = Setting(replicas=replicas, nodes=4, interleave=0.0, extras=tuple(extras))

    with without(name):
        played = play(1, setting=setting, history=[stretch])

    assert played.broken == invariant


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_says_what_is_removed(name):
    mutation = MUTATIONS[name]

    assert mutation.removed
    assert mutation.theme in ("", *THEMES)
