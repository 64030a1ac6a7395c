from __future__ import annotations

from copy import deepcopy

import pytest

from scheduler.what_if import QuestionError
from tests.builders import pod
from tests.scheduler.what_if.clusters import ask, cluster_of, machine, manifest

ONE = machine("n1")


def deployment(replicas: int | None = 3, kind: str = "Deployment", **more):
    template = manifest("ignored", labels={"app": "web"})
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": template["metadata"], "spec": template["spec"]},
        **more,
    }
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": spec}


@pytest.mark.parametrize(
    ("made", "replicas", "placed"),
    [
        pytest.param(deployment(), None, 3, id="a Deployment"),
        pytest.param(deployment(None), None, 1, id="one by default"),
        pytest.param(deployment(0), None, 0, id="none"),
        pytest.param(deployment(), 2, 2, id="scaled"),
        pytest.param(deployment(kind="StatefulSet"), None, 3, id="a StatefulSet"),
        pytest.param(deployment(kind="Job", parallelism=2), None, 2, id="a Job"),
        pytest.param(
            deployment(kind="ReplicationController", selector={"app": "web"}), None, 3, id="an RC"
        ),
    ],
)
def test_a_workload_stands_for_its_pods(made, replicas, placed):
    question = {"objects": [made]} | ({} if replicas is None else {"replicas": replicas})
    assert ask(cluster_of(ONE), **question).placed == placed


def test_the_pods_of_a_deployment_spread_by_default_as_its_pods_do():
    nodes = [machine(f"n{number}") for number in range(8)]
    assert set(ask(cluster_of(*nodes), objects=[deployment(8)]).nodes.values()) == {1}


def test_an_object_without_influence_is_ignored_with_a_note():
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    found = ask(cluster_of(ONE), objects=[config_map, manifest()])
    assert found.placed == 1
    assert found.notes == ("objects[0]: ConfigMap objects are ignored.",)


def test_a_claim_of_the_question_is_there_for_its_pods():
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {"storageClassName": "slow", "accessModes": ["ReadWriteOnce"]},
    }
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    found = ask(cluster_of(ONE), objects=[claim, manifest(volumes=volumes)])
    assert "persistentvolumeclaim" not in found.reason


def test_a_pod_that_runs_is_taken_as_a_pattern():
    written = manifest(nodeName="n9")
    written["metadata"].update(uid="x", deletionTimestamp="2025-01-01T00:00:00Z")
    written["status"] = {"phase": "Running"}
    found = ask(cluster_of(ONE), objects=[written])
    assert found.placed == 1
    assert found.notes == (
        "objects[0].spec.nodeName is ignored: where the pod runs is the question.",
    )


@pytest.mark.parametrize(
    ("name", "priority"),
    [
        pytest.param("system-node-critical", 2_000_001_000, id="of every cluster"),
        pytest.param("high", 7, id="that a pod of the cluster has"),
        pytest.param("unknown", 0, id="that nobody has"),
    ],
)
def test_the_priority_is_that_of_the_class(name, priority):
    cluster = cluster_of(ONE)
    known = pod("known").priority(7)
    cluster.add_pod(known._spec(priority_class_name="high").build())
    ask(cluster, objects=[manifest(priorityClassName=name)])
    assert cluster.pods["default/web"].spec.priority == priority


def broken(path: str, value: object):
    """Return a manifest in which a value is replaced or added."""
    made = deepcopy(manifest())
    *steps, last = [int(step) if step.isdigit() else step for step in path.split("/")]
    at = made
    for step in steps:
        at = at.setdefault(step, {}) if isinstance(at, dict) else at[step]
    at[last] = value
    return made


@pytest.mark.parametrize(
    ("made", "path", "why"),
    [
        pytest.param({}, "objects[0].kind", "is required", id="no kind"),
        pytest.param(broken("kind", "Pood"), "objects[0].kind", "did you mean Pod", id="kind"),
        pytest.param(
            broken("metadata/name", ""), "objects[0].metadata.name", "required", id="name"
        ),
        pytest.param(
            broken("spec/containers", []), "objects[0].spec.containers", "required", id="containers"
        ),
        pytest.param(
            broken("spec/containers", "x"), "objects[0].spec.containers", "array", id="wrong type"
        ),
        pytest.param(
            broken("spec/containers/0/resources/requests/cpu", "2 cores"),
            "objects[0].spec.containers[0].resources.requests[cpu]",
            "",
            id="a quantity",
        ),
        pytest.param(
            broken("spec/priority", "high"), "objects[0].spec.priority", "int", id="a number"
        ),
        pytest.param(
            broken(
                "spec/topologySpreadConstraints",
                [
                    {
                        "topologyKey": "zone",
                        "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]},
                    }
                ],
            ),
            "objects[0].spec.topologySpreadConstraints[0].labelSelector.matchExpressions[0]",
            "",
            id="a selector",
        ),
        pytest.param(
            broken("spec/tolerations", [{"key": 1}]),
            "objects[0].spec.tolerations[0].key",
            "str",
            id="an element of a list",
        ),
        pytest.param(
            broken(
                "spec/affinity",
                {
                    "podAntiAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "weight": 1,
                                "podAffinityTerm": {
                                    "topologyKey": "zone",
                                    "labelSelector": {"matchLabels": {"a": ["b"]}},
                                },
                            }
                        ]
                    }
                },
            ),
            "objects[0].spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnored",
            "str",
            id="deep in an affinity",
        ),
        pytest.param(
            broken("metadata/labels", {"app": 5}), "objects[0].metadata.labels", "str", id="a label"
        ),
        pytest.param(
            {"kind": "PodDisruptionBudget", "spec": {}},
            "objects[0].metadata.name",
            "required",
            id="a budget without a name",
        ),
        pytest.param(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "b"},
                "spec": {"maxUnavailable": [1]},
            },
            "objects[0]",
            "spec.maxUnavailable",
            id="in a budget",
        ),
        pytest.param(
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": "q"},
                "spec": {"hard": {"pods": "many"}},
            },
            "objects[0].spec.hard[pods]",
            "not a quantity",
            id="in a quota",
        ),
        pytest.param(
            {
                "apiVersion": "v1",
                "kind": "LimitRange",
                "metadata": {"name": "l"},
                "spec": {"limits": [{"type": "Pod"}, {"type": "Container", "max": {"cpu": "x"}}]},
            },
            "objects[0].spec.limits[1].max[cpu]",
            "not a quantity",
            id="in a LimitRange",
        ),
        pytest.param(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": "c"},
                "spec": {"resources": {"requests": {"storage": "much"}}},
            },
            "objects[0].spec.resources.requests[storage]",
            "not a quantity",
            id="in a claim",
        ),
        pytest.param(deployment(-1), "objects[0].spec.replicas", "from 0", id="replicas"),
        pytest.param(
            deployment(template={}), "objects[0].spec.template.spec.containers", "", id="template"
        ),
    ],
)
def test_a_mistake_is_reported_with_its_path(made, path, why):
    with pytest.raises(QuestionError) as caught:
        ask(cluster_of(ONE), objects=[made])
    assert caught.value.path.startswith(path)
    assert why in caught.value.why
