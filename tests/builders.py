"""Builders of API objects that read as a sentence.

    pod("web").request(cpu="500m").toleration("gpu", operator="Exists").info()
    node("n1").capacity(cpu="4").label("zone", "a").taint("gpu", effect="NoSchedule").info()

A builder never changes: each word returns another one, so that a base can be shared.
``build()`` gives the API object, ``info()`` what the cache makes of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from msgspec.structs import replace

from cache.node_info import NodeInfo
from cache.objects import (
    Affinity,
    ClaimVolumeSource,
    Container,
    ContainerImage,
    ContainerPort,
    EphemeralVolumeSource,
    LabelSelector,
    Node,
    NodeAffinity,
    NodeCondition,
    NodeMeta,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeStatus,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodCondition,
    PodMeta,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodSchedulingGate,
    PodSchedulingGroup,
    PodSpec,
    PreferredSchedulingTerm,
    Quantity,
    ResourceRequirements,
    Taint,
    Toleration,
    TopologySpreadConstraint,
    Volume,
    WeightedPodAffinityTerm,
)
from cache.pod_info import PodInfo
from cache.scheduler_cache import SchedulerCache

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cache.columns import Columns

DEFAULT_TOLERATIONS = tuple(
    Toleration(
        key=f"node.kubernetes.io/{key}",
        operator="Exists",
        effect="NoExecute",
        toleration_seconds=300,
    )
    for key in ("not-ready", "unreachable")
)
"""What the API server adds to every pod."""

_MAIN = Container(name="main", image="registry.k8s.io/pause:3.10")


def pod(name: str = "pod", *, namespace: str = "default") -> PodBuilder:
    """Return a builder of a pod with one container that asks for nothing."""
    return PodBuilder(
        Pod(
            metadata=PodMeta(name=name, namespace=namespace, uid=f"uid-{namespace}-{name}"),
            spec=PodSpec(scheduler_name="berth", containers=(_MAIN,)),
        )
    )


def node(name: str = "node") -> NodeBuilder:
    """Return a builder of a node with room for 110 pods, 4 CPUs and 16 GiB."""
    room: dict[str, Quantity] = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    return NodeBuilder(
        Node(
            metadata=NodeMeta(name=name, uid=f"uid-{name}"),
            status=NodeStatus(capacity=room, allocatable=room),
        )
    )


def requirement(key: str, operator: str, *values: str) -> NodeSelectorRequirement:
    """Return ``key operator values``, on a label or on a field."""
    return NodeSelectorRequirement(key, operator, values)


def term(
    *expressions: NodeSelectorRequirement, fields: tuple[NodeSelectorRequirement, ...] = ()
) -> NodeSelectorTerm:
    """Return a term of a node selector."""
    return NodeSelectorTerm(expressions, fields)


def names_term(*node_names: str) -> NodeSelectorTerm:
    """Return a term that demands each of the names at once."""
    return term(fields=tuple(requirement("metadata.name", "In", name) for name in node_names))


@dataclass(frozen=True)
class PodBuilder:
    """A pod in the making."""

    _pod: Pod

    def build(self) -> Pod:
        """Return the pod."""
        return self._pod

    def info(self) -> PodInfo:
        """Return the pod with what scheduling derives from it."""
        return PodInfo(self._pod)

    # --- identity -----------------------------------------------------------------------------

    def uid(self, uid: str) -> Self:
        """Give it a UID."""
        return self._meta(uid=uid)

    def named(self, name: str) -> Self:
        """Give it a name, and the UID that belongs to it."""
        return self._meta(name=name, uid=f"uid-{self._pod.metadata.namespace}-{name}")

    def label(self, key: str, value: str = "") -> Self:
        """Add a label."""
        return self._meta(labels={**self._pod.metadata.labels, key: value})

    def terminating(self, since: str = "2025-01-01T00:00:00Z") -> Self:
        """Let somebody have asked for its deletion."""
        return self._meta(deletion_timestamp=since)

    def priority(self, priority: int) -> Self:
        """Give it a priority."""
        return self._spec(priority=priority)

    def never_preempts(self) -> Self:
        """Let it wait rather than have others evicted."""
        return self._spec(preemption_policy="Never")

    def started(self, at: str) -> Self:
        """Let it have been started at a time."""
        return self._status(start_time=at)

    def ended(self, phase: str) -> Self:
        """Let it have ended in a phase."""
        return self._status(phase=phase)

    def nominated(self, node_name: str) -> Self:
        """Nominate it for a node."""
        return self._status(nominated_node_name=node_name)

    def preempted(self, since: str = "2025-01-01T00:00:00Z") -> Self:
        """Let a scheduler have asked for its deletion."""
        told = PodCondition("DisruptionTarget", "True", "PreemptionByScheduler")
        conditions = (*self._pod.status.conditions, told)
        return self.terminating(since)._status(conditions=conditions)

    def scheduler(self, name: str) -> Self:
        """Give it to another scheduler."""
        return self._spec(scheduler_name=name)

    def phase(self, phase: str) -> Self:
        """Give it a phase."""
        return self._status(phase=phase)

    def gate(self, *names: str) -> Self:
        """Add scheduling gates."""
        gates = tuple(PodSchedulingGate(name) for name in names)
        return self._spec(scheduling_gates=self._pod.spec.scheduling_gates + gates)

    # --- what it asks for ---------------------------------------------------------------------

    def request(self, amounts: Mapping[str, Quantity] | None = None, **more: Quantity) -> Self:
        """Let the main container ask for amounts of resources."""
        main = self._pod.spec.containers[0]
        requests = {**main.resources.requests, **(amounts or {}), **more}
        return self._container(replace(main, resources=ResourceRequirements(requests=requests)))

    def image(self, name: str) -> Self:
        """Let the main container run an image."""
        return self._container(replace(self._pod.spec.containers[0], image=name))

    def host_port(self, port: int, *, ip: str = "", protocol: str = "TCP") -> Self:
        """Let the main container hold a port of the node."""
        main = self._pod.spec.containers[0]
        held = ContainerPort(container_port=port, host_port=port, host_ip=ip, protocol=protocol)
        return self._container(replace(main, ports=(*main.ports, held)))

    def container(self, container: Container) -> Self:
        """Add a container."""
        return self._spec(containers=(*self._pod.spec.containers, container))

    def init_container(self, container: Container) -> Self:
        """Add an init container."""
        return self._spec(init_containers=(*self._pod.spec.init_containers, container))

    def volume(self, volume: Volume) -> Self:
        """Add a volume."""
        return self._spec(volumes=(*self._pod.spec.volumes, volume))

    def claim(self, name: str) -> Self:
        """Add a volume that is a PersistentVolumeClaim, and is called like it."""
        return self.volume(Volume(name, persistent_volume_claim=ClaimVolumeSource(name)))

    def ephemeral_claim(self, volume_name: str) -> Self:
        """Add a volume whose claim is made with the pod."""
        return self.volume(Volume(volume_name, ephemeral=EphemeralVolumeSource()))

    def resource_claim(
        self, name: str, claim_name: str | None = None, *, template: str | None = None
    ) -> Self:
        """Add a claim of dynamic resources: one that exists, or one that a template makes."""
        entry = PodResourceClaim(name, claim_name, template)
        return self._spec(resource_claims=(*self._pod.spec.resource_claims, entry))

    def generated_claim(self, name: str, claim_name: str | None) -> Self:
        """Let a claim have been made for an entry, or none be needed."""
        status = PodResourceClaimStatus(name, claim_name)
        return self._status(
            resource_claim_statuses=(*self._pod.status.resource_claim_statuses, status)
        )

    def scheduling_group(self, name: str) -> Self:
        """Let it belong to a group of pods."""
        return self._spec(scheduling_group=PodSchedulingGroup(name))

    # --- where it may run ---------------------------------------------------------------------

    def on(self, node_name: str) -> Self:
        """Bind it to a node."""
        return self._spec(node_name=node_name)

    def toleration(
        self, key: str = "", value: str = "", *, operator: str = "", effect: str = ""
    ) -> Self:
        """Add a toleration."""
        more = Toleration(key=key, operator=operator, value=value, effect=effect)
        return self._spec(tolerations=(*self._pod.spec.tolerations, more))

    def default_tolerations(self) -> Self:
        """Add what the API server adds to every pod."""
        return self._spec(tolerations=self._pod.spec.tolerations + DEFAULT_TOLERATIONS)

    def node_selector(self, key: str, value: str) -> Self:
        """Demand a label of the node."""
        return self._spec(node_selector={**self._pod.spec.node_selector, key: value})

    def node_affinity(self, *terms: NodeSelectorTerm) -> Self:
        """Demand that the node satisfies one of the terms."""
        return self._node_affinity(
            required_during_scheduling_ignored_during_execution=NodeSelector(terms)
        )

    def prefers_node(self, weight: int, preference: NodeSelectorTerm) -> Self:
        """Prefer nodes that satisfy a term."""
        affinity = (self._pod.spec.affinity or Affinity()).node_affinity or NodeAffinity()
        preferred = affinity.preferred_during_scheduling_ignored_during_execution
        return self._node_affinity(
            preferred_during_scheduling_ignored_during_execution=(
                *preferred,
                PreferredSchedulingTerm(weight, preference),
            )
        )

    def pod_affinity(self, topology_key: str, **labels: str) -> Self:
        """Demand a node where pods with the labels are."""
        return self._affinity(pod_affinity=_required(topology_key, labels))

    def pod_anti_affinity(self, topology_key: str, **labels: str) -> Self:
        """Demand a node where no pods with the labels are."""
        return self._affinity(pod_anti_affinity=_required(topology_key, labels))

    def prefers_pods(self, weight: int, topology_key: str, **labels: str) -> Self:
        """Prefer nodes where pods with the labels are."""
        return self._affinity(pod_affinity=_preferred(weight, topology_key, labels))

    def avoids_pods(self, weight: int, topology_key: str, **labels: str) -> Self:
        """Prefer nodes where no pods with the labels are."""
        return self._affinity(pod_anti_affinity=_preferred(weight, topology_key, labels))

    def spread(
        self,
        topology_key: str,
        *,
        max_skew: int = 1,
        when_unsatisfiable: str = "DoNotSchedule",
        **labels: str,
    ) -> Self:
        """Add a constraint on how pods with the labels spread."""
        constraint = TopologySpreadConstraint(
            max_skew=max_skew,
            topology_key=topology_key,
            when_unsatisfiable=when_unsatisfiable,
            label_selector=LabelSelector(match_labels=labels),
        )
        constraints = (*self._pod.spec.topology_spread_constraints, constraint)
        return self._spec(topology_spread_constraints=constraints)

    # --- how it is put together ---------------------------------------------------------------

    def _meta(self, **changes: Any) -> Self:
        return type(self)(replace(self._pod, metadata=replace(self._pod.metadata, **changes)))

    def _spec(self, **changes: Any) -> Self:
        return type(self)(replace(self._pod, spec=replace(self._pod.spec, **changes)))

    def _status(self, **changes: Any) -> Self:
        return type(self)(replace(self._pod, status=replace(self._pod.status, **changes)))

    def _container(self, main: Container) -> Self:
        return self._spec(containers=(main, *self._pod.spec.containers[1:]))

    def _affinity(self, **changes: Any) -> Self:
        return self._spec(affinity=replace(self._pod.spec.affinity or Affinity(), **changes))

    def _node_affinity(self, **changes: Any) -> Self:
        affinity = (self._pod.spec.affinity or Affinity()).node_affinity or NodeAffinity()
        return self._affinity(node_affinity=replace(affinity, **changes))


@dataclass(frozen=True)
class NodeBuilder:
    """A node in the making."""

    _node: Node

    def build(self) -> Node:
        """Return the node."""
        return self._node

    def info(self, *pods: PodBuilder) -> NodeInfo:
        """Return what the cache makes of the node with these pods on it."""
        info = NodeInfo(self._node.metadata.name)
        info.set_node(self._node)
        for each in pods:
            info.add_pod(each.info())
        return info

    def uid(self, uid: str) -> Self:
        """Give it a UID."""
        return self._meta(uid=uid)

    def label(self, key: str, value: str = "") -> Self:
        """Add a label."""
        return self._meta(labels={**self._node.metadata.labels, key: value})

    def zone(self, zone: str, *, region: str = "") -> Self:
        """Put it into a zone, and into a region if one is named."""
        inside = self.label("topology.kubernetes.io/zone", zone)
        return inside.label("topology.kubernetes.io/region", region) if region else inside

    def capacity(self, amounts: Mapping[str, Quantity] | None = None, **more: Quantity) -> Self:
        """Give it amounts of resources, all of them allocatable."""
        room = {**self._node.status.allocatable, **(amounts or {}), **more}
        return self._status(capacity=room, allocatable=room)

    def taint(self, key: str, value: str = "", *, effect: str = "NoSchedule") -> Self:
        """Add a taint."""
        taints = (*self._node.spec.taints, Taint(key=key, value=value, effect=effect))
        return self._spec(taints=taints)

    def unschedulable(self) -> Self:
        """Cordon it."""
        return self._spec(unschedulable=True)

    def condition(self, type_: str, status: str = "True") -> Self:
        """Add a condition."""
        return self._status(
            conditions=(*self._node.status.conditions, NodeCondition(type_, status))
        )

    def image(self, *names: str, size_bytes: int = 0) -> Self:
        """Let it hold an image."""
        images = (*self._node.status.images, ContainerImage(names=names, size_bytes=size_bytes))
        return self._status(images=images)

    def _meta(self, **changes: Any) -> Self:
        return type(self)(replace(self._node, metadata=replace(self._node.metadata, **changes)))

    def _spec(self, **changes: Any) -> Self:
        return type(self)(replace(self._node, spec=replace(self._node.spec, **changes)))

    def _status(self, **changes: Any) -> Self:
        return type(self)(replace(self._node, status=replace(self._node.status, **changes)))


def _term(topology_key: str, labels: Mapping[str, str]) -> PodAffinityTerm:
    return PodAffinityTerm(topology_key, LabelSelector(match_labels=labels))


def _required(topology_key: str, labels: Mapping[str, str]) -> PodAffinity:
    return PodAffinity(
        required_during_scheduling_ignored_during_execution=(_term(topology_key, labels),)
    )


def _preferred(weight: int, topology_key: str, labels: Mapping[str, str]) -> PodAffinity:
    weighted = WeightedPodAffinityTerm(weight, _term(topology_key, labels))
    return PodAffinity(preferred_during_scheduling_ignored_during_execution=(weighted,))


def cache_of(nodes: Iterable[Node], pods: Iterable[PodInfo] = ()) -> SchedulerCache:
    """Return a cache made from nothing but the API's own objects."""
    cache = SchedulerCache()
    for each in nodes:
        cache.add_node(each)
    for info in pods:
        cache.add_pod(info)
    return cache


def array_bytes(columns: Columns) -> int:
    """Return the bytes of all arrays of columns, with the capacity for more nodes."""
    fixed = (columns._nonzero, columns._unschedulable, columns._taint_set_ids)
    resources = (columns._resources._allocatable, columns._resources._requested)
    derived = (each.array for each in columns._derived.values())
    arrays = sum(array.nbytes for array in (*fixed, *resources, *derived))
    return arrays + columns.labels._columns.bytes
