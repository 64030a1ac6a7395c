from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.bench.contenders import NAMES, contender

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", NAMES)
def test_a_contender_has_the_name_that_it_was_asked_for_by(name: str) -> None:
    assert contender(name, "bench").name == name


@pytest.mark.parametrize("name", NAMES)
def test_all_answer_to_the_same_scheduler_name(name: str) -> None:
    assert contender(name, "bench").scheduler_name == "bench"


@pytest.mark.parametrize(
    "name",
    ["", "bert", "kube-scheduler@here", "bind-only@x", "berth@", "berth@/nowhere"],
    ids=repr,
)
def test_there_is_none_of_that_name(name: str) -> None:
    with pytest.raises(ValueError, match="no contender"):
        contender(name, "bench")


def test_another_checkout_is_a_contender_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "scheduler").mkdir()
    (tmp_path / "scheduler" / "__main__.py").touch()
    assert contender(f"berth@{tmp_path}", "bench").name == f"berth@{tmp_path}"
