from __future__ import annotations

import pytest

from plugins.default_preemption.importance import importance
from tests.builders import pod

BASE = pod().priority(5).started("2025-01-01T00:00:05Z")


@pytest.mark.parametrize(
    ("more", "less"),
    [
        pytest.param(BASE.priority(6).started("2025-02-02T00:00:00Z"), BASE, id="priority"),
        pytest.param(BASE.started("2025-01-01T00:00:04Z"), BASE, id="then who runs longer"),
        pytest.param(BASE, pod().priority(5), id="who has not started runs the shortest"),
        pytest.param(pod(), pod().priority(-1), id="no priority counts as 0"),
    ],
)
def test_who_is_more_important(more: object, less: object) -> None:
    assert importance(more.info()) < importance(less.info())  # type: ignore[attr-defined]
