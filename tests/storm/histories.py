"""Histories as text: what befell one world, to be played again and to be read by people.

    # The victim of a preemption is gone, and the watch has lost it.
    seed 19
    setting replicas=1 nodes=2 interleave=0.0 extras=groups
    stretch 20.0
    0.744 new_app 390983619
    ...

After each stretch there is a calm. :func:`shrink` takes away what does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.storm.plans import Action
from tests.storm.playing import Played, Setting, play

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Stretches = list[tuple[float, list[Action]]]


@dataclass(frozen=True, slots=True)
class History:
    """What befell a world."""

    seed: int
    setting: Setting
    stretches: Stretches

    def play(self) -> Played:
        """Play it."""
        return play(self.seed, setting=self.setting, history=self.stretches)

    def __str__(self) -> str:
        setting = self.setting
        lines = [
            f"seed {self.seed}",
            f"setting replicas={setting.replicas} nodes={setting.nodes} "
            f"interleave={setting.interleave} extras={'+'.join(setting.extras)}",
        ]
        for for_s, actions in self.stretches:
            lines += [f"stretch {for_s}", *map(str, actions)]
        return "\n".join(lines) + "\n"

    @classmethod
    def of(cls, text: str) -> History:
        """Return what :meth:`__str__` made a text of; lines that begin with # are comments."""
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        seed = int(lines[0].removeprefix("seed "))
        words = dict(word.split("=") for word in lines[1].removeprefix("setting ").split())
        setting = Setting(
            int(words["replicas"]),
            int(words["nodes"]),
            float(words["interleave"]),
            tuple(name for name in words.get("extras", "").split("+") if name),
        )
        stretches: Stretches = []
        for line in lines[2:]:
            if line.startswith("stretch "):
                stretches.append((float(line.removeprefix("stretch ")), []))
            else:
                stretches[-1][1].append(Action.of(line))
        return cls(seed, setting, stretches)

    @classmethod
    def played(cls, played: Played) -> History:
        """Return the history of a world that was played."""
        return cls(played.seed, played.setting, played.history)


def shrink(played: Played, tell: Callable[[str], None] = lambda line: None) -> History:
    """Return a history with fewer actions that breaks the same promise.

    Chunks of actions are taken away, each half as large as the ones before, as long as the promise
    is still broken.
    """
    history = History.played(played)

    def breaks(stretches: Stretches) -> bool:
        again = History(history.seed, history.setting, stretches).play()
        return again.broken == played.broken

    best = history.stretches
    for keep in range(1, len(best)):  # often the last stretches alone do
        if breaks(best[-keep:]):
            best = best[-keep:]
            break
    chunk = max(_size(best) // 2, 1)
    while True:
        at, less = 0, False
        while at < _size(best):
            fewer = _less(best, at, chunk)
            if breaks(fewer):
                best, less = fewer, True
                tell(f"{_size(best)} actions")
            else:
                at += chunk
        if chunk == 1 and not less:
            return History(history.seed, history.setting, best)
        chunk = max(chunk // 2, 1)


def _size(stretches: Stretches) -> int:
    return sum(len(actions) for _, actions in stretches)


def _less(stretches: Sequence[tuple[float, list[Action]]], at: int, count: int) -> Stretches:
    """Return stretches without some actions, counted through all of them."""
    rest: Stretches = []
    number = 0
    for for_s, actions in stretches:
        kept = []
        for action in actions:
            if not at <= number < at + count:
                kept.append(action)
            number += 1
        rest.append((for_s, kept))
    return rest
