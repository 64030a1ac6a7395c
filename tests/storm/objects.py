"""Nodes, pods and all else of a simulated cluster, as JSON that dice decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

Json = dict[str, Any]

ZONE: Final = "topology.kubernetes.io/zone"
HOSTNAME: Final = "kubernetes.io/hostname"
ZONES: Final = ("east", "west")
APPS: Final = ("web", "db", "batch")
TAINT: Final = {"key": "team", "value": "a", "effect": "NoSchedule"}
NAMESPACES: Final = ("default", "other")


def node(name: str, cpu_milli: int, memory_mi: int, zone: str, *, pods: int = 20) -> Json:
    """Return a node."""
    amounts = {"cpu": f"{cpu_milli}m", "memory": f"{memory_mi}Mi", "pods": str(pods)}
    labels = {HOSTNAME: name, ZONE: zone}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod_spec(dice: random.Random, scheduler: str) -> Json:
    """Return the spec of a pod, from what worlds make hard for a scheduler."""
    requests = {
        "cpu": f"{dice.choice((100, 250, 250, 500, 500, 1000, 2000))}m",
        "memory": f"{dice.choice((64, 128, 256, 512))}Mi",
    }
    container: Json = {"name": "main", "image": "image", "resources": {"requests": requests}}
    spec: Json = {"schedulerName": scheduler, "containers": [container], "priority": 0}
    if dice.random() < 0.3:
        spec["priority"] = dice.choice((10, 100, 1000))
    if dice.random() < 0.1:
        spec["nodeSelector"] = {ZONE: dice.choice(ZONES)}
    if dice.random() < 0.3:
        spec["tolerations"] = [{"key": "team", "operator": "Exists"}]
    if dice.random() < 0.08:
        container["ports"] = [{"containerPort": 80, "hostPort": dice.choice((8080, 9090))}]
    if dice.random() < 0.06:
        spec["schedulingGates"] = [{"name": "wait"}]
    return spec


def apart(app: str) -> Json:
    """Return the affinity of pods of an app of which each node has one at most."""
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOSTNAME}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def kept_away(spec: Mapping[str, Any]) -> set[str]:
    """Return the apps that a pod keeps off its node; those of others' terms are nobody's."""
    rules = spec.get("affinity", {}).get("podAntiAffinity", {})
    terms = rules.get("requiredDuringSchedulingIgnoredDuringExecution", ())
    labels = (term["labelSelector"]["matchLabels"] for term in terms)
    return {each["app"] for each in labels if "app" in each}


def spread_apps(spec: Mapping[str, Any]) -> set[str]:
    """Return the apps that a pod wants spread over zones."""
    constraints = spec.get("topologySpreadConstraints", ())
    labels = (each.get("labelSelector", {}).get("matchLabels", {}) for each in constraints)
    return {each["app"] for each in labels if "app" in each}


def spread(app: str) -> Json:
    """Return the spread constraint of an app over zones."""
    return {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
    }


def milli(text: str) -> int:
    """Return an amount of CPU, or of anything without a unit, in thousandths."""
    if text.endswith("m"):
        return int(text[:-1])
    return int(float(text) * 1000)


def mebi(text: str) -> int:
    """Return an amount of memory in MiB."""
    return int(text.removesuffix("Mi"))


def requests_of(spec: Mapping[str, Any]) -> tuple[int, int]:
    """Return CPU in thousandths and memory in MiB that a pod asks for."""
    cpu = memory = 0
    for container in spec["containers"]:
        wanted = container.get("resources", {}).get("requests", {})
        try:
            cpu += milli(wanted.get("cpu", "0"))
            memory += mebi(wanted.get("memory", "0Mi"))
        except ValueError:
            pass  # what nobody can read
    return cpu, memory


def is_over(pod: Mapping[str, Any]) -> bool:
    """Whether a pod uses nothing any more."""
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
