"""Profiles are swapped and shadows are installed for as long as the process lives."""

from __future__ import annotations

import gc
import resource
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, cast

from cache.objects import AWSElasticBlockStoreVolumeSource, Volume
from cache.scheduler_cache import SchedulerCache
from cache.snapshot import Snapshot
from plugins.framework.cycle_state import CycleState
from plugins.inline_disks import DisksInUse
from plugins.node_volume_limits.usage import VolumeUsage
from plugins.registry import PLUGINS
from scheduler.config import default_config, running_profiles
from scheduler.cycle.host_selection import HostSelector
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from scheduler.debug.table_sizes import table_sizes
from scheduler.profiles import ShadowOptions
from scheduler.runtime.profile_builder import build_framework
from scheduler.shadow import Shadows
from tests.builders import array_bytes, node, pod
from tests.scheduler.parts import NoBinding
from tests.storage_builders import claim, csi_node, storage_of, volume

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scheduler.runtime.framework_runner import FrameworkRunner

CSI = "csi.example.com"
NODES = [f"n{index}" for index in range(20)]
DISK = Volume(name="disk", aws_elastic_block_store=AWSElasticBlockStoreVolumeSource("vol-1"))


class Reloads:
    """A scheduling thread whose profile is made anew before each pod, and a shadow's with it."""

    def __init__(self) -> None:
        self._handle = NoBinding()
        self._handle.storage = storage_of(
            *(csi_node(name).driver(CSI, limit=2).build() for name in NODES),
            claim("data").bound_to("pv").build(),
            volume("pv").csi(CSI).build(),
        )
        self._cache = SchedulerCache()
        for name in NODES:
            self._cache.add_node(node(name).capacity(cpu="8", memory="16Gi", pods="20").build())
        self._pod = pod("wants").request(cpu="1").volume(DISK).claim("data").host_port(80).info()
        self.cycle = SchedulingCycle(Snapshot(), HostSelector(1))
        self._shadows = Shadows()

    def _profile(self) -> FrameworkRunner:
        (profile,) = running_profiles(default_config("berth"))
        return build_framework(profile, 0, PLUGINS, cast("object", self._handle))

    def run(self) -> Iterator[None]:
        """Swap the profile and the shadow and place a pod with both, each time one is asked for."""
        while True:
            live = self._profile()
            self.cycle.retain_profiles([live])
            self._shadows.install("new", self._profile(), ShadowOptions(10, 1.0))
            self._cache.update_snapshot(self.cycle.snapshot)
            decision = self.cycle.decide(live, CycleState(), self._pod)
            assert decision.is_placed, decision.status
            self._shadows.observe(self.cycle.snapshot, live, decision)
            self._cache.assume_pod(self._pod, decision.node_name)
            self._cache.update_snapshot(self.cycle.snapshot)
            self._cache.forget_pod(self._pod)
            yield

    def tables(self) -> dict[str, int]:
        """How many items the tables of the columns have that no number of changes limits."""
        sizes = table_sizes(self.cycle)
        return {
            name: size["items"] - (size["bounded"] if name.endswith("ChangeJournal._keys") else 0)
            for name, size in sizes.items()
            if name.startswith("cache.")
        }


def resident_kib() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * (resource.getpagesize() >> 10)


def num_followers() -> int:
    gc.collect()
    return sum(isinstance(each, VolumeUsage | DisksInUse) for each in gc.get_objects())


def test_a_thousand_reloads_and_shadows_with_storage_plugins_leave_everything_as_it_was():
    reloads = Reloads()
    runs = reloads.run()
    list(islice(runs, 100))
    followers, tables = num_followers(), reloads.tables()
    memory, resident = array_bytes(reloads.cycle.snapshot.columns), resident_kib()
    assert followers > 0, "the plugins are not asked at all"
    list(islice(runs, 1000))
    assert num_followers() == followers
    assert array_bytes(reloads.cycle.snapshot.columns) == memory
    assert reloads.tables() == tables
    grown = resident_kib() - resident
    print(f"{followers} followers, columns of {memory} bytes, resident memory {grown:+} KiB")
