"""What the first pod builds for all is not paid from its budget; what is its own is."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from cache.columns import NodesView
from cache.objects import GCEPersistentDiskVolumeSource, Volume
from plugins.framework.attempt_budget import AttemptBudget
from plugins.framework.cycle_state import CycleState
from plugins.node_volume_limits import NodeVolumeLimits
from plugins.volume_restrictions import VolumeRestrictions
from tests.builders import node, pod
from tests.plugins.conformance import RecordingHandle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plugins.framework.interfaces import PreFilterPlugin


class Witness(AttemptBudget):
    """Counts what is exempt."""

    __slots__ = ("exempted",)

    def __init__(self) -> None:
        super().__init__(60.0)
        self.exempted = 0

    @contextmanager
    def exempt(self) -> Iterator[None]:
        self.exempted += 1
        with super().exempt():
            yield


def disk(index: int) -> Volume:
    return Volume(f"v-{index}", gce_persistent_disk=GCEPersistentDiskVolumeSource(f"disk-{index}"))


@pytest.mark.parametrize("kind", [NodeVolumeLimits, VolumeRestrictions])
def test_only_the_first_look_at_the_volumes_of_all_nodes_is_exempt(
    kind: type[PreFilterPlugin],
) -> None:
    running = pod("running").volume(disk(0)).on("n")
    nodes = NodesView.of([node("n").info(running)])
    plugin = kind(None, RecordingHandle())
    found = []
    for index in range(3):
        witness = Witness()
        plugin.pre_filter(CycleState(witness), pod().volume(disk(index)).info(), nodes)
        found.append(witness.exempted)
    assert found == [1, 0, 0]
