"""What a tenant may do: make objects in a namespace of its own, and change and delete them.

A tenant knows the names of nodes and of schedulers. It may set ``spec.nodeName``, as everybody who
may create pods may. It cannot change nodes, classes or anybody else's objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.controlplane.objects import make_pod

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]

TENANT = "tenant"
"""The namespace of the hostile objects."""

STORAGE_CLASS = "tenant-slow"
"""A class of the cluster that binds with the first consumer; nobody provisions for it."""


@dataclass(frozen=True)
class Tenant:
    """Who makes the objects.

    Parameters
    ----------
    scheduler_name
        Whom its pods ask for.
    node_names
        Nodes that it knows of.
    namespace
        Its own.
    """

    scheduler_name: str
    node_names: tuple[str, ...]
    namespace: str = TENANT

    def pod(self, name: str, *, labels: dict[str, str] | None = None, **spec: Any) -> Json:
        """Return a pod that waits for the scheduler."""
        return make_pod(
            name,
            namespace=self.namespace,
            scheduler_name=self.scheduler_name,
            labels=labels,
            **spec,
        )

    def running(self, name: str, *, labels: dict[str, str] | None = None, **spec: Any) -> Json:
        """Return a pod that the tenant has put on a node itself."""
        return self.pod(name, labels=labels, nodeName=self.node_names[0], **spec)

    def meta(self, name: str, **more: Any) -> Json:
        """Return the metadata of an object of this tenant."""
        return {"name": name, "namespace": self.namespace, **more}


@dataclass(frozen=True)
class HostileSpec:
    """One way to be expensive.

    Parameters
    ----------
    name, about
        In the table.
    make
        Returns the objects; those that others need come first.
    change
        Returns a merge patch for the first object, by the number of the change. It is sent again
        and again while others wait.
    resized
        Whether the patch goes to the subresource ``resize``.
    comes_and_goes
        Whether the objects are deleted and made again all the time.
    """

    name: str
    about: str
    make: Callable[[Tenant], list[Json]]
    change: Callable[[int], Json] | None = None
    resized: bool = False
    comes_and_goes: bool = False


class Collection:
    """Specs in the order in which they were written down."""

    def __init__(self) -> None:
        self.specs: list[HostileSpec] = []

    def add(self, about: str, **more: Any) -> Callable[[Any], Any]:
        """Register the decorated function as a spec of its own name."""

        def register(make: Callable[[Tenant], Json | list[Json]]) -> Any:
            def made(tenant: Tenant) -> list[Json]:
                objects = make(tenant)
                return objects if isinstance(objects, list) else [objects]

            name = make.__name__.replace("_", "-")
            self.specs.append(HostileSpec(name, about, made, **more))
            return make

        return register


def node_affinity(*terms: Json) -> Json:
    """Return an affinity with required terms on nodes."""
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}
        }
    }


def preferred_node_affinity(*terms: Json) -> Json:
    """Return an affinity with preferred terms on nodes, each of its own weight."""
    return {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1 + index % 100, "preference": each} for index, each in enumerate(terms)
            ]
        }
    }


def expression(key: str, operator: str, *values: str) -> Json:
    """Return a requirement on a label."""
    found: Json = {"key": key, "operator": operator}
    return {**found, "values": list(values)} if values else found


def required(kind: str, *terms: Json) -> Json:
    """Return an affinity with required terms on pods; `kind` is ``podAffinity`` or its opposite."""
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def preferred(kind: str, *terms: Json) -> Json:
    """Return an affinity with preferred terms on pods, each of its own weight."""
    return {
        kind: {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1 + index % 100, "podAffinityTerm": each}
                for index, each in enumerate(terms)
            ]
        }
    }


def term(topology_key: str, *expressions: Json, **more: Any) -> Json:
    """Return a term on pods."""
    selector = {"matchExpressions": list(expressions)}
    return {"topologyKey": topology_key, "labelSelector": selector, **more}


def spread(topology_key: str, *expressions: Json, soft: bool = False, **more: Any) -> Json:
    """Return a topology spread constraint."""
    return {
        "maxSkew": 1,
        "topologyKey": topology_key,
        "whenUnsatisfiable": "ScheduleAnyway" if soft else "DoNotSchedule",
        "labelSelector": {"matchExpressions": list(expressions)},
        **more,
    }


def containers(count: int, **each: Any) -> list[Json]:
    """Return so many containers."""
    image = "registry.k8s.io/pause:3.10"
    return [{"name": f"c{index}", "image": image, **each} for index in range(count)]
