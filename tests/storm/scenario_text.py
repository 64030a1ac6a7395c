"""A history as a regression scenario, where its story can be told without simulated time.

What a world recorded is played in the world of :mod:`tests.regressions`, first with Berth as it
is, then with the protection taken away. It is a scenario only if the first meets all expectations
and the second does not. Then lines are taken away as long as that stays so.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

from tests.fakes.api_objects import ApiProblemError
from tests.regressions.broken_variants import VARIANTS
from tests.regressions.expectations import Unmet
from tests.regressions.script import parse
from tests.regressions.world import World
from tests.storm.mutations import without
from tests.storm.playing import quiet
from tests.storm.recording import record

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from tests.storm.histories import History

EXPECTED: Final = {
    "I3": ("expect every pod that fits is bound",),
    "I4": ("expect the cache equals the API",),
    "I5": ("expect rest",),
    "I7": ("expect every pod that fits is bound",),
    "I8": ("expect each victim is deleted once",),
    "I15": ("expect the cache equals the API",),
}
"""How a scenario says that an invariant holds, once everything is at rest."""

_EVERYTHING: Final = tuple(dict.fromkeys(line for each in EXPECTED.values() for line in each))
_ROUNDS: Final = 2
_MOST_CYCLES: Final = 12
_MOST_REPAIRS: Final = 60


class NoScenarioError(Exception):
    """A history has no scenario; the message says why."""


def scenario_of(history: History, mutation: str) -> str:
    """Return the scenario of a history that breaks a promise.

    Parameters
    ----------
    mutation
        The protection that is gone while it is played; empty for none.

    Raises
    ------
    NoScenarioError
        The story cannot be told without simulated time, connections or other replicas.
    """
    with without(mutation):
        played, lines = record(history)
    if not played.broken:
        raise NoScenarioError("it breaks no promise when it is played again")
    if not mutation:
        raise NoScenarioError("no protection is taken away: what Berth should do is not known")
    return told(lines, played.broken, played.message, mutation)


def told(lines: Sequence[str], broken: str, message: str, mutation: str) -> str:
    """Return the scenario of recorded lines.

    Parameters
    ----------
    broken, message
        The invariant that did not hold at their end, and how.

    Raises
    ------
    NoScenarioError
        See :func:`scenario_of`.
    """
    expected = EXPECTED.get(broken, ())
    if not expected:
        raise NoScenarioError(f"{broken} is no expectation of a scenario")
    # The promise itself first; another one may show the mistake sooner in a world without time.
    every = tuple(dict.fromkeys([*expected, *_EVERYTHING]))
    with quiet(Counter()):
        steps = _repaired([*lines, *_ending(lines)], every)
        found = _unmet(steps, every, mutation)
        if not found:
            raise NoScenarioError("without simulated time Berth does not make the mistake")
        steps = _shrunk(steps, (found,), mutation)
    return "\n".join([*_head(message, mutation), "", *steps, found]) + "\n"


def _head(message: str, mutation: str) -> list[str]:
    head = [message.replace("\n", " ")[:100], "thread: our own", f"broken: {mutation}"]
    if mutation not in VARIANTS:
        head.append("# The variant has to be in tests/regressions/broken_variants.py, too.")
    return head


def _ending(lines: Sequence[str]) -> list[str]:
    """Return the lines that bring everything to rest."""
    pods = sum(line.startswith("pod ") for line in lines)
    cycles = ["cycle"] * min(pods + 2, _MOST_CYCLES)
    once = ["deleted pods end", "advance 301s", *cycles, "look for lost events", *cycles]
    release = ["release watch of pods", "release watch of nodes"]
    return [*release, *once * _ROUNDS, "deleted pods end"]


def _repaired(steps: list[str], expected: Sequence[str]) -> list[str]:
    """Return the steps that make sense in a scenario, where Berth may decide otherwise.

    Raises
    ------
    NoScenarioError
        Berth as it is does not meet the expectations.
    """
    for _ in range(_MOST_REPAIRS):
        try:
            unmet = _play([*steps, *expected], nullcontext())
        except _SenselessError as senseless:
            steps = steps[: senseless.at] + steps[senseless.at + 1 :]
            continue
        if unmet:
            raise NoScenarioError(f"without simulated time something else is not met: {unmet}")
        return steps
    raise NoScenarioError("too many of its lines make no sense without simulated time")


class _SenselessError(Exception):
    """A step cannot happen: its pod or node is not there.

    Attributes
    ----------
    at
        Its number among the steps, from 0.
    """

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


def _play(lines: Sequence[str], variant: AbstractContextManager[None]) -> str:
    """Play steps; return the expectation that is not met, or an empty text."""
    text = "\n".join(["A history", "thread: our own", f"broken: {next(iter(VARIANTS))}", *lines])
    script = parse(text, "history.txt")

    async def scene() -> str:
        async with World() as world:
            for number, step in enumerate(script.steps):
                try:
                    step.run(world)
                except ApiProblemError:
                    raise _SenselessError(number) from None
                except Unmet:
                    return step.text
                await world.settle()
        return ""

    with variant:
        return asyncio.run(scene())


def _unmet(steps: Sequence[str], expected: Sequence[str], mutation: str) -> str:
    """Return what a variant does not meet that Berth as it is does; else an empty text."""
    lines = [*steps, *expected]
    try:
        found = _play(lines, without(mutation))
        return "" if not found or _play(lines, nullcontext()) else found
    except _SenselessError:
        return ""


def _shrunk(steps: list[str], expected: tuple[str, ...], mutation: str) -> list[str]:
    """Return fewer steps that still tell the variant from Berth as it is."""
    size = max(len(steps) // 2, 1)
    while True:
        at, less = 0, False
        while at < len(steps):
            fewer = steps[:at] + steps[at + size :]
            if fewer and _unmet(fewer, expected, mutation):
                steps, less = fewer, True
            else:
                at += size
        if size == 1 and not less:
            return steps
        size = max(size // 2, 1)
