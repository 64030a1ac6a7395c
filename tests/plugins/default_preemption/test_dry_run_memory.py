from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plugins.default_preemption.dry_run_memory import MAX_SHAPES, DryRunMemory
from tests.builders import pod

if TYPE_CHECKING:
    from cache.objects import Pod


def asking(name: str, resources: int) -> Pod:
    return pod(name).request({f"{name}/r-{index}": "1" for index in range(resources)}).build()


@pytest.mark.parametrize(
    ("resources", "is_kept"),
    [pytest.param(100, True, id="small"), pytest.param(10_000, False, id="a megabyte")],
)
def test_what_pods_are_known_by_is_kept_within_bytes(resources: int, is_kept: bool):
    memory = DryRunMemory()
    first = memory.of(asking("a", resources), 0)
    assert (memory.of(asking("a", resources), 0) is first) == is_kept
    assert len(memory) == is_kept


def test_the_latest_few_are_kept():
    memory = DryRunMemory()
    for index in range(2 * MAX_SHAPES):
        memory.of(asking(f"pod-{index}", 1), 0)
    assert len(memory) == MAX_SHAPES
