"""The fields of Kubernetes objects that scheduling reads, as immutable structs.

Objects arrive as bytes and are decoded directly into these structs; unknown fields cost
nothing and are dropped. Lists become tuples and an absent map becomes the one shared empty
map, so a pod that uses few features takes little memory and cannot be changed by accident.
Quantities stay in their original form until :mod:`cache.resources` needs them.

*Concurrency*: every struct is immutable and may be shared between threads. None can take part
in a reference cycle, so the cyclic garbage collector does not track them.

*Source*: k8s.io/api core/v1, storage/v1, policy/v1, apps/v1 (1.36); names are the API's own in
snake_case.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

import msgspec
from msgspec.structs import force_setattr

from cache.kept_annotations import EMPTY_MAP, kept_annotations

Quantity: TypeAlias = str | int | float
"""A quantity as the API writes it: normally a string, a bare number where a client was lax."""

EMPTY_QUANTITIES: Mapping[str, Quantity] = MappingProxyType({})


class ApiStruct(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Base of all API structs: immutable, camelCase outside, snake_case inside."""


# --- metadata ---------------------------------------------------------------------------------


class OwnerReference(ApiStruct, frozen=True):
    """The owner of an object; the owner with ``controller`` set manages it."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class NodeMeta(ApiStruct, frozen=True):
    """The metadata that identifies a cluster-scoped object, with the annotations that are kept.

    ``resource_version`` is opaque but for comparisons by the client.
    """

    name: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: Mapping[str, str] = EMPTY_MAP
    annotations: Mapping[str, str] = EMPTY_MAP

    def __post_init__(self) -> None:
        if self.annotations:
            # They come in bulk, and hardly any matters here.
            force_setattr(self, "annotations", kept_annotations(self.annotations))


class PodMeta(NodeMeta, frozen=True):
    """The metadata that identifies a namespaced object, and its owners."""

    namespace: str = ""
    owner_references: tuple[OwnerReference, ...] = ()


class ObjectMeta(PodMeta, frozen=True):
    """The complete metadata, for objects of which scheduling reads all annotations."""

    def __post_init__(self) -> None:
        pass


# --- selectors --------------------------------------------------------------------------------


class LabelSelectorRequirement(ApiStruct, frozen=True):
    """``key operator values``; operators In, NotIn, Exists, DoesNotExist."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(ApiStruct, frozen=True):
    """All of ``match_labels`` and of ``match_expressions``; empty selects everything."""

    match_labels: Mapping[str, str] = EMPTY_MAP
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class NodeSelectorRequirement(ApiStruct, frozen=True):
    """``key operator values``; operators In, NotIn, Exists, DoesNotExist, Gt, Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class NodeSelectorTerm(ApiStruct, frozen=True):
    """All of its expressions and fields; a term with neither matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(ApiStruct, frozen=True):
    """Any of its terms."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(ApiStruct, frozen=True):
    """``weight`` (1-100) for nodes that match ``preference``."""

    weight: int
    preference: NodeSelectorTerm


class NodeAffinity(ApiStruct, frozen=True):
    """The nodes on which a pod must or should run, by their labels and names."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()


class PodAffinityTerm(ApiStruct, frozen=True):
    """Pods selected by labels and namespaces, and the topology key of the domains."""

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(ApiStruct, frozen=True):
    """``weight`` (1-100) for nodes that satisfy the term."""

    weight: int
    pod_affinity_term: PodAffinityTerm


class PodAffinity(ApiStruct, frozen=True):
    """Pod affinity or anti-affinity: both have this shape."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class Affinity(ApiStruct, frozen=True):
    """The three kinds of affinity of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


# --- pods -------------------------------------------------------------------------------------


class Toleration(ApiStruct, frozen=True):
    """A taint that the pod tolerates; operators Equal (default), Exists, Lt, Gt."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class TopologySpreadConstraint(ApiStruct, frozen=True):
    """At most ``max_skew`` more matching pods in a domain than in the emptiest one."""

    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class ContainerPort(ApiStruct, frozen=True):
    """A port of a container; only one with ``host_port`` > 0 matters to scheduling."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class ResourceClaimUse(ApiStruct, frozen=True):
    """A container's use of one of the pod's resource claims."""

    name: str = ""
    request: str = ""


class ResourceRequirements(ApiStruct, frozen=True):
    """Quantities by resource name."""

    requests: Mapping[str, Quantity] = EMPTY_QUANTITIES
    limits: Mapping[str, Quantity] = EMPTY_QUANTITIES
    claims: tuple[ResourceClaimUse, ...] = ()


NO_RESOURCES = ResourceRequirements()


class ResizePolicy(ApiStruct, frozen=True):
    """Whether a container restarts when one resource is resized."""

    resource_name: str = ""
    restart_policy: str = ""


class ContainerRestartRule(ApiStruct, frozen=True):
    """What happens when a container exits with certain codes: Restart, RestartAllContainers."""

    action: str = ""


class Container(ApiStruct, frozen=True):
    """A container, init container or (``restart_policy == "Always"``) sidecar."""

    name: str = ""
    image: str = ""
    ports: tuple[ContainerPort, ...] = ()
    resources: ResourceRequirements = NO_RESOURCES
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()
    resize_policy: tuple[ResizePolicy, ...] = ()


class ClaimVolumeSource(ApiStruct, frozen=True):
    """A volume that is a PersistentVolumeClaim of the pod's namespace."""

    claim_name: str = ""
    read_only: bool = False


class PersistentVolumeClaimSpec(ApiStruct, frozen=True):
    """The request of a claim."""

    access_modes: tuple[str, ...] = ()
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_name: str = ""
    selector: LabelSelector | None = None
    resources: ResourceRequirements = NO_RESOURCES
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimTemplate(ApiStruct, frozen=True):
    """The template of the claim that an ephemeral volume creates."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class EphemeralVolumeSource(ApiStruct, frozen=True):
    """A volume whose claim is created with the pod and named ``<pod>-<volume>``."""

    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class GCEPersistentDiskVolumeSource(ApiStruct, frozen=True):
    """An in-tree GCE disk."""

    pd_name: str = ""
    read_only: bool = False


class AWSElasticBlockStoreVolumeSource(ApiStruct, frozen=True):
    """An in-tree EBS volume."""

    volume_id: str = msgspec.field(default="", name="volumeID")
    read_only: bool = False


class RBDVolumeSource(ApiStruct, frozen=True):
    """An in-tree Ceph block device."""

    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = ""
    read_only: bool = False


class ISCSIVolumeSource(ApiStruct, frozen=True):
    """An in-tree iSCSI target."""

    iqn: str = ""
    read_only: bool = False


class AzureDiskVolumeSource(ApiStruct, frozen=True):
    """An in-tree Azure disk."""

    disk_name: str = ""
    disk_uri: str = msgspec.field(default="", name="diskURI")
    kind: str | None = None


class CinderVolumeSource(ApiStruct, frozen=True):
    """An in-tree OpenStack volume."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class PortworxVolumeSource(ApiStruct, frozen=True):
    """An in-tree Portworx volume."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class MigratedVolumeSource(ApiStruct, frozen=True):
    """Another in-tree volume that a CSI driver serves today, and that no limit counts.

    *Source*: k8s.io/csi-translation-lib translate.go, inTreePlugins (0.36).
    """


class CSIVolumeSource(ApiStruct, frozen=True):
    """An inline (ephemeral) CSI volume."""

    driver: str = ""


class ImageVolumeSource(ApiStruct, frozen=True):
    """A volume that is the content of a container image."""

    reference: str = ""


class Volume(ApiStruct, frozen=True):
    """A pod's volume: only the sources that scheduling looks at."""

    name: str = ""
    persistent_volume_claim: ClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: MigratedVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    vsphere_volume: MigratedVolumeSource | None = None
    image: ImageVolumeSource | None = None


class PodSchedulingGate(ApiStruct, frozen=True):
    """A named reason not to schedule the pod yet."""

    name: str = ""


class PodResourceClaim(ApiStruct, frozen=True):
    """A dynamic resource claim (or the template of one) of the pod."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(ApiStruct, frozen=True):
    """The group of pods with which a pod is scheduled."""

    pod_group_name: str = ""


class PodSpec(ApiStruct, frozen=True):
    """The specification of a pod."""

    node_name: str = ""
    scheduler_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: Mapping[str, Quantity] = EMPTY_QUANTITIES
    resources: ResourceRequirements | None = None
    node_selector: Mapping[str, str] = EMPTY_MAP
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None
    host_network: bool = False
    host_users: bool | None = None
    termination_grace_period_seconds: int | None = None


class PodCondition(ApiStruct, frozen=True):
    """One condition of a pod's status."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: str | None = None


class ContainerStatus(ApiStruct, frozen=True):
    """The resources that the kubelet allocated; they differ from the spec during a resize."""

    name: str = ""
    allocated_resources: Mapping[str, Quantity] = EMPTY_QUANTITIES
    resources: ResourceRequirements | None = None


class PodResourceClaimStatus(ApiStruct, frozen=True):
    """The claim that was created for a claim of the spec; without a name none is needed."""

    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(ApiStruct, frozen=True):
    """The request of a claim that provides an extended resource of a container."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(ApiStruct, frozen=True):
    """The claim that provides the pod's extended resources."""

    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    resource_claim_name: str = ""


class PodStatus(ApiStruct, frozen=True):
    """The status of a pod."""

    phase: str = ""
    reason: str = ""
    nominated_node_name: str = ""
    start_time: str | None = None
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    allocated_resources: Mapping[str, Quantity] = EMPTY_QUANTITIES
    resources: ResourceRequirements | None = None
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None


class Pod(ApiStruct, frozen=True):
    """A pod."""

    metadata: PodMeta = PodMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


# --- nodes ------------------------------------------------------------------------------------


class Taint(ApiStruct, frozen=True):
    """A mark on a node; effects NoSchedule, PreferNoSchedule, NoExecute."""

    key: str
    value: str = ""
    effect: str = ""


class NodeSpec(ApiStruct, frozen=True):
    """The specification of a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeCondition(ApiStruct, frozen=True):
    """One condition of a node's status."""

    type: str = ""
    status: str = ""


class ContainerImage(ApiStruct, frozen=True):
    """An image that a node has, by all its names."""

    names: tuple[str, ...] = ()
    size_bytes: int = 0


class NodeStatus(ApiStruct, frozen=True):
    """The status of a node."""

    capacity: Mapping[str, Quantity] = EMPTY_QUANTITIES
    allocatable: Mapping[str, Quantity] = EMPTY_QUANTITIES
    conditions: tuple[NodeCondition, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(ApiStruct, frozen=True):
    """A node."""

    metadata: NodeMeta = NodeMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Namespace(ApiStruct, frozen=True):
    """A namespace: its labels decide which pods a namespaceSelector reaches."""

    metadata: ObjectMeta = ObjectMeta()


# --- lists ------------------------------------------------------------------------------------


class ListMeta(ApiStruct, frozen=True):
    """The resourceVersion and the paging token of a list."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None
