"""Pods as an API server has them: what it defaults is written out."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.parity.node_terms import node_affinities
from tests.parity.pod_terms import owner_references, pod_affinities, spread_constraints
from tests.parity.vocabulary import (
    BYTES,
    CPU,
    EFFECTS,
    EVEN,
    EXTENDED,
    HUGE_PAGES,
    IMAGES_IN_PODS,
    LIKELY,
    NODE_LABELS,
    NODE_NAMES,
    POD_LABELS_STRATEGY,
    RARE,
    SELDOM,
    SMALL_BYTES,
    SMALL_CPU,
    TAINT_KEYS,
    Json,
    chance,
)

_EFFECTS = st.sampled_from(["", *EFFECTS])
_TOLERATIONS = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {
                "key": st.sampled_from(TAINT_KEYS),
                "operator": st.sampled_from(["Equal", ""]),
                "value": st.sampled_from(["", "a", "b"]),
                "effect": _EFFECTS,
            }
        ),
        st.fixed_dictionaries(
            {
                "key": st.sampled_from(["", *TAINT_KEYS]),
                "operator": st.just("Exists"),
                "effect": _EFFECTS,
            }
        ),
    ),
    min_size=1,
    max_size=3,
)
_PORTS = st.lists(
    st.fixed_dictionaries(
        {
            "containerPort": st.just(8080),
            "hostPort": st.sampled_from([80, 443]),
            "hostIP": st.sampled_from(["", "0.0.0.0", "10.0.0.1", "10.0.0.2", "::"]),
            "protocol": st.sampled_from(["TCP", "UDP"]),
        }
    ),
    min_size=1,
    max_size=2,
)
_SELECTORS = st.sampled_from(sorted(NODE_LABELS)).flatmap(
    lambda key: st.sampled_from(NODE_LABELS[key]).map(lambda value: {key: value})
)
_SMALL = st.fixed_dictionaries(
    {}, optional={"cpu": st.sampled_from(SMALL_CPU), "memory": st.sampled_from(SMALL_BYTES)}
)
_LARGE = st.fixed_dictionaries(
    {}, optional={"cpu": st.sampled_from(CPU), "memory": st.sampled_from(BYTES)}
)
_EXTENDED_RESOURCES = st.dictionaries(
    st.sampled_from(EXTENDED), st.sampled_from(["1", "1", "1", "2", "0"]), min_size=1, max_size=2
)
_OTHERS = st.one_of(
    st.fixed_dictionaries({"ephemeral-storage": st.sampled_from(["3Gi", "5Gi"])}),
    st.fixed_dictionaries({HUGE_PAGES: st.sampled_from(["2Mi", "8Mi"])}),
    *[_EXTENDED_RESOURCES] * 3,
)
_REQUESTS = st.one_of(
    _SMALL, _SMALL, _LARGE, st.builds(lambda one, other: {**one, **other}, _SMALL, _OTHERS)
)
_POD_LEVEL = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.sampled_from(CPU),
        "memory": st.sampled_from(BYTES),
        HUGE_PAGES: st.sampled_from(["2Mi", "8Mi"]),
    },
)
_IMAGES = st.sampled_from(IMAGES_IN_PODS)
_COUNTS = st.sampled_from([1, 1, 1, 2])
_RESTART_RULES = [
    {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}},
    {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}},
]
_RESIZES = st.sampled_from(
    [
        [],
        [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
        [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}],
        [{"type": "PodResizeInProgress", "status": "True"}],
    ]
)
_NODE_NAMES = st.sampled_from(NODE_NAMES)


@st.composite
def _containers(draw: st.DrawFn, name: str, *, init: bool = False) -> Json:
    container: Json = {
        "name": name,
        "image": draw(_IMAGES),
        "resources": {"requests": {**draw(_REQUESTS)}},
    }
    if draw(SELDOM):
        container["ports"] = draw(_PORTS)
    if init and draw(EVEN):
        container["restartPolicy"] = "Always"
    if draw(RARE):
        container["restartPolicyRules"] = [draw(st.sampled_from(_RESTART_RULES))]
    return container


def _on_the_host(spec: Json) -> None:
    """Give every port of the containers its host port, as the API server does."""
    spec["hostNetwork"] = True
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        for port in container.get("ports", ()):
            port["hostPort"] = port["containerPort"]


_MANY_OTHERS = chance(40)


@st.composite
def _specs(draw: st.DrawFn) -> Json:
    spec: Json = {
        "schedulerName": "default-scheduler",
        "containers": [draw(_containers(f"main-{index}")) for index in range(draw(_COUNTS))],
    }
    if draw(SELDOM):
        spec["initContainers"] = [
            draw(_containers(f"init-{index}", init=True)) for index in range(draw(_COUNTS))
        ]
    if draw(RARE):
        _on_the_host(spec)
        if draw(EVEN):
            spec["hostUsers"] = draw(EVEN)
    if draw(_MANY_OTHERS):
        spec["containers"][0]["resources"]["requests"] |= draw(_OTHERS)
    if draw(RARE):
        spec["overhead"] = draw(_SMALL)
    if draw(RARE):
        spec["resources"] = {"requests": draw(_POD_LEVEL)}
    if draw(RARE):
        spec["volumes"] = [
            {"name": "data", "image": {"reference": draw(_IMAGES)}},
            {"name": "scratch", "emptyDir": {}},
        ]
    return spec


@st.composite
def _plain_specs(draw: st.DrawFn) -> Json:
    requests = draw(_SMALL)
    container: Json = {"name": "main", "image": draw(_IMAGES), "resources": {"requests": requests}}
    if draw(SELDOM):
        container["ports"] = draw(_PORTS)
    return {"schedulerName": "default-scheduler", "containers": [container]}


def _pod(name: str, namespace: str, labels: dict[str, str], spec: Json, status: Json) -> Json:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": labels}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


_NAMESPACES = st.sampled_from([*["default"] * 4, "team-a", "team-b"])
_MANY_SELECTORS = chance(15)
_MANY_AFFINITIES = chance(30)
_MANY_TOLERATIONS = chance(40)


@st.composite
def pending_pods(draw: st.DrawFn) -> Json:
    """The pod that is asked about: one about other pods, or one about everything."""
    labels = draw(POD_LABELS_STRATEGY)
    affinity: Json = {}
    if draw(EVEN):
        spec = draw(_plain_specs())
        often = EVEN
    else:
        spec = draw(_specs())
        often = SELDOM
        if draw(_MANY_SELECTORS):
            spec["nodeSelector"] = draw(_SELECTORS)
        if draw(_MANY_AFFINITIES):
            affinity["nodeAffinity"] = draw(node_affinities())
        if draw(_MANY_TOLERATIONS):
            spec["tolerations"] = draw(_TOLERATIONS)
        if draw(RARE):
            spec["nodeName"] = draw(_NODE_NAMES)
    if draw(often):
        affinity |= draw(pod_affinities(labels))
    if affinity:
        spec["affinity"] = affinity
    if draw(often):
        spec["topologySpreadConstraints"] = draw(spread_constraints(labels))
    pod = _pod("asked", draw(_NAMESPACES), labels, spec, {"phase": "Pending"})
    if draw(SELDOM):
        pod["metadata"]["ownerReferences"] = draw(owner_references())
    return pod


@st.composite
def plain_pods(draw: st.DrawFn, name: str) -> Json:
    """A pending pod that is only about other pods."""
    labels = draw(POD_LABELS_STRATEGY)
    spec = draw(_plain_specs())
    if draw(_MANY_AFFINITIES):
        spec["affinity"] = draw(pod_affinities(labels))
    if draw(_MANY_AFFINITIES):
        spec["topologySpreadConstraints"] = draw(spread_constraints(labels))
    return _pod(name, draw(_NAMESPACES), labels, spec, {})


@st.composite
def quiet_pods(draw: st.DrawFn, name: str) -> Json:
    """A pod that every sound node can have."""
    container: Json = {"name": "main", "image": draw(_IMAGES), "resources": {}}
    spec: Json = {"schedulerName": "default-scheduler", "containers": [container]}
    return _pod(name, "default", draw(POD_LABELS_STRATEGY), spec, {"phase": "Pending"})


@st.composite
def placed_pods(draw: st.DrawFn, name: str, node_name: str, *, plain: bool) -> Json:
    """A pod on a node; some have ended, some are going, some are being resized."""
    spec = {**draw(_plain_specs() if plain else _specs()), "nodeName": node_name}
    if not plain and draw(LIKELY):
        spec["containers"][0]["resources"]["requests"] |= draw(_OTHERS)
    status: Json = {"phase": "Running"}
    if draw(RARE):
        status["phase"] = draw(st.sampled_from(["Succeeded", "Failed"]))
    if draw(RARE):
        status["conditions"] = draw(_RESIZES)
        status["containerStatuses"] = [
            {
                "name": container["name"],
                "allocatedResources": draw(_SMALL),
                "resources": {"requests": draw(_SMALL)},
            }
            for container in spec["containers"]
        ]
    labels = draw(POD_LABELS_STRATEGY)
    if draw(SELDOM):
        spec["affinity"] = draw(pod_affinities(labels))
    pod = _pod(name, draw(_NAMESPACES), labels, spec, status)
    if draw(RARE):
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        pod["metadata"]["deletionGracePeriodSeconds"] = 30
    return pod
