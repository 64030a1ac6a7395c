"""A made-up cluster of any size as kubectl would print it, for the page: nodes, pods, policies.

    python -m tests.ui.dump --nodes 5000 --pending 20000 FILE

What the conditions of the pending pods say is what the default profile says of them.
"""

from __future__ import annotations

import argparse
import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cache.pod_info import PodInfo
from scheduler.config import default_config, running_profiles
from scheduler.offline.cluster import Cluster, read_dump
from scheduler.offline.offline_framework import offline_framework
from scheduler.runtime.judgement import judge

if TYPE_CHECKING:
    from scheduler.runtime.judgement import Judgement, Search

NOW: Final = datetime(2026, 11, 23, 10, 30, tzinfo=UTC)

ZONES: Final = ("eu-1a", "eu-1b", "eu-1c", "eu-1d")
POOLS: Final = ("general", "general", "general", "general", "memory", "batch", "gpu")
SIZES: Final = {
    "general": ("16", "64Gi"),
    "memory": ("16", "256Gi"),
    "batch": ("48", "96Gi"),
    "gpu": ("32", "256Gi"),
}
TEAMS: Final = (
    "checkout",
    "search",
    "ads",
    "payments",
    "ml-train",
    "ml-serve",
    "etl",
    "web",
    "risk",
    "maps",
)

RUNNING: Final = (
    ("500m", "1Gi", 8),
    ("1", "2Gi", 6),
    ("250m", "512Mi", 8),
    ("2", "8Gi", 3),
    ("4", "16Gi", 1),
)

KINDS: Final[tuple[tuple[str, int, dict[str, Any]], ...]] = (
    ("big", 6, {"cpu": "24", "memory": "180Gi"}),
    ("gpu", 5, {"cpu": "31500m", "memory": "64Gi", "gpu": "8"}),
    ("zoned", 4, {"cpu": "15900m", "memory": "16Gi", "zone": "eu-1d"}),
    ("nvme", 2, {"cpu": "1", "memory": "2Gi", "selector": {"disk": "nvme"}}),
    ("spread", 2, {"cpu": "47800m", "memory": "8Gi", "spread": True}),
    ("gated", 2, {"cpu": "1", "memory": "1Gi", "gate": "quota.example.com/approved"}),
    ("alone", 1, {"cpu": "12", "memory": "4Gi", "anti": True}),
    ("fresh", 1, {"cpu": "100m", "memory": "128Mi"}),
)
"""Name, weight and wishes of the pending pods."""


def cluster(nodes: int, pending: int, seed: int = 1) -> list[dict[str, Any]]:
    """Return the objects of a cluster."""
    chance = random.Random(seed)
    found = [_node(index, chance) for index in range(nodes)]
    placed = [pod for node in found for pod in _running(node, chance)]
    waiting = _pending(pending, chance)
    _tell(found + placed, waiting)
    return [*found, *placed, *waiting, *_policies()]


def _node(index: int, chance: random.Random) -> dict[str, Any]:
    pool = POOLS[index % len(POOLS)]
    zone = ZONES[(index // 40) % len(ZONES)]
    cpu, memory = SIZES[pool]
    amounts = {"cpu": cpu, "memory": memory, "pods": "110"}
    spec: dict[str, Any] = {}
    if pool == "gpu":
        amounts["nvidia.com/gpu"] = "8"
        spec["taints"] = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
    if chance.random() < 0.02:
        spec["unschedulable"] = True
        taints = spec.setdefault("taints", [])
        taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    labels = {
        "kubernetes.io/hostname": f"{pool}-{index:04}",
        "topology.kubernetes.io/zone": zone,
        "topology.kubernetes.io/rack": f"{zone}-r{index // 40 % 32:02}",
        "node.kubernetes.io/instance-type": f"{pool}.{cpu}",
        "karpenter.sh/nodepool": pool,
    }
    name = labels["kubernetes.io/hostname"]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"node-{index}", "labels": labels},
        "spec": spec,
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _running(node: dict[str, Any], chance: random.Random) -> list[dict[str, Any]]:
    """Return the pods of a node: some nodes are nearly empty, most are well filled."""
    left = int(node["status"]["allocatable"]["cpu"]) * 1000 * min(chance.uniform(0.15, 1.25), 0.98)
    pods: list[dict[str, Any]] = []
    name = node["metadata"]["name"]
    wishes, weights = [each[:2] for each in RUNNING], [each[2] for each in RUNNING]
    while len(pods) < 12:
        cpu, memory = chance.choices(wishes, weights)[0]
        scale = max(int(left / 6000), 1)
        milli = _milli(cpu) * scale
        if milli > left:
            break
        left -= milli
        team = chance.choice(TEAMS)
        placed = NOW - timedelta(seconds=chance.expovariate(1 / 40_000))
        uid = f"{name}-{len(pods)}"
        pod = _pod(
            team,
            f"{team}-{uid}",
            uid,
            placed - timedelta(seconds=3),
            {"cpu": f"{milli}m", "memory": memory},
        )
        pod["spec"]["nodeName"] = name
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": team, "uid": team}
        pod["metadata"]["ownerReferences"] = [owner | {"controller": True}]
        pod["spec"]["priority"] = chance.choice((0, 0, 100, 1000))
        pod["status"] = {"phase": "Running", "conditions": [_condition("True", placed)]}
        pods.append(pod)
    return pods


def _milli(text: str) -> int:
    return int(text[:-1]) if text.endswith("m") else int(text) * 1000


def _pod(
    namespace: str, name: str, uid: str, created: datetime, wishes: dict[str, Any]
) -> dict[str, Any]:
    requests = {"cpu": wishes["cpu"], "memory": wishes["memory"]}
    if "gpu" in wishes:
        requests["nvidia.com/gpu"] = wishes["gpu"]
    extended = {name: amount for name, amount in requests.items() if "/" in name}
    resources = {"requests": requests, **({"limits": extended} if extended else {})}
    spec: dict[str, Any] = {
        "schedulerName": "berth",
        "containers": [{"name": "main", "image": "app:1", "resources": resources}],
    }
    app = name.rsplit("-", 1)[0]
    selector = {"matchLabels": {"app": app}}
    if "gpu" in wishes:
        spec["tolerations"] = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    if "zone" in wishes:
        spec["nodeSelector"] = {
            "topology.kubernetes.io/zone": wishes["zone"],
            "karpenter.sh/nodepool": "memory",
        }
    if "selector" in wishes:
        spec["nodeSelector"] = wishes["selector"]
    if "gate" in wishes:
        spec["schedulingGates"] = [{"name": wishes["gate"]}]
    if "spread" in wishes:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": selector,
            }
        ]
    if "anti" in wishes:
        spec["affinity"] = {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "topologyKey": "topology.kubernetes.io/zone",
                        "labelSelector": {
                            "matchExpressions": [{"key": "team", "operator": "Exists"}]
                        },
                    }
                ]
            }
        }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": namespace,
            "name": name,
            "uid": uid,
            "labels": {"app": app, "team": namespace},
            "creationTimestamp": _time(created),
        },
        "spec": spec,
        "status": {"phase": "Pending"},
    }


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _condition(status: str, since: datetime, message: str = "", reason: str = "") -> dict[str, Any]:
    found = {"type": "PodScheduled", "status": status, "lastTransitionTime": _time(since)}
    return found | ({"reason": reason, "message": message} if message else {})


def _pending(number: int, chance: random.Random) -> list[dict[str, Any]]:
    pods = []
    kinds, weights = [kind[0] for kind in KINDS], [kind[1] for kind in KINDS]
    wishes = {kind[0]: kind[2] for kind in KINDS}
    for index in range(number):
        kind, team = chance.choices(kinds, weights)[0], chance.choice(TEAMS)
        mean_s = 60 if kind == "fresh" else 2400
        created = NOW - timedelta(seconds=min(chance.expovariate(1 / mean_s), 200_000))
        pod = _pod(team, f"{team}-{kind}-{index:05}", f"pending-{index}", created, wishes[kind])
        pod["metadata"]["labels"]["kind"] = kind
        pod["spec"]["priority"] = chance.choice((0, 0, 0, 50, 100))
        pods.append(pod)
    return pods


def _tell(others: list[dict[str, Any]], waiting: list[dict[str, Any]]) -> None:
    """Write into each pending pod what the default profile says of the first one of its kind."""
    known = Cluster()
    known.add_all(read_dump(json.dumps({"kind": "List", "items": others}).encode(), "here"))
    snapshot = known.snapshot()
    framework = offline_framework(running_profiles(default_config()), known)
    said: dict[str, str] = {}
    for pod in waiting:
        kind = pod["metadata"]["labels"]["kind"]
        if kind == "fresh":
            continue
        if "schedulingGates" in pod["spec"]:
            text, reason = (
                "Scheduling is blocked due to non-empty scheduling gates",
                "SchedulingGated",
            )
        else:
            if kind not in said:
                one = Cluster()
                one.add_all(read_dump(json.dumps(pod).encode(), "here"))
                info = PodInfo(next(iter(one.pods.values())))
                said[kind] = (
                    _refused(judge(framework, snapshot, info)).diagnosis(len(snapshot)).message()
                )
            text, reason = said[kind], "Unschedulable"
        created = datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
        pod["status"]["conditions"] = [
            _condition("False", created + timedelta(seconds=1), text, reason)
        ]


def _refused(judgement: Judgement) -> Search:
    """Return the search of a judgement that found no node: what waits in the dump has to wait."""
    assert not judgement.count
    return judgement.search


def _policies() -> list[dict[str, Any]]:
    influence = [
        {"plugin": "NodeResourcesFit", "decisions": 1000, "changes": 0.412, "spread": 61.2},
        {"plugin": "TightestFit", "decisions": 1000, "changes": 0.377, "spread": 48.9},
        {"plugin": "PodTopologySpread", "decisions": 240, "changes": 0.102, "spread": 12.4},
        {"plugin": "ImageLocality", "decisions": 1000, "changes": 0.031, "spread": 3.1},
    ]
    samples = [
        {
            "pod": f"web/web-{index}",
            "live": f"general-{index:04}",
            "shadow": f"batch-{index:04}",
            "equals": 2,
            "lead": 40 + index,
            "decisive": "TightestFit",
        }
        for index in range(4)
    ]
    report = {
        "schedulerName": "berth",
        "live": "default",
        "shadow": "schedulingprofile/tight@3",
        "wanted": 1000,
        "compared": 1000,
        "bothPlaced": 912,
        "changedWinners": 388,
        "onlyLive": 0,
        "onlyShadow": 6,
        "changedFeasibility": 6,
        "nodesGained": 31,
        "winnerSamples": samples,
        "liveInfluence": [each for each in influence if each["plugin"] != "TightestFit"],
        "shadowInfluence": influence,
        "liveCost": {"meanSeconds": 0.00312},
        "shadowCost": {"meanSeconds": 0.00355},
    }
    return [
        {
            "apiVersion": "scheduling.berth.dev/v1alpha1",
            "kind": "SchedulingProfile",
            "metadata": {"name": "tight"},
            "spec": {"schedulerName": "berth", "mode": "Shadow"},
            "status": {
                "conditions": [{"type": "Accepted", "status": "True", "reason": "Valid"}],
                "shadow": report,
            },
        }
    ]


def write(path: Path, nodes: int, pending: int, seed: int = 1) -> list[dict[str, Any]]:
    """Write the objects of a cluster as kubectl would print them, and return them."""
    items = cluster(nodes, pending, seed)
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return items


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pending", type=int, default=20000)
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    write(options.file, options.nodes, options.pending)
