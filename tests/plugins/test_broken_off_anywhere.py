"""An attempt may be broken off wherever a plugin looks at its budget, and leaves nothing half done.

Every place at which a budget can run out is tried: the next attempt, which has all the time that it
wants, decides as one in a world where nothing was broken off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cache.objects import GCEPersistentDiskVolumeSource, Volume
from plugins.framework.attempt_budget import ReplayedBudget
from plugins.framework.cycle_state import CycleState
from scheduler.cycle.host_selection import HostSelector
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from tests.builders import node, pod
from tests.plugins.default_preemption.stage import Stage

if TYPE_CHECKING:
    from scheduler.decision.decision import Decision
    from tests.builders import PodBuilder

MANY = 12


def disk(index: int) -> Volume:
    source = GCEPersistentDiskVolumeSource(pd_name=f"disk-{index}", read_only=False)
    return Volume(f"v-{index}", gce_persistent_disk=source)


def each(asked: PodBuilder, method: str, *args: tuple[object, ...]) -> PodBuilder:
    for arguments in args:
        asked = getattr(asked, method)(*arguments)
    return asked


PLAIN = pod("asked").request(cpu="1").label("app", "asked")
ASKED = {
    "ports": each(PLAIN, "host_port", *((1000 + 64 * index,) for index in range(MANY))),
    "disks": each(PLAIN, "volume", *((disk(index),) for index in range(MANY))),
    "images": each(PLAIN, "image", *((f"image-{index}",) for index in range(MANY))),
    "victims": pod("asked").request(cpu="4").priority(10),
    "plain": PLAIN,
}
CHECKS = {"ports": MANY, "disks": MANY, "images": 1, "victims": 2 * MANY, "plain": 1}
"""At least so many times each looks at its budget."""


def stage() -> Stage:
    low = (
        pod(f"low-{index}").request(cpu="0.25").on(f"n{index % 3}").host_port(1000 + 64 * index)
        for index in range(3 * MANY)
    )
    nodes = (node(f"n{index}").zone(f"z{index % 2}").capacity(cpu="4") for index in range(3))
    return Stage(*nodes, node("free").capacity(cpu="2").image("image-1", size_bytes=10**9), *low)


def decide(played: Stage, cycle: SchedulingCycle, asked: PodBuilder, budget) -> Decision:
    made = asked.build()
    played.cluster.pods[f"{made.metadata.namespace}/{made.metadata.name}"] = made
    return cycle.decide(played.framework, CycleState(budget), asked.info())


def outcome(decision: Decision) -> tuple[object, ...]:
    return decision.node_name, decision.score, decision.message(), decision.nominated_node_name


def evicted(played: Stage) -> list[tuple[str, list[str]]]:
    return [(name, [p.uid for p in victims.pods]) for _, name, victims in played.preemption.started]


@pytest.mark.parametrize("kind", ASKED)
def test_an_attempt_that_is_broken_off_anywhere_leaves_nothing_half_done(kind):
    asked = ASKED[kind]
    fresh = stage()
    budget = ReplayedBudget(1.0, None)
    wanted = decide(fresh, SchedulingCycle(fresh.snapshot, HostSelector(1)), asked, budget)
    assert not wanted.is_over_budget
    assert budget.checks >= CHECKS[kind]
    started = evicted(fresh)

    played = stage()
    for at in range(1, budget.checks + 1):
        cycle = SchedulingCycle(played.snapshot, HostSelector(1))
        broken_off = decide(played, cycle, asked, ReplayedBudget(1.0, at))
        assert broken_off.ran_out_at == at or outcome(broken_off) == outcome(wanted)
        if broken_off.is_over_budget:
            assert played.preemption.started == []
        played.preemption.started.clear()
        assert outcome(decide(played, cycle, asked, ReplayedBudget(1.0, None))) == outcome(wanted)
        assert evicted(played) == started
        played.preemption.started.clear()
