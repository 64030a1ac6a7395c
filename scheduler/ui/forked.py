"""Work in a forked process: it has a copy of everything, and cannot change or delay this one."""

from __future__ import annotations

import gc
import os
import select
import signal
import time
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_ANSWER_BYTES: Final = 32_000_000

_CHUNK_BYTES: Final = 65_536


class ForkedError(Exception):
    """The process ended without an answer; the message is one sentence."""


class Forked(NamedTuple):
    """A process that works, and the pipe on which its answer comes."""

    pid: int
    pipe: int


def start_forked(do: Callable[[], bytes]) -> Forked:
    """Start a function in a process of its own.

    No other thread may hold a lock that the function needs.
    """
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        # There are other threads. The function uses nothing that they lock: no log, no event loop.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        os.close(writer)
        return Forked(pid, reader)
    status = 1
    try:
        _leave(writer)
        _write(writer, do())
        status = 0
    finally:
        os._exit(status)  # nothing of the parent's is flushed, closed or joined


def _leave(writer: int) -> None:
    """Let go of what belongs to the parent: its connections, its signals and its garbage."""
    os.closerange(3, writer)
    os.closerange(writer + 1, 65_536)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    gc.disable()


def _write(pipe: int, answer: bytes) -> None:
    view = memoryview(answer)
    while view:
        view = view[os.write(pipe, view) :]


def answer_of(forked: Forked, limit_s: float) -> bytes:
    """Return what the function returned; the process has ended afterwards.

    Raises
    ------
    ForkedError
        When it takes longer than the limit, returns too much, or fails.
    """
    try:
        return _read(forked.pipe, time.monotonic() + limit_s, limit_s)
    finally:
        os.close(forked.pipe)
        with suppress(ProcessLookupError):
            os.kill(forked.pid, signal.SIGKILL)
        os.waitpid(forked.pid, 0)


def _read(pipe: int, deadline: float, limit_s: float) -> bytes:
    answer = bytearray()
    while True:
        ready, _, _ = select.select([pipe], [], [], max(deadline - time.monotonic(), 0.0))
        if not ready:
            raise ForkedError(f"no answer within {limit_s:g} s")
        chunk = os.read(pipe, _CHUNK_BYTES)
        if not chunk:
            break
        answer += chunk
        if len(answer) > MAX_ANSWER_BYTES:
            raise ForkedError(f"the answer is larger than {MAX_ANSWER_BYTES} bytes")
    if not answer:
        raise ForkedError("the process that works for the page has failed")
    return bytes(answer)
