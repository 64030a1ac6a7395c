from __future__ import annotations

import io
import json
from typing import Any

import pytest

from scheduler.explain import Batch
from tests.builders import node, pod
from tests.scheduler.explain.cluster_files import as_object

NODE = as_object(node("n1"))
POD = as_object(pod("web").request(cpu="1"))


def configured(**profile: object) -> dict[str, Any]:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }


def ask(*questions: object) -> list[dict[str, Any]]:
    lines = b"".join(
        each if isinstance(each, bytes) else json.dumps(each).encode() + b"\n" for each in questions
    )
    answers = io.BytesIO()
    Batch().serve(io.BytesIO(lines), answers)
    return [json.loads(line) for line in answers.getvalue().splitlines()]


def test_each_line_gets_an_answer_of_its_own_cluster() -> None:
    full = as_object(pod("other").uid("other").request(cpu="100").on("n1"))
    small = as_object(node("n2").capacity(cpu="500m"))
    free, taken, other = ask(
        {"objects": [NODE], "pod": POD},
        {"objects": [NODE, full], "pod": POD},
        {"objects": [small], "pod": POD},
    )
    assert list(free["nodes"]) == ["n1"]
    assert "total" in free["nodes"]["n1"]
    assert taken["nodes"]["n1"]["reasons"] == ["Insufficient cpu"]
    assert list(other["nodes"]) == ["n2"]


def test_a_rejection_tells_plugin_code_and_reasons() -> None:
    (answer,) = ask({"objects": [as_object(node("n1").unschedulable())], "pod": POD})
    assert answer == {
        "pod": "default/web",
        "prefilter": None,
        "nodes": {
            "n1": {
                "rejected": "NodeUnschedulable",
                "code": 3,
                "reasons": ["node(s) were unschedulable"],
            }
        },
        "preemption": {
            "candidates": {},
            "chosen": None,
            "message": "0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
        },
    }


def test_a_configuration_counts_for_its_line_alone() -> None:
    without = {"score": {"disabled": [{"name": "*"}]}}
    question = {"objects": [NODE], "pod": POD}
    changed, plain, again = ask(
        {**question, "config": configured(schedulerName="x", plugins=without)},
        {**question, "config": None},
        question,
    )
    assert changed["nodes"]["n1"] == {"scores": {}, "total": 0}
    assert plain["nodes"]["n1"]["total"] > 0
    assert again == plain


def test_what_extenders_look_after_is_not_counted_as_in_the_live_cycle() -> None:
    extender = {
        "urlPrefix": "http://127.0.0.1:1",
        "filterVerb": "filter",
        "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}],
    }
    wants_gpu = as_object(pod("web").request({"example.com/gpu": "1"}))
    question = {"objects": [NODE], "pod": wants_gpu}
    counted, left = ask(question, {**question, "config": {**configured(), "extenders": [extender]}})
    assert counted["nodes"]["n1"]["reasons"] == ["Insufficient example.com/gpu"]
    assert "total" in left["nodes"]["n1"]


BAD_POD = {"metadata": {"name": "web"}, "spec": {"overhead": {"cpu": "1x"}}}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        pytest.param(b"nonsense\n", "the line cannot be read", id="no JSON"),
        pytest.param({"objects": []}, "missing required field `pod`", id="no pod"),
        pytest.param({"pod": BAD_POD}, "spec.overhead[cpu]: '1x'", id="bad pod"),
        pytest.param(
            {"pod": POD, "objects": [NODE, {"kind": "Node", "spec": 1}]}, "objects[1]", id="object"
        ),
        pytest.param({"pod": POD, "config": {"kind": "x"}}, "config: ", id="configuration"),
    ],
)
def test_a_line_that_cannot_be_answered_says_why_and_spoils_no_other(
    line: object, why: str
) -> None:
    bad, good = ask(line, {"objects": [NODE], "pod": POD})
    assert list(bad) == ["error"]
    assert why in bad["error"]
    assert list(good["nodes"]) == ["n1"]


def test_empty_lines_are_passed_over() -> None:
    assert len(ask(b"\n", {"objects": [NODE], "pod": POD}, b"  \n")) == 1


def test_services_and_namespaces_of_a_line_are_known_to_its_plugins() -> None:
    nodes = [as_object(node(name).zone(name)) for name in ("a", "b")]
    placed = as_object(pod("old").uid("old").label("app", "web").on("a"))
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"app": "web"}},
    }
    asked = as_object(pod("web").label("app", "web"))
    with_service, without = ask(
        {"objects": [*nodes, placed, service], "pod": asked},
        {"objects": [*nodes, placed], "pod": asked},
    )
    assert "PodTopologySpread" not in without["nodes"]["a"]["scores"]
    spread = {
        name: each["scores"]["PodTopologySpread"] for name, each in with_service["nodes"].items()
    }
    assert spread["b"] > spread["a"]
