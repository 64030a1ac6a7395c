"""The kubelet's admission: rows after the real one's rules."""

from __future__ import annotations

import pytest

from tests.neighbours.admission import Kubelet, Rejection, amounts, pod_requests

GPU = "example.com/gpu"
NODE = {"cpu": "2", "memory": "4Gi", "ephemeral-storage": "10Gi", "pods": "3", GPU: "1"}
GIB = 1 << 30


def container(**requests: str) -> dict[str, object]:
    named = {name.replace("_", "-"): value for name, value in requests.items()}
    return {"resources": {"requests": named}}


def rejected_for(rejection: Rejection | None) -> str:
    return rejection.reason if rejection else ""


@pytest.mark.parametrize(
    ("before", "asked", "reason"),
    [
        pytest.param([], {"cpu": 2000}, "", id="the last bit of CPU"),
        pytest.param([], {"cpu": 2001}, "OutOfcpu", id="more CPU than the node has"),
        pytest.param([{"cpu": 1500}], {"cpu": 501}, "OutOfcpu", id="what others left of the CPU"),
        pytest.param([{"memory": 4 * GIB}], {"memory": 1}, "OutOfmemory", id="memory"),
        pytest.param(
            [{"ephemeral-storage": 10 * GIB}],
            {"ephemeral-storage": 1},
            "OutOfephemeral-storage",
            id="ephemeral storage",
        ),
        pytest.param([{GPU: 1}], {GPU: 1}, f"OutOf{GPU}", id="an extended resource"),
        pytest.param([], {"example.com/tpu": 5}, "", id="a resource of the cluster, not the node"),
        pytest.param([{}, {}, {}], {}, "OutOfpods", id="a pod too many that asks for nothing"),
        pytest.param(
            [{"cpu": 2000}, {}, {}], {"cpu": 1}, "OutOfpods", id="pods are the first reason"
        ),
        pytest.param(
            [{"cpu": 2000, "memory": 4 * GIB}],
            {"cpu": 1, "memory": 1},
            "OutOfcpu",
            id="CPU is a reason before memory",
        ),
        pytest.param(
            [{"memory": 4 * GIB, GPU: 1}],
            {"memory": 1, GPU: 1},
            "OutOfmemory",
            id="memory is a reason before other resources",
        ),
        pytest.param([{"cpu": 2000}], {"memory": 1}, "", id="no CPU is left, and none is asked"),
        pytest.param([{"cpu": 2000}], {"cpu": 0}, "", id="a request of nothing"),
    ],
)
def test_first_resource_that_is_missing_is_the_reason(before, asked, reason):
    kubelet = Kubelet(NODE)
    for number, requests in enumerate(before):
        assert kubelet.admit(f"before-{number}", requests) is None

    assert rejected_for(kubelet.admit("new", asked)) == reason


def test_message_is_that_of_the_kubelet():
    kubelet = Kubelet(NODE)
    kubelet.admit("a", {"cpu": 1500})

    rejection = kubelet.admit("b", {"cpu": 600})

    assert rejection is not None
    assert rejection.status() == {
        "phase": "Failed",
        "reason": "OutOfcpu",
        "message": "Pod was rejected: Node didn't have enough resource: cpu, requested: 600, "
        "used: 1500, capacity: 2000",
    }


def test_rejected_pod_takes_nothing():
    kubelet = Kubelet(NODE)
    kubelet.admit("large", {"cpu": 2500})

    assert kubelet.admit("small", {"cpu": 2000}) is None


def test_pod_that_has_ended_takes_nothing():
    kubelet = Kubelet(NODE)
    kubelet.admit("first", {"cpu": 2000})
    kubelet.remove("first")
    kubelet.remove("first")

    assert kubelet.admit("second", {"cpu": 2000}) is None


def test_order_decides_who_is_rejected():
    kubelet = Kubelet(NODE)

    reasons = [rejected_for(kubelet.admit(str(n), {"cpu": n})) for n in (1500, 600, 400)]

    assert reasons == ["", "OutOfcpu", ""]


@pytest.mark.parametrize(
    ("spec", "requests"),
    [
        pytest.param({"containers": [{}]}, {}, id="none"),
        pytest.param(
            {"containers": [container(cpu="100m"), container(cpu="1", memory="1Mi")]},
            {"cpu": 1100, "memory": 1 << 20},
            id="containers add up",
        ),
        pytest.param(
            {"containers": [container(cpu="1")], "initContainers": [container(cpu="3")]},
            {"cpu": 3000},
            id="an init container runs alone",
        ),
        pytest.param(
            {"containers": [container(cpu="1")], "overhead": {"cpu": "250m"}},
            {"cpu": 1250},
            id="overhead comes on top",
        ),
    ],
)
def test_requests_of_a_pod(spec, requests):
    assert pod_requests(spec) == requests


@pytest.mark.parametrize(
    ("quantity", "value"),
    [
        ("7", 7),
        ("1500m", 2),
        ("2k", 2000),
        ("3Ki", 3072),
        ("1Mi", 1 << 20),
        ("1.5Gi", 3 << 29),
        ("1e3", 1000),
        ("2E", 2 * 10**18),
        ("1M", 10**6),
    ],
)
def test_quantities(quantity, value):
    assert amounts({"memory": quantity}) == {"memory": value}
