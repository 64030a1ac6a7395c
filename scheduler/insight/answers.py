"""Answers questions on the worker's copy of the cluster; runs in a process of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from cache.pod_group_objects import group_key
from scheduler.config import ConfigError
from scheduler.explain import as_json, as_text, explain
from scheduler.explain.pod_report import UnreadablePodError, as_if_pending, lacks_on, notes_on
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
from scheduler.what_if import (
    QuestionError,
    decode_question,
    forecast,
    forecast_json,
)
from scheduler.what_if import without_names as forecast_without_names
from scheduler.what_if.text_form import as_text as forecast_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cache.objects import Pod
    from plugins.framework.interfaces import Plugin
    from scheduler.config import EffectiveProfile
    from scheduler.insight.cluster_copy import ClusterCopy
    from scheduler.insight.messages import Question
    from scheduler.relaxations import Relaxations


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


def answer(knowledge: Knowledge, question: Question) -> Answer:
    """Return the answer; what is wrong with the question, or fails, is an answer too."""
    try:
        if question.kind == "why":
            return Answer(question.id, 200, _why(knowledge, question))
        if question.kind == "what-if":
            return Answer(question.id, 200, _what_if(knowledge, question))
    except (ConfigError, QuestionError, UnreadablePodError) as error:
        return Answer(question.id, 422, str(error).encode())
    except PluginError as error:
        return Answer(question.id, 422, error.status.message.encode())
    except MemoryError:
        return Answer(question.id, 503, b"there is not enough memory for this question")
    return Answer(question.id, 400, b"there is no such question")


def _why(knowledge: Knowledge, question: Question) -> bytes:
    cluster = knowledge.copy.cluster
    pod = cluster.pods.get(question.pod)
    if pod is None:
        return _data(None, "", [])
    framework = offline_framework(
        knowledge.profiles, cluster, pod.spec.scheduler_name, knowledge.plugins
    )
    notes = _all_notes(notes_on(framework, pod), pod)
    info = as_if_pending(cluster, pod)
    snapshot = knowledge.copy.snapshot()
    explanation = explain(framework, snapshot, info)
    text = as_text(explanation, lacks_on(framework, snapshot, info))
    # They change the snapshot while they run: everything that reads it comes before.
    found = find_relaxations(
        framework, snapshot, cluster.known.storage, info, placed_on=pod.spec.node_name
    )
    room = explanation.room_to_make
    if not question.shows_nodes:
        found = without_names(found)
        data = {**counts_data(explanation), "relaxations": relaxations_data(found)}
        return _data(msgspec.json.encode(data), _joined(counts_text(explanation), found), notes)
    if not question.shows_pods:
        found = without_victims(found)
        if room is not None and room.candidates:
            explanation = replace(explanation, room_to_make=None)
            text = as_text(explanation, lambda _: ())
            notes.append(VICTIMS_HIDDEN)
    return _data(as_json(explanation, found), _joined(text, found), notes)


def _joined(text: str, found: Relaxations) -> str:
    more = relaxations_text(found)
    return f"{text}\n{more}" if more else text


def _what_if(knowledge: Knowledge, question: Question) -> bytes:
    asked = decode_question(question.body)
    found = forecast(
        knowledge.copy.cluster, knowledge.profiles, asked, knowledge.plugins, question.limit_s - 1
    )
    if not question.shows_nodes:
        found = forecast_without_names(found)
    plain = msgspec.json.decode(forecast_json(found), type=dict[str, msgspec.Raw])
    return msgspec.json.encode({**plain, "text": forecast_text(found)})


def _all_notes(notes: list[str], pod: Pod) -> list[str]:
    group = group_key(pod)
    if group is not None:
        notes.append(f"It is a member of the pod group {group}; this is about the pod alone.")
    return notes


def _data(now: bytes | None, text: str, notes: Sequence[str]) -> bytes:
    found: dict[str, Any] = {"text": text, "notes": notes}
    found["now"] = None if now is None else msgspec.Raw(now)
    return msgspec.json.encode(found)
