"""A process that answers questions: a fork of the insight worker.

A fork has a consistent copy of everything, and is killed when its time is up. It answers one
question after another, because half of the work of the first answer is of use to the next ones, and
ends when the worker's copy has changed.
"""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import signal
import sys
import time
from typing import TYPE_CHECKING, Final

from scheduler.insight.messages import LENGTH_BYTES, Frames, Question, frame

if TYPE_CHECKING:
    from scheduler.insight.answers import Respondent

MAX_QUESTIONS: Final = 200
"""Questions after which a process ends: whatever an answer leaves behind has a limit."""

_READ_BYTES: Final = 1 << 20
_PR_SET_PDEATHSIG: Final = 1


class Answerer:
    """The worker's end of such a process; the fork is made by the constructor.

    Parameters
    ----------
    respondent
        Answers in the fork; stays as it is in this process.
    version
        Of what it knows.

    Attributes
    ----------
    question
        What it is asked; None while it is idle.
    until_s
        By the monotonic clock: the end of its time for the question, or since when it is idle.
    received
        The part of the answer that has arrived: a frame.
    """

    def __init__(self, respondent: Respondent, version: int) -> None:
        self.version = version
        self.question: Question | None = None
        self.until_s = time.monotonic()
        self.received = bytearray()
        self._asked = 0
        source, self._questions = os.pipe()
        self.answers, sink = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._questions)
            os.close(self.answers)
            _serve_and_exit(respondent, source, sink)
        os.close(source)
        os.close(sink)

    @property
    def is_fresh(self) -> bool:
        """Whether it may be asked further questions."""
        return self._asked < MAX_QUESTIONS

    def ask(self, question: Question) -> None:
        """Send a question; only while it is idle."""
        self.question, self.until_s = question, time.monotonic() + question.limit_s
        self.received.clear()
        self._asked += 1
        # A question has at most a megabyte, and the process reads: this ends, or the process has.
        try:
            write_all(self._questions, frame(question))
        except BrokenPipeError:
            return  # its answers end, too

    def receive(self) -> bool:
        """Read a part of the answer; return whether the process goes on."""
        part = os.read(self.answers, _READ_BYTES)
        self.received += part
        return bool(part)

    @property
    def is_answered(self) -> bool:
        """Whether the answer is complete."""
        length = int.from_bytes(self.received[:LENGTH_BYTES], "big")
        return len(self.received) >= LENGTH_BYTES + length > LENGTH_BYTES

    def idle(self) -> None:
        """Note that the answer has been passed on."""
        self.question, self.until_s = None, time.monotonic()

    def end(self) -> None:
        """Kill the process."""
        os.close(self._questions)
        os.close(self.answers)
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def write_all(descriptor: int, data: bytes | bytearray) -> None:
    """Write all bytes to a blocking file descriptor."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def die_with_parent() -> None:
    """Let the kernel kill this process when its parent ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _serve_and_exit(respondent: Respondent, source: int, sink: int) -> None:
    """Answer questions and end; in a fork, which must return to nothing of its parent's."""
    try:
        die_with_parent()
        # What is old is not looked at again: that would copy it.
        gc.freeze()
        frames = Frames()
        while received := os.read(source, _READ_BYTES):
            for message in frames.feed(received):
                if isinstance(message, Question):
                    _limit_cpu(int(message.limit_s) + 1)
                    write_all(sink, frame(respondent.answer(message)))
    except BaseException as error:  # noqa: BLE001 - whatever it is, only this question fails
        sys.stderr.write(f"insight worker: {error!r}\n")
        sys.stderr.flush()
    finally:
        os._exit(0)


def _limit_cpu(seconds: int) -> None:
    """Let the kernel end this process when it has used so many seconds more."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    until = int(used.ru_utime + used.ru_stime) + 1 + seconds
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (until, most))
