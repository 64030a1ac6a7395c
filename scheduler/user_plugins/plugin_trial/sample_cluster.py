"""Generates nodes and pods for trials, as JSON objects of the API.

The nodes differ in every field that a plugin is likely to read, and some nodes lack labels that
others have: a label that is missing or is not a number is the most frequent cause of failures.
"""

from __future__ import annotations

import random
from typing import Any, Final

import msgspec

ZONES: Final = ("a", "b", "c")
_RACKS: Final = 16
_APPS: Final = 12
_COSTS: Final = ("0.031", "0.062", "0.124", "0.5", "1", "2.75", "12", "cheap")
_GPU_MODELS: Final = ("A10", "T4", "V100M32", "G2")
_GIB: Final = 1 << 30


def nodes(count: int, seed: int = 0) -> tuple[bytes, ...]:
    """Return ``count`` generated nodes."""
    rng = random.Random(f"nodes/{seed}")
    return tuple(msgspec.json.encode(_node(number, rng)) for number in range(count))


def bound_pods(num_nodes: int, per_node: int, seed: int = 0) -> tuple[bytes, ...]:
    """Return pods that run on the nodes of :func:`nodes`; their number differs between nodes."""
    rng = random.Random(f"pods/{seed}")
    pods = []
    for number in range(num_nodes * per_node):
        pod = _pod(f"running-{number}", rng)
        pod["spec"]["nodeName"] = _name(rng.randrange(num_nodes))
        pod["status"] = {"phase": "Running"}
        pods.append(msgspec.json.encode(pod))
    return tuple(pods)


def waiting_pods(seed: int = 0) -> tuple[bytes, ...]:
    """Return one pending pod of each kind, the first without any requests."""
    rng = random.Random(f"waiting/{seed}")
    plain = _bare("asks-for-nothing")
    small = _pod("small", rng)
    large = _pod("large", rng)
    large["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "6", "memory": "24Gi"}
    important = _pod("important", rng)
    important["spec"]["priority"] = 1_000_000
    gpu = _pod("gpu", rng)
    gpu["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] = "1"
    gpu["spec"]["nodeSelector"] = {"example.com/gpu-model": "T4"}
    return tuple(map(msgspec.json.encode, (plain, small, large, important, gpu)))


def _name(number: int) -> str:
    return f"node-{number}"


def _node(number: int, rng: random.Random) -> dict[str, Any]:
    name = _name(number)
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64"}
    annotations = {}
    if rng.random() < 0.95:
        labels["topology.kubernetes.io/zone"] = rng.choice(ZONES)
        labels["topology.kubernetes.io/region"] = "r"
    if rng.random() < 0.9:
        labels["example.com/rack"] = f"rack-{rng.randrange(_RACKS)}"
    if rng.random() < 0.9:
        labels["example.com/cost-per-hour"] = rng.choice(_COSTS)
        annotations["example.com/cost-per-hour"] = rng.choice(_COSTS)
    if rng.random() < 0.3:
        labels["example.com/pool"] = rng.choice(("spot", "batch", "web"))
    cpu = rng.choice((4, 8, 16, 64))
    allocatable = {
        "cpu": f"{cpu * 1000 - 80}m",
        "memory": str(cpu * 4 * _GIB - 300 * 1024 * 1024),
        "ephemeral-storage": "100Gi",
        "pods": "110",
    }
    if rng.random() < 0.2:
        labels["example.com/gpu-model"] = rng.choice(_GPU_MODELS)
        allocatable["nvidia.com/gpu"] = str(rng.choice((1, 4, 8)))
    spec: dict[str, Any] = {}
    if rng.random() < 0.1:
        effect = rng.choice(("NoSchedule", "PreferNoSchedule", "NoExecute"))
        spec["taints"] = [{"key": "example.com/dedicated", "value": "gpu", "effect": effect}]
    if rng.random() < 0.03:
        spec["unschedulable"] = True
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "labels": labels,
            "annotations": annotations,
        },
        "spec": spec,
        "status": {"allocatable": allocatable, "capacity": allocatable},
    }


def _bare(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"containers": [{"name": "main", "image": "registry.example/app:1"}]},
    }


def _pod(name: str, rng: random.Random) -> dict[str, Any]:
    pod = _bare(name)
    app = rng.randrange(_APPS)
    pod["metadata"]["labels"] = {"app": f"app-{app}", "tier": rng.choice(("web", "batch"))}
    pod["metadata"]["annotations"] = {"example.com/team": rng.choice(("red", "blue"))}
    pod["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": f"app-{app}",
            "uid": f"uid-app-{app}",
            "controller": True,
        }
    ]
    milli = rng.choice((50, 100, 250, 500, 1000))
    requests = {"cpu": f"{milli}m", "memory": f"{rng.choice((64, 128, 512, 1024))}Mi"}
    pod["spec"]["containers"][0]["resources"] = {"requests": requests}
    return pod
