"""Groups of a dump: two kinds called PodGroup, and one of somebody else's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cache.pod_group_objects import GroupKey, GroupSource
from cache.pod_groups import GroupCounts
from scheduler.offline.cluster import Cluster, read_dump
from tests.controlplane.objects import make_pod
from tests.controlplane.pod_groups import by_field, by_label, make_pod_group, make_x_pod_group

FIELD = GroupKey("default", "ring", GroupSource.FIELD)
LABEL = GroupKey("default", "ring", GroupSource.LABEL)
VOLCANO = make_x_pod_group("ring", 9) | {"apiVersion": "scheduling.volcano.sh/v1beta1"}


def cluster_of(*documents: dict[str, Any]) -> Cluster:
    """Return what is known from these documents."""
    cluster = Cluster()
    for document in documents:
        assert cluster.add_all(read_dump(json.dumps(document).encode(), "f")) == []
    return cluster


def minimum(cluster: Cluster, key: GroupKey) -> int | None:
    rules = cluster.known.pod_groups.rules(key)
    return None if rules is None else rules.minimum


def listed(api_version: str, *objects: dict[str, Any]) -> dict[str, Any]:
    """Return a list as ``kubectl get --raw`` prints it: objects of built-in kinds have no kind."""
    bare = [{"metadata": each["metadata"], "spec": each["spec"]} for each in objects]
    return {"kind": "PodGroupList", "apiVersion": api_version, "items": bare}


@pytest.mark.parametrize(
    "documents",
    [
        pytest.param([make_pod_group("ring", 3), make_x_pod_group("ring", 5)], id="objects"),
        pytest.param(
            [{"kind": "List", "items": [make_pod_group("ring", 3), make_x_pod_group("ring", 5)]}],
            id="List",
        ),
        pytest.param(
            [
                listed("scheduling.k8s.io/v1alpha2", make_pod_group("ring", 3)),
                listed("scheduling.x-k8s.io/v1alpha1", make_x_pod_group("ring", 5)),
            ],
            id="lists of each kind",
        ),
    ],
)
def test_groups_of_both_apis_are_told_apart(documents: list[dict[str, Any]]) -> None:
    cluster = cluster_of(*documents)
    assert (minimum(cluster, FIELD), minimum(cluster, LABEL)) == (3, 5)


@pytest.mark.parametrize(
    "foreign",
    [
        pytest.param(VOLCANO, id="object"),
        pytest.param(listed("scheduling.volcano.sh/v1beta1", VOLCANO), id="list"),
        pytest.param({"kind": "PodGroup", "metadata": {"name": "ring"}}, id="no apiVersion"),
    ],
)
def test_a_kind_of_that_name_of_another_api_is_none(foreign: dict[str, Any]) -> None:
    assert cluster_of(foreign).known.pod_groups.keys() == ()


def test_members_of_a_dump_are_known() -> None:
    pods = (
        by_label(make_pod("a"), "ring"),
        by_label(make_pod("b", nodeName="n1"), "ring"),
        by_field(make_pod("c"), "ring"),
    )
    for each in pods:
        each["metadata"]["uid"] = each["metadata"]["name"]
    cluster = cluster_of(*pods)
    groups = cluster.known.pod_groups
    assert groups.standing(LABEL).counts == GroupCounts(waiting=1, assigned=1)
    assert groups.standing(FIELD).counts == GroupCounts(waiting=1)
