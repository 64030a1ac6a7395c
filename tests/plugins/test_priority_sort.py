from __future__ import annotations

import pytest

from plugins.priority_sort import PrioritySort
from tests.builders import PodBuilder, pod
from tests.plugins.conformance import RecordingHandle


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param((pod().priority(10), 9.0), (pod().priority(1), 1.0), id="priority"),
        pytest.param((pod().priority(5), 1.0), (pod().priority(5), 2.0), id="then waiting time"),
        pytest.param((pod(), 2.0), (pod().priority(-1), 1.0), id="no priority counts as 0"),
        pytest.param((pod(), 1.0), (pod().priority(0), 2.0), id="no priority equals 0"),
    ],
)
def test_the_smaller_key_goes_first(
    first: tuple[PodBuilder, float], second: tuple[PodBuilder, float]
) -> None:
    plugin = PrioritySort(None, RecordingHandle())
    keys = [plugin.sort_key(builder.build(), since_s) for builder, since_s in (first, second)]
    assert keys[0] < keys[1]
