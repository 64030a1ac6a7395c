"""Pods of different importance on nodes that are nearly full, and budgets that protect them.

No two pods of a node started at the same time: kube-scheduler's sort leaves equals in any order.
Pods that spread have no neighbours that leave and no empty selectors: kube-scheduler counts those
in what-ifs alone, where berth does not.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from tests.parity.pod_terms import pod_affinities, spread_constraints
from tests.parity.pod_volumes import pod_volumes
from tests.parity.vocabulary import (
    EVEN,
    EXTENDED,
    HOSTNAME,
    LIKELY,
    POD_LABELS_STRATEGY,
    POD_SELECTORS,
    RARE,
    SELDOM,
    ZONE,
    Json,
    chance,
)

_MILLI = st.sampled_from([1000, 500, 1000, 1500, 2000, 500, 250, 100, 0])
_ASKED_MILLI = st.sampled_from([1000, 1000, 1000, 500, 500, 2000, 3000, 250, 100, 0])
_SLACK = st.sampled_from([0, 0, 0, 0, 100, 250, 500, 3000])
_PRIORITIES = st.sampled_from([-10, -1, 0, 0, 1, 5, 5, 10, 100, 1000])
_ASKED_PRIORITIES = st.sampled_from([*[1000] * 5, *[100] * 4, 10, 5, 1, 0, -10])
_GOING = chance(12)
_NAMESPACES = st.sampled_from([*["default"] * 5, "team-a"])
_PORTS = st.sampled_from([80, 80, 443])
_DEVICES = chance(15)
_A_PORT = chance(15)
_AFFINE = chance(30)
_SPREADING = chance(25)
_SOME_VOLUMES = chance(25)
_NUMBERS = st.sampled_from([2, 3, 1, 4, 2, 3, 0])


@dataclass(frozen=True)
class Taste:
    """What the pods of a cluster are like, so that a cluster is about one thing or two."""

    ports: bool
    affinity: bool
    spread: bool
    volumes: bool
    devices: bool
    going: bool
    """Whether half of the pods are on their way out."""


TASTES = st.builds(Taste, _A_PORT, _AFFINE, _SPREADING, _SOME_VOLUMES, _DEVICES, _GOING)


@st.composite
def _spread(draw: st.DrawFn, labels: dict[str, str]) -> list[Json]:
    """Constraints with selectors that say something."""
    constraints: list[Json] = draw(spread_constraints(labels))
    for constraint in constraints:
        if not any(constraint.get("labelSelector", {"none": True}).values()):
            constraint["labelSelector"] = {"matchLabels": {"app": "web"}}
    return constraints


@st.composite
def _pods(draw: st.DrawFn, name: str, milli: int, priority: int, taste: Taste) -> Json:
    labels = {} if draw(RARE) else draw(POD_LABELS_STRATEGY)
    requests = {"cpu": f"{milli}m"} if milli else {}
    if taste.devices and draw(EVEN):
        requests[EXTENDED[0]] = "1"
    container: Json = {
        "name": "main",
        "image": "busybox:1.36",
        "resources": {"requests": requests},
    }
    if taste.ports and draw(EVEN):
        port = draw(_PORTS)
        container["ports"] = [{"containerPort": port, "hostPort": port, "protocol": "TCP"}]
    spec: Json = {
        "schedulerName": "default-scheduler",
        "priority": priority,
        "preemptionPolicy": "PreemptLowerPriority",
        "containers": [container],
    }
    if taste.affinity and draw(EVEN):
        spec["affinity"] = draw(pod_affinities(labels))
    if taste.spread and draw(EVEN):
        spec["topologySpreadConstraints"] = draw(_spread(labels))
    if taste.volumes and draw(EVEN):
        spec["volumes"] = draw(pod_volumes())
    metadata: Json = {
        "name": name,
        "namespace": "default" if "volumes" in spec else draw(_NAMESPACES),
        "uid": f"uid-{name}",
        "labels": labels,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {}}


_CONDITIONS = st.sampled_from(
    [
        {"status": "True", "reason": "PreemptionByScheduler"},
        {"status": "True", "reason": "PreemptionByScheduler"},
        {"status": "True", "reason": "EvictionByEvictionAPI"},
        {"status": "False", "reason": "PreemptionByScheduler"},
    ]
)


@st.composite
def _placed(
    draw: st.DrawFn, name: str, node_name: str, milli: int, started: int | None, taste: Taste
) -> Json:
    pod = draw(_pods(name, milli, draw(_PRIORITIES), taste))
    pod["spec"]["nodeName"] = node_name
    pod["status"] = {"phase": "Running"}
    if started is not None:
        pod["status"]["startTime"] = f"2026-01-01T00:{started:02}:00Z"
    if not taste.spread and draw(EVEN if taste.going else RARE):
        pod["metadata"]["deletionTimestamp"] = _LATER
        pod["metadata"]["deletionGracePeriodSeconds"] = 30
        if draw(LIKELY):
            condition = {"type": "DisruptionTarget", **draw(_CONDITIONS)}
            pod["status"]["conditions"] = [condition]
    return pod


def _keep_to_free_ports(pod: Json, used: set[int]) -> None:
    """Take a port away that the node has given to another pod already."""
    container = pod["spec"]["containers"][0]
    for port in container.get("ports", ()):
        if port["hostPort"] in used:
            del container["ports"]
            return
        used.add(port["hostPort"])


# Berth waits no longer for victims that should have been gone for long.
_LATER = "2126-01-01T00:00:00Z"
_STARTS = st.lists(st.integers(0, 6), min_size=5, max_size=5, unique=True)
_NOT_STARTED = chance(8)
_ZONES = st.sampled_from(["zone-a", "zone-b"])
_TIGHT_PODS = chance(25)
_CORDONED = chance(2)


@st.composite
def full_nodes(draw: st.DrawFn, names: list[str], taste: Taste) -> list[Json]:
    """Nodes with pods on them, and little or no room left."""
    objects: list[Json] = []
    total = 0
    for node_name in names:
        tenants = []
        ports: set[int] = set()
        number = draw(_NUMBERS) if total < _MOST_PODS else 0
        for minute in draw(_STARTS)[:number]:
            started = None if total == 0 and draw(_NOT_STARTED) else minute
            milli = draw(_MILLI)
            pod = draw(_placed(f"placed-{total}", node_name, milli, started, taste))
            _keep_to_free_ports(pod, ports)
            tenants.append((pod, milli))
            total += 1
        room = sum(milli for _, milli in tenants) + draw(_SLACK)
        pods = len(tenants) + draw(st.integers(0, 1)) if draw(_TIGHT_PODS) else 110
        allocatable = {
            "cpu": f"{room}m",
            "memory": "64Gi",
            "pods": str(pods),
            EXTENDED[0]: str(draw(st.integers(0, 2))),
        }
        labels = {HOSTNAME: node_name}
        if draw(LIKELY):
            labels[ZONE] = draw(_ZONES)
        spec: Json = {"unschedulable": True} if draw(_CORDONED) else {}
        objects.append(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": node_name, "uid": f"uid-{node_name}", "labels": labels},
                "spec": spec,
                "status": {"allocatable": allocatable, "capacity": allocatable},
            }
        )
        objects += [pod for pod, _ in tenants]
    return objects


_MOST_PODS = 9


@st.composite
def nominated_pods(draw: st.DrawFn, name: str, node_names: list[str], taste: Taste) -> Json:
    """A pod that waits for its victims to go."""
    pod = draw(_pods(name, draw(_MILLI), draw(_ASKED_PRIORITIES), taste))
    pod["status"] = {"phase": "Pending", "nominatedNodeName": draw(st.sampled_from(node_names))}
    return pod


@st.composite
def preemptors(draw: st.DrawFn, node_names: list[str], taste: Taste) -> Json:
    """The pod that is asked about."""
    pod = draw(_pods("asked", draw(_ASKED_MILLI), draw(_ASKED_PRIORITIES), taste))
    pod["status"] = {"phase": "Pending"}
    if draw(EVEN if taste.going else SELDOM):
        pod["status"]["nominatedNodeName"] = draw(st.sampled_from([*node_names * 9, "node-gone"]))
    if draw(RARE):
        pod["spec"]["preemptionPolicy"] = "Never"
    return pod


_BUDGET_SELECTORS = st.one_of(
    *[POD_SELECTORS] * 4, st.just({}), st.just(None), st.just({"matchLabels": {"app": "web"}})
)
_ALLOWED = st.sampled_from([0, 0, 1, 1, 2])
_DISRUPTED = st.lists(
    st.integers(0, _MOST_PODS).map(lambda index: f"placed-{index}"), max_size=3, unique=True
)


@st.composite
def budgets(draw: st.DrawFn, name: str) -> Json:
    """A PodDisruptionBudget; several may protect the same pod."""
    spec: Json = {"minAvailable": 1}
    selector = draw(_BUDGET_SELECTORS)
    if selector is not None:
        spec["selector"] = selector
    status: Json = {
        "disruptionsAllowed": draw(_ALLOWED),
        "currentHealthy": 1,
        "desiredHealthy": 1,
        "expectedPods": 1,
    }
    if draw(SELDOM):
        status["disruptedPods"] = dict.fromkeys(draw(_DISRUPTED), "2026-01-01T00:00:00Z")
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": draw(_NAMESPACES), "uid": f"uid-{name}"},
        "spec": spec,
        "status": status,
    }
