from __future__ import annotations

import gc
from weakref import ref

import pytest

from cache.objects import AWSElasticBlockStoreVolumeSource, Volume
from plugins.framework.cycle_state import CycleState
from scheduler.cycle.host_selection import HostSelector
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from tests.builders import PodBuilder, node, pod
from tests.plugins.default_preemption.stage import Stage

DISK = Volume(name="disk", aws_elastic_block_store=AWSElasticBlockStoreVolumeSource("vol-1"))
ASKED = [
    pytest.param(pod("a").request(cpu="1"), id="plain"),
    pytest.param(pod("a").volume(DISK), id="disk"),
    pytest.param(pod("a").request(cpu="3").priority(9), id="preempts"),
    pytest.param(pod("a").request(cpu="99"), id="fits nowhere"),
    pytest.param(pod("a").label("app", "x").spread("kubernetes.io/hostname", app="x"), id="spread"),
    pytest.param(
        pod("a").label("app", "x").pod_anti_affinity("kubernetes.io/hostname", app="x"),
        id="anti-affinity",
    ),
]


@pytest.mark.parametrize("asked", ASKED)
def test_a_profile_that_is_gone_is_not_left_to_the_cyclic_collector(asked: PodBuilder):
    stage = Stage(node("n1").capacity(cpu="4"), pod("low").request(cpu="3").on("n1"))
    cycle = SchedulingCycle(stage.snapshot, HostSelector(0))
    for _ in range(2):
        cycle.decide(stage.framework, CycleState(), asked.info())
    gone = {type(each).__name__: ref(each) for each in (stage.framework, *stage.framework.plugins)}
    gc.collect()
    gc.disable()
    try:
        cycle.retain_profiles(())
        del stage.framework, stage.plugin
        assert [name for name, each in gone.items() if each() is not None] == []
    finally:
        gc.enable()
