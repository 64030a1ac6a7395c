"""Answers one after the other are those of processes of their own."""

from __future__ import annotations

import json
import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.registry import PLUGINS
from scheduler.client.codec import Decoder
from scheduler.config import default_config, running_profiles
from scheduler.insight.answers import Knowledge, Respondent
from scheduler.insight.cluster_copy import ClusterCopy
from scheduler.insight.messages import KINDS, Frames, Objects, Question, objects_frame
from scheduler.offline.cluster import kind_of, qualified_kind
from tests.builders import node, pod
from tests.relaxations.random_clusters import random_cluster, random_pods

PROFILES = tuple(running_profiles(default_config("berth")))
BY_KIND = {qualified_kind(kind.kind, kind.group_version): kind for kind in KINDS.values()}


def copy_of(objects: list[Any]) -> ClusterCopy:
    copy = ClusterCopy()
    for number, each in enumerate(objects):
        if each.get("spec", {}).get("nodeName"):
            # Of victims that are equally important the first one goes, and that is not for ever.
            each["status"] = {"phase": "Running", "startTime": f"2026-01-01T00:{number:02}:00Z"}
        raw = msgspec.Raw(json.dumps(each).encode())
        kind = BY_KIND[kind_of(raw)]
        send(copy, kind.name, Decoder(kind.struct).decode(raw))
    copy.snapshot()  # as before a fork
    return copy


def send(copy: ClusterCopy, kind: str, *objects: Any) -> None:
    (message,) = Frames().feed(objects_frame(kind, objects, ()))
    assert isinstance(message, Objects)
    copy.change(message)


def respondent(copy: ClusterCopy) -> Respondent:
    return Respondent(Knowledge(copy, PROFILES, PLUGINS))


def asked(who: Respondent, name: str, **more: Any) -> dict[str, Any]:
    question = Question(1, "why", 60.0, True, True, f"default/{name}", **more)
    found = who.answer(question)
    assert found.status == 200, found.body
    answer: dict[str, Any] = json.loads(found.body)
    if answer["now"] and "relaxations" in answer["now"]:
        answer["now"]["relaxations"].pop("cpuSeconds", None)
    return answer


@given(st.integers(0, 10_000))
@settings(max_examples=25)
def test_an_answer_does_not_depend_on_those_before(seed):
    rng = random.Random(seed)
    objects = [*random_cluster(rng), *random_pods(rng, 3)]
    names = [e["metadata"]["name"] for e in objects if e.get("kind", "Pod") == "Pod"]
    warm = respondent(copy_of(objects))
    for name in rng.choices(names, k=6):
        assert asked(warm, name) == asked(respondent(copy_of(objects)), name)


def test_an_assumed_pod_is_tried_without_itself():
    """Else it would be in its own way."""
    copy = ClusterCopy()
    send(copy, "nodes", node("n1").capacity(cpu="4", pods="9").build())
    made = pod("large").request(cpu="4").scheduler("berth").build()
    send(copy, "pods", made)
    copy.assume({made.metadata.uid: "n1"})
    who = respondent(copy)
    assert "total" in asked(who, "large")["now"]["nodes"]["n1"]
    send(copy, "pods", pod("other").request(cpu="4").scheduler("berth").build())
    assert asked(who, "other")["now"]["nodes"]["n1"]["reasons"] == ["Insufficient cpu"]


@pytest.mark.parametrize("kind", ["why", "what-if", "nonsense"])
def test_what_is_wrong_is_an_answer(kind):
    who = respondent(ClusterCopy())
    found = who.answer(Question(7, kind, 60.0, pod="default/nobody", body=b"{"))
    assert (found.id, found.status) == (7, {"why": 200, "what-if": 422, "nonsense": 400}[kind])
