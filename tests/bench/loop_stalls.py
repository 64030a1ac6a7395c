"""``berth``, with the stalls of its event loop and the pauses of the garbage collector in a file.

    python -m tests.bench.loop_stalls run ...

The file is named by the environment variable ``BERTH_LOOP_STALLS``. A timer is due every few
milliseconds; where it is late by more than the limit, a stall is written with the CPU time that the
loop's thread and the whole process had meanwhile, and how long the thread waited for a core. That
tells Berth's own work from that of other processes: see :class:`Stall`.

This file imports nothing of `tests`: it is also run with another checkout of Berth.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import sys
import threading
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic, process_time, sleep, thread_time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

VARIABLE: Final = "BERTH_LOOP_STALLS"
STACKS_VARIABLE: Final = "BERTH_LOOP_STACKS"

LIMIT_S: Final = 0.020
"""The budget of one piece of work on the event loop: invariant I11."""

PERIOD_S: Final = 0.005
_STACK_AFTER_S: Final = 0.010
_LOOP_FRAMES: Final = 12
_OTHER_FRAMES: Final = 5


@dataclass(frozen=True)
class Stall:
    """One time for which the event loop did not run its timers.

    Parameters
    ----------
    at_s
        Its end, by `time.monotonic`.
    wall_s
        How late the timer was.
    cpu_s
        CPU time of the loop's thread, from one timer to the next.
    process_cpu_s
        The same of all threads.
    queued_s
        For how long the loop's thread could run and had no core, as Linux tells it.
    window_s
        From one timer to the next.
    stack
        What the loop and then the other threads were doing; empty unless stacks were asked for.
    """

    at_s: float
    wall_s: float
    cpu_s: float
    process_cpu_s: float
    queued_s: float
    window_s: float
    stack: str = ""

    @property
    def waited_s(self) -> float:
        """Return for how long the thread slept while other threads of Berth had the interpreter.

        It slept for the time in which it had neither a core nor wanted one; of that, the others
        cannot have worked for longer than their CPU time.
        """
        asleep_s = self.window_s - self.cpu_s - self.queued_s
        return max(min(self.process_cpu_s - self.cpu_s, asleep_s), 0.0)

    @property
    def own_s(self) -> float:
        """Return how long the stall would have been had Berth had the machine to itself."""
        return min(self.cpu_s + self.waited_s, self.wall_s)

    @property
    def cause(self) -> str:
        """Return ``loop``, ``interpreter`` or ``system``.

        ``loop`` is work on the loop itself, ``interpreter`` a wait for another thread of Berth.
        ``system`` is a stall that Berth alone would not have had: it got no core.
        """
        if self.own_s <= LIMIT_S:
            return "system"
        return "loop" if self.cpu_s >= self.waited_s else "interpreter"


@dataclass(frozen=True)
class Pause:
    """One run of the garbage collector.

    Parameters
    ----------
    at_s
        Its end, by `time.monotonic`.
    cpu_s
        CPU time of the thread that it ran on, for which no other thread ran Python code.
    collected
        Objects that were garbage.
    on_loop
        Whether that was the loop's thread.
    """

    at_s: float
    generation: int
    wall_s: float
    cpu_s: float
    collected: int
    on_loop: bool


def read(path: Path) -> tuple[list[Stall], list[Pause]]:
    """Return what a process has written so far; a last line that is not whole does not count."""
    stalls, pauses = list[Stall](), list[Pause]()
    for line in path.read_text().splitlines(keepends=True):
        if line.endswith("\n"):
            fields: dict[str, Any] = json.loads(line)
            if "generation" in fields:
                pauses.append(Pause(**fields))
            else:
                stalls.append(Stall(**fields))
    return stalls, pauses


class _Watch:
    """Timers on the loop that it is started on.

    Concurrency: loop-confined, but for the thread that reads stacks.
    """

    def __init__(self, write: Callable[[Stall], None], *, stacks: bool) -> None:
        self._write = write
        self._stacks = stacks
        self._stack = ""
        self._due_s = 0.0

    def start(self) -> None:
        """Watch from now on, until the process ends."""
        self._loop = asyncio.get_running_loop()
        self._schedstat = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", 0)
        self._thread = threading.get_ident()
        self._set()
        if self._stacks:
            threading.Thread(target=self._read_stacks, name="stacks", daemon=True).start()

    def _set(self) -> None:
        self._armed_s = monotonic()
        self._cpu_s, self._process_cpu_s = thread_time(), process_time()
        self._queued_s = self._queued()
        self._due_s = self._armed_s + PERIOD_S
        self._loop.call_later(PERIOD_S, self._called)

    def _called(self) -> None:
        now_s = monotonic()
        late_s = now_s - self._due_s
        if late_s > LIMIT_S:
            self._write(
                Stall(
                    at_s=now_s,
                    wall_s=late_s,
                    cpu_s=thread_time() - self._cpu_s,
                    process_cpu_s=process_time() - self._process_cpu_s,
                    queued_s=self._queued() - self._queued_s,
                    window_s=now_s - self._armed_s,
                    stack=self._stack,
                )
            )
        self._stack = ""
        self._set()

    def _queued(self) -> float:
        return int(os.pread(self._schedstat, 64, 0).split()[1]) / 1e9

    def _read_stacks(self) -> None:
        own = threading.get_ident()
        while True:
            sleep(PERIOD_S)
            if not self._stack and monotonic() - self._due_s > _STACK_AFTER_S:
                frames = sys._current_frames()
                loop = _stack(frames.pop(self._thread), _LOOP_FRAMES)
                others = [
                    _stack(top, _OTHER_FRAMES) for ident, top in frames.items() if ident != own
                ]
                self._stack = " | ".join([loop, *others])


def _stack(top: FrameType, count: int) -> str:
    frames = traceback.extract_stack(top, count)
    return " < ".join(
        f"{Path(each.filename).name}:{each.lineno} {each.name}" for each in reversed(frames)
    )


def watch_loop(path: Path, *, stacks: bool) -> None:
    """Write stalls and pauses of this process from now on into a file."""
    from scheduler.process.loop_lag import LoopLag

    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)

    def write(found: Stall | Pause) -> None:
        os.write(file, json.dumps(asdict(found)).encode() + b"\n")

    began = [0.0, 0.0]
    main_thread = threading.main_thread()

    def collected(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            began[:] = monotonic(), thread_time()
            return
        now_s = monotonic()
        on_loop = threading.current_thread() is main_thread
        wall_s, cpu_s = now_s - began[0], thread_time() - began[1]
        write(Pause(now_s, info["generation"], wall_s, cpu_s, info["collected"], on_loop))

    gc.callbacks.append(collected)
    start, watch = LoopLag.start, _Watch(write, stacks=stacks)

    def started(self: LoopLag) -> None:
        start(self)
        watch.start()

    LoopLag.start = started  # type: ignore[method-assign]


if __name__ == "__main__":
    from scheduler.cli import main

    with contextlib.suppress(KeyError):
        watch_loop(Path(os.environ[VARIABLE]), stacks=bool(os.environ.get(STACKS_VARIABLE)))
    sys.exit(main(sys.argv[1:]))
