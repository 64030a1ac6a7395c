"""The insight worker: a process with a copy of the cluster, which forks for each question.

    standard input -> Frames -> changes of the copy
                             -> Question -> fork -> answer -> pipe -> standard output

It has one thread, so a fork has a consistent copy of everything, may change it, and is killed when
its time is up. The process is the scheduler's child, has the lowest priority and a limit of memory,
and ends with its standard input. A process that runs out of memory ends alone: the scheduler
starts another one.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import resource
import selectors
import signal
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from cache.kept_annotations import keep_annotations
from scheduler.insight.answers import Knowledge, answer
from scheduler.insight.cluster_copy import ClusterCopy
from scheduler.insight.messages import (
    MAX_ANSWER_BYTES,
    Answer,
    Assumed,
    Frames,
    Objects,
    Profiles,
    Question,
    frame,
)
from scheduler.process.log_setup import configure_logging
from scheduler.user_plugins.for_commands import known_plugins

if TYPE_CHECKING:
    from scheduler.config import EffectiveProfile
    from scheduler.insight.messages import Message

AT_ONCE: Final = 2
"""Questions that are answered at the same time."""

_READ_BYTES: Final = 1 << 20
_NICE: Final = 5
"""A third of what the scheduler gets where both want all of the CPU. With 10, answers took twice as
long on two busy CPUs; decisions took the same time with both."""

_PR_SET_PDEATHSIG: Final = 1
_FIRST_TO_END: Final = "1000"
"""The kernel ends this process before any other when memory runs out."""


class WorkerSettings(msgspec.Struct, frozen=True):
    """What the worker is started with, as JSON on its command line.

    Parameters
    ----------
    memory_bytes
        The limit of its data; 0 for none.
    plugin_dir
        The directory of users' plugins; empty for none.
    keep_annotations
        The prefixes of the annotations that plugins read.
    """

    memory_bytes: int = 0
    plugin_dir: str = ""
    keep_annotations: tuple[str, ...] = ()


@dataclass(slots=True)
class _Running:
    """A question that a fork answers."""

    question: Question
    pid: int
    until_s: float
    received: bytearray = field(default_factory=bytearray)


class Worker:
    """Receives changes and questions, and writes answers.

    Parameters
    ----------
    settings
        See :class:`WorkerSettings`.
    source, sink
        File descriptors of messages to and from the scheduler.
    """

    def __init__(self, settings: WorkerSettings, source: int, sink: int) -> None:
        self._source = source
        self._sink = sink
        self._copy = ClusterCopy()
        directory = Path(settings.plugin_dir) if settings.plugin_dir else None
        self._plugins = known_plugins(directory)
        self._profiles: tuple[EffectiveProfile, ...] = ()
        self._problem = "the profiles are not known yet"
        self._frames = Frames()
        self._waiting: deque[Question] = deque()
        self._running: dict[int, _Running] = {}
        self._selector = selectors.DefaultSelector()
        self._is_frozen = False

    def run(self) -> None:
        """Work until the input ends."""
        self._selector.register(self._source, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select(self._pause_s()):
                if key.fd != self._source:
                    self._receive(key.fd)
                elif not self._read():
                    return
            self._end_overdue()
            while self._waiting and len(self._running) < AT_ONCE:
                self._start(self._waiting.popleft())

    def _pause_s(self) -> float | None:
        if not self._running:
            return None
        return max(min(each.until_s for each in self._running.values()) - time.monotonic(), 0.0)

    def _read(self) -> bool:
        """Read what there is; return whether the input goes on."""
        received = os.read(self._source, _READ_BYTES)
        for message in self._frames.feed(received):
            self._take(message)
        return bool(received)

    def _take(self, message: Message) -> None:
        if isinstance(message, Objects):
            self._copy.change(message)
        elif isinstance(message, Assumed):
            self._copy.assume(message.nodes)
        elif isinstance(message, Profiles):
            self._take_profiles(message)
        elif isinstance(message, Question):
            self._waiting.append(message)

    def _take_profiles(self, message: Profiles) -> None:
        try:
            self._profiles = tuple(each.effective(self._plugins) for each in message.profiles)
            self._problem = ""
        except (LookupError, msgspec.MsgspecError) as error:
            self._problem = f"the profiles cannot be used for questions: {error}"

    # --- questions ----------------------------------------------------------------------------

    def _start(self, question: Question) -> None:
        """Fork a process that answers."""
        if self._problem:
            self._write(Answer(question.id, 422, self._problem.encode()))
            return
        # Here and not in the fork: the next question needs it too.
        self._copy.snapshot()
        if not self._is_frozen:
            # What is old is not looked at again, neither here nor in forks, which would copy it.
            gc.collect()
            gc.freeze()
            self._is_frozen = True
        mine, its = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(mine)
            _answer_and_exit(Knowledge(self._copy, self._profiles, self._plugins), question, its)
        os.close(its)
        self._running[mine] = _Running(question, pid, time.monotonic() + question.limit_s)
        self._selector.register(mine, selectors.EVENT_READ)

    def _receive(self, pipe: int) -> None:
        """Read a part of an answer, and pass it on when it is complete."""
        running = self._running.get(pipe)
        if running is None:
            return  # ended a moment ago
        part = os.read(pipe, _READ_BYTES)
        running.received += part
        if part and len(running.received) <= MAX_ANSWER_BYTES:
            return
        self._end(pipe)
        if part:
            self._write(Answer(running.question.id, 507, b"the answer is too large"))
        elif not running.received:
            # Its limit of CPU time or of memory, or a fault in native code.
            self._write(
                Answer(running.question.id, 503, b"the answer took too much time or memory")
            )
        else:
            status = int.from_bytes(running.received[:2], "big")
            self._write(Answer(running.question.id, status, bytes(running.received[2:])))

    def _end_overdue(self) -> None:
        now_s = time.monotonic()
        for pipe, running in list(self._running.items()):
            if running.until_s <= now_s:
                self._end(pipe)
                limit = f"the answer took longer than {running.question.limit_s:g} s"
                self._write(Answer(running.question.id, 504, limit.encode()))

    def _end(self, pipe: int) -> None:
        running = self._running.pop(pipe)
        self._selector.unregister(pipe)
        os.close(pipe)
        os.kill(running.pid, signal.SIGKILL)
        os.waitpid(running.pid, 0)

    def _write(self, message: Answer) -> None:
        _write_all(self._sink, frame(message))


def _answer_and_exit(knowledge: Knowledge, question: Question, pipe: int) -> None:
    """Write the answer and end; in a fork, which must return to nothing of its parent's."""
    try:
        _die_with_parent()
        gc.disable()
        seconds = int(question.limit_s) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        found = answer(knowledge, question)
        _write_all(pipe, found.status.to_bytes(2, "big") + found.body)
    except BaseException as error:  # noqa: BLE001 - whatever it is, only this question fails
        sys.stderr.write(f"insight worker: {error!r}\n")
        sys.stderr.flush()
    finally:
        os._exit(0)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _limit(settings: WorkerSettings) -> None:
    _die_with_parent()
    os.nice(_NICE)
    with contextlib.suppress(OSError):  # where the kernel does not let us, it decides itself
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_END, encoding="ascii")
    if settings.memory_bytes:
        resource.setrlimit(resource.RLIMIT_DATA, (settings.memory_bytes, settings.memory_bytes))


def main(arguments: list[str]) -> int:
    """Run the worker with its settings; the scheduler starts it."""
    settings = msgspec.json.decode(arguments[0], type=WorkerSettings)
    configure_logging("json", "warning")
    _limit(settings)
    keep_annotations(settings.keep_annotations)
    # What a plugin prints must not get between the answers.
    sink = os.dup(1)
    os.dup2(2, 1)
    Worker(settings, 0, sink).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
