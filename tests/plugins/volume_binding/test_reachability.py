from __future__ import annotations

import pytest

from cache.objects import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from cache.storage_objects import VolumeNodeAffinity
from plugins.volume_binding.reachability import MAX_COMPILED_BYTES, compiled_affinity


def affinity_of(values: int) -> VolumeNodeAffinity:
    wanted = tuple(f"value-{values}-{index}" for index in range(values))
    requirement = NodeSelectorRequirement(key="zone", operator="In", values=wanted)
    return VolumeNodeAffinity(required=NodeSelector((NodeSelectorTerm((requirement,)),)))


@pytest.mark.parametrize(
    ("values", "is_kept"),
    [
        pytest.param(3, True, id="small"),
        pytest.param(MAX_COMPILED_BYTES // 8 // 60, False, id="more than its share"),
    ],
)
def test_demands_of_volumes_are_remembered_within_bytes(values: int, is_kept: bool):
    first = compiled_affinity(affinity_of(values))
    assert (compiled_affinity(affinity_of(values)) is first) == is_kept
