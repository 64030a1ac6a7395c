"""Rejections by kubelets are counted, told, remembered for a while and forgotten."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from cache.objects import OwnerReference, PodStatus
from scheduler.api_writes.event_recorder import EventRecorder
from scheduler.cycle import kubelet_rejections
from scheduler.cycle.kubelet_rejections import (
    AVOID_S,
    MAX_AVOID_S,
    MAX_PAUSE_S,
    PAUSE_S,
    KubeletRejections,
)
from scheduler.metrics import Metrics
from tests.builders import node, pod
from tests.fakes.clock import FakeClock
from tests.fakes.ports import fake_ports
from tests.fakes.write_api import FakeWriteApi
from tests.scheduler.parts import Parts


def made(owner: str = "rs", *, node_name: str = "n1", reason: str = "OutOfcpu", phase="Failed"):
    plain = pod("a").scheduler("berth").on(node_name).build()
    owners = (OwnerReference(kind="ReplicaSet", uid=owner, controller=True),) if owner else ()
    metadata = msgspec.structs.replace(plain.metadata, owner_references=owners)
    status = PodStatus(phase=phase, reason=reason)
    return msgspec.structs.replace(plain, metadata=metadata, status=status)


class Scene:
    def __init__(self) -> None:
        self.clock, self.metrics, self.writes = FakeClock(), Metrics(), FakeWriteApi()

    def play(self, *pods):
        async def scene() -> None:
            recorder = EventRecorder(fake_ports(self.writes), instance="test")
            recorder.start()
            self.rejections = KubeletRejections(recorder, self.metrics, self.clock)
            for each in pods:
                self.rejections.see(each)
            await recorder.drain(10)
            await recorder.stop()

        asyncio.run(scene())
        return self

    def counted(self, reason: str) -> bool:
        line = f'berth_kubelet_rejections_total{{reason="{reason}"}} 1'
        return line in self.metrics.render()[0].decode()


@pytest.mark.parametrize(
    ("reason", "label"),
    [
        ("OutOfcpu", "OutOfcpu"),
        ("OutOfpods", "OutOfpods"),
        ("NodeAffinity", "NodeAffinity"),
        ("TopologyAffinityError", "TopologyAffinityError"),
        ("UnexpectedAdmissionError", "UnexpectedAdmissionError"),
        pytest.param("OutOfexample.com/x-17", "OutOfExtendedResource", id="labels are bounded"),
    ],
)
def test_a_rejection_is_counted_and_told(reason, label):
    scene = Scene().play(made(reason=reason))
    assert scene.counted(label)
    (event,) = scene.writes.calls
    assert (event.body["reason"], event.body["note"]) == (
        "RejectedByNode",
        f"Node n1 rejected the pod ({reason})",
    )
    assert scene.rejections.avoided(made()) == {"n1": PAUSE_S}


@pytest.mark.parametrize(
    "ended",
    [
        pytest.param(made(reason="Evicted"), id="evicted"),
        pytest.param(made(reason=""), id="its containers failed"),
        pytest.param(made(phase="Succeeded"), id="done"),
        pytest.param(made(node_name=""), id="never bound"),
    ],
)
def test_other_ends_are_none(ended):
    scene = Scene().play(ended)
    assert scene.writes.calls == []
    assert scene.rejections.avoided(made()) == {}


def test_a_node_is_avoided_by_pods_of_the_same_controller_only():
    rejections = Scene().play(made("rs")).rejections
    assert rejections.avoided(made("rs")) == {"n1": PAUSE_S}
    assert rejections.avoided(made("other")) == {}
    assert rejections.avoided(made("")) == {}


@pytest.mark.parametrize(
    ("successor", "nodes"),
    [
        pytest.param(pod("b"), {"n2": PAUSE_S}, id="the same containers"),
        pytest.param(pod("b").request(cpu="1"), {}, id="another request"),
        pytest.param(pod("b").image("other"), {}, id="another image"),
        pytest.param(pod("b", namespace="elsewhere"), {}, id="another namespace"),
    ],
)
def test_pods_without_a_controller_avoid_it_if_they_are_alike(successor, nodes):
    rejections = Scene().play(made("", node_name="n2")).rejections
    assert rejections.avoided(successor.scheduler("berth").build()) == nodes


def test_it_is_avoided_for_longer_each_time_and_never_for_ever():
    scene = Scene().play()
    times, pauses = [], []
    for _ in range(9):
        scene.rejections._remember("rs", "n1")
        (pause_s,) = scene.rejections.avoided(made("rs")).values()
        pauses.append(pause_s)
        since_s = scene.clock()
        while scene.rejections.avoided(made("rs")):
            scene.clock.advance(AVOID_S)
        times.append(scene.clock() - since_s)
    assert times == [30, 60, 120, 240, 480, 600, 600, 600, 600]
    assert pauses == [2, 4, 8, 16, 32, 60, 60, 60, 60]
    assert (max(times), max(pauses)) == (MAX_AVOID_S, MAX_PAUSE_S)


def goes(rejections: KubeletRejections, pod) -> bool:
    """Whether a pod that has no other node goes to n1."""
    if rejections.avoided(pod)["n1"]:
        return False
    rejections.count_assumed(pod, "n1")
    return True


@pytest.mark.parametrize("owner", [pytest.param("rs", id="of one controller"), ""])
def test_one_goes_after_a_pause_then_two_then_four(owner):
    scene = Scene().play(made(owner))
    waves = []
    for _ in range(5):
        waves.append(sum(goes(scene.rejections, made(owner, phase="Pending")) for _ in range(9)))
        scene.clock.advance(PAUSE_S)
    assert waves == [0, 1, 2, 4, 8]


def test_after_another_rejection_one_goes_again():
    scene = Scene().play(made())
    for _ in range(3):
        scene.clock.advance(PAUSE_S)
        while goes(scene.rejections, made()):
            pass
    with scene.rejections._lock:
        scene.rejections._remember("rs", "n1")
    assert not goes(scene.rejections, made())
    scene.clock.advance(2 * PAUSE_S)
    assert [goes(scene.rejections, made()) for _ in range(3)] == [True, False, False]
    scene.clock.advance(2 * PAUSE_S - 0.1)
    assert not goes(scene.rejections, made())


@pytest.mark.parametrize(
    ("other", "node_name"),
    [
        pytest.param(made("other"), "n1", id="another family"),
        pytest.param(made("rs"), "n2", id="another node"),
    ],
)
def test_pods_that_go_elsewhere_do_not_count(other, node_name):
    scene = Scene().play(made())
    scene.clock.advance(PAUSE_S)
    scene.rejections.count_assumed(other, node_name)
    assert scene.rejections.avoided(made()) == {"n1": 0}


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(kubelet_rejections, "MAX_REMEMBERED", 10)
    scene = Scene().play()
    for number in range(100):
        scene.rejections._remember(f"rs-{number}", "n1")
        assert scene.rejections._size <= 10
    scene.clock.advance(AVOID_S + MAX_AVOID_S + 1)
    while scene.rejections._size < 10:
        scene.rejections._remember("late", f"n{scene.rejections._size}")
    scene.rejections._remember("last", "n1")
    assert scene.rejections.avoided(made("last")) == {"n1": PAUSE_S}


def test_a_pod_that_has_ended_is_seen_once():
    parts, seen = Parts(), []
    parts.handlers._on_ended = seen.append
    parts.cache.add_node(node("n1").build())
    running, ended = made(phase="Running", reason=""), made()
    for old, new in ((None, running), (running, ended), (ended, ended), (ended, None)):
        parts.handlers._pod_changed(old, new)
    assert seen == [ended]
