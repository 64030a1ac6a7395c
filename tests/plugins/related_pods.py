"""Strategies for small clusters whose pods have much to do with each other.

Vocabularies are tiny: two namespaces and one that nobody told of, two label keys, three
topologies of which nodes lack some and one of whose values is empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from cache.objects import (
    Affinity,
    LabelSelector,
    LabelSelectorRequirement,
    Namespace,
    Node,
    NodeAffinity,
    NodeMeta,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeSpec,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodMeta,
    PodSpec,
    Taint,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from cache.workload_objects import (
    ReplicaSet,
    ReplicationController,
    Service,
    ServiceSpec,
    SetSpec,
    StatefulSet,
    WorkloadMeta,
)
from cache.workloads import Workloads
from tests.plugins.conformance import Cluster, RecordingHandle

if TYPE_CHECKING:
    from collections.abc import Mapping

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
RACK = "rack"

TOPOLOGY_KEYS = [HOSTNAME, ZONE, RACK]
NODE_NAMES = [f"node-{index}" for index in range(6)]
NAMESPACES = ["default", "other", "unknown"]

_VALUES = ["", "a", "b"]


@dataclass(frozen=True)
class World:
    """A cluster, its namespaces and its workloads."""

    cluster: Cluster
    namespaces: tuple[Namespace, ...]
    services: tuple[Service, ...]
    replica_sets: tuple[ReplicaSet, ...]
    stateful_sets: tuple[StatefulSet, ...]
    controllers: tuple[ReplicationController, ...]

    def handle(self) -> RecordingHandle:
        workloads = Workloads()
        for service in self.services:
            workloads.service_changed(None, service)
        for replica_set in self.replica_sets:
            workloads.controller_changed(None, replica_set)
        for stateful_set in self.stateful_sets:
            workloads.controller_changed(None, stateful_set)
        for controller in self.controllers:
            workloads.controller_changed(None, controller)
        return RecordingHandle(self.namespaces, workloads)


@cache
def labels() -> st.SearchStrategy[Mapping[str, str]]:
    return st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(_VALUES), max_size=2)


@cache
def label_selectors() -> st.SearchStrategy[LabelSelector]:
    keys, values = st.sampled_from(["app", "tier"]), st.sampled_from(_VALUES)
    with_values = st.builds(
        LabelSelectorRequirement,
        keys,
        st.sampled_from(["In", "NotIn"]),
        st.lists(values, min_size=1, max_size=2).map(tuple),
    )
    without = st.builds(LabelSelectorRequirement, keys, st.sampled_from(["Exists", "DoesNotExist"]))
    return st.one_of(
        st.just(LabelSelector()),
        st.builds(LabelSelector, match_labels=labels()),
        st.builds(
            LabelSelector,
            match_labels=labels(),
            match_expressions=st.lists(st.one_of(with_values, without), max_size=2).map(tuple),
        ),
    )


@cache
def terms() -> st.SearchStrategy[PodAffinityTerm]:
    return st.builds(
        PodAffinityTerm,
        topology_key=st.sampled_from(TOPOLOGY_KEYS),
        label_selector=st.one_of(st.none(), label_selectors(), label_selectors()),
        namespaces=st.sampled_from([(), (), ("default",), ("other", "unknown")]),
        namespace_selector=st.one_of(st.none(), st.none(), label_selectors()),
    )


@cache
def _pod_affinities() -> st.SearchStrategy[PodAffinity | None]:
    weighted = st.builds(WeightedPodAffinityTerm, st.sampled_from([1, 7, 100]), terms())
    return st.one_of(
        st.none(),
        st.builds(
            PodAffinity,
            required_during_scheduling_ignored_during_execution=st.lists(terms(), max_size=2).map(
                tuple
            ),
            preferred_during_scheduling_ignored_during_execution=st.lists(weighted, max_size=2).map(
                tuple
            ),
        ),
    )


@cache
def _node_affinities() -> st.SearchStrategy[NodeAffinity | None]:
    requirement = st.builds(
        NodeSelectorRequirement, st.just(RACK), st.sampled_from(["Exists", "DoesNotExist"])
    )
    term = requirement.map(lambda each: NodeSelectorTerm(match_expressions=(each,)))
    return st.one_of(
        st.none(), term.map(lambda each: NodeAffinity(NodeSelector((each,)))), st.none()
    )


@cache
def constraints() -> st.SearchStrategy[TopologySpreadConstraint]:
    policies = st.sampled_from([None, "Honor", "Ignore"])
    return st.builds(
        TopologySpreadConstraint,
        max_skew=st.integers(1, 3),
        topology_key=st.sampled_from(TOPOLOGY_KEYS),
        when_unsatisfiable=st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
        label_selector=st.one_of(st.none(), label_selectors(), label_selectors()),
        min_domains=st.sampled_from([None, None, 1, 2, 4]),
        node_affinity_policy=policies,
        node_taints_policy=policies,
        match_label_keys=st.sampled_from([(), ("app",), ("app", "tier"), ("absent",)]),
    )


@cache
def _owners() -> st.SearchStrategy[tuple[OwnerReference, ...]]:
    return st.sampled_from(
        [
            (),
            (OwnerReference("apps/v1", "ReplicaSet", "web", "u", controller=True),),
            (OwnerReference("apps/v1", "StatefulSet", "web", "u", controller=True),),
            (OwnerReference("v1", "ReplicationController", "web", "u", controller=True),),
            (OwnerReference("batch/v1", "Job", "web", "u", controller=True),),
            (OwnerReference("apps/v1", "ReplicaSet", "web", "u"),),
        ]
    )


@st.composite
def pods(draw: st.DrawFn, *, name: str = "pod", node_name: str = "", spread: bool = True) -> Pod:
    """Pods with affinity, spread constraints or neither."""
    kind = draw(st.integers(0, 3))
    affinity = None
    if kind % 2:
        affinity = Affinity(
            draw(_node_affinities()), draw(_pod_affinities()), draw(_pod_affinities())
        )
    return Pod(
        metadata=PodMeta(
            name=name,
            namespace=draw(st.sampled_from(NAMESPACES)),
            uid=f"uid-{name}",
            labels=draw(labels()),
            deletion_timestamp=draw(st.sampled_from([None, None, None, "2025-01-01T00:00:00Z"])),
            owner_references=draw(_owners()),
        ),
        spec=PodSpec(
            node_name=node_name,
            affinity=affinity,
            node_selector=draw(st.sampled_from([{}, {}, {RACK: "a"}])),
            tolerations=draw(st.sampled_from([(), (Toleration(key="gpu", operator="Exists"),)])),
            topology_spread_constraints=(
                draw(st.lists(constraints(), max_size=3).map(tuple)) if spread and kind > 1 else ()
            ),
        ),
    )


@st.composite
def nodes(draw: st.DrawFn, *, name: str) -> Node:
    """Nodes that lack some topologies; a host name may be another node's."""
    hostname = draw(st.sampled_from([name, name, name, "node-0", None]))
    found = {
        HOSTNAME: hostname,
        ZONE: draw(st.sampled_from([None, "", "a", "b", "c"])),
        RACK: draw(st.sampled_from([None, "", "a", "b"])),
    }
    taints = draw(
        st.sampled_from([(), (), (Taint("gpu", "", "NoSchedule"),), (Taint("x", "", "NoExecute"),)])
    )
    return Node(
        metadata=NodeMeta(
            name=name,
            uid=f"uid-{name}",
            labels={key: value for key, value in found.items() if value is not None},
        ),
        spec=NodeSpec(taints=taints),
    )


@st.composite
def worlds(draw: st.DrawFn, *, min_nodes: int = 0) -> World:
    """Clusters with up to six nodes and ten pods, Services and sets."""
    listed = draw(st.lists(st.sampled_from(NODE_NAMES), unique=True, min_size=min_nodes))
    hosts = draw(st.lists(st.sampled_from(listed), max_size=10)) if listed else []
    return World(
        Cluster(
            tuple(draw(nodes(name=name)) for name in listed),
            tuple(
                draw(pods(name=f"placed-{index}", node_name=host, spread=False))
                for index, host in enumerate(hosts)
            ),
        ),
        tuple(Namespace(ObjectMeta(name=name, labels=draw(labels()))) for name in NAMESPACES[:2]),
        tuple(
            Service(
                WorkloadMeta(f"svc-{index}", draw(st.sampled_from(NAMESPACES)), f"s-{index}"),
                ServiceSpec(draw(labels())),
            )
            for index in range(draw(st.integers(0, 3)))
        ),
        tuple(
            ReplicaSet(_web(namespace), SetSpec(draw(label_selectors())))
            for namespace in draw(_some_namespaces())
        ),
        tuple(
            StatefulSet(_web(namespace), SetSpec(draw(label_selectors())))
            for namespace in draw(_some_namespaces())
        ),
        tuple(
            ReplicationController(_web(namespace), ServiceSpec(draw(labels())))
            for namespace in draw(_some_namespaces())
        ),
    )


@cache
def _some_namespaces() -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(NAMESPACES), unique=True)


def _web(namespace: str) -> WorkloadMeta:
    return WorkloadMeta("web", namespace, f"web-{namespace}")
