from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from cache.objects import Container, ResourceRequirements
from scheduler.metrics.pod_resources import pod_limits, pod_resources
from tests.builders import pod


def limited(name: str = "c", *, sidecar: bool = False, **limits: str) -> Container:
    return Container(
        name=name,
        resources=ResourceRequirements(limits=limits),
        restart_policy="Always" if sidecar else None,
    )


def samples(*pods) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, sample.labels["pod"], sample.labels["resource"], sample.labels["unit"]): (
            sample.value
        )
        for family in parse(pod_resources(pods).decode())
        for sample in family.samples
    }


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        pytest.param(pod("a"), {}, id="no limits"),
        pytest.param(
            pod("a").container(limited(cpu="500m")).container(limited("d", cpu="1")),
            {"cpu": 1500},
            id="containers in sum",
        ),
        pytest.param(
            pod("a").container(limited(cpu="1")).init_container(limited("i", cpu="3")),
            {"cpu": 3000},
            id="a larger init container",
        ),
        pytest.param(
            pod("a")
            .container(limited(cpu="1"))
            .init_container(limited("s", sidecar=True, cpu="2"))
            .init_container(limited("i", cpu="2")),
            {"cpu": 4000},
            id="an init container beside a sidecar",
        ),
        pytest.param(
            pod("a").container(limited(memory="1Gi")), {"memory": 1 << 30}, id="another resource"
        ),
    ],
)
def test_limits(made, expected):
    assert pod_limits(made.build()) == expected


def test_units_are_those_of_kube_scheduler():
    amounts = {
        "cpu": "250m",
        "memory": "1Mi",
        "ephemeral-storage": "1Ki",
        "hugepages-2Mi": "2Mi",
        "example.com/gpu": "2",
    }
    found = samples(pod("a").request(amounts).on("n1").build())
    assert found == {
        ("kube_pod_resource_request", "a", "cpu", "cores"): 0.25,
        ("kube_pod_resource_request", "a", "memory", "bytes"): 1 << 20,
        ("kube_pod_resource_request", "a", "ephemeral-storage", "bytes"): 1024,
        ("kube_pod_resource_request", "a", "hugepages-2Mi", "bytes"): 2 << 20,
        ("kube_pod_resource_request", "a", "example.com/gpu", ""): 2,
    }


def test_a_pod_is_told_with_its_place():
    made = pod("a").priority(7).scheduler("berth").request(cpu="1").on("n1").build()
    labels = [s.labels for f in parse(pod_resources([made]).decode()) for s in f.samples]
    assert labels == [
        {
            "namespace": "default",
            "pod": "a",
            "node": "n1",
            "scheduler": "berth",
            "priority": "7",
            "resource": "cpu",
            "unit": "cores",
        }
    ]


def test_a_pod_that_cannot_be_read_costs_no_other():
    broken = pod("broken").request(cpu="lots").build()
    fine = pod("fine").request(cpu="1").build()
    assert {key[1] for key in samples(broken, fine)} == {"fine"}
