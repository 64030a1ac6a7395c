"""What an explanation says of preemption, as JSON and for people."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.config import default_config, effective_profiles
from scheduler.explain import Explanation, as_text, explain
from scheduler.offline.cluster import Cluster
from scheduler.offline.offline_framework import offline_framework
from tests.builders import NodeBuilder, PodBuilder, node, pod
from tests.scheduler.explain.cluster_files import as_object
from tests.scheduler.explain.test_batch import ask, configured

ASKED = pod("web").priority(100).request(cpu="1")
NODES = [node(f"n{index}").capacity(cpu="1") for index in (1, 2, 3)]
BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "db", "namespace": "default"},
    "spec": {"selector": {"matchLabels": {"app": "db"}}},
    "status": {"disruptionsAllowed": 0},
}


def on(name: str, priority: int, *, cpu: str = "1", label: str = "") -> PodBuilder:
    made = pod(f"{name}-{priority}").priority(priority).request(cpu=cpu).on(name)
    return made.label("app", label) if label else made


def answered(asked: PodBuilder, *objects: Any, config: object = None) -> dict[str, Any]:
    plain = [each if isinstance(each, dict) else as_object(each) for each in objects]
    (answer,) = ask({"objects": plain, "pod": as_object(asked), "config": config})
    return answer


# --- JSON -------------------------------------------------------------------------------------


def test_all_candidates_are_there_with_their_victims_and_the_one_that_is_chosen() -> None:
    answer = answered(
        ASKED,
        *NODES,
        BUDGET,
        on("n1", 1, label="db"),
        on("n2", 50),
        on("n3", 20, cpu="500m"),
        on("n3", 40, cpu="500m"),
    )
    assert answer["preemption"] == {
        "candidates": {
            "n1": {"victims": ["default/n1-1"], "pdbViolations": 1},
            "n2": {"victims": ["default/n2-50"], "pdbViolations": 0},
            "n3": {"victims": ["default/n3-40", "default/n3-20"], "pdbViolations": 0},
        },
        "chosen": "n3",
    }


def test_the_least_harm_comes_first() -> None:
    answer = answered(ASKED, *NODES, on("n1", 9), on("n2", 3), on("n3", 6))
    assert list(answer["preemption"]["candidates"]) == ["n2", "n3", "n1"]


def test_where_preemption_helps_nowhere_it_says_why() -> None:
    answer = answered(ASKED.request(cpu="2"), *NODES[:2], on("n1", 1), on("n2", 1))
    assert answer["preemption"] == {
        "candidates": {},
        "chosen": None,
        "message": "0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
    }


def test_what_fails_in_a_dry_run_is_told_beside_the_verdicts() -> None:
    storage = [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": "data",
                "namespace": "default",
                "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
            },
            "spec": {"volumeName": "pv"},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "pv"},
            "spec": {"awsElasticBlockStore": {"volumeID": "aws://a/no/volume"}},
        },
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {
                "name": "n1",
                "annotations": {
                    "storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"
                },
            },
            "spec": {"drivers": []},
        },
    ]
    asked = pod("web").priority(100).request(cpu="1").claim("data")
    answer = answered(asked, NODES[0], on("n1", 1), *storage)
    assert answer["nodes"]["n1"]["rejected"] == "NodeResourcesFit"
    assert answer["preemption"]["candidates"] == {}
    assert "aws://a/no/volume" in answer["preemption"]["message"]


NO_PREEMPTION = configured(
    schedulerName="x", plugins={"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}}
)


@pytest.mark.parametrize(
    ("asked", "victim", "config"),
    [
        pytest.param(ASKED.request(cpu="500m"), on("n1", 1, cpu="500m"), None, id="it fits"),
        pytest.param(ASKED.never_preempts(), on("n1", 1), None, id="it may not preempt"),
        pytest.param(ASKED, on("n1", 1), NO_PREEMPTION, id="the profile does not preempt"),
    ],
)
def test_otherwise_nothing_is_said_of_it(
    asked: PodBuilder, victim: PodBuilder, config: object
) -> None:
    assert "preemption" not in answered(asked, NODES[0], victim, config=config)


def test_pods_that_are_nominated_keep_their_room() -> None:
    first = pod("first").priority(100).request(cpu="1").nominated("n1")
    answer = answered(ASKED, NODES[0], on("n1", 1), first)
    assert answer["preemption"]["candidates"] == {}


# --- text -------------------------------------------------------------------------------------


def told(asked: PodBuilder, *objects: NodeBuilder | PodBuilder) -> str:
    cluster = Cluster()
    for each in objects:
        if isinstance(each, NodeBuilder):
            cluster.add_node(each.build())
        else:
            cluster.add_pod(each.build())
    framework = offline_framework(effective_profiles(default_config()), cluster)
    explanation: Explanation = explain(framework, cluster.snapshot(), asked.info())
    return as_text(explanation, lambda name: []).split("\n\n")[-1]


def test_the_text_says_who_would_go_and_why_there() -> None:
    assert told(ASKED, *NODES[:2], on("n1", 9), on("n2", 3)) == (
        "If pods of a priority below 100 went, it could run on 2 nodes; chosen is n2 "
        "(its most important pod to go is less important than elsewhere):\n"
        "  n2  default/n2-3 (priority 3)\n"
        "  n1  default/n1-9 (priority 9)\n"
    )


def test_one_candidate_needs_no_reason() -> None:
    assert told(ASKED, NODES[0], on("n1", 9)) == (
        "If pods of a priority below 100 went, it could run on n1:\n"
        "  n1  default/n1-9 (priority 9)\n"
    )


def test_the_text_says_why_nobody_goes() -> None:
    assert told(ASKED.never_preempts(), NODES[0], on("n1", 9)) == (
        "No other pods go for it: not eligible due to preemptionPolicy=Never.\n"
    )


def test_the_text_says_that_it_would_not_help() -> None:
    assert told(ASKED.request(cpu="2"), NODES[0], on("n1", 9)) == (
        "It would not help if pods of a priority below 100 went:\n"
        "  0/1 nodes are available: 1 Preemption is not helpful for scheduling.\n"
    )


def test_many_candidates_and_victims_fit_on_a_screen() -> None:
    nodes = [node(f"n{index:02}").capacity(cpu="1") for index in range(30)]
    pods = [
        pod(f"{each.build().metadata.name}-{index}").request(cpu="50m").on(name)
        for each in nodes
        for index in range(20)
        if (name := each.build().metadata.name)
    ]
    lines = told(ASKED, *nodes, *pods).splitlines()
    assert len(lines) == 12
    assert lines[-1] == "  and 20 more nodes"
    assert lines[1].endswith(" and 12 more")
