from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from msgspec.structs import replace

from cache.objects import Pod
from cache.pod_info import PodInfo
from cache.pod_templates import PodTemplates
from tests import strategies

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "app", "uid": "rs-1"}


def decoded(name: str, *, node: str = "node-1", owner: str = "rs-1", **spec: object) -> Pod:
    """Return a pod as it comes from the API, nothing of it shared with another."""
    container = {"name": "main", "resources": {"requests": {"cpu": "100m"}}}
    conditions = [{"type": kind, "status": "True"} for kind in ("Ready", "DisruptionTarget")]
    body = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "labels": {"app": "web"},
            "ownerReferences": [OWNER | {"uid": owner}],
        },
        "spec": {"nodeName": node, "containers": [container], **spec},
        "status": {"phase": "Running", "conditions": conditions},
    }
    return msgspec.json.decode(msgspec.json.encode(body), type=Pod)


def test_pods_of_one_owner_share_what_is_equal() -> None:
    templates = PodTemplates()
    first, second = (templates.share(decoded(name)) for name in ("a", "b"))
    assert second.spec.containers is first.spec.containers
    assert second.metadata.labels is first.metadata.labels


def test_what_differs_stays_different() -> None:
    templates = PodTemplates()
    templates.share(decoded("a"))
    other = templates.share(decoded("b", containers=[{"name": "other"}]))
    assert [container.name for container in other.spec.containers] == ["other"]


def test_pods_of_different_owners_share_nothing() -> None:
    templates = PodTemplates()
    first = templates.share(decoded("a"))
    second = templates.share(decoded("b", owner="rs-2"))
    assert second.spec.containers is not first.spec.containers


def test_a_pod_that_waits_is_no_template() -> None:
    templates = PodTemplates()
    waiting = templates.share(decoded("a", node=""))
    bound = templates.share(decoded("b"))
    assert bound.spec.containers is not waiting.spec.containers


def test_of_the_conditions_of_a_bound_pod_those_are_kept_that_are_read() -> None:
    bound = PodTemplates().share(decoded("a"))
    assert [condition.type for condition in bound.status.conditions] == ["DisruptionTarget"]


def test_that_a_pod_is_not_ready_is_kept() -> None:
    made = decoded("a")
    conditions = tuple(replace(each, status="False") for each in made.status.conditions)
    made = replace(made, status=replace(made.status, conditions=conditions))
    kept = PodTemplates().share(made).status.conditions
    assert (kept[0].type, kept[0].status) == ("Ready", "False")


@pytest.mark.parametrize(
    "node", [pytest.param("", id="waiting"), pytest.param("node-1", id="bound")]
)
def test_volumes_that_are_read_are_kept(node: str) -> None:
    volumes = [
        {"name": "token", "projected": {}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "inline", "csi": {"driver": "example.com"}},
        {"name": "migrated", "azureDisk": {}},
    ]
    shared = PodTemplates().share(decoded("a", node=node, volumes=volumes))
    assert [volume.name for volume in shared.spec.volumes] == ["data", "inline", "migrated"]


def test_as_many_owners_are_remembered_as_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cache.pod_templates._TEMPLATES", 2)
    templates = PodTemplates()
    first = templates.share(decoded("a", owner="rs-1"))
    for owner in ("rs-2", "rs-3"):
        templates.share(decoded(owner, owner=owner))
    again = templates.share(decoded("b", owner="rs-1"))
    assert again.spec.containers is not first.spec.containers


def test_a_pod_that_is_gone_is_not_kept_as_the_last_of_its_owner() -> None:
    templates = PodTemplates()
    for index in range(100):
        pod = templates.share(decoded(f"pod-{index}", owner=f"job-{index}"))
        templates.pod_changed(None, pod)
        templates.pod_changed(pod, pod)
        assert len(templates._last) == 1
        templates.pod_changed(pod, None)
        assert len(templates._last) == 0
    stays, goes = (templates.share(decoded(name)) for name in ("stays", "goes"))
    templates.pod_changed(stays, None)
    assert len(templates._last) == 1
    templates.pod_changed(goes, None)
    assert len(templates._last) == 0


@given(strategies.pods(with_status=True), strategies.pods(with_status=True))
def test_what_scheduling_derives_from_a_pod_stays_the_same(one: Pod, other: Pod) -> None:
    templates = PodTemplates()
    for pod in (one, other):
        before = PodInfo(pod)
        body = msgspec.json.encode(pod)
        after = PodInfo(templates.share(msgspec.json.decode(body, type=Pod)))
        assert (after.requests, after.host_ports, after.labels, after.node_name) == (
            before.requests,
            before.host_ports,
            before.labels,
            before.node_name,
        )
        assert after.pod.spec.affinity == before.pod.spec.affinity
        assert after.pod.spec.tolerations == before.pod.spec.tolerations
