"""Objects of a world as JSON, made up from a seeded generator of random numbers.

Only draws whose results every Python gives alike are used, and nothing that has no order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

Json: TypeAlias = "dict[str, Any]"

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
GPU: Final = "example.com/gpu"
ZONES: Final = ("east", "west")
APPS: Final = ("web", "db", "batch")
NAMESPACES: Final = ("default", "default", "default", "other")
CLASSES: Final = ("fast", "local", "now")
IMAGES: Final = ("pause", "registry.example.com/large:1", "registry.example.com/small:1")

TAINTS: Final = (
    {"key": "dedicated", "value": "batch", "effect": "NoSchedule"},
    {"key": "flaky", "effect": "PreferNoSchedule"},
    {"key": "leaving", "effect": "NoExecute"},
)
_TOLERATIONS: Final = (
    {"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"},
    {"key": "flaky", "operator": "Exists"},
    {"operator": "Exists"},
)
_MEBI: Final = 1 << 20


def node(rng: random.Random, name: str) -> Json:
    """Return a node in one of two zones, mostly with few CPUs and now and then with devices."""
    labels = {HOSTNAME: name, "disk": rng.choice(("ssd", "hdd"))}
    if rng.random() < 0.9:
        labels[ZONE] = rng.choice(ZONES)
    made: Json = {"metadata": {"labels": labels}, "status": {**room(rng), **_images(rng)}}
    if rng.random() < 0.15:
        made["spec"] = {"taints": [rng.choice(TAINTS)]}
    return made


def room(rng: random.Random) -> Json:
    """Return capacity and allocatable of a node's status."""
    amounts = {
        "cpu": str(rng.choice((2, 3, 3, 4, 6))),
        "memory": f"{rng.choice((4, 8, 16))}Gi",
        "pods": str(rng.choice((3, 5, 110, 110))),
        "ephemeral-storage": "20Gi",
    }
    if rng.random() < 0.3:
        amounts[GPU] = str(rng.choice((1, 2, 4)))
    return {"capacity": amounts, "allocatable": amounts}


def _images(rng: random.Random) -> Json:
    held = [each for each in IMAGES[1:] if rng.random() < 0.3]
    return {"images": [{"names": [each], "sizeBytes": 300 * _MEBI} for each in held]}


class PodMaker:
    """Makes up pods.

    Parameters
    ----------
    features
        What pods of this world may ask for besides CPU and memory.
    """

    def __init__(self, rng: random.Random, features: Sequence[str]) -> None:
        self._rng = rng
        self._features = features

    def pod(self, claims: Sequence[str]) -> Json:
        """Return a pod; ``claims`` are those of its namespace ``default`` that it may use."""
        rng = self._rng
        app = rng.choice(APPS)
        namespace = rng.choice(NAMESPACES) if self._has("tenants", 1.0) else "default"
        spec = self._plain_spec()
        self._add_places(spec, app)
        self._add_neighbours(spec, app)
        if claims and namespace == "default" and self._has("storage", 0.7):
            source = {"claimName": rng.choice(claims)}
            spec["volumes"] = [{"name": "data", "persistentVolumeClaim": source}]
        metadata: Json = {"namespace": namespace, "labels": {"app": app}}
        if self._has("owners", 0.5):
            metadata["ownerReferences"] = [_owner(f"{app}-set")]
        if self._has("finalizers", 0.15):
            metadata["finalizers"] = ["example.com/last"]
        return {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}

    def _has(self, feature: str, share: float) -> bool:
        return feature in self._features and self._rng.random() < share

    def _plain_spec(self) -> Json:
        rng = self._rng
        requests = {"cpu": rng.choice(("250m", "1", "1", "2", "2", "3"))}
        if rng.random() < 0.6:
            requests["memory"] = rng.choice(("256Mi", "1Gi", "3Gi"))
        if self._has("devices", 0.4):
            requests[GPU] = str(rng.choice((1, 1, 2)))
        container: Json = {
            "name": "main",
            "image": rng.choice(IMAGES),
            "resources": {"requests": requests, "limits": {}},
        }
        if self._has("ports", 0.4):
            port = rng.choice((80, 443))
            container["ports"] = [{"containerPort": port, "hostPort": port}]
        spec: Json = {"schedulerName": "berth", "containers": [container]}
        if rng.random() < 0.05:
            spec["schedulerName"] = "another"
        spec["priority"] = rng.choice((0, 0, 10, 100)) if self._has("priorities", 1.0) else 0
        if self._has("priorities", 0.1):
            spec["preemptionPolicy"] = "Never"
        if self._has("gates", 0.25):
            spec["schedulingGates"] = [{"name": "example.com/wait"}]
        if rng.random() < 0.05:
            spec["overhead"] = {"cpu": "100m"}
        if rng.random() < 0.1:
            first = {"name": "first", "image": "pause", "resources": {"requests": {"cpu": "2"}}}
            spec["initContainers"] = [first]
        return spec

    def _add_places(self, spec: Json, app: str) -> None:
        rng = self._rng
        if self._has("taints", 0.5):
            spec["tolerations"] = [rng.choice(_TOLERATIONS)]
        if self._has("node affinity", 0.2):
            spec["nodeSelector"] = {"disk": rng.choice(("ssd", "hdd"))}
        if self._has("node affinity", 0.3):
            zone = {"key": ZONE, "operator": "In", "values": [rng.choice(ZONES)]}
            term = {"matchExpressions": [zone]}
            weighted = [{"weight": rng.choice((1, 50)), "preference": term}]
            required = {"nodeSelectorTerms": [term]}
            spec["affinity"] = {
                "nodeAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": weighted,
                }
                if rng.random() < 0.5
                else {"requiredDuringSchedulingIgnoredDuringExecution": required}
            }
        if self._has("spread", 0.5):
            spec["topologySpreadConstraints"] = [
                {
                    "maxSkew": 1,
                    "topologyKey": key,
                    "whenUnsatisfiable": rng.choice(("DoNotSchedule", "ScheduleAnyway")),
                    "labelSelector": {"matchLabels": {"app": app}},
                }
                for key in (ZONE, HOSTNAME)
                if rng.random() < 0.6
            ]

    def _add_neighbours(self, spec: Json, app: str) -> None:
        rng = self._rng
        if not self._has("neighbours", 0.45):
            return
        other = rng.choice((app, rng.choice(APPS)))
        term: Json = {
            "topologyKey": rng.choice((ZONE, HOSTNAME)),
            "labelSelector": {"matchLabels": {"app": other}},
        }
        if rng.random() < 0.2:
            term["namespaceSelector"] = {"matchLabels": {"team": "a"}}
        kind = rng.choice(("podAffinity", "podAntiAffinity"))
        weighted = [{"weight": 10, "podAffinityTerm": term}]
        spec.setdefault("affinity", {})[kind] = (
            {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            if rng.random() < 0.6
            else {"preferredDuringSchedulingIgnoredDuringExecution": weighted}
        )


def _owner(name: str) -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": name,
        "uid": name,
        "controller": True,
    }


# --- what pods belong to ----------------------------------------------------------------------


def namespace(team: str) -> Json:
    """Return a namespace of a team."""
    return {"metadata": {"labels": {"team": team}}}


def replica_set(app: str) -> Json:
    """Return what owns the pods of an app."""
    return {"metadata": {}, "spec": {"selector": {"matchLabels": {"app": app}}}}


def service(app: str) -> Json:
    """Return a Service of the pods of an app."""
    return {"metadata": {}, "spec": {"selector": {"app": app}}}


def budget(app: str, allowed: int) -> Json:
    """Return a disruption budget of an app: so many of its pods may still be evicted."""
    return {
        "metadata": {},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": allowed},
    }


# --- storage ----------------------------------------------------------------------------------


def storage_class(name: str) -> Json:
    """Return a class: with volumes made on demand, with those that are there, bound at once."""
    provisioner = "kubernetes.io/no-provisioner" if name == "local" else "csi.example.com"
    mode = "Immediate" if name == "now" else "WaitForFirstConsumer"
    return {"metadata": {}, "provisioner": provisioner, "volumeBindingMode": mode}


def csi_driver(*, storage_capacity: bool) -> Json:
    """Return the driver of the volumes that are made on demand."""
    return {"metadata": {}, "spec": {"storageCapacity": storage_capacity}}


def csi_node(name: str, limit: int) -> Json:
    """Return what the driver says of a node: so many volumes fit."""
    driver = {"name": "csi.example.com", "nodeID": name, "allocatable": {"count": limit}}
    return {"metadata": {}, "spec": {"drivers": [driver]}}


def capacity(zone: str, gibibytes: int) -> Json:
    """Return how much the driver can still make in a zone."""
    return {
        "metadata": {"namespace": "default"},
        "storageClassName": "fast",
        "capacity": f"{gibibytes}Gi",
        "nodeTopology": {"matchLabels": {ZONE: zone}},
    }


def volume(rng: random.Random, nodes: Sequence[str]) -> Json:
    """Return a volume that is there, on a node or in a zone."""
    on_node = rng.random() < 0.5
    values = [rng.choice(nodes) if on_node else rng.choice(ZONES)]
    term = {"key": HOSTNAME if on_node else ZONE, "operator": "In", "values": values}
    return {
        "metadata": {},
        "spec": {
            "capacity": {"storage": f"{rng.choice((1, 5))}Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}},
        },
        "status": {"phase": "Available"},
    }


def claim(rng: random.Random) -> Json:
    """Return a claim that nobody has bound yet."""
    return {
        "metadata": {"namespace": "default"},
        "spec": {
            "storageClassName": rng.choice(("fast", "fast", "local", "local", "now")),
            "accessModes": [rng.choice(("ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod"))],
            "resources": {"requests": {"storage": f"{rng.choice((1, 2))}Gi"}},
        },
        "status": {"phase": "Pending"},
    }
