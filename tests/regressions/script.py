"""Scenarios as text: three lines of head, then one step a line.

    A preemptor that is deleted leaves nothing behind
    thread: kubernetes/kubernetes#102339
    broken: nominations-outlive-pods

    node a cpu=4
    pod low cpu=4 on=a
    ...

A line that starts with ``#`` is a comment. What steps there are stands in ``README.md``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from tests.regressions import expectations, steps
from tests.regressions.broken_variants import VARIANTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.regressions.world import World

Action: TypeAlias = "Callable[[World], None]"

_HEAD: Final = ("thread", "broken")
_THREAD = re.compile(r"[\w.-]+/[\w.-]+#\d+")

OUR_OWN: Final = "our own"
"""In place of a thread: a mistake that was found in Berth before it hurt anybody."""


class ScriptError(Exception):
    """A scenario that cannot be read; the message names file and line."""


class UnmetError(Exception):
    """Something that a scenario expects is not so; the message names file, line and what is."""


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a scenario."""

    where: str
    text: str
    run: Action


@dataclass(frozen=True, slots=True)
class Script:
    """A scenario.

    Parameters
    ----------
    threads
        Where somebody was hurt: ``owner/repository#number``; or ``our own``.
    broken
        The variant of the scheduler with which it must fail.
    """

    name: str
    title: str
    threads: tuple[str, ...]
    broken: str
    steps: tuple[Step, ...]

    async def play(self, world: World) -> None:
        """Do all steps, everything at rest in between.

        Raises
        ------
        UnmetError
            At the first expectation that is not met.
        """
        for step in self.steps:
            try:
                step.run(world)
            except expectations.Unmet as unmet:
                raise UnmetError(f"{step.where}: {step.text}: {unmet}") from None
            await world.settle()


def read(path: Path) -> Script:
    """Read a scenario.

    Raises
    ------
    ScriptError
        When a line means nothing.
    """
    return parse(path.read_text(encoding="utf-8"), path.name)


def parse(text: str, name: str) -> Script:
    """Read a scenario from a text; ``name`` is told in errors."""
    lines = text.splitlines()
    if not lines or not lines[0].strip() or lines[0].startswith("#"):
        raise ScriptError(f"{name}:1: the first line is the title")
    head = [_head(name, number, lines) for number in range(2, 2 + len(_HEAD))]
    threads = tuple(each.strip() for each in head[0].split(","))
    for each in threads:
        if each != OUR_OWN and not _THREAD.fullmatch(each):
            raise ScriptError(f"{name}:2: {each!r} is no owner/repository#number")
    if head[1] not in VARIANTS:
        known = ", ".join(sorted(VARIANTS))
        raise ScriptError(f"{name}:3: there is no variant {head[1]!r}; there are: {known}")
    made = [
        Step(f"{name}:{number}", line.strip(), _action(f"{name}:{number}", line.strip()))
        for number, line in enumerate(lines, 1)
        if number > 1 + len(_HEAD) and line.strip() and not line.startswith("#")
    ]
    if not any(each.text.startswith("expect ") for each in made):
        raise ScriptError(f"{name}:{len(lines)}: nothing is expected")
    return Script(name.removesuffix(".txt"), lines[0].strip(), threads, head[1], tuple(made))


def _head(name: str, number: int, lines: list[str]) -> str:
    key = _HEAD[number - 2]
    line = lines[number - 1] if len(lines) >= number else ""
    found, colon, value = line.partition(":")
    if found != key or not colon or not value.strip():
        raise ScriptError(f"{name}:{number}: this line is '{key}: ...'")
    return value.strip()


def _action(where: str, text: str) -> Action:
    verb, _, rest = text.partition(" ")
    try:
        if verb == "meanwhile":
            if rest.startswith(("cycle", "expect", "meanwhile")):
                raise ValueError(f"{rest.split()[0]!r} cannot happen in the middle of a cycle")
            return steps.in_the_middle(_action(where, rest))
        return expectations.of(rest) if verb == "expect" else steps.of(text)
    except ValueError as error:
        raise ScriptError(f"{where}: {error}") from None
