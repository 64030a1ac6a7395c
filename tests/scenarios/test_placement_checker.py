"""The checker finds what is wrong: it is no use if it is always content."""

from __future__ import annotations

from typing import Any

import pytest

from tests.controlplane.objects import (
    HOSTNAME_LABEL,
    ZONE_LABEL,
    make_namespace,
    make_node,
    make_pod,
)
from tests.scenarios.placement_checker import Placement

Json = dict[str, Any]

ROWS_OF_A_TERM = [
    pytest.param({"namespaces": ["default"]}, id="by name"),
    pytest.param({"namespaceSelector": {"matchLabels": {"team": "a"}}}, id="by label"),
    pytest.param({}, id="its own"),
]


def on(name: str, node: str, **kwargs: Any) -> Json:
    pod = make_pod(name, nodeName=node, **kwargs)
    pod["metadata"]["uid"] = name
    return pod


def nodes() -> list[Json]:
    taint = {"key": "foo", "value": "x", "effect": "NoSchedule"}
    return [
        make_node("a1", zone="a"),
        make_node("a2", zone="a"),
        make_node("b1", zone="b", cpu="1"),
        make_node("tainted", taints=[taint]),
    ]


def placement(*pods: Json) -> Placement:
    return Placement(nodes(), [make_namespace("default", {"team": "a"})], pods)


def rules(kind: str, topology_key: str, **where: Any) -> Json:
    selector = {"matchLabels": {"app": "x"}}
    term = {"labelSelector": selector, "topologyKey": topology_key, **where}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def spread(**changes: Any) -> list[Json]:
    selector = {"matchLabels": {"app": "x"}}
    return [
        {
            "maxSkew": 1,
            "topologyKey": ZONE_LABEL,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": selector,
            **changes,
        }
    ]


X = {"app": "x"}
TOGETHER = rules("podAffinity", ZONE_LABEL)
APART = rules("podAntiAffinity", HOSTNAME_LABEL)
TAINTS_HONOURED = spread(topologyKey=HOSTNAME_LABEL, nodeTaintsPolicy="Honor")
TOLERATION = {"key": "foo", "operator": "Equal", "value": "x"}


@pytest.mark.parametrize(
    "pods",
    [
        pytest.param([on("p", "gone")], id="no such node"),
        pytest.param([on("p", "tainted")], id="taint"),
        pytest.param([on("p", "a1", nodeSelector={ZONE_LABEL: "b"})], id="node selector"),
        pytest.param([on("p", "b1", cpu="600m"), on("q", "b1", cpu="600m")], id="too much"),
        pytest.param(
            [on("p", "a1", labels=X), on("q", "b1", labels=X, affinity=TOGETHER)], id="affinity"
        ),
        pytest.param([on("p", "a1", labels=X), on("q", "a1", affinity=APART)], id="anti-affinity"),
        pytest.param(
            [on(name, "a1", labels=X, topologySpreadConstraints=spread()) for name in "pq"],
            id="spread",
        ),
    ],
)
def test_a_mistake_is_found(pods: list[Json]) -> None:
    assert placement(*pods).mistakes()


@pytest.mark.parametrize(
    "pods",
    [
        pytest.param([on("p", "tainted", tolerations=[TOLERATION])], id="tolerated taint"),
        pytest.param([on("p", "b1", nodeSelector={ZONE_LABEL: "b"})], id="node selector"),
        pytest.param([on("p", "b1", cpu="500m"), on("q", "b1", cpu="500m")], id="just enough"),
        pytest.param(
            [on("p", "a1", labels=X), on("q", "a2", labels=X, affinity=TOGETHER)], id="affinity"
        ),
        pytest.param([on("p", "b1", labels=X, affinity=TOGETHER)], id="first of its kind"),
        pytest.param(
            [on("p", "a1", labels=X, affinity=APART), on("q", "a2", labels=X, affinity=APART)],
            id="anti-affinity",
        ),
        pytest.param([on("p", "a1", labels=X, affinity=APART)], id="itself alone"),
        pytest.param(
            [
                on("p", "a1", labels=X, topologySpreadConstraints=spread()),
                on("q", "b1", labels=X, topologySpreadConstraints=spread()),
                on("r", "a2", labels=X, topologySpreadConstraints=spread()),
            ],
            id="spread",
        ),
        pytest.param(
            [
                on(f"{node}-{number}", node, labels=X, topologySpreadConstraints=TAINTS_HONOURED)
                for node in ("a1", "a2", "b1")
                for number in range(2)
            ],
            id="taints honoured",
        ),
    ],
)
def test_what_is_right_is_left_alone(pods: list[Json]) -> None:
    assert placement(*pods).mistakes() == []


@pytest.mark.parametrize("where", ROWS_OF_A_TERM)
def test_a_term_means_pods_in_namespaces(where: Json) -> None:
    apart = rules("podAntiAffinity", HOSTNAME_LABEL, **where)
    pods = [on("p", "a1", labels=X), on("q", "a1", affinity=apart)]
    assert placement(*pods).mistakes()
    pods[0]["metadata"]["namespace"] = "elsewhere"
    assert placement(*pods).mistakes() == []
