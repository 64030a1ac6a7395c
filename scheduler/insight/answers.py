"""Answers questions on the worker's copy of the cluster; runs in a process of its own."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from cache.objects import Pod, PodMeta
from cache.pod_group_objects import group_key
from cache.pod_info import PodInfo
from scheduler.config import ConfigError
from scheduler.config.extender import is_interested
from scheduler.explain import as_json, as_text, explain
from scheduler.explain.pod_report import UnreadablePodError, lacks_on, notes_on
from scheduler.insight.counts_form import (
    VICTIMS_HIDDEN,
    counts_data,
    counts_text,
    without_victims,
)
from scheduler.insight.messages import Answer
from scheduler.offline.offline_framework import offline_framework
from scheduler.relaxations import (
    find_relaxations,
    relaxations_data,
    relaxations_text,
    without_names,
)
from scheduler.runtime.filter_outcome import PluginError
from scheduler.runtime.judgement import judge
from scheduler.user_plugins.plugin_source import SOURCE_ATTRIBUTE
from scheduler.what_if import (
    QuestionError,
    decode_question,
    forecast,
    forecast_json,
)
from scheduler.what_if import without_names as forecast_without_names
from scheduler.what_if import without_others as forecast_without_others
from scheduler.what_if.text_form import as_text as forecast_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plugins.framework.interfaces import Plugin
    from scheduler.config import EffectiveProfile
    from scheduler.insight.cluster_copy import ClusterCopy
    from scheduler.insight.messages import Question
    from scheduler.relaxations import Relaxations
    from scheduler.runtime.framework_runner import FrameworkRunner


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What questions are answered with.

    Attributes
    ----------
    copy
        The cluster; the answer to a question may change it.
    profiles
        Those in force.
    plugins
        The available plugins by name.
    """

    copy: ClusterCopy
    profiles: Sequence[EffectiveProfile]
    plugins: Mapping[str, type[Plugin]]


_PLAIN: Final = Pod(metadata=PodMeta(namespace="default", name="any", uid="any"))


class Respondent:
    """Answers one question after the other.

    Parameters
    ----------
    knowledge
        What questions are answered with; not changed by anybody else meanwhile.

    Notes
    -----
    *Concurrency*: confined to its owner.

    *Cost*: the first answer fills the columns that plugins derive from the nodes, about half of its
    time with 5 000 nodes, unless :meth:`warm` has done so; later ones find them filled.
    """

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge
        self._frameworks: dict[str, tuple[FrameworkRunner, _AskedMetrics]] = {}

    def warm(self) -> None:
        """Let the plugins of each profile follow the changes of the copy, for the next answer.

        Profiles with users' plugins are left out: nobody limits their time here.

        *Cost*: some milliseconds and what has changed; the first time that of a first answer.
        """
        snapshot = self._knowledge.copy.snapshot()
        for profile in self._knowledge.profiles:
            if any(hasattr(each, SOURCE_ATTRIBUTE) for each in profile.classes.values()):
                continue
            # Whatever fails here fails for the question too, and is answered there.
            with suppress(Exception):
                framework, _ = self._framework(profile.scheduler_name)
                judge(framework, snapshot, PodInfo(_PLAIN))

    def answer(self, question: Question) -> Answer:
        """Return the answer; what is wrong with the question, or fails, is an answer too.

        Only after a successful answer to ``why`` is everything as it was before.
        """
        try:
            if question.kind == "why":
                return Answer(question.id, 200, self._why(question))
            if question.kind == "what-if":
                return Answer(question.id, 200, self._what_if(question))
        except (ConfigError, QuestionError, UnreadablePodError) as error:
            return Answer(question.id, 422, str(error).encode())
        except PluginError as error:
            return Answer(question.id, 422, error.status.message.encode())
        except MemoryError:
            return Answer(question.id, 503, b"there is not enough memory for this question")
        return Answer(question.id, 400, b"there is no such question")

    def _why(self, question: Question) -> bytes:
        copy = self._knowledge.copy
        pod = copy.cluster.pods.get(question.pod)
        if pod is None:
            return _data(None, "", [])
        framework, metrics = self._framework(pod.spec.scheduler_name)
        metrics.names.clear()
        with copy.as_pending(pod) as info:
            return _explained(copy, framework, metrics, question, info)

    def _framework(self, scheduler_name: str) -> tuple[FrameworkRunner, _AskedMetrics]:
        """Return the profile of a schedulerName, or the first one, and what records its metrics."""
        knowledge = self._knowledge
        served = {each.scheduler_name for each in knowledge.profiles}
        name = scheduler_name if scheduler_name in served else ""
        known = self._frameworks.get(name)
        if known is None:
            metrics = _AskedMetrics()
            framework = offline_framework(
                knowledge.profiles, knowledge.copy.cluster, name, knowledge.plugins, metrics
            )
            known = self._frameworks[name] = framework, metrics
        return known

    def _what_if(self, question: Question) -> bytes:
        knowledge, asked = self._knowledge, decode_question(question.body)
        found = forecast(
            knowledge.copy.cluster,
            knowledge.profiles,
            asked,
            knowledge.plugins,
            question.limit_s - 1,
        )
        if not question.shows_nodes:
            found = forecast_without_names(found)
        elif not question.shows_pods:
            found = forecast_without_others(found)
        plain = msgspec.json.decode(forecast_json(found), type=dict[str, msgspec.Raw])
        return msgspec.json.encode({**plain, "text": forecast_text(found)})


def _explained(
    copy: ClusterCopy,
    framework: FrameworkRunner,
    metrics: _AskedMetrics,
    question: Question,
    info: PodInfo,
) -> bytes:
    pod, snapshot = copy.cluster.pods[question.pod], copy.snapshot()
    notes = [*notes_on(framework, pod), *_unasked(framework, pod)]
    if (group := group_key(pod)) is not None:
        notes.append(f"It is a member of the pod group {group}; this is about the pod alone.")
    explanation = explain(framework, snapshot, info)
    text = as_text(explanation, lacks_on(framework, snapshot, info))
    if metrics.names:
        asked = ", ".join(sorted(metrics.names))
        notes.append(f"Metrics of nodes were not known: a plugin would have used {asked}.")
    # They change the snapshot while they run: everything that reads it comes before.
    found = find_relaxations(
        framework, snapshot, copy.cluster.known.storage, info, placed_on=pod.spec.node_name
    )
    room = explanation.room_to_make
    if not question.shows_nodes:
        found = without_names(found)
        text = _joined(counts_text(explanation), found)
        if question.only_text:
            return _data(None, text, notes)
        data = {**counts_data(explanation), "relaxations": relaxations_data(found)}
        return _data(msgspec.json.encode(data), text, notes)
    if not question.shows_pods:
        found = without_victims(found)
        if room is not None and room.candidates:
            explanation = replace(explanation, room_to_make=None)
            text = as_text(explanation, lambda _: ())
            notes.append(VICTIMS_HIDDEN)
    now = None if question.only_text else as_json(explanation, found)
    return _data(now, _joined(text, found), notes)


def _joined(text: str, found: Relaxations) -> str:
    more = relaxations_text(found)
    return f"{text}\n{more}" if more else text


class _AskedMetrics:
    """No metrics of nodes, and which ones plugins asked for."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def latest(self, name: str) -> None:
        self.names.add(name)


def _unasked(framework: FrameworkRunner, pod: Pod) -> list[str]:
    """Return a note about the extenders that a cycle would ask about the pod."""
    extenders = () if framework.effective is None else framework.effective.extenders
    managed = [frozenset(r.name for r in each.managed_resources) for each in extenders]
    count = sum(is_interested(each, pod) for each in managed)
    if not count:
        return []
    who = "An extender of this profile was" if count == 1 else f"{count} extenders were"
    return [f"{who} not asked: the scheduler asks, and may refuse or rank nodes by the answer."]


def _data(now: bytes | None, text: str, notes: Sequence[str]) -> bytes:
    found: dict[str, Any] = {"text": text, "notes": notes}
    found["now"] = None if now is None else msgspec.Raw(now)
    return msgspec.json.encode(found)
