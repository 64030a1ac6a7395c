"""Play the world of a seed: stretches of storm, and a calm after each."""

from __future__ import annotations

import gc
import logging
import random
import sys
import time
import traceback
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import structlog

from tests.storm.extras import extras_of
from tests.storm.plans import Action, make_plan
from tests.storm.simulation import InvariantError
from tests.storm.sizes import check_sizes
from tests.storm.standstill import standstill_is_noticed
from tests.storm.themes import ELECTIONS, theme_of
from tests.storm.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.storm.simulation import Simulation

STEPS: Final = 5_000
"""Of one world."""

MAX_ROUNDS: Final = 400


@dataclass(frozen=True, slots=True)
class Setting:
    """What a seed decides before its world begins.

    Attributes
    ----------
    replicas, nodes
        How many there are.
    interleave
        Probability that a thread stops at a lock or clock.
    extras
        What the world has besides; see :mod:`tests.storm.extras`.
    """

    replicas: int
    nodes: int
    interleave: float
    extras: tuple[str, ...] = ()

    @classmethod
    def of(cls, seed: int, extras: Sequence[str] | None = None) -> Setting:
        """Return the setting of a seed, with other extras than the seed has if they are given."""
        rng = random.Random(f"setting/{seed}")
        replicas = rng.choice((1, 1, 2, 2, 3))
        return cls(
            max(replicas, 2) if theme_of(seed) == ELECTIONS else replicas,
            rng.choice((2, 3, 4, 6)),
            rng.choice((0.0, 0.0, 0.0, 0.02, 0.2)),
            extras_of(seed) if extras is None else tuple(extras),
        )


@dataclass(slots=True)
class Played:
    """What came of a seed.

    Attributes
    ----------
    history
        What befell the world, a list for each stretch between two calms.
    broken
        The promise that did not hold, and how; empty when all did.
    last
        What happened at the end, if a promise was broken.
    """

    seed: int
    setting: Setting
    steps: int = 0
    seconds: float = 0.0
    simulated_s: float = 0.0
    trace_hash: str = ""
    broken: str = ""
    message: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    history: list[tuple[float, list[Action]]] = field(default_factory=list)
    last: list[str] = field(default_factory=list)


def play(
    seed: int,
    steps: int = STEPS,
    *,
    setting: Setting | None = None,
    extras: Sequence[str] | None = None,
    history: Sequence[tuple[float, Sequence[Action]]] | None = None,
    remember: int = 60,
) -> Played:
    """Play a seed, or a history with the seed's other dice.

    Parameters
    ----------
    extras
        Those of the seed if None; a setting has its own.
    history
        Stretches, each with its duration in seconds and its actions; None makes them up.
    """
    setting = setting or Setting.of(seed, extras)
    played = Played(seed, setting)
    with quiet(played.counts):
        began = time.perf_counter()
        world = World(
            seed,
            replicas=setting.replicas,
            interleave=setting.interleave,
            extras=setting.extras,
        )
        simulation = world.simulation
        try:
            with standstill_is_noticed(simulation):
                world.begin(setting.nodes)
                for for_s, actions in _stretches(played, simulation, steps, history):
                    world.plan(actions)
                    world.run(for_s)
                    world.calm()
                check_sizes(world)
        except InvariantError as error:
            played.broken, played.message = error.invariant, str(error)
            played.last = simulation.last(remember)
        except Exception as error:  # noqa: BLE001 - the next seed can be played
            # A mistake of the simulation itself fails its seed.
            played.broken, played.message = "none", f"the simulation fails: {error!r}"
            played.last = [*simulation.last(remember), *traceback.format_exc().splitlines()]
        finally:
            world.close()
        played.seconds = time.perf_counter() - began
        played.steps, played.simulated_s = simulation.steps, simulation.now_s
        played.trace_hash = simulation.trace_hash
        played.counts.update(simulation.counts)
        del world, simulation
    return played


def _stretches(
    played: Played,
    simulation: Simulation,
    steps: int,
    history: Sequence[tuple[float, Sequence[Action]]] | None,
) -> Iterator[tuple[float, Sequence[Action]]]:
    """Yield the stretches of a history, or those of the seed until there have been enough steps."""
    for number in range(MAX_ROUNDS if history is None else len(history)):
        if history is not None:
            for_s, actions = history[number]
        elif simulation.steps >= steps:
            return
        else:
            for_s, actions = make_stretch(played.seed, number, played.setting)
        played.history.append((for_s, list(actions)))
        yield for_s, actions


def make_stretch(seed: int, number: int, setting: Setting) -> tuple[float, list[Action]]:
    """Return how many seconds a stretch of a seed's world lasts, and what happens in it."""
    rng = random.Random(f"stretch/{seed}/{number}")
    theme = theme_of(seed)
    for_s = rng.choice((5.0, 20.0, 20.0, 60.0))
    count = rng.choice((40, 60) if theme else (10, 20, 40, 60))
    plan = make_plan(
        f"{seed}/{number}",
        for_s=for_s,
        replicas=setting.replicas,
        count=count,
        theme=theme,
        extras=setting.extras,
    )
    return for_s, plan


@contextmanager
def quiet(counts: Counter[str]) -> Iterator[None]:
    """Count log lines instead of writing them; let nothing depend on the garbage collector."""
    before, hook, was_enabled = structlog.get_config(), sys.unraisablehook, gc.isenabled()

    def count(_: Any, name: str, event: dict[str, Any]) -> dict[str, Any]:
        counts[f"log: {event['event']}"] += 1
        raise structlog.DropEvent

    structlog.configure(
        processors=[count],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        cache_logger_on_first_use=False,
    )
    # Coroutines of processes that were killed are closed when they are collected, and complain.
    sys.unraisablehook = lambda _: None
    gc.disable()
    try:
        yield
    finally:
        gc.collect()
        structlog.configure(**before)
        sys.unraisablehook = hook
        if was_enabled:
            gc.enable()
