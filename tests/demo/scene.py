"""What the demo plays with: nodes of several kinds, and pods that want different things of them.

Everything here is plain data and the same in every run. What a scheduler should make of each pod
is written beside it and follows from the scene alone: the pods that are to be bound ask for so
little together that no order of placing them can leave one of them without a node.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any, Final

from tests.controlplane.objects import ZONE_LABEL, make_node, make_pod

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMESPACE: Final = "demo"
ZONES: Final = ("zone-a", "zone-b", "zone-c")
KIND_LABEL: Final = "demo/kind"
POOL_LABEL: Final = "demo/pool"
DISK_LABEL: Final = "demo/disk"
SPOT_TAINT: Final = {"key": "demo/spot", "value": "true", "effect": "NoSchedule"}

MIN_NODES: Final = 20
"""So that each pool has a node."""

MIN_PODS: Final = 50
"""So that each kind has a pod."""

MAX_PODS_PER_NODE: Final = 11
"""As many fill the nodes to about two thirds. Beyond, a large pod might find no gap."""

FOREIGN_PODS: Final = 20


@dataclass(frozen=True, slots=True)
class Kind:
    """Pods that want the same.

    Parameters
    ----------
    wants
        What they ask for, in a few words for the summary.
    count
        How many there are.
    """

    name: str
    wants: str
    count: int


@dataclass(frozen=True, slots=True)
class Scene:
    """Nodes, pods, and what should become of the pods.

    Parameters
    ----------
    nodes, pods
        Manifests, in the order in which they are created.
    kinds
        The pods that should be bound, by what they want.
    pending
        Name of each pod that must stay unbound -> why, in a few words.
    gated
        Those of them that no scheduling cycle ever sees.
    foreign
        Names of the pods that asked for another scheduler.
    """

    nodes: tuple[dict[str, Any], ...]
    pods: tuple[dict[str, Any], ...]
    kinds: tuple[Kind, ...]
    pending: Mapping[str, str]
    gated: frozenset[str]
    foreign: frozenset[str]
    placeable: frozenset[str] = field(init=False)
    """Names of the pods that should be bound."""

    def __post_init__(self) -> None:
        names = (pod["metadata"]["name"] for pod in self.pods)
        others = self.pending.keys() | self.foreign
        object.__setattr__(self, "placeable", frozenset(n for n in names if n not in others))


def build_scene(num_nodes: int, num_pods: int) -> Scene:
    """Return a scene of `num_nodes` nodes and `num_pods` pods that ask for berth.

    Raises
    ------
    ValueError
        It would be too small to have every kind in it, or too full; says which.
    """
    if num_nodes < MIN_NODES:
        raise ValueError(f"--nodes must be at least {MIN_NODES}, not {num_nodes}")
    if num_pods < MIN_PODS:
        raise ValueError(f"--pods must be at least {MIN_PODS}, not {num_pods}")
    most = num_nodes * MAX_PODS_PER_NODE
    if num_pods > most:
        raise ValueError(
            f"--pods may be at most {most} with {num_nodes} nodes, so that all are sure to fit"
        )
    nodes = _nodes(num_nodes)
    num_large = sum(node["metadata"]["labels"][POOL_LABEL] == "big" for node in nodes)
    hopeless = _hopeless_pods()
    kinds = _kinds(num_pods - len(hopeless), num_large)
    foreign = [
        _pod(f"foreign-{i:02}", "foreign", scheduler_name="default-scheduler", cpu="100m")
        for i in range(FOREIGN_PODS)
    ]
    pods = [pod for kind in kinds for pod in _pods_of(kind)]
    pods += [pod for pod, _ in hopeless] + foreign
    random.Random(1).shuffle(pods)
    return Scene(
        nodes=tuple(nodes),
        pods=tuple(pods),
        kinds=kinds,
        pending={pod["metadata"]["name"]: why for pod, why in hopeless},
        gated=frozenset({"gated"}),
        foreign=frozenset(pod["metadata"]["name"] for pod in foreign),
    )


# --- nodes


@dataclass(frozen=True, slots=True)
class _Pool:
    name: str
    cpu: str
    memory: str
    pods: str = "110"
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    unschedulable: bool = False


_STANDARD: Final = _Pool("standard", "8", "32Gi")
# Percent of all nodes -> pool; the rest is standard.
_POOLS: Final = (
    (10, _Pool("small", "2", "4Gi", pods="16")),
    (10, _Pool("spot", "16", "64Gi", taints=(SPOT_TAINT,))),
    (5, _Pool("cordoned", "8", "32Gi", unschedulable=True)),
    (4, _Pool("big", "64", "256Gi")),
)
_NVME: Final = _Pool("nvme", "8", "32Gi", labels={DISK_LABEL: "nvme"})


def _nodes(count: int) -> list[dict[str, Any]]:
    pools = [_NVME]
    for percent, pool in _POOLS:
        pools += [pool] * max(count * percent // 100, 1)
    pools += [_STANDARD] * (count - len(pools))
    numbers: Counter[str] = Counter()
    nodes = []
    for pool, zone in zip(pools, cycle(ZONES), strict=False):
        numbers[pool.name] += 1
        nodes.append(
            make_node(
                f"{pool.name}-{numbers[pool.name]:02}",
                cpu=pool.cpu,
                memory=pool.memory,
                pods=pool.pods,
                labels={POOL_LABEL: pool.name, **pool.labels},
                taints=pool.taints,
                unschedulable=pool.unschedulable,
                zone=zone,
                region="region-1",
            )
        )
    return nodes


# --- pods that should be bound

# Requests of the pods of kind "web", in turn: cpu, memory.
_SIZES: Final = (
    ("100m", "128Mi"),
    ("250m", "512Mi"),
    ("500m", "1Gi"),
    ("1", "1Gi"),
    ("1500m", "4Gi"),
    ("2", "3Gi"),
)


def _kinds(total: int, num_large: int) -> tuple[Kind, ...]:
    some = (
        Kind("plain", "no requests at all", total * 30 // 100),
        Kind("by-zone", f"a node in {ZONES[1]} (affinity)", total * 10 // 100),
        Kind("spot", "the tainted spot pool", total * 12 // 100),
        Kind("port", "host port 8080", total * 4 // 100),
        Kind("nvme", "the one node with an NVMe disk", min(max(total // 200, 1), 8)),
        Kind("large", "20 cpu and 80 GiB", num_large),
    )
    rest = total - sum(kind.count for kind in some)
    return (Kind("web", "0.1 to 2 cpu", rest), *some)


def _pods_of(kind: Kind) -> list[dict[str, Any]]:
    sizes = islice(cycle(_SIZES), kind.count)
    return [
        _pod(f"{kind.name}-{i:03}", kind.name, **_wishes(kind.name, size))
        for i, size in enumerate(sizes)
    ]


def _wishes(kind: str, size: tuple[str, str]) -> dict[str, Any]:
    cpu, memory = size
    match kind:
        case "web":
            return {"cpu": cpu, "memory": memory}
        case "by-zone":
            return {"cpu": "500m", "memory": "512Mi", **_required_affinity(ZONE_LABEL, ZONES[1])}
        case "spot":
            return {
                "cpu": "500m",
                "memory": "1Gi",
                "nodeSelector": {POOL_LABEL: "spot"},
                "tolerations": [{"key": SPOT_TAINT["key"], "operator": "Exists"}],
            }
        case "port":
            ports = [{"containerPort": 8080, "hostPort": 8080}]
            container = {"name": "main", "image": "registry.k8s.io/pause:3.10", "ports": ports}
            return {"containers": [container]}
        case "nvme":
            return {"cpu": "100m", "nodeSelector": {DISK_LABEL: "nvme"}}
        case "large":
            return {"cpu": "20", "memory": "80Gi"}
        case _:
            return {}


# --- pods that must wait


def _hopeless_pods() -> list[tuple[dict[str, Any], str]]:
    return [
        (_pod("too-big", "hopeless", cpu="500"), "500 cpu: no node has as much"),
        (
            _pod("no-toleration", "hopeless", nodeSelector={POOL_LABEL: "spot"}),
            "the spot pool, without tolerating its taint",
        ),
        (
            _pod("nowhere", "hopeless", **_required_affinity(ZONE_LABEL, "zone-x")),
            "a zone that does not exist",
        ),
        (
            _pod(
                "no-claim",
                "hopeless",
                volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "missing"}}],
            ),
            "a PersistentVolumeClaim that does not exist",
        ),
        (
            _pod("gated", "hopeless", schedulingGates=[{"name": "demo/wait-for-approval"}]),
            "its scheduling gate removed first",
        ),
    ]


def _pod(name: str, kind: str, **wishes: Any) -> dict[str, Any]:
    return make_pod(name, namespace=NAMESPACE, labels={KIND_LABEL: kind}, **wishes)


def _required_affinity(key: str, value: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
    required = {"nodeSelectorTerms": [term]}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    }
