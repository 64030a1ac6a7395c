"""Berth and kube-scheduler say the same of fresh random selectors."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.controlplane.binaries import find_or_build
from tests.parity.cel import CASES, PANIC, Berth, Cel, comparable, compare
from tests.parity.cel_cases import Node, devices, expressions, simpler
from tests.parity.cel_in_place import sums_in_place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.parity.vocabulary import Json

ENOUGH_FOR_EVERY_DAY = 3000


@pytest.fixture(scope="module")
def cel(request: pytest.FixtureRequest) -> Iterator[Cel]:
    """Both sides; the first build of the program is shown as it goes."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    with capture.global_and_fixture_disabled():
        find_or_build(["cel"])
    with Cel() as asked:
        yield asked


@pytest.mark.controlplane
def test_random_selectors_are_answered_as_by_kube_scheduler(cel: Cel) -> None:
    seed = random.randrange(10**9)
    print(f"seed {seed}")
    assert compare(cel, ENOUGH_FOR_EVERY_DAY, seed)[CASES] >= ENOUGH_FOR_EVERY_DAY


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param({"matches": True, "cost": 3}, {"matches": True}, id="cost"),
        pytest.param(
            {"compileError": "compilation failed: ERROR: <input>:1:1: Syntax error"},
            {"compileError": "does not compile"},
            id="compile-error",
        ),
        pytest.param(
            {"compileError": "must evaluate to bool or the unknown type, not int"},
            {"compileError": "must evaluate to bool or the unknown type, not int"},
            id="type-of-the-result",
        ),
        pytest.param(
            {"error": "internal error: interface conversion"},
            {"error": "internal error"},
            id="fault-of-a-library",
        ),
        pytest.param(
            {PANIC: "panic: index out of range"}, {PANIC: "panic: index out of range"}, id="panic"
        ),
        pytest.param({"error": "no such key: a"}, {"error": "no such key: a"}, id="error"),
    ],
)
def test_what_may_differ_is_left_out(answer: Json, expected: Json) -> None:
    assert comparable(answer) == expected


def test_a_seed_gives_the_same_cases() -> None:
    first, second = random.Random(7), random.Random(7)
    for _ in range(50):
        assert str(expressions(first)) == str(expressions(second))
        assert devices(first) == devices(second)


def test_an_expression_is_made_simpler_by_its_own_parts_and_by_literals() -> None:
    inner = Node("bool", ("device.allowMultipleAllocations",))
    assert [str(each) for each in simpler(Node("bool", ("!", inner)))] == [
        "device.allowMultipleAllocations",
        "true",
        "false",
        "!true",
        "!false",
    ]


def test_a_sum_that_changes_the_capacity_is_known_and_nothing_else() -> None:
    capacity = 'device.capacity["d.example.com"].slots'
    before = f"{capacity}.isGreaterThan(quantity('9223372036854775806'))"
    device = {
        "driver": "d.example.com",
        "attributes": {},
        "capacity": {"slots": {"value": "9223372036854775807"}},
    }
    question = {
        **device,
        "expression": f"{capacity}.sub(7).isGreaterThan(quantity('1')) && {before}",
    }
    assert Berth().answer(question) == {"matches": True}
    with sums_in_place():
        assert Berth().answer(question) == {"matches": False}
    assert Berth().answer(question) == {"matches": True}
