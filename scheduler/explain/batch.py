"""Explains many pods in one process: it reads a JSON object and writes a JSON result per line.

    {"objects": [API objects], "pod": API object, "config": KubeSchedulerConfiguration or null}

The result has the form of :func:`scheduler.explain.json_form.as_json`, or is ``{"error": "..."}``
for a line that cannot be processed; the following lines are still processed. Objects are used as
an API server would have stored them, without defaulting. The first profile of the configuration
is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Final

import msgspec

from scheduler.config import (
    ConfigError,
    default_config,
    parse_config,
    running_profiles,
)
from scheduler.explain.explanation import explain
from scheduler.explain.json_form import as_json
from scheduler.offline.cluster import Cluster, ClusterObjectError, read_pod
from scheduler.offline.offline_framework import offline_framework
from scheduler.runtime.filter_outcome import PluginError

if TYPE_CHECKING:
    from scheduler.config import EffectiveProfile

MAX_CONFIGURATIONS: Final = 256
"""The number of parsed configurations that are kept; at the limit all of them are dropped."""


class Question(msgspec.Struct, frozen=True):
    """One line of input."""

    pod: msgspec.Raw
    objects: tuple[msgspec.Raw, ...] = ()
    config: msgspec.Raw = msgspec.Raw(b"null")


_QUESTION: Final = msgspec.json.Decoder(Question)


class Batch:
    """Processes lines of input.

    Notes
    -----
    *Concurrency*: confined to one thread.
    """

    def __init__(self) -> None:
        self._profiles: dict[bytes, tuple[EffectiveProfile, ...]] = {}

    def serve(self, lines: BinaryIO, answers: BinaryIO) -> None:
        """Process each line before the next line is read, until the input ends."""
        while line := lines.readline():
            if line.strip():
                answers.write(self.answer(line) + b"\n")
                answers.flush()

    def answer(self, line: bytes) -> bytes:
        """Return the result of one line; the content of a line never raises an exception."""
        try:
            question = _QUESTION.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return _error(f"the line cannot be read: {error}")
        try:
            return self._answer(question)
        except (ClusterObjectError, ConfigError) as error:
            return _error(str(error))
        except PluginError as error:
            return _error(error.status.message)

    def _answer(self, question: Question) -> bytes:
        profiles = self._profiles_of(question.config)
        cluster = Cluster()
        for index, raw in enumerate(question.objects):
            try:
                cluster.add(raw)
            except ClusterObjectError as error:
                raise ClusterObjectError(f"objects[{index}]: {error}") from error
        framework = offline_framework(profiles, cluster)
        return as_json(explain(framework, cluster.snapshot(), read_pod(question.pod)))

    def _profiles_of(self, config: msgspec.Raw) -> tuple[EffectiveProfile, ...]:
        text = bytes(config)
        known = self._profiles.get(text)
        if known is None:
            parsed = default_config() if text == b"null" else parse_config(text.decode(), "config")
            known = running_profiles(parsed)
            if len(self._profiles) >= MAX_CONFIGURATIONS:
                self._profiles.clear()
            self._profiles[text] = known
        return known


def _error(why: str) -> bytes:
    return msgspec.json.encode({"error": why})
