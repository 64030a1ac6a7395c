"""Objects in which every identity is one that nobody has seen before.

Names, namespaces, labels, selectors, images, resources, ports, topology keys, owners and claims:
what a scheduler keeps by one of them it has to give back when the object goes.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from tests.controlplane.objects import HOSTNAME_LABEL, make_namespace, make_node, make_pod
from tests.hostile.tenant import (
    containers,
    expression,
    node_affinity,
    preferred,
    preferred_node_affinity,
    required,
    spread,
    term,
)

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]


def namespace(number: int) -> Json:
    """Return a namespace with a label of its own."""
    return make_namespace(f"ns-{number}", {f"of-{number}": f"v{number}"})


def node(number: int) -> Json:
    """Return a node with labels, images, a resource and a taint key of its own."""
    return make_node(
        f"fresh-{number}",
        zone=f"zone-{number}",
        labels={f"node-{number}": "", "soak/number": f"n{number}"},
        images=[
            {"names": [f"registry/{number}-{index}:v1"], "sizeBytes": 10**8} for index in range(5)
        ],
        extra={f"example.com/n{number}": "4"},
        taints=[{"key": f"taint-{number}", "effect": "PreferNoSchedule"}],
    )


def service(number: int, namespace: str) -> Json:
    """Return a Service with a selector of its own."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": f"s-{number}", "namespace": namespace},
        "spec": {
            "clusterIP": "None",
            "selector": {f"k{number}": f"v{number}"},
            "ports": [{"port": 80}],
        },
    }


def budget(number: int, namespace: str) -> Json:
    """Return a PodDisruptionBudget with a selector of its own."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"b-{number}", "namespace": namespace},
        "spec": {
            "maxUnavailable": 1,
            "selector": {"matchExpressions": [expression(f"k{number}", "In", f"v{number}")]},
        },
    }


def claim(number: int, namespace: str) -> Json:
    """Return a claim that nobody provisions for."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": f"claim-{number}", "namespace": namespace},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": f"class-{number}",
            "resources": {"requests": {"storage": f"{number % 1000 + 1}Mi"}},
        },
    }


def pod(number: int, namespace: str, scheduler_name: str) -> Json:
    """Return a pod of one of the kinds in turn, with labels, an image and an owner of its own."""
    made = make_pod(
        f"p-{number}",
        namespace=namespace,
        scheduler_name=scheduler_name,
        labels={f"k{number}": f"v{number}", "app": f"a{number}"},
        **_KINDS[number % len(_KINDS)](number),
    )
    made["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": f"web-{number}",
            "uid": str(uuid.uuid4()),
            "controller": True,
        }
    ]
    for each in made["spec"]["containers"]:
        each["image"] = f"registry/image-{number}:v{number}"
    return made


def _own(number: int) -> Json:
    return expression(f"k{number}", "Exists")


def _resources(number: int, name: str) -> list[Json]:
    amounts = {name: "1"}
    return containers(1, resources={"requests": amounts, "limits": amounts})


def _plain(number: int) -> Json:
    requests = {"cpu": f"{1 + number % 97}m", "memory": f"{1 + number % 9973}Ki"}
    return {"containers": containers(1, resources={"requests": requests})}


def _apart(number: int) -> Json:
    others = term(
        HOSTNAME_LABEL, _own(number), namespaceSelector={"matchLabels": {f"l{number}": ""}}
    )
    return {"affinity": required("podAntiAffinity", term(f"t{number}", _own(number)), others)}


def _together(number: int) -> Json:
    return {"affinity": preferred("podAffinity", term(f"t{number}", _own(number)))}


def _preferred_nodes(number: int) -> Json:
    wanted = {"matchExpressions": [expression(f"node-{number}", "Exists")]}
    return {"affinity": preferred_node_affinity(wanted)}


def _nowhere(number: int) -> Json:
    wanted = {"matchExpressions": [expression(f"absent-{number}", "In", f"v{number}")]}
    return {"affinity": node_affinity(wanted)}


def _spread(number: int) -> Json:
    return {
        "topologySpreadConstraints": [
            spread(f"t{number}", _own(number), soft=True),
            spread(HOSTNAME_LABEL, _own(number)),
        ]
    }


def _tolerating(number: int) -> Json:
    return {"tolerations": [{"key": f"taint-{number}", "operator": "Exists"}]}


def _port(number: int) -> Json:
    ports = [{"containerPort": 80, "hostPort": 1 + number % 60_000}]
    return {"containers": containers(1, ports=ports)}


def _unknown_resource(number: int) -> Json:
    return {"containers": _resources(number, f"example.com/r{number}")}


def _claimed(number: int) -> Json:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": f"claim-{number}"}}
    return {"volumes": [volume]}


def _disk(number: int) -> Json:
    return {"volumes": [{"name": "v", "gcePersistentDisk": {"pdName": f"disk-{number}"}}]}


def _selected(number: int) -> Json:
    return {"nodeSelector": {f"absent-{number}": f"v{number}"}}


def _gated(number: int) -> Json:
    return {"schedulingGates": [{"name": f"gate-{number}"}]}


def _large(number: int) -> Json:
    requests = {"cpu": f"{1000 + number}", "memory": f"{number + 1}Gi"}
    return {"containers": containers(1, resources={"requests": requests})}


_KINDS: tuple[Callable[[int], Json], ...] = (
    _plain, _apart, _together, _plain, _preferred_nodes, _spread, _tolerating, _plain, _port,
    _unknown_resource, _disk, _nowhere, _plain, _claimed, _selected, _gated, _large,
)  # fmt: skip

WITH_CLAIM = _KINDS.index(_claimed)
"""The kind of which every pod names a claim of its own number."""

KINDS = len(_KINDS)
