from __future__ import annotations

import io
from dataclasses import replace
from fractions import Fraction

import pytest
from rich.console import Console

from tests.demo.outcome import NodeUsage, Outcome, Placed, Waiting, ZoneUsage
from tests.demo.scene import Kind
from tests.demo.summary import bar, render

BUSY = NodeUsage(
    "busy-01",
    "zone-a",
    unschedulable=False,
    allocatable={"cpu": Fraction(8), "memory": Fraction(32 << 30), "pods": Fraction(110)},
    requested={"cpu": Fraction(6), "memory": Fraction(8 << 30), "pods": Fraction(11)},
)
IDLE = replace(BUSY, name="idle-01", requested=dict.fromkeys(BUSY.requested, Fraction(0)))
STUCK = Waiting("stuck", "500 cpu", "Unschedulable", "0/9 nodes are available.", None)
OUTCOME = Outcome(
    placeable=1201,
    bound=1201,
    seconds=0.8,
    placed=(Placed(Kind("web", "0.1 to 2 cpu", 4), bound=4, nodes=3),),
    zones=(ZoneUsage("zone-a", nodes=3, pods=4, cpu_share=0.505),),
    fullest=BUSY,
    emptiest=IDLE,
    waiting=(STUCK,),
    foreign=20,
    problems=(),
)


def text_of(outcome: Outcome) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(render(outcome))
    file = console.file
    assert isinstance(file, io.StringIO)
    # Rows of a table are padded; what is between the words is not what is told.
    return " ".join(file.getvalue().split())


@pytest.mark.parametrize(
    "sentence",
    [
        pytest.param("1201 of 1201 pods that can run somewhere are bound", id="bound"),
        pytest.param("1 500 pods/s, 0.80 s from the first bind to the last", id="rate"),
        pytest.param("4 of 4 on 3 nodes want 0.1 to 2 cpu", id="kind"),
        pytest.param("4 pods on 3 nodes", id="zone"),
        pytest.param("75% 6.0 of 8 cores", id="cpu"),
        pytest.param("25% 8.0 of 32 GiB", id="memory"),
        pytest.param("10% 11 of 110", id="pods"),
        pytest.param("idle-01 cpu", id="emptiest"),
        pytest.param("stuck wants 500 cpu Unschedulable: 0/9 nodes are available.", id="reason"),
        pytest.param("20 pods asked for default-scheduler", id="foreign"),
        pytest.param("no node is overcommitted", id="verdict"),
    ],
)
def test_the_page_says(sentence: str) -> None:
    assert sentence in text_of(OUTCOME)


@pytest.mark.parametrize(
    ("note", "sentence"),
    [
        pytest.param(None, "no FailedScheduling Event", id="none"),
        pytest.param(STUCK.message, "Event says the same", id="same"),
        pytest.param("other", "Event says: other", id="other"),
    ],
)
def test_a_waiting_pod_is_shown_with_its_event(note: str | None, sentence: str) -> None:
    assert sentence in text_of(replace(OUTCOME, waiting=(replace(STUCK, event_note=note),)))


def test_problems_take_the_place_of_the_good_news() -> None:
    page = text_of(replace(OUTCOME, problems=("web-1 should be bound and is not",)))
    assert page.endswith("Checked against the API ✗ web-1 should be bound and is not")


def test_many_problems_are_cut_short() -> None:
    problems = tuple(f"p-{i} is wrong" for i in range(12))
    assert "✗ p-9 is wrong ✗ and 2 more" in text_of(replace(OUTCOME, problems=problems))


def test_markup_in_a_message_is_shown_as_it_is() -> None:
    waiting = (replace(STUCK, message="gates: [demo/gate] [/]"),)
    assert "gates: [demo/gate] [/]" in text_of(replace(OUTCOME, waiting=waiting))


@pytest.mark.parametrize(
    ("share", "drawn"),
    [
        pytest.param(0.0, "────", id="empty"),
        pytest.param(0.01, "━───", id="a-little"),
        pytest.param(0.5, "━━──", id="half"),
        pytest.param(0.99, "━━━─", id="almost"),
        pytest.param(1.0, "━━━━", id="full"),
        pytest.param(1.5, "━━━━", id="too-full"),
    ],
)
def test_a_bar_is_drawn(share: float, drawn: str) -> None:
    assert bar(share, width=4).plain == drawn
