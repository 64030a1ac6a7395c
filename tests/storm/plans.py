"""What befalls a world: actions at times, made up from a seed, and readable as text.

An action says nothing that depends on what Berth does: which pod is deleted is decided by dice of
its own when it happens. So actions can be taken away, and what is left is a history all the same.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.fakes.api_objects import ApiProblemError
from tests.storm import faults, themes, users
from tests.storm.extras import ACTIONS, EXTRAS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tests.storm.world import World

    Happening = Callable[[World, random.Random], object]

KINDS: Final[Mapping[str, Happening]] = {**users.ACTIONS, **faults.ACTIONS, **ACTIONS}


@dataclass(frozen=True, slots=True)
class Action:
    """Something that happens.

    Attributes
    ----------
    at_s
        When, from the beginning of its plan.
    kind
        What; see :data:`KINDS`.
    dice
        Decides the rest.
    """

    at_s: float
    kind: str
    dice: int

    def happen(self, world: World) -> None:
        """Do it; what makes no sense at this time does nothing."""
        world.simulation.note(f"> {self}")
        try:
            KINDS[self.kind](world, random.Random(self.dice))
        except ApiProblemError as problem:
            world.simulation.note(f"  refused: {problem.message}")

    def __str__(self) -> str:
        return f"{self.at_s:.3f} {self.kind} {self.dice}"

    @classmethod
    def of(cls, line: str) -> Action:
        """Return what :meth:`__str__` made a line of."""
        at_s, kind, dice = line.split()
        return cls(float(at_s), kind, int(dice))


def make_plan(
    seed: str,
    *,
    for_s: float,
    replicas: int,
    count: int,
    theme: str = "",
    extras: Sequence[str] = (),
) -> list[Action]:
    """Make up what happens in a stretch of time.

    Each plan takes a few kinds of faults out of all, more often than others: two faults that meet
    are found sooner than among forty. The faults of a theme are as frequent as all that users do.
    """
    rng = random.Random(f"plan/{seed}")
    weights = dict(users.WEIGHTS)
    for name in extras:
        weights |= EXTRAS[name].actions.weights
    if theme:
        weights |= themes.weights(theme, sum(weights.values()))
        return _picked(rng, weights, for_s, count)
    chosen = rng.sample(sorted(faults.WEIGHTS), rng.choice((0, 2, 4, 6, 10)))
    if rng.random() < 0.2:
        chosen = sorted(faults.WEIGHTS)
    for kind in chosen:
        if replicas > 1 or kind not in faults.ONLY_WITH_STANDBYS:
            weights[kind] = faults.WEIGHTS[kind]
    return _picked(rng, weights, for_s, count)


def _picked(
    rng: random.Random, weights: Mapping[str, float], for_s: float, count: int
) -> list[Action]:
    kinds = sorted(weights)
    picked = rng.choices(kinds, [weights[kind] for kind in kinds], k=count)
    times = sorted(round(rng.uniform(0.0, for_s), 3) for _ in picked)
    return [
        Action(at_s, kind, rng.getrandbits(32)) for at_s, kind in zip(times, picked, strict=True)
    ]


def to_text(actions: Sequence[Action]) -> str:
    """Return a plan, one action a line."""
    return "".join(f"{action}\n" for action in actions)


def of_text(text: str) -> list[Action]:
    """Return the plan of a text; lines that begin with # are comments."""
    lines = (line.strip() for line in text.splitlines())
    return [Action.of(line) for line in lines if line and not line.startswith("#")]
