"""Several threads at one queue, on the real clock."""

from __future__ import annotations

import random
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from plugins.framework.cluster_events import ALL_EVENTS
from tests.builders import pod
from tests.scheduler.queueing.queues import make_queue
from tests.scheduler.queueing.stage import REGISTRATIONS, Stage

if TYPE_CHECKING:
    from collections.abc import Callable

    from scheduler.queueing import SchedulingQueue

DEADLINE_S = 30.0


def on_real_clock(**options: Any) -> SchedulingQueue:
    stage = Stage()
    return make_queue(
        time.monotonic,
        sort_key=lambda one, since_s: (since_s,),
        pre_enqueue=stage.pre_enqueue,
        registrations=lambda _: REGISTRATIONS,
        **options,
    )


def eventually(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0)


class Popper(threading.Thread):
    """Pops once, and remembers what."""

    def __init__(self, queue: SchedulingQueue) -> None:
        super().__init__(daemon=True)
        self.queue = queue
        self.popped: Any = "nothing yet"
        self.start()

    def run(self) -> None:
        self.popped = self.queue.pop()

    def result(self) -> Any:
        self.join(DEADLINE_S)
        return self.popped


@pytest.fixture
def queue() -> SchedulingQueue:
    return on_real_clock(initial_backoff_s=0.001)


def test_close_wakes_all_who_wait(queue):
    poppers = [Popper(queue) for _ in range(3)]
    eventually(lambda: queue._poppers == 3)
    queue.close()
    assert [popper.result() for popper in poppers] == [None, None, None]


def test_a_pod_that_comes_wakes_one_who_waits(queue):
    popper = Popper(queue)
    eventually(lambda: queue._poppers == 1)
    queue.add(pod("p").info())
    assert popper.result().info.name == "p"


def test_a_gated_pod_wakes_nobody_until_its_gate_is_gone(queue):
    popper = Popper(queue)
    eventually(lambda: queue._poppers == 1)
    queue.add(pod("gated").gate("g").info())
    queue.add(pod("free").info())
    assert popper.result().info.name == "free"


@pytest.mark.parametrize(
    ("plugins", "wake"),
    [
        pytest.param({"Fit"}, lambda queue: queue.move_all(ALL_EVENTS, None, None), id="refused"),
        pytest.param(set(), lambda queue: None, id="error"),
    ],
)
def test_a_pod_that_goes_to_backoff_wakes_one_who_waits(queue, plugins, wake):
    queue.add(pod("p").info())
    queued = queue.pop(0)
    popper = Popper(queue)
    eventually(lambda: queue._poppers == 1)
    queued.unschedulable_plugins = plugins
    queue.add_unschedulable(queued)
    wake(queue)
    assert popper.result() is queued


def test_the_end_of_a_pause_wakes_who_waits():
    queue = on_real_clock(initial_backoff_s=0.001, max_backoff_s=0.001)
    queue.add(pod("p").info())
    queue.add_unschedulable(queue.pop(0))
    assert queue.counts().backoff == 1
    popped = queue.pop(DEADLINE_S)
    assert popped is not None
    assert popped.attempts == 2


def test_a_pop_that_waits_gives_up_in_the_end(queue):
    assert queue.pop(0.01) is None


def test_each_of_many_pods_ends_exactly_once(queue):
    """I7, I5: adders, a popper, a deleter and events, all at once."""
    infos = [pod(f"p{index}").priority(index % 3).info() for index in range(600)]
    ended: list[str] = []
    deleted: list[str] = []
    added = threading.Event()

    def add() -> None:
        for info in infos:
            queue.add(info)
        added.set()

    def delete() -> None:
        for info in infos[::10]:
            eventually(lambda uid=info.uid: queue.state_of(uid).value != "nowhere" or uid in ended)
            queue.delete(info.uid)
            deleted.append(info.uid)

    def disturb() -> None:
        while not added.is_set() or any(queue.counts()):
            queue.move_all(ALL_EVENTS, None, None)
            queue.flush_backoff()

    def attempt() -> None:
        chance = random.Random(1)
        while (queued := queue.pop()) is not None:
            end = chance.choice(["bind", "bind", "refuse"])
            if end == "bind" or queued.attempts > 3:
                ended.append(queued.info.uid)
                queue.done(queued.info.uid)
            else:
                queued.unschedulable_plugins = {"Fit"}
                queue.add_unschedulable(queued)

    working = [threading.Thread(target=work, daemon=True) for work in (add, delete, disturb)]
    popper = threading.Thread(target=attempt, daemon=True)
    for thread in (*working, popper):
        thread.start()
    for thread in working:
        thread.join(DEADLINE_S)
        assert not thread.is_alive()
    queue.close()
    popper.join(DEADLINE_S)
    assert not any(queue.counts())
    assert len(ended) == len(set(ended))
    assert set(ended) | set(deleted) == {info.uid for info in infos}
