"""Random clusters and pods as the API's JSON, most of them crowded enough to refuse a pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from random import Random

Json: TypeAlias = dict[str, Any]

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
ZONES: Final = ("a", "b", "c")
DISKS: Final = ("ssd", "hdd")
APPS: Final = ("web", "db", "batch")
PRIORITIES: Final = (0, 0, 0, 10, 100, 1000)
PORTS: Final = (80, 443, 9100)
GPU: Final = "example.com/gpu"
TAINTS: Final = (
    {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
    {"key": "team", "value": "a", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
    {"key": "spot", "effect": "PreferNoSchedule"},
)
CLASSES: Final = ("late", "bound")


def random_cluster(random: Random) -> list[Json]:
    """Return the objects of a cluster of two to seven nodes."""
    objects = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}},
        *(_storage_class(name) for name in CLASSES),
    ]
    nodes = [_node(random, f"n{index}") for index in range(random.randint(2, 7))]
    objects += nodes
    for number, claim in enumerate(("one", "two", "three")):
        objects += _claim(random, claim, number)
    for index in range(random.randint(0, 4 * len(nodes))):
        on = random.choice(nodes)["metadata"]["name"]
        objects.append(_running(random, f"r{index}", on))
    for index in range(random.choice([0, 0, 0, 1, 2])):
        nominated = _running(random, f"nominated-{index}", "")
        on = random.choice(nodes)["metadata"]["name"]
        nominated["status"] = {"phase": "Pending", "nominatedNodeName": on}
        objects.append(nominated)
    return objects


def random_pods(random: Random, number: int) -> list[Json]:
    """Return pending pods: from hardly any demands to one of nearly each kind."""
    return [_pending(random, f"asked-{index}") for index in range(number)]


def _sometimes(random: Random, share: float) -> bool:
    return random.random() < share


# --- nodes and storage ----------------------------------------------------------------------------


def _node(random: Random, name: str) -> Json:
    labels = {HOSTNAME: name}
    if _sometimes(random, 0.9):
        labels[ZONE] = random.choice(ZONES)
    if _sometimes(random, 0.7):
        labels["disk"] = random.choice(DISKS)
    if _sometimes(random, 0.3):
        labels["generation"] = str(random.randint(1, 5))
    allocatable = {
        "cpu": random.choice(["2", "4", "3900m", "8"]),
        "memory": random.choice(["4Gi", "8Gi", "16Gi"]),
        "pods": random.choice(["110", "110", "110", "110", "110", "3"]),
    }
    if _sometimes(random, 0.3):
        allocatable[GPU] = random.choice(["1", "4"])
    spec: Json = {}
    if _sometimes(random, 0.35):
        spec["taints"] = random.sample(TAINTS, random.choice([1, 1, 1, 2]))
    if _sometimes(random, 0.1):
        spec["unschedulable"] = True
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels},
        "spec": spec,
        "status": {"allocatable": allocatable, "capacity": allocatable},
    }


def _storage_class(name: str) -> Json:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "example.com/disk",
        "volumeBindingMode": "WaitForFirstConsumer" if name == "late" else "Immediate",
    }


def _claim(random: Random, name: str, number: int) -> list[Json]:
    """Return a claim and its volume, a claim that waits for its pod, or nothing."""
    if _sometimes(random, 0.2):
        return []
    spec: Json = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "late",
    }
    claim: Json = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": spec,
        "status": {"phase": "Pending"},
    }
    if _sometimes(random, 0.3):
        return [claim]
    volume, zone = f"pv-{number}", random.choice(ZONES)
    spec |= {"volumeName": volume, "storageClassName": "bound"}
    claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    claim["status"] = {"phase": "Bound"}
    made: Json = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": volume, "uid": f"uid-{volume}", "labels": {}},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "bound",
            "claimRef": {"namespace": "default", "name": name, "uid": f"uid-{name}"},
        },
        "status": {"phase": "Bound"},
    }
    if _sometimes(random, 0.5):
        made["metadata"]["labels"][ZONE] = zone
    else:
        expression = {"key": ZONE, "operator": "In", "values": [zone]}
        made["spec"]["nodeAffinity"] = {
            "required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        }
    return [claim, made]


# --- pods -----------------------------------------------------------------------------------------


def _pod(random: Random, name: str) -> Json:
    labels = {"app": random.choice(APPS)}
    if _sometimes(random, 0.3):
        labels["tier"] = random.choice(["front", "back"])
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "default", "uid": f"uid-{name}", "labels": labels,
        },
        "spec": {"schedulerName": "default-scheduler", "priority": random.choice(PRIORITIES)},
    }  # fmt: skip


def _container(name: str, **requests: str) -> Json:
    return {"name": name, "image": "pause", "resources": {"requests": requests}}


def _running(random: Random, name: str, node_name: str) -> Json:
    pod = _pod(random, name)
    cpu, memory = random.choice(["100m", "500m", "1", "1500m"]), random.choice(["256Mi", "2Gi"])
    spec = pod["spec"]
    spec |= {"nodeName": node_name, "containers": [_container("main", cpu=cpu, memory=memory)]}
    if _sometimes(random, 0.15):
        port = random.choice(PORTS)
        spec["containers"][0]["ports"] = [{"containerPort": port, "hostPort": port}]
    if _sometimes(random, 0.12):
        key = random.choice([HOSTNAME, ZONE])
        spec["affinity"] = {"podAntiAffinity": _required([_term(random.choice(APPS), key)])}
    pod["status"] = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
    return pod


def _pending(random: Random, name: str) -> Json:
    pod = _pod(random, name)
    spec = pod["spec"]
    spec["containers"] = _containers(random)
    if _sometimes(random, 0.4):
        return pod
    if _sometimes(random, 0.3):
        wanted = {"disk": random.choice(DISKS), ZONE: random.choice(ZONES), "never": "there"}
        keys = random.sample(sorted(wanted), random.choice([1, 1, 2, 3]))
        spec["nodeSelector"] = {key: wanted[key] for key in keys}
    affinity = _affinity(random)
    if affinity:
        spec["affinity"] = affinity
    if _sometimes(random, 0.35):
        spec["topologySpreadConstraints"] = [
            _constraint(random, pod) for _ in range(random.choice([1, 1, 2]))
        ]
    if _sometimes(random, 0.25):
        names = random.sample(["one", "two", "three", "lost"], random.choice([1, 1, 2]))
        spec["volumes"] = [
            {"name": f"v-{name}", "persistentVolumeClaim": {"claimName": name}} for name in names
        ]
    if _sometimes(random, 0.25):
        spec["tolerations"] = [{"key": random.choice(["gpu", "team"]), "operator": "Exists"}]
    if _sometimes(random, 0.15):
        spec["preemptionPolicy"] = "Never"
    return pod


def _containers(random: Random) -> list[Json]:
    cpu = random.choice(["100m", "1", "1500m", "2500m", "4", "6"])
    memory = random.choice(["128Mi", "1Gi", "3Gi", "7Gi", "12Gi"])
    main = _container("main", cpu=cpu, memory=memory)
    if _sometimes(random, 0.15):
        main["resources"]["requests"][GPU] = random.choice(["1", "2"])
    if _sometimes(random, 0.2):
        ports = random.sample(PORTS, random.choice([1, 2]))
        main["ports"] = [{"containerPort": port, "hostPort": port} for port in ports]
    if _sometimes(random, 0.2):
        return [main, _container("side", cpu="300m", memory="1Gi")]
    return [main]


def _affinity(random: Random) -> Json:
    affinity: Json = {}
    if _sometimes(random, 0.25):
        terms = [_node_term(random) for _ in range(random.choice([1, 1, 2]))]
        required = {"nodeSelectorTerms": terms}
        affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": required}
        if _sometimes(random, 0.5):
            affinity["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": random.randint(1, 100), "preference": _node_term(random)}
            ]
    for field, share in (("podAffinity", 0.2), ("podAntiAffinity", 0.3)):
        if _sometimes(random, share):
            affinity[field] = _required(
                [
                    _term(random.choice([*APPS, "nobody"]), random.choice([HOSTNAME, ZONE]))
                    for _ in range(random.choice([1, 1, 2]))
                ]
            )
    return affinity


def _node_term(random: Random) -> Json:
    choices: list[Json] = [
        {"key": "disk", "operator": "In", "values": [random.choice(DISKS)]},
        {"key": ZONE, "operator": "NotIn", "values": [random.choice(ZONES)]},
        {"key": "generation", "operator": "Gt", "values": [str(random.randint(1, 4))]},
        {"key": "metal", "operator": "Exists"},
    ]
    return {"matchExpressions": random.sample(choices, random.choice([1, 1, 2, 3]))}


def _term(app: str, topology_key: str) -> Json:
    return {"topologyKey": topology_key, "labelSelector": {"matchLabels": {"app": app}}}


def _required(terms: list[Json]) -> Json:
    return {"requiredDuringSchedulingIgnoredDuringExecution": terms}


def _constraint(random: Random, pod: Json) -> Json:
    constraint: Json = {
        "maxSkew": random.choice([1, 1, 2]),
        "topologyKey": random.choice([HOSTNAME, ZONE, ZONE]),
        "whenUnsatisfiable": random.choice(["DoNotSchedule"] * 3 + ["ScheduleAnyway"]),
        "labelSelector": {"matchLabels": {"app": pod["metadata"]["labels"]["app"]}},
    }
    if _sometimes(random, 0.2):
        constraint["minDomains"] = random.randint(1, 5)
    return constraint
