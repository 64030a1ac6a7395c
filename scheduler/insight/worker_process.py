"""The insight worker: a process with a copy of the cluster, whose forks answer questions.

    standard input -> Frames -> changes of the copy
                             -> Question -> pipe -> Answerer -> pipe -> standard output

It has one thread, so a fork has a consistent copy of everything. The process is the scheduler's
child, has a lower priority and a limit of memory, and ends with its standard input. A process that
runs out of memory ends alone: the scheduler starts another one.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import selectors
import sys
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from cache.kept_annotations import keep_annotations
from scheduler.insight.answerer import Answerer, die_with_parent, write_all
from scheduler.insight.answers import Knowledge, Respondent
from scheduler.insight.cluster_copy import ClusterCopy
from scheduler.insight.messages import (
    LENGTH_BYTES,
    MAX_ANSWER_BYTES,
    MAX_HEAD_BYTES,
    Answer,
    Assumed,
    Frames,
    Objects,
    Profiles,
    Question,
    decode,
    frame,
)
from scheduler.insight.recent_answers import RecentAnswers
from scheduler.process.log_setup import configure_logging
from scheduler.user_plugins.catalogue import PluginCatalogue
from scheduler.user_plugins.for_commands import known_plugins
from scheduler.user_plugins.loading import PluginLoadError

if TYPE_CHECKING:
    from scheduler.insight.messages import Message

AT_ONCE: Final = 2
"""Questions that are answered at the same time."""

_IDLE_S: Final = 2.0
"""When an idle fork is ended; its memory is of no use to anybody else."""

_READ_BYTES: Final = 1 << 20
_NICE: Final = 5
"""A third of what the scheduler gets where both want all of the CPU. With 10, answers took twice as
long on two busy CPUs; decisions took the same time with both."""

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
        # Apart from those: code that the scheduler sends is what is in force.
        self._code = PluginCatalogue()
        self._respondent = Respondent(Knowledge(self._copy, (), self._plugins))
        self._problem = "the profiles are not known yet"
        self._frames = Frames()
        self._waiting: deque[Question] = deque()
        self._answerers: dict[int, Answerer] = {}
        """By the file descriptor of their answers."""
        self._recent = RecentAnswers()
        self._profiles_version = 0
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
            while self._waiting and self._answer_next():
                pass

    def _pause_s(self) -> float | None:
        ends = [
            each.until_s + (_IDLE_S if each.question is None else 0.0)
            for each in self._answerers.values()
        ]
        return max(min(ends) - time.monotonic(), 0.0) if ends else None

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
        self._profiles_version += 1
        try:
            profiles = tuple(
                each.effective(self._plugins, lambda source: self._code.load([source]))
                for each in message.profiles
            )
            self._respondent = Respondent(Knowledge(self._copy, profiles, self._plugins))
            self._problem = ""
        except (LookupError, msgspec.MsgspecError, PluginLoadError) as error:
            self._problem = f"the profiles cannot be used for questions: {error}"

    # --- questions ----------------------------------------------------------------------------

    def _answer_next(self) -> bool:
        """Answer the next question, or let a process answer; return False if all are busy."""
        question = self._waiting[0]
        if self._problem:
            self._write(Answer(question.id, 422, self._problem.encode()))
        elif (known := self._recent.get(question, self._version)) is not None:
            self._write(known)
        elif (answerer := self._free_answerer()) is not None:
            answerer.ask(question)
        else:
            return False
        self._waiting.popleft()
        return True

    def _free_answerer(self) -> Answerer | None:
        """Return an idle process with the copy as it is now, or None if all are busy."""
        for pipe, each in list(self._answerers.items()):
            if each.question is None:
                if each.version == self._version and each.is_fresh:
                    return each
                self._end(pipe)
        if len(self._answerers) >= AT_ONCE:
            return None
        # Here and not in the fork: the next one needs it too.
        self._respondent.warm()
        if not self._is_frozen:
            # What is old is not looked at again, neither here nor in forks, which would copy it.
            gc.collect()
            gc.freeze()
            self._is_frozen = True
        answerer = Answerer(self._respondent, self._version)
        self._answerers[answerer.answers] = answerer
        self._selector.register(answerer.answers, selectors.EVENT_READ)
        return answerer

    def _receive(self, pipe: int) -> None:
        """Read a part of an answer, and pass it on when it is complete."""
        answerer = self._answerers.get(pipe)
        if answerer is None:
            return  # ended a moment ago
        goes_on, question = answerer.receive(), answerer.question
        if goes_on and question is not None and answerer.is_answered:
            self._pass_on(pipe, answerer, question)
        elif not goes_on:
            self._end(pipe)
            if question is not None:
                # Its limit of CPU time or of memory, or a fault in native code.
                why = b"the answer took too much time or memory"
                self._write(Answer(question.id, 503, why))
        elif len(answerer.received) > MAX_ANSWER_BYTES + MAX_HEAD_BYTES:
            self._end(pipe)
            if question is not None:
                self._write(Answer(question.id, 507, b"the answer is too large"))

    def _pass_on(self, pipe: int, answerer: Answerer, question: Question) -> None:
        found = decode(memoryview(answerer.received)[LENGTH_BYTES:])
        assert isinstance(found, Answer)  # noqa: S101 - it is our own process
        self._write(found)
        self._recent.put(question, answerer.version, found)
        answerer.idle()
        if question.kind != "why" or found.status != 200:
            self._end(pipe)  # its copy is not as it was

    def _end_overdue(self) -> None:
        now_s = time.monotonic()
        for pipe, each in list(self._answerers.items()):
            if each.question is None:
                if each.until_s + _IDLE_S <= now_s:
                    self._end(pipe)
            elif each.until_s <= now_s:
                self._end(pipe)
                limit = f"the answer took longer than {each.question.limit_s:g} s"
                self._write(Answer(each.question.id, 504, limit.encode()))

    def _end(self, pipe: int) -> None:
        answerer = self._answerers.pop(pipe)
        self._selector.unregister(pipe)
        answerer.end()

    @property
    def _version(self) -> int:
        return self._copy.version + self._profiles_version

    def _write(self, message: Answer) -> None:
        write_all(self._sink, frame(message))


def _limit(settings: WorkerSettings) -> None:
    die_with_parent()
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
