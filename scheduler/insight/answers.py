"""Answers questions on the worker's copy of the cluster; runs in a process of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from cache.pod_group_objects import group_key
from scheduler.config import ConfigError
from scheduler.explain import ExplainError, as_json, as_text, explain
from scheduler.explain.command import _as_if_pending, _lacks, _notes
from scheduler.insight.counts_form import (
    VICTIMS_HIDDEN,
    counts_data,
    counts_text,
    without_victims,
)
from scheduler.insight.messages import Answer
from scheduler.offline.offline_framework import offline_framework
from scheduler.runtime.filter_outcome import PluginError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cache.objects import Pod
    from plugins.framework.interfaces import Plugin
    from scheduler.config import EffectiveProfile
    from scheduler.insight.cluster_copy import ClusterCopy
    from scheduler.insight.messages import Question


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
    except (ConfigError, ExplainError) as error:
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
    notes = _all_notes(_notes(framework, pod), pod)
    info = _as_if_pending(cluster, pod)
    snapshot = knowledge.copy.snapshot()
    explanation = explain(framework, snapshot, info)
    room = explanation.room_to_make
    if not question.shows_pods and room is not None and room.candidates:
        explanation = without_victims(explanation)
        notes.append(VICTIMS_HIDDEN)
    if question.shows_nodes:
        now, text = as_json(explanation), as_text(explanation, _lacks(framework, snapshot, info))
    else:
        now = msgspec.json.encode(counts_data(explanation))
        text = counts_text(explanation)
    return _data(now, text, notes)


def _all_notes(notes: list[str], pod: Pod) -> list[str]:
    group = group_key(pod)
    if group is not None:
        notes.append(f"It is a member of the pod group {group}; this is about the pod alone.")
    return notes


def _data(now: bytes | None, text: str, notes: Sequence[str]) -> bytes:
    found: dict[str, Any] = {"text": text, "notes": notes}
    found["now"] = None if now is None else msgspec.Raw(now)
    return msgspec.json.encode(found)
