from __future__ import annotations

import threading

from scheduler.api_writes.binding_slots import BindingSlots
from scheduler.client.transport import Bounds
from scheduler.cycle.binding_cycle import MAX_BINDING
from scheduler.process.thread_executor import ThreadLocks

PATIENCE_S = 30.0


class NotedCondition(threading.Condition):
    """Notes how long each wait may take, and ends those with a limit when told to."""

    def __init__(self, lock: threading.Lock) -> None:
        super().__init__(lock)
        self.waits: list[float | None] = []
        self.notified = 0
        self.waiting = threading.Event()

    def wait(self, timeout: float | None = None) -> bool:
        self.waits.append(timeout)
        self.waiting.set()
        return super().wait(PATIENCE_S)

    def notify(self, n: int = 1) -> None:
        self.notified += 1
        super().notify(n)


class NotedLocks(ThreadLocks):
    def condition(self, lock: threading.Lock) -> threading.Condition:
        self.made = NotedCondition(lock)
        return self.made


def full(count: int) -> tuple[BindingSlots, NotedCondition]:
    locks = NotedLocks()
    slots = BindingSlots(count, locks)
    for number in range(count):
        slots.acquire(f"pod-{number}")
    return slots, locks.made


def acquiring(slots: BindingSlots, uid: str) -> threading.Thread:
    thread = threading.Thread(target=slots.acquire, args=(uid,), daemon=True)
    thread.start()
    return thread


def test_who_finds_all_slots_taken_is_woken_once_for_a_quarter_of_them() -> None:
    slots, condition = full(8)
    assert not condition.waits
    thread = acquiring(slots, "next")
    assert condition.waiting.wait(PATIENCE_S)

    slots.release("pod-0")
    assert condition.notified == 0
    slots.release("pod-1")
    thread.join(PATIENCE_S)

    assert not thread.is_alive()
    assert condition.notified == 1
    assert len(slots) == 7
    slots.release("pod-2")
    assert condition.notified == 1  # nobody waits


def test_slots_that_hang_do_not_keep_the_others() -> None:
    slots, condition = full(8)
    thread = acquiring(slots, "next")
    assert condition.waiting.wait(PATIENCE_S)

    condition.waiting.clear()
    with condition:  # as if the time for many were up
        condition.notify()
    assert condition.waiting.wait(PATIENCE_S)
    slots.release("pod-0")
    thread.join(PATIENCE_S)

    assert not thread.is_alive()
    many, one = condition.waits
    assert many is not None
    assert one is None
    assert len(slots) == 8


def test_a_slot_is_given_back_once() -> None:
    slots = BindingSlots(2)
    slots.acquire("a")
    slots.release("a")
    slots.release("a")
    slots.acquire("b")
    slots.acquire("c")

    assert len(slots) == 2
    thread = acquiring(slots, "d")
    thread.join(0.05)
    assert thread.is_alive()
    slots.release("b")
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def test_connections_do_not_run_dry_before_the_scheduling_thread_goes_on() -> None:
    slots, condition = full(MAX_BINDING)
    thread = acquiring(slots, "next")
    assert condition.waiting.wait(PATIENCE_S)

    for number in range(MAX_BINDING - Bounds().connections + 1):
        slots.release(f"pod-{number}")
        if condition.notified:
            break
    thread.join(PATIENCE_S)

    assert condition.notified == 1
    assert MAX_BINDING - (number + 1) >= Bounds().connections
