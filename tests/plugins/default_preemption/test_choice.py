from __future__ import annotations

import pytest

from plugins.default_preemption import Candidate, decisive_rung, pick_node
from plugins.framework.victims import Victims
from tests.builders import pod

EARLY, LATE = "2025-01-01T00:00:00Z", "2025-01-01T00:00:01Z"


def candidate(*victims: tuple[int, str | None], violations: int = 0) -> Candidate:
    """Return a candidate with victims of priorities and start times, the first the highest."""
    infos = []
    for index, (priority, start) in enumerate(victims):
        each = pod(f"victim-{index}").priority(priority)
        infos.append((each if start is None else each.started(start)).info())
    return Candidate.of(Victims(tuple(infos), violations))


RUNGS = [
    pytest.param(
        candidate((100, EARLY), (100, EARLY)),
        candidate((1, LATE), violations=1),
        "pdb_violations",
        id="the fewest violations, whatever else",
    ),
    pytest.param(
        candidate((5, EARLY), (5, EARLY), (5, EARLY)),
        candidate((6, LATE)),
        "highest_priority",
        id="then the lowest of the highest priorities",
    ),
    pytest.param(
        candidate((5, EARLY), (1, EARLY)),
        candidate((5, LATE), (2, LATE)),
        "sum_of_priorities",
        id="then the lowest sum of priorities",
    ),
    pytest.param(
        candidate((-5, EARLY)),
        candidate((-5, LATE), (-7, LATE)),
        "sum_of_priorities",
        id="negative priorities make a sum larger",
    ),
    pytest.param(
        candidate((0, EARLY), (-(2**31), EARLY)),
        candidate((0, EARLY), (-(2**31), LATE), (-(2**31), LATE)),
        "num_victims",
        id="then the fewest victims: the lowest priority adds nothing to a sum",
    ),
    pytest.param(
        candidate((5, LATE), (1, EARLY)),
        candidate((5, EARLY), (1, LATE)),
        "running_since_s",
        id="then the latest start of the most important victims",
    ),
    pytest.param(
        candidate((5, LATE), (5, LATE)),
        candidate((5, LATE), (5, EARLY)),
        "running_since_s",
        id="of several that are as important, the earliest start counts",
    ),
    pytest.param(
        candidate((5, None)),
        candidate((5, LATE)),
        "running_since_s",
        id="who has not started is the youngest",
    ),
]


@pytest.mark.parametrize(("better", "worse", "rung"), RUNGS)
def test_the_rungs_of_the_ladder(better: Candidate, worse: Candidate, rung: str) -> None:
    candidates = {"a": worse, "b": better}
    assert pick_node(candidates) == "b"
    assert pick_node(dict(reversed(candidates.items()))) == "b"


@pytest.mark.parametrize(("better", "worse", "rung"), RUNGS)
def test_what_decided_is_told(better: Candidate, worse: Candidate, rung: str) -> None:
    assert decisive_rung({"a": worse, "b": better}, "b") == rung


def test_of_equals_the_first_is_taken_and_nothing_decided() -> None:
    candidates = {"a": candidate((5, EARLY)), "b": candidate((5, EARLY))}
    assert pick_node(candidates) == "a"
    assert decisive_rung(candidates, "a") is None


def test_the_last_rung_that_was_needed_is_what_decided() -> None:
    candidates = {
        "a": candidate((9, EARLY)),
        "b": candidate((5, LATE)),
        "c": candidate((5, EARLY)),
    }
    assert decisive_rung(candidates, pick_node(candidates)) == "running_since_s"


def test_a_single_candidate_needs_no_reason() -> None:
    candidates = {"a": candidate((5, EARLY))}
    assert pick_node(candidates) == "a"
    assert decisive_rung(candidates, "a") is None


def test_nothing_can_be_picked_of_nothing() -> None:
    with pytest.raises(ValueError, match="empty"):
        pick_node({})


def test_of_equals_a_node_is_taken_for_which_nobody_is_nominated() -> None:
    victims = Victims((pod("low").info(),), 0)
    candidates = {"a": Candidate.of(victims, 1), "b": Candidate.of(victims, 0)}
    assert pick_node(candidates) == "b"
    assert decisive_rung(candidates, "b") == "displaced_nominees"
