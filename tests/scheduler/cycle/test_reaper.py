from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scheduler.client.errors import ApiError
from scheduler.cycle.reaper import Reaper
from tests.builders import node, pod
from tests.fakes.ports import FakeExecutor
from tests.scheduler.parts import Parts

if TYPE_CHECKING:
    from collections.abc import Callable

PENDING = pod("a").scheduler("berth").request(cpu="1")


class Scene:
    """A pod whose binding finished and was never confirmed, past its time limit."""

    def __init__(self, api_says) -> None:
        self.parts = Parts(ttl_s=30.0)
        self.parts.cache.add_node(node("n1").capacity(cpu="4", memory="8Gi").build())
        info = PENDING.info()
        self.parts.cache.assume_pod(info, "n1")
        self.parts.cache.finish_binding(info, self.parts.clock())
        self.parts.clock.advance(31)
        self.api_says = api_says
        self.handed_over: list[Callable[[], None]] | None = None
        self.reaper = Reaper(
            FakeExecutor(on_loop=self._on_loop),
            self.parts.clock,
            self.parts.pods,
            self._get_pod,
            self.parts.metrics,
        )

    def _on_loop(self, call: Callable[[], None]) -> None:
        if self.handed_over is None:
            call()
        else:
            self.handed_over.append(call)

    def _get_pod(self, namespace, name):
        if isinstance(self.api_says, Exception):
            raise self.api_says
        return self.api_says

    def counted(self, outcome: str) -> float:
        return self.parts.counter(f'berth_assumed_pods_expired_total{{outcome="{outcome}"}}')


@pytest.mark.parametrize(
    ("api_says", "outcome", "milli_cpu", "queued"),
    [
        pytest.param(PENDING.build(), "requeued", 0, 1, id="unbound: freed and queued again"),
        pytest.param(PENDING.on("n1").build(), "bound", 1000, 0, id="bound after all: kept"),
        pytest.param(None, "gone", 0, 0, id="deleted: freed"),
        pytest.param(PENDING.uid("another").build(), "gone", 0, 0, id="made again: freed"),
    ],
)
def test_an_overdue_pod_is_settled_by_what_the_api_says(api_says, outcome, milli_cpu, queued):
    scene = Scene(api_says)
    scene.reaper.round()
    assert scene.counted(outcome) == 1
    assert scene.parts.milli_cpu_on("n1") == milli_cpu
    assert scene.parts.queue.counts().active == queued
    assert scene.parts.cache.counts().assumed_pods == 0


def test_the_room_that_is_freed_wakes_who_waits_for_it():
    scene = Scene(None)
    scene.parts.queue.add(pod("waits").scheduler("berth").request(cpu="4").info())
    waits = scene.parts.queue.pop(timeout_s=0)
    assert waits is not None
    waits.unschedulable_plugins = frozenset({"NodeResourcesFit"})
    scene.parts.queue.add_unschedulable(waits)
    scene.reaper.round()
    assert scene.parts.queue.counts().unschedulable == 0


def test_bound_to_another_node_it_is_moved():
    scene = Scene(PENDING.on("n2").build())
    scene.parts.cache.add_node(node("n2").capacity(cpu="4").build())
    scene.reaper.round()
    assert (scene.parts.milli_cpu_on("n1"), scene.parts.milli_cpu_on("n2")) == (0, 1000)


def test_without_an_answer_nothing_is_freed():
    scene = Scene(ApiError(503, "ServiceUnavailable", "later"))
    scene.reaper.round()
    assert scene.parts.milli_cpu_on("n1") == 1000
    assert scene.parts.cache.counts().assumed_pods == 1


def test_before_its_time_limit_nobody_is_asked_about():
    scene = Scene(AssertionError("nobody shall ask"))
    scene.parts.cache.add_pod(PENDING.on("n1").info())
    scene.reaper.round()
    assert scene.parts.milli_cpu_on("n1") == 1000


def test_what_the_watch_has_told_since_the_question_counts_more_than_the_answer():
    scene = Scene(PENDING.on("n1").build())
    scene.handed_over = []
    scene.reaper.round()
    scene.parts.cache.remove_pod(PENDING.info())
    (settle,) = scene.handed_over
    settle()
    assert scene.parts.milli_cpu_on("n1") == 0
    assert scene.counted("bound") == 0


def test_a_bound_pod_that_cannot_be_read_is_confirmed():
    scene = Scene(PENDING.on("n1").request(cpu="1e102").build())
    scene.reaper.round()
    assert scene.counted("bound") == 1
    assert scene.parts.cache.counts().assumed_pods == 0
