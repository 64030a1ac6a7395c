"""LimitRanges and ResourceQuotas: what they fill in, and the new pods that they refuse."""

from __future__ import annotations

import msgspec
import pytest

from tests.builders import pod
from tests.scheduler.what_if.clusters import (
    GANG_LABEL,
    ask,
    cluster_of,
    gang,
    machine,
    manifest,
    running,
)

BIG = machine("n1", "64")


def quota(hard, used=None, **spec):
    made = {"kind": "ResourceQuota", "metadata": {"name": "few", "namespace": "default"}}
    status = {} if used is None else {"status": {"hard": hard, "used": used}}
    return {**made, "spec": {"hard": hard, **spec}, **status}


def limit_range(kind="Container", **limits):
    return {
        "kind": "LimitRange",
        "metadata": {"name": "limits", "namespace": "default"},
        "spec": {"limits": [{"type": kind, **limits}]},
    }


def limited(*objects, nodes=(BIG,), pods=()):
    cluster = cluster_of(*nodes, *pods)
    for each in objects:
        cluster.add(msgspec.Raw(msgspec.json.encode(each)))
    return cluster


def bounded(requests, limits=None, **spec):
    resources = {"requests": requests} | ({} if limits is None else {"limits": limits})
    return manifest(containers=[{"name": "main", "resources": resources}], **spec)


# --- quotas -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hard", "used", "placed"),
    [
        pytest.param({"pods": "3"}, {"pods": "1"}, 2, id="pods"),
        pytest.param({"count/pods": "3"}, {"count/pods": "1"}, 2, id="objects"),
        pytest.param({"requests.cpu": "3"}, {"requests.cpu": "500m"}, 2, id="requests"),
        pytest.param({"cpu": "2500m"}, {"cpu": "0"}, 2, id="requests by their short name"),
        pytest.param({"limits.cpu": "4"}, {"limits.cpu": "0"}, 2, id="limits"),
        pytest.param({"pods": "9", "cpu": "1"}, {"pods": "0", "cpu": "0"}, 1, id="the least"),
        pytest.param({"services": "0"}, {"services": "0"}, 4, id="of other objects"),
        pytest.param({"pods": "2"}, {"pods": "5"}, 0, id="exceeded before"),
    ],
)
def test_as_many_pods_are_admitted_as_a_quota_allows(hard, used, placed):
    found = ask(
        limited(quota(hard, used)),
        objects=[bounded({"cpu": "1"}, {"cpu": "2"})],
        replicas=4,
    )
    assert (found.placed, found.refused) == (placed, 4 - placed)


def test_the_reason_names_the_quota_and_what_is_used():
    found = ask(limited(quota({"pods": "3"}, {"pods": "2"})), objects=[manifest()], replicas=2)
    assert found.reason == "exceeded quota: few, requested: pods=1, used: pods=3, limited: pods=3"


def test_one_more_pod_would_be_refused_by_the_quota():
    found = ask(limited(quota({"cpu": "2"}, {"cpu": "1"})), objects=[manifest()])
    assert found.parts[0].next.startswith("exceeded quota: few, requested: cpu=1, used: cpu=2")


def test_a_quota_of_requests_wants_them_said():
    found = ask(limited(quota({"limits.cpu": "9"}, {"limits.cpu": "0"})), objects=[manifest()])
    assert found.reason == "failed quota: few: must specify limits.cpu for: main"


@pytest.mark.parametrize(
    ("spec", "placed"),
    [
        pytest.param({"scopes": ["BestEffort"]}, 1, id="of other pods"),
        pytest.param({"scopes": ["NotBestEffort"]}, 0, id="with requests"),
        pytest.param({"scopes": ["NotTerminating"]}, 0, id="without a deadline"),
        pytest.param({"scopes": ["Terminating"]}, 1, id="with a deadline"),
        pytest.param({"scopes": ["CrossNamespacePodAffinity"]}, 1, id="without such affinity"),
        *(
            pytest.param(
                {
                    "scopeSelector": {
                        "matchExpressions": [
                            {"scopeName": "PriorityClass", "operator": operator, "values": values}
                        ]
                    }
                },
                placed,
                id=f"class {operator} {values}",
            )
            for operator, values, placed in (
                ("In", ["high"], 0),
                ("In", ["low"], 1),
                ("NotIn", ["low"], 0),
                ("Exists", [], 0),
                ("DoesNotExist", [], 1),
            )
        ),
    ],
)
def test_a_quota_counts_the_pods_of_its_scopes(spec, placed):
    cluster = limited(quota({"pods": "0"}, {"pods": "0"}, **spec))
    question = manifest(priorityClassName="high", priority=5)
    assert ask(cluster, objects=[question]).placed == placed


def test_a_quota_that_nobody_has_counted_is_counted_from_the_pods():
    pods = [running("a", "n1"), running("b", "n1"), pod("c").on("n1").ended("Succeeded")]
    cluster = limited(quota({"pods": "3"}), pods=pods)
    assert ask(cluster, objects=[manifest()], replicas=3).placed == 1


def test_an_evicted_pod_makes_room_for_its_successor():
    pods = [running("web", "n1")]
    nodes = BIG, machine("n2")
    cluster = limited(quota({"pods": "1"}, {"pods": "1"}), nodes=nodes, pods=pods)
    assert ask(cluster, drain=["n1"]).placed == 1


def test_a_quota_that_was_lowered_refuses_the_successor():
    pods = [running("web", "n1"), running("db", "n2")]
    nodes = BIG, machine("n2")
    cluster = limited(quota({"pods": "1"}, {"pods": "2"}), nodes=nodes, pods=pods)
    found = ask(cluster, drain=["n1"])
    assert (found.placed, found.refused) == (0, 1)
    assert "exceeded quota: few" in found.reason


def test_a_group_is_not_created_in_part():
    cluster = limited(quota({"pods": "2"}, {"pods": "0"}))
    found = ask(cluster, objects=[gang(), manifest(labels={GANG_LABEL: "gang"})])
    assert (found.placed, found.refused) == (0, 3)
    assert "exceeded quota: few" in found.reason


def test_a_quota_of_the_question_counts():
    found = ask(cluster_of(BIG), objects=[quota({"pods": "1"}), manifest()], replicas=2)
    assert (found.placed, found.refused) == (1, 1)


# --- LimitRanges ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "placed"),
    [
        pytest.param({"defaultRequest": {"cpu": "16"}}, 4, id="a request"),
        pytest.param({"default": {"cpu": "32"}}, 2, id="a limit, which is the request then"),
        pytest.param({"max": {"cpu": "32"}}, 2, id="the largest, which is the limit then"),
        pytest.param({"min": {"cpu": "8"}}, 8, id="the smallest, which is the request then"),
    ],
)
def test_a_limit_range_fills_in_what_a_container_does_not_say(limits, placed):
    found = ask(limited(limit_range(**limits)), objects=[bounded({})], replicas=9)
    assert found.placed == placed


@pytest.mark.parametrize(
    ("kind", "limits", "why"),
    [
        pytest.param(
            "Container",
            {"min": {"cpu": "2"}},
            "minimum cpu usage per Container is 2, but request is 1",
            id="too small",
        ),
        pytest.param(
            "Container",
            {"max": {"cpu": "1500m"}},
            "maximum cpu usage per Container is 1500m, but limit is 2",
            id="too large a limit",
        ),
        pytest.param(
            "Pod",
            {"max": {"memory": "1Gi"}},
            "maximum memory usage per Pod is 1Gi.  No limit is specified",
            id="no limit",
        ),
        pytest.param(
            "Pod",
            {"min": {"memory": "1Gi"}},
            "minimum memory usage per Pod is 1Gi.  No request is specified",
            id="no request",
        ),
        pytest.param(
            "Container",
            {"maxLimitRequestRatio": {"cpu": "1500m"}},
            "cpu max limit to request ratio per Container is 1500m, but provided ratio is 2.000000",
            id="a limit far beyond the request",
        ),
    ],
)
def test_a_limit_range_refuses_a_pod(kind, limits, why):
    question = bounded({"cpu": "1"}, {"cpu": "2"})
    found = ask(limited(limit_range(kind, **limits)), objects=[question])
    assert (found.placed, found.reason) == (0, why)


def test_limits_of_claims_do_not_concern_pods():
    made = limit_range("PersistentVolumeClaim", max={"storage": "1Gi"})
    assert ask(limited(made), objects=[manifest()]).placed == 1


# --- what is not known ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "told"),
    [
        pytest.param((), "ResourceQuotas and LimitRanges", id="nothing"),
        pytest.param(("ResourceQuota",), "LimitRanges:", id="quotas only"),
        pytest.param(("ResourceQuota", "LimitRange"), "", id="all"),
    ],
)
def test_the_answer_says_what_was_not_considered(known, told):
    cluster = cluster_of(BIG)
    cluster.limits.clear()
    for kind in known:
        cluster.add(msgspec.Raw(b"{}"), f"{kind}List")
    notes = ask(cluster, objects=[manifest()]).notes
    assert [told in each for each in notes] == ([True] if told else [])


def test_a_quota_that_cannot_be_read_is_left_out_with_a_note():
    found = ask(limited(quota({"pods": "many"})), objects=[manifest()])
    assert found.placed == 1
    assert found.notes == (
        "A ResourceQuota cannot be read and is left out: spec.hard[pods]: "
        "'many' is not a quantity such as '500m', '1.5Gi' or '12e6'",
    )
