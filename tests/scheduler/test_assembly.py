"""The parts as they are put together."""

from __future__ import annotations

import asyncio
import random
import threading
import types
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

from scheduler.assembly import Setting, assemble
from scheduler.config import default_config
from scheduler.metrics import Metrics
from scheduler.options import Options
from scheduler.process.ports import SYSTEM_CLOCK, Ports
from tests.fakes.nobody import Nobody
from tests.fakes.ports import FakeExecutor
from tests.fakes.watched import FakeWatched

if TYPE_CHECKING:
    from collections.abc import Iterator

REAL_LOCK = type(threading.Lock())

OURS = ("cache", "plugins", "scheduler")

LEAVES = ("scheduler.metrics", "cache.byte_bounded")
"""Their locks are held for some assignments, in which no other thread is waited for."""


class MarkedLock:
    """A lock that shows where it comes from."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> bool:
        return self._lock.__enter__()

    def __exit__(self, *why: object) -> None:
        self._lock.__exit__(*why)

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        return self._lock.acquire(blocking, timeout)

    def release(self) -> None:
        self._lock.release()


class MarkingExecutor(FakeExecutor):
    def __init__(self) -> None:
        super().__init__()
        self.lock = MarkedLock


def within(obj: Any) -> Iterator[Any]:
    """Yield what an object of ours, a container or a function holds."""
    if isinstance(obj, dict):
        yield from obj.values()
    elif isinstance(obj, list | tuple | set | frozenset | deque):
        yield from obj
    elif isinstance(obj, types.MethodType):
        yield obj.__self__
    elif isinstance(obj, types.FunctionType):
        yield from (cell.cell_contents for cell in obj.__closure__ or ())
    elif isinstance(obj, partial):
        yield from (obj.func, *obj.args, *obj.keywords.values())
    elif type(obj).__module__.split(".")[0] in OURS:
        yield from getattr(obj, "__dict__", {}).values()
        slots = (name for kind in type(obj).__mro__ for name in getattr(kind, "__slots__", ()))
        yield from (getattr(obj, name) for name in slots if hasattr(obj, name))


def holders_of_locks(root: object, kind: type) -> set[str]:
    """Return the classes whose objects have a lock of a kind."""
    found, seen, todo = set(), set(), [root]
    while todo:
        obj = todo.pop()
        if id(obj) in seen or type(obj).__module__.startswith(LEAVES):
            continue
        seen.add(id(obj))
        for held in within(obj):
            if isinstance(held, kind):
                found.add(type(obj).__name__)
            todo.append(held)
    return found


def test_the_executor_makes_the_locks_of_all_parts() -> None:
    async def make() -> object:
        ports = Ports(Nobody(), MarkingExecutor(), SYSTEM_CLOCK, random.Random(1))
        setting = Setting(default_config("berth"), Options(), Metrics())
        return assemble(ports, lambda *given: FakeWatched(), setting)

    parts = asyncio.run(make())
    assert not holders_of_locks(parts, REAL_LOCK)
    assert holders_of_locks(parts, MarkedLock) >= {
        *("SchedulerCache", "Namespaces", "Workloads", "DisruptionBudgets", "KnownObjects"),
        *("Storage", "AssumeCache", "ReportingLock", "Nominator", "WaitingPods", "PreBindings"),
        *("EventRecorder", "PodStatusWriter", "Shadows", "KubeletRejections"),
    }
