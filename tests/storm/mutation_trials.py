"""Trials of mutations: worlds are played without a protection until a broken promise shows it.

A broken promise counts only where the same world keeps its promises with the protection: a mistake
of Berth or of the simulation shows nothing about the protection. Each trial is a line of a file, so
that trials that were stopped go on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from tests.storm.campaigns import revision
from tests.storm.extras import extras_of
from tests.storm.mutations import FORMER, MUTATIONS, without
from tests.storm.playing import STEPS, play
from tests.storm.themes import theme_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.storm.mutations import Mutation
    from tests.storm.playing import Played

BUDGET: Final = 100_000
"""Steps in which the absence of a protection is to be noticed."""

LISTED: Final = {**MUTATIONS, **FORMER}

HEAD: Final = "| mutation | what is removed | found by | steps | seed |\n|---|---|---|---|---|"


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one mutation.

    Attributes
    ----------
    invariant
        The promise that was broken; empty if none was.
    message
        How it was broken.
    steps
        Of all worlds that were played without the protection, until the promise was broken.
    seed
        Of the last of them.
    discarded
        Seeds whose worlds break a promise with the protection, too.
    revision
        The commit.
    """

    name: str
    invariant: str
    message: str
    steps: int
    seed: int
    discarded: tuple[int, ...] = ()
    revision: str = ""

    def __str__(self) -> str:
        """Return a row of a table of Markdown."""
        seed = self.seed if self.invariant else "-"
        removed = LISTED[self.name].removed
        return f"| `{self.name}` | {removed} | {self.invariant or '-'} | {self.steps} | {seed} |"


def _play_without(name: str, seed: int, steps: int) -> Played:
    with without(name):
        return play(seed, steps, remember=0)


class Trials:
    """Trials of mutations, and a file of those that were made.

    Parameters
    ----------
    state
        The file; None for trials that nobody continues.
    budget
        Steps for each mutation.
    first, steps
        The first seed that may be played, and how many steps of each.
    play_without
        Plays so many steps of a seed without a protection; its name may be empty.
    """

    def __init__(
        self,
        state: Path | None = None,
        budget: int = BUDGET,
        first: int = 1,
        steps: int = STEPS,
        play_without: Callable[[str, int, int], Played] = _play_without,
    ) -> None:
        self._state = state
        self._budget = budget
        self._first = first
        self._play = partial(play_without, steps=steps)
        self._revision = revision()
        self._passes: dict[int, bool] = {}
        self._made: dict[str, Trial] = {}
        if state is not None and state.exists():
            for line in state.read_text(encoding="utf-8").splitlines():
                trial = msgspec.json.decode(line, type=Trial)
                if trial.invariant or trial.steps >= budget:
                    self._made[trial.name] = trial

    def of(self, name: str) -> Trial:
        """Return the trial of a mutation; it is made unless the file has it."""
        if name not in self._made:
            self._made[name] = trial = self._make(name)
            if self._state is not None:
                with self._state.open("a", encoding="utf-8") as file:
                    file.write(msgspec.json.encode(trial).decode() + "\n")
        return self._made[name]

    def _make(self, name: str) -> Trial:
        steps, discarded = 0, []
        for seed in seeds_for(LISTED[name], self._first):
            played = self._play(name, seed)
            steps += played.steps
            if played.broken and steps <= self._budget:
                if self._keeps_its_promises(seed):
                    result = (played.broken, played.message, steps, seed)
                    return Trial(name, *result, tuple(discarded), self._revision)
                discarded.append(seed)
            if steps >= self._budget:
                break
        return Trial(name, "", "", steps, seed, tuple(discarded), self._revision)

    def _keeps_its_promises(self, seed: int) -> bool:
        if seed not in self._passes:
            self._passes[seed] = not self._play("", seed).broken
        return self._passes[seed]


def seeds_for(mutation: Mutation, first: int) -> Iterator[int]:
    """Yield the seeds from `first` on whose worlds are those of a mutation."""
    seed, extras = first, set(filter(None, mutation.extra.split("+")))
    while True:
        if extras <= set(extras_of(seed)) and mutation.theme in ("", theme_of(seed)):
            yield seed
        seed += 1
