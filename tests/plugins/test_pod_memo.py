from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plugins.pod_memo import PodMemo
from tests.builders import pod

if TYPE_CHECKING:
    from cache.objects import Pod


class Counter:
    def __init__(self) -> None:
        self.made: list[str] = []

    def __call__(self, asked: Pod) -> str:
        self.made.append(asked.metadata.name)
        return asked.metadata.labels.get("app", "")


ONE, OTHER = pod("one").label("app", "a").build(), pod("other").build()


def test_a_value_is_worked_out_once() -> None:
    make = Counter()
    memo = PodMemo(make)
    assert [memo.of(ONE), memo.of(OTHER), memo.of(ONE)] == ["a", "", "a"]
    assert make.made == ["one", "other"]


def test_another_version_of_a_pod_has_another_value() -> None:
    memo = PodMemo(Counter())
    changed = pod("one").label("app", "b").build()
    assert [memo.of(ONE), memo.of(changed), memo.of(ONE)] == ["a", "b", "a"]


def test_it_remembers_a_bounded_number_of_pods() -> None:
    make = Counter()
    memo = PodMemo(make, capacity=2)
    for index in range(9):
        memo.of(pod(f"p{index}").build())
    assert len(memo._known) <= 2
    assert memo.of(ONE) == "a"


def test_a_failure_is_not_remembered() -> None:
    answers = [ValueError("no"), "yes"]

    def make(asked: Pod) -> str:
        answer = answers.pop(0)
        if isinstance(answer, ValueError):
            raise answer
        return answer

    memo = PodMemo(make)
    with pytest.raises(ValueError, match="no"):
        memo.of(ONE)
    assert memo.of(ONE) == "yes"
