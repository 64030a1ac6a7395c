"""What a world recorded becomes a scenario that tells Berth from its broken variant."""

from __future__ import annotations

import asyncio

import pytest

from tests.regressions.broken_variants import VARIANTS
from tests.regressions.script import UnmetError, parse
from tests.regressions.world import World
from tests.storm.histories import History
from tests.storm.plans import Action
from tests.storm.playing import Setting
from tests.storm.recording import record
from tests.storm.scenario_text import NoScenarioError, told

LINES = [
    "node node-1 cpu=2000m",
    "pod web-1 cpu=1500m",
    "cycle",
    "pod web-2 cpu=250m namespace=other",
    "advance 7s",
    "cycle",
    "hold watch of pods",
    "end pod web-1",
    "lose events of pods",
    "release watch of pods",
    "label pod web-2 app=db",
    "node node-2 cpu=1000m",
    "delete pod nobody",
]
LOST = "nobody-looks-for-lost-events"


def play(text: str) -> None:
    async def scene() -> None:
        async with World() as world:
            await parse(text, "told.txt").play(world)

    asyncio.run(scene())


@pytest.fixture(scope="module")
def text() -> str:
    return told(LINES, "I4", "I4: a store is wrong", LOST)


def test_berth_as_it_is_meets_all_expectations(text):
    play(text)


def test_the_variant_does_not(text):
    with VARIANTS[LOST](), pytest.raises(UnmetError):
        play(text)


def test_no_line_is_left_that_does_not_matter(text):
    assert text.splitlines()[:3] == ["I4: a store is wrong", "thread: our own", f"broken: {LOST}"]
    assert "label pod web-2 app=db" not in text
    assert "cycle" in text


@pytest.mark.parametrize(
    ("lines", "broken", "mutation", "why"),
    [
        pytest.param(LINES, "I6", LOST, "I6 is no expectation", id="leadership"),
        pytest.param(LINES[:3], "I4", LOST, "does not make the mistake", id="no mistake"),
    ],
)
def test_what_cannot_be_told_says_why(lines, broken, mutation, why):
    with pytest.raises(NoScenarioError, match=why):
        told(lines, broken, "", mutation)


def test_a_world_that_is_recorded_says_what_happened():
    actions = [Action(1.0, "new_app", 1), Action(2.0, "new_app", 2), Action(4.0, "delete_pod", 3)]
    _, lines = record(History(1, Setting(1, 2, 0.0), [(6.0, actions)]))

    kinds = {line.split()[0] for line in lines}
    assert {"node", "pod", "cycle", "advance"} <= kinds
