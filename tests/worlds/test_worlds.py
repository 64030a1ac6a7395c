"""The worlds are played as they were recorded, and the record holds what it should."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest

from tests.regressions.broken_variants import VARIANTS
from tests.worlds import reach, record, steps
from tests.worlds.comparing import first_difference
from tests.worlds.histories import history
from tests.worlds.playing import Played, play, play_and_listen

REPOSITORY = Path(__file__).parents[2]

BATCH = 25
PLAYED = record.SEEDS[:200]
"""As many as take some 20 s; ``make worlds`` plays all."""


@pytest.mark.parametrize("first", PLAYED[::BATCH])
def test_what_is_written_is_what_was_recorded(first: int) -> None:
    found = [record.entry_of(play(seed)) for seed in range(first, first + BATCH)]
    different = record.differences(found)
    assert not different, "\n".join([*different, record.HELP])


def test_every_world_is_recorded() -> None:
    assert list(record.read()) == list(record.SEEDS)


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_a_world_is_the_same_in_another_process(hash_seed: str) -> None:
    command = [sys.executable, "-m", "tests.worlds", "digests", "0-5"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    printed = subprocess.run(
        command, cwd=REPOSITORY, env=environment, check=True, capture_output=True, text=True
    )
    recorded = record.read()
    assert printed.stdout.splitlines() == [str(recorded[seed]) for seed in range(6)]


@pytest.mark.parametrize(
    "variant",
    [
        "events-pass-pods-in-flight-by",
        "nobody-looks-for-lost-events",
        "nominations-outlive-their-pods",
        "not-found-means-gone",
        "over-budget-is-unschedulable",
        "pods-are-forgotten-with-their-node",
        "rejections-are-passed-over",
        "undo-wakes-nobody",
    ],
)
def test_a_mechanism_that_is_missing_changes_some_world(variant: str) -> None:
    with VARIANTS[variant]():
        assert any(record.differences([record.entry_of(play(seed))]) for seed in range(80))


def test_a_difference_says_what_kind_it_is() -> None:
    entry = record.Entry(7, 3, 2, "a", "b")
    assert entry.differs(entry) == ""
    assert "in another order" in entry.differs(entry._replace(in_order="c"))
    assert "but others" in entry.differs(entry._replace(in_order="c", in_any_order="d"))
    assert entry.differs(record.Entry(7, 4, 2, "c", "d")) == "4 writes (3), 2 of Events (2)"


WORLD = Played(7, (("cycle", ("a -> ok", "b -> ok")), ("advance 1s", ())), ("p1 on=n1",), False)


@pytest.mark.parametrize(
    ("other", "told"),
    [
        pytest.param(WORLD, [], id="equal"),
        pytest.param(
            replace(WORLD, steps=(("cycle", ("a -> ok", "c -> ok")), WORLD.steps[1])),
            ["0: cycle", "  here:  b -> ok", "  there: c -> ok"],
            id="another write",
        ),
        pytest.param(
            replace(WORLD, steps=(WORLD.steps[0], ("advance 1s", ("d -> ok",)))),
            ["1: advance 1s", "  here:  (nothing more)", "  there: d -> ok"],
            id="one more write",
        ),
        pytest.param(
            replace(WORLD, steps=(("cycle", ("b -> ok", "a -> ok")), WORLD.steps[1])),
            [
                "0: cycle (the step's writes are the same, in another order)",
                "  here:  a -> ok",
                "  there: b -> ok",
            ],
            id="another order",
        ),
        pytest.param(
            replace(WORLD, steps=WORLD.steps[:1]),
            ["1: another history", "  here:  advance 1s", "  there: (no further step)"],
            id="another history",
        ),
        pytest.param(
            replace(WORLD, placements=("p1 on=n2",)),
            ["in the end", "  here:  p1 on=n1", "  there: p1 on=n2"],
            id="another placement",
        ),
        pytest.param(
            replace(WORLD, has_died=True),
            ["the scheduling thread has died", "  here:  False", "  there: True"],
            id="death",
        ),
    ],
)
def test_a_comparison_ends_at_the_first_difference(other: Played, told: list[str]) -> None:
    assert first_difference(WORLD, other) == told


def test_a_world_goes_through_json() -> None:
    assert Played.of_json(WORLD.to_json()) == WORLD


def test_every_line_of_a_history_is_a_step() -> None:
    for line in set(chain.from_iterable(map(history, PLAYED[:100]))):
        steps.of(line)


def test_an_unknown_step_is_refused() -> None:
    with pytest.raises(ValueError, match="no step reads 'jump'"):
        steps.of("jump")


def test_what_the_worlds_need_to_reach_is_counted() -> None:
    counted = sum((reach.counts(*play_and_listen(seed)) for seed in range(20)), Counter())
    often = {what for what, least in reach.NEEDED.items() if least >= 200}
    assert often <= set(counted)
