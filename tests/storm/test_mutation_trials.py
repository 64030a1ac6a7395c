"""Trials of mutations: what counts as found, and how they go on."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from tests.storm.extras import extras_of
from tests.storm.mutation_trials import LISTED, Trials, seeds_for
from tests.storm.mutations import Mutation
from tests.storm.playing import Played, Setting
from tests.storm.themes import theme_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAME = "nothing-is-assumed"


def trials(fails: Callable[[str, int], bool], state: Path | None = None, **more: Any) -> Trials:
    """Return trials with worlds of 10 steps that fail as they are told to."""

    def play_without(name: str, seed: int, steps: int) -> Played:
        broken = "I1" if fails(name, seed) else ""
        return Played(seed, Setting(1, 2, 0.0), steps=10, broken=broken, message=broken)

    return Trials(state, play_without=play_without, **more)


def test_the_first_world_that_fails_finds_it() -> None:
    trial = trials(lambda name, seed: name == NAME and seed >= 3).of(NAME)

    assert (trial.invariant, trial.steps, trial.seed) == ("I1", 30, 3)


def test_a_world_that_fails_anyway_finds_nothing() -> None:
    trial = trials(lambda name, seed: seed == 1 or (name == NAME and seed >= 4)).of(NAME)

    assert (trial.seed, trial.discarded) == (4, (1,))


def test_the_budget_ends_a_trial_that_finds_nothing() -> None:
    trial = trials(lambda name, seed: seed == 5, budget=50).of(NAME)

    assert (trial.invariant, trial.steps) == ("", 50)


def test_what_is_found_beyond_the_budget_is_not_found() -> None:
    trial = trials(lambda name, seed: name == NAME and seed == 3, budget=25).of(NAME)

    assert (trial.invariant, trial.steps) == ("", 30)


def test_what_was_tried_is_not_tried_again(tmp_path: Path) -> None:
    state = tmp_path / "state"

    made = trials(lambda name, seed: name == NAME, state).of(NAME)

    assert trials(lambda name, seed: False, state).of(NAME) == made


def test_more_budget_is_another_trial(tmp_path: Path) -> None:
    state = tmp_path / "state"
    trials(lambda name, seed: False, state, budget=20).of(NAME)

    assert trials(lambda name, seed: False, state, budget=40).of(NAME).steps == 40


def test_a_mutation_has_worlds_of_its_theme_and_extra() -> None:
    mutation = Mutation("", LISTED[NAME].apply, "losses", "policies")

    for seed in islice(seeds_for(mutation, 7), 3):
        assert theme_of(seed) == "losses"
        assert "policies" in extras_of(seed)
