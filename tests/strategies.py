"""Hypothesis strategies for the objects that scheduling reads.

Everything drawn is valid: the API server would store it. Vocabularies are small, so that
selectors match, tolerations tolerate and ports collide often enough to say something.
Names of strategies are plurals of what they draw. Each is built once: a pod is drawn from some
hundred of them, and to build and check them anew for each pod took most of the time.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, TypeVar

from hypothesis import strategies as st

from cache.label_selectors import DOES_NOT_EXIST, EXISTS, GT, IN, LT, METADATA_NAME, NOT_IN
from cache.objects import (
    EMPTY_MAP,
    EMPTY_QUANTITIES,
    Affinity,
    Container,
    ContainerImage,
    ContainerPort,
    ContainerRestartRule,
    ContainerStatus,
    LabelSelector,
    LabelSelectorRequirement,
    Node,
    NodeAffinity,
    NodeMeta,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeSpec,
    NodeStatus,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodCondition,
    PodMeta,
    PodSpec,
    PodStatus,
    PreferredSchedulingTerm,
    Quantity,
    ResourceRequirements,
    Taint,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from cache.taints import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "affinities",
    "container_images",
    "container_ports",
    "container_statuses",
    "containers",
    "cpu_quantities",
    "init_containers",
    "label_keys",
    "label_selectors",
    "label_values",
    "labels",
    "memory_quantities",
    "node_names",
    "node_selector_terms",
    "node_selectors",
    "nodes",
    "pod_affinity_terms",
    "pods",
    "quantities",
    "resource_lists",
    "resource_requirements",
    "taints",
    "tolerations",
    "topology_spread_constraints",
    "zone_labels",
]

_T = TypeVar("_T")

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
HOSTNAME = "kubernetes.io/hostname"

_DECIMAL_SUFFIXES = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"]
_BINARY_SUFFIXES = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]


@st.composite
def quantities(draw: st.DrawFn, *, signed: bool = True) -> str:
    """Texts of every form that the quantity grammar knows, in and out of int64."""
    sign = draw(st.sampled_from(["", "+", "-"])) if signed else ""
    whole = draw(st.text("0123456789", max_size=20))
    part = draw(st.text("0123456789", min_size=0 if whole else 1, max_size=12))
    point = "." if part else draw(st.sampled_from(["", "."]))
    suffix = draw(
        st.one_of(
            st.sampled_from(_DECIMAL_SUFFIXES + _BINARY_SUFFIXES),
            st.builds("{}{}".format, st.sampled_from("eE"), st.integers(-20, 20)),
        )
    )
    return f"{sign}{whole}{point}{part}{suffix}"


@cache
def cpu_quantities() -> st.SearchStrategy[Quantity]:
    """Amounts of CPU as people write them, with halves of a milli-core among them."""
    return st.one_of(
        st.builds("{}m".format, st.integers(0, 8000)),
        st.integers(0, 64).map(str),
        st.sampled_from(["0.5", "1.25", "0.5m", "1500u", "2e0", "1k"]),
    )


@cache
def memory_quantities() -> st.SearchStrategy[Quantity]:
    """Amounts of memory as people write them, with fractions of a byte among them."""
    return st.one_of(
        st.builds("{}{}".format, st.integers(0, 4096), st.sampled_from(["Ki", "Mi", "M", ""])),
        st.sampled_from(["1.5Gi", "0.1", "500m", "1e9", "0"]),
    )


@cache
def resource_lists() -> st.SearchStrategy[Mapping[str, Quantity]]:
    """Quantities by resource name, any of them left out."""
    return st.fixed_dictionaries(
        {},
        optional={
            "cpu": cpu_quantities(),
            "memory": memory_quantities(),
            "ephemeral-storage": memory_quantities(),
            "example.com/gpu": st.integers(0, 8).map(str),
            "hugepages-2Mi": st.builds("{}Mi".format, st.integers(0, 8).map(lambda n: 2 * n)),
        },
    )


@cache
def resource_requirements() -> st.SearchStrategy[ResourceRequirements]:
    """Requests without limits: scheduling does not read limits."""
    return st.builds(ResourceRequirements, requests=resource_lists())


# --- labels and selectors ---------------------------------------------------------------------


@cache
def label_keys() -> st.SearchStrategy[str]:
    """Few keys, one with a prefix."""
    return st.sampled_from(["app", "tier", "example.com/rank"])


@cache
def label_values() -> st.SearchStrategy[str]:
    """Few values: words, numbers and the empty one."""
    return st.sampled_from(["", "a", "b", "c", "1", "2", "10"])


@cache
def labels() -> st.SearchStrategy[Mapping[str, str]]:
    """Labels of a pod or a node."""
    return st.one_of(st.just(EMPTY_MAP), st.dictionaries(label_keys(), label_values(), max_size=3))


@cache
def label_selectors() -> st.SearchStrategy[LabelSelector]:
    """Selectors with labels, expressions, both or neither."""
    return st.builds(
        LabelSelector,
        match_labels=labels(),
        match_expressions=_tuples(_label_requirements(), max_size=2),
    )


@cache
def _label_requirements() -> st.SearchStrategy[LabelSelectorRequirement]:
    some_values = _tuples(label_values(), min_size=1, max_size=3)
    return st.one_of(
        st.builds(
            LabelSelectorRequirement, label_keys(), st.sampled_from([IN, NOT_IN]), some_values
        ),
        st.builds(
            LabelSelectorRequirement, label_keys(), st.sampled_from([EXISTS, DOES_NOT_EXIST])
        ),
    )


@cache
def node_names() -> st.SearchStrategy[str]:
    """Few names of nodes."""
    return st.sampled_from([f"node-{index}" for index in range(6)])


@cache
def node_selector_terms() -> st.SearchStrategy[NodeSelectorTerm]:
    """Terms over labels and the node's name, the empty term among them."""
    expressions = st.one_of(
        _label_requirements().map(lambda r: NodeSelectorRequirement(r.key, r.operator, r.values)),
        st.builds(
            NodeSelectorRequirement,
            label_keys(),
            st.sampled_from([GT, LT]),
            st.integers(0, 12).map(lambda number: (str(number),)),
        ),
    )
    fields = st.builds(
        NodeSelectorRequirement,
        st.just(METADATA_NAME),
        st.sampled_from([IN, NOT_IN]),
        node_names().map(lambda name: (name,)),
    )
    return st.builds(
        NodeSelectorTerm,
        match_expressions=_tuples(expressions, max_size=2),
        match_fields=_tuples(fields, max_size=1),
    )


@cache
def node_selectors() -> st.SearchStrategy[NodeSelector]:
    """One to three terms."""
    return st.builds(
        NodeSelector, node_selector_terms=_tuples(node_selector_terms(), min_size=1, max_size=3)
    )


# --- taints -----------------------------------------------------------------------------------

_EFFECTS = [NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE]


@cache
def taints() -> st.SearchStrategy[Taint]:
    """Taints of every effect."""
    return st.builds(
        Taint,
        key=st.sampled_from(["dedicated", "gpu"]),
        value=st.sampled_from(["", "a", "b"]),
        effect=st.sampled_from(_EFFECTS),
    )


@cache
def tolerations() -> st.SearchStrategy[Toleration]:
    """Tolerations by value, by key, and of everything."""
    effects = st.sampled_from(["", *_EFFECTS])
    keys = st.sampled_from(["dedicated", "gpu"])
    return st.one_of(
        st.builds(
            Toleration,
            key=keys,
            operator=st.sampled_from(["", "Equal"]),
            value=st.sampled_from(["", "a", "b"]),
            effect=effects,
        ),
        st.builds(
            Toleration,
            key=st.one_of(st.just(""), keys),
            operator=st.just("Exists"),
            effect=effects,
        ),
    )


# --- containers -------------------------------------------------------------------------------


@cache
def container_ports() -> st.SearchStrategy[ContainerPort]:
    """Ports with and without a host port, on all and on single addresses."""
    return st.builds(
        ContainerPort,
        container_port=st.just(8080),
        host_port=st.sampled_from([0, 80, 443]),
        host_ip=st.sampled_from(["", "0.0.0.0", "10.0.0.1", "10.0.0.2", "::1"]),
        protocol=st.sampled_from(["TCP", "UDP"]),
    )


@cache
def containers(name: str = "main") -> st.SearchStrategy[Container]:
    """Ordinary containers called ``name``."""
    return st.builds(
        Container,
        name=st.just(name),
        image=st.sampled_from(["nginx", "nginx:1.27", "example.com:5000/app@sha256:00"]),
        ports=_tuples(container_ports(), max_size=2),
        resources=resource_requirements(),
        restart_policy_rules=_restart_rules(),
    )


@cache
def _restart_rules() -> st.SearchStrategy[tuple[ContainerRestartRule, ...]]:
    rules = [(), (), (ContainerRestartRule("Restart"),)]
    return st.sampled_from([*rules, (ContainerRestartRule("RestartAllContainers"),)])


@cache
def init_containers(name: str = "init") -> st.SearchStrategy[Container]:
    """Init containers called ``name``, some of them restartable."""
    return st.builds(
        Container,
        name=st.just(name),
        image=st.just("busybox"),
        ports=_tuples(container_ports(), max_size=1),
        resources=resource_requirements(),
        restart_policy=st.sampled_from([None, "Always"]),
    )


@cache
def container_statuses(name: str = "main") -> st.SearchStrategy[ContainerStatus]:
    """What the kubelet says of the container called ``name``, before, in and after a resize."""
    return st.builds(
        ContainerStatus,
        name=st.just(name),
        allocated_resources=resource_lists(),
        resources=st.one_of(st.none(), resource_requirements()),
    )


# --- affinity and spreading -------------------------------------------------------------------

_TOPOLOGY_KEYS = [HOSTNAME, ZONE]


@cache
def pod_affinity_terms() -> st.SearchStrategy[PodAffinityTerm]:
    """Terms for the pod's own and for other namespaces."""
    return st.builds(
        PodAffinityTerm,
        topology_key=st.sampled_from(_TOPOLOGY_KEYS),
        label_selector=st.one_of(st.none(), label_selectors()),
        namespaces=st.sampled_from([(), ("default",), ("default", "other")]),
        namespace_selector=st.one_of(st.none(), label_selectors()),
    )


@cache
def affinities() -> st.SearchStrategy[Affinity]:
    """Affinities of all three kinds, required and preferred."""
    weights = st.integers(1, 100)
    pod_affinities = st.builds(
        PodAffinity,
        required_during_scheduling_ignored_during_execution=_tuples(
            pod_affinity_terms(), max_size=2
        ),
        preferred_during_scheduling_ignored_during_execution=_tuples(
            st.builds(WeightedPodAffinityTerm, weights, pod_affinity_terms()), max_size=2
        ),
    )
    node_affinities = st.builds(
        NodeAffinity,
        required_during_scheduling_ignored_during_execution=st.one_of(st.none(), node_selectors()),
        preferred_during_scheduling_ignored_during_execution=_tuples(
            st.builds(PreferredSchedulingTerm, weights, node_selector_terms()), max_size=2
        ),
    )
    return st.builds(
        Affinity,
        node_affinity=st.one_of(st.none(), node_affinities),
        pod_affinity=st.one_of(st.none(), pod_affinities),
        pod_anti_affinity=st.one_of(st.none(), pod_affinities),
    )


@cache
def topology_spread_constraints() -> st.SearchStrategy[TopologySpreadConstraint]:
    """Hard and soft constraints over hosts and zones."""
    return st.builds(
        TopologySpreadConstraint,
        max_skew=st.integers(1, 3),
        topology_key=st.sampled_from(_TOPOLOGY_KEYS),
        when_unsatisfiable=st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
        label_selector=st.one_of(st.none(), label_selectors()),
        node_affinity_policy=st.sampled_from([None, "Honor", "Ignore"]),
        node_taints_policy=st.sampled_from([None, "Honor", "Ignore"]),
    )


# --- pods and nodes ---------------------------------------------------------------------------


@st.composite
def pods(
    draw: st.DrawFn,
    *,
    name: str = "pod",
    uid: str | None = None,
    node_name: str = "",
    with_affinity: bool = True,
    with_status: bool = False,
) -> Pod:
    """Pods of the namespaces ``default`` and ``other``.

    Parameters
    ----------
    name : str
        The pod's name.
    uid : str, optional
        Its UID; ``uid-<name>`` by default.
    node_name : str
        Where it runs; empty for a pending pod.
    with_affinity : bool
        Whether it may have affinities and spread constraints.
    with_status : bool
        Whether it may have what the kubelet reports while it resizes the pod.
    """
    container_names = [f"main-{index}" for index in range(draw(st.integers(1, 3)))]
    init_names = [f"init-{index}" for index in range(draw(st.integers(0, 2)))]
    spec = PodSpec(
        node_name=node_name,
        scheduler_name="berth",
        priority=draw(_priorities()),
        containers=tuple(draw(containers(each)) for each in container_names),
        init_containers=tuple(draw(init_containers(each)) for each in init_names),
        host_network=draw(st.booleans()),
        host_users=draw(_host_users()),
        overhead=draw(_overheads()),
        resources=draw(_pod_level_resources()),
        node_selector=draw(labels()),
        affinity=draw(_optional_affinities()) if with_affinity else None,
        tolerations=draw(_toleration_tuples()),
        topology_spread_constraints=draw(_constraint_tuples()) if with_affinity else (),
    )
    status = PodStatus(phase="Running" if node_name else "Pending")
    if with_status:
        status = PodStatus(
            phase="Running",
            conditions=draw(_resize_conditions()),
            container_statuses=tuple(
                draw(container_statuses(each)) for each in container_names if draw(st.booleans())
            ),
            init_container_statuses=tuple(
                draw(container_statuses(each)) for each in init_names if draw(st.booleans())
            ),
            allocated_resources=draw(resource_lists()),
            resources=draw(_optional_requirements()),
        )
    metadata = PodMeta(
        name=name,
        namespace=draw(_namespaces()),
        uid=f"uid-{name}" if uid is None else uid,
        labels=draw(labels()),
    )
    return Pod(metadata=metadata, spec=spec, status=status)


@cache
def _priorities() -> st.SearchStrategy[int | None]:
    return st.sampled_from([None, 0, 10])


@cache
def _namespaces() -> st.SearchStrategy[str]:
    return st.sampled_from(["default", "other"])


@cache
def _host_users() -> st.SearchStrategy[bool | None]:
    return st.sampled_from([None, None, True, False])


@cache
def _overheads() -> st.SearchStrategy[Mapping[str, Quantity]]:
    return st.one_of(st.just(EMPTY_QUANTITIES), resource_lists())


@cache
def _optional_requirements() -> st.SearchStrategy[ResourceRequirements | None]:
    return st.one_of(st.none(), resource_requirements())


@cache
def _optional_affinities() -> st.SearchStrategy[Affinity | None]:
    return st.one_of(st.none(), affinities())


@cache
def _toleration_tuples() -> st.SearchStrategy[tuple[Toleration, ...]]:
    return _tuples(tolerations(), max_size=2)


@cache
def _constraint_tuples() -> st.SearchStrategy[tuple[TopologySpreadConstraint, ...]]:
    return _tuples(topology_spread_constraints(), max_size=1)


@cache
def _resize_conditions() -> st.SearchStrategy[tuple[PodCondition, ...]]:
    pending = st.builds(
        PodCondition,
        type=st.just("PodResizePending"),
        status=st.just("True"),
        reason=st.sampled_from(["Infeasible", "Deferred"]),
    )
    return _tuples(pending, max_size=1)


@cache
def _pod_level_resources() -> st.SearchStrategy[ResourceRequirements | None]:
    requests = st.fixed_dictionaries(
        {}, optional={"cpu": cpu_quantities(), "memory": memory_quantities()}
    )
    return st.one_of(st.none(), st.builds(ResourceRequirements, requests=requests))


@cache
def zone_labels() -> st.SearchStrategy[Mapping[str, str]]:
    """Region and zone of a node, either or both left out."""
    return st.fixed_dictionaries(
        {},
        optional={REGION: st.sampled_from(["r1", "r2"]), ZONE: st.sampled_from(["a", "b", "c"])},
    )


@cache
def container_images() -> st.SearchStrategy[ContainerImage]:
    """Images under one or two names; the size of an image follows from its names."""
    sizes = {"nginx:latest": 180_000_000, "nginx:1.27": 190_000_000, "busybox:latest": 4_000_000}
    return st.sampled_from(sorted(sizes)).flatmap(
        lambda name: st.sampled_from(
            [
                ContainerImage(names=(name,), size_bytes=sizes[name]),
                ContainerImage(names=(name, f"docker.io/{name}"), size_bytes=sizes[name]),
            ]
        )
    )


@st.composite
def nodes(draw: st.DrawFn, *, name: str | None = None) -> Node:
    """Nodes with room for a few pods; ``name`` is drawn if it is not given."""
    name = draw(node_names()) if name is None else name
    allocatable: dict[str, Quantity] = {
        "cpu": draw(st.sampled_from(["2", "4", "3920m"])),
        "memory": draw(st.sampled_from(["4Gi", "16Gi", "15842756Ki"])),
        "ephemeral-storage": "100Gi",
        "pods": draw(st.sampled_from(["3", "110"])),
    }
    if draw(st.booleans()):
        allocatable["example.com/gpu"] = "4"
    return Node(
        metadata=NodeMeta(
            name=name,
            uid=f"uid-{name}",
            labels={**draw(labels()), **draw(zone_labels()), HOSTNAME: name},
        ),
        spec=NodeSpec(
            unschedulable=draw(st.booleans()), taints=draw(_tuples(taints(), max_size=2))
        ),
        status=NodeStatus(
            capacity=allocatable,
            allocatable=allocatable,
            images=draw(_tuples(container_images(), max_size=2)),
            declared_features=draw(_declared_features()),
        ),
    )


@cache
def _declared_features() -> st.SearchStrategy[tuple[str, ...]]:
    known = ["RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"]
    return st.sampled_from([(), (known[0],), tuple(known), ("SomethingElse", known[1])])


def _tuples(
    elements: st.SearchStrategy[_T], *, min_size: int = 0, max_size: int
) -> st.SearchStrategy[tuple[_T, ...]]:
    return st.lists(elements, min_size=min_size, max_size=max_size).map(tuple)
