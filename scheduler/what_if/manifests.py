"""The objects of a question: pods, groups and workloads, read strictly, with the paths of mistakes.

Besides pods and PodGroups, workloads with a pod template count as their pods, and claims, budgets
and services are added to the cluster as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from cache.device_objects import ResourceClaim, ResourceClaimSpec
from cache.kept_annotations import EMPTY_MAP
from cache.label_selectors import compile_label_selector
from cache.objects import ApiStruct, LabelSelector, OwnerReference, Pod, PodMeta, PodSpec
from cache.pod_info import PodInfo
from cache.resources import MalformedObjectError
from cache.storage_objects import PersistentVolume, PersistentVolumeClaim
from cache.workload_objects import (
    ReplicaSet,
    ReplicationController,
    ServiceSpec,
    SetSpec,
    StatefulSet,
    WorkloadMeta,
)
from plugins.volume_binding.pod_claims import BIND_COMPLETED
from scheduler.client.codec import Decoder, UndecodableObjectError
from scheduler.config.config_error import child, did_you_mean, item
from scheduler.offline.cluster import ClusterObjectError, kind_of
from scheduler.what_if.admission import QUOTAS, RANGES
from scheduler.what_if.limit_objects import check_amounts, check_quantities
from scheduler.what_if.pod_defaults import PriorityClasses, defaulted, defaulted_claim
from scheduler.what_if.question import MAX_REPLICAS, QuestionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scheduler.offline.cluster import Cluster

WORKLOADS: Final = ("Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet")
"""Kinds with a pod template, whatever their API group."""

ADDED: Final = (
    "LimitRange",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "PodDisruptionBudget",
    "PodGroup",
    "ResourceQuota",
    "Service",
    "StorageClass",
)
"""Kinds that are added to the cluster as they are, whatever their API group."""

IGNORED: Final = ("ConfigMap", "Namespace", "Secret", "ServiceAccount")
"""Kinds that manifests often hold, and that do not matter to scheduling here."""


_API_VERSIONS: Final = {
    "Job": "batch/v1",
    "ReplicaSet": "apps/v1",
    "ReplicationController": "v1",
    "StatefulSet": "apps/v1",
}


class PodTemplate(ApiStruct, frozen=True):
    """The pods of a workload."""

    metadata: PodMeta = PodMeta()
    spec: PodSpec = PodSpec()


class WorkloadSpec(ApiStruct, frozen=True):
    """The part of a workload that says which pods it has, and how many.

    The selector of a ReplicationController is a mapping of labels, that of others a LabelSelector.
    """

    template: PodTemplate
    selector: Mapping[str, Any] = EMPTY_MAP
    replicas: int | None = None
    parallelism: int | None = None


class Workload(ApiStruct, frozen=True):
    """A workload with a pod template."""

    spec: WorkloadSpec
    metadata: PodMeta = PodMeta()


class _ClaimTemplateSpec(ApiStruct, frozen=True):
    spec: ResourceClaimSpec = ResourceClaimSpec()


class _ClaimTemplate(ApiStruct, frozen=True):
    metadata: PodMeta = PodMeta()
    spec: _ClaimTemplateSpec = _ClaimTemplateSpec()


_POD: Final = Decoder(Pod)
_WORKLOAD: Final = Decoder(Workload)
_CLAIM: Final = Decoder(ResourceClaim)
_VOLUME: Final = Decoder(PersistentVolume)
_VOLUME_CLAIM: Final = Decoder(PersistentVolumeClaim)
_CLAIM_TEMPLATE: Final = Decoder(_ClaimTemplate)


@dataclass(frozen=True, slots=True)
class NewPods:
    """Pods to create, all alike.

    Attributes
    ----------
    pod
        The first of them; the others have numbered names.
    count
        How many of them each copy has.
    """

    pod: Pod
    count: int = 1


@dataclass(slots=True)
class Manifests:
    """What the objects of a question say.

    Attributes
    ----------
    classes
        The PriorityClasses of the cluster.
    pods
        The pods to create, in the order of the objects.
    groups
        The raw objects of PodGroups, in their order.
    templates
        The specifications of ResourceClaimTemplates by namespace and name.
    notes
        Sentences for the user.
    """

    classes: PriorityClasses
    pods: list[NewPods] = field(default_factory=list)
    groups: list[msgspec.Raw] = field(default_factory=list)
    templates: dict[tuple[str, str], ResourceClaimSpec] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def read_manifests(objects: Sequence[msgspec.Raw], cluster: Cluster) -> Manifests:
    """Read the objects of a question; add those that are neither pods nor groups to the cluster.

    Raises
    ------
    QuestionError
        With the path of the first bad value.
    """
    found = Manifests(PriorityClasses(cluster.pods.values()))
    for index, raw in enumerate(objects):
        _read(raw, item("objects", index), cluster, found)
    wanted = sum(each.count for each in found.pods)
    if wanted > MAX_REPLICAS:
        raise QuestionError("objects", f"{wanted} pods are more than {MAX_REPLICAS}")
    return found


def _read(raw: msgspec.Raw, path: str, cluster: Cluster, found: Manifests) -> None:
    qualified = kind_of(raw)
    kind = qualified.partition(".")[0]
    if kind == "Pod":
        _add_pods(NewPods(_decode(_POD, raw, path)), path, "", found)
    elif kind in WORKLOADS:
        _read_workload(raw, kind, path, cluster, found)
    elif kind == "ResourceClaimTemplate":
        template = _decode(_CLAIM_TEMPLATE, raw, path)
        key = template.metadata.namespace or "default", template.metadata.name
        found.templates[key] = defaulted_claim(template.spec.spec)
    elif kind == "ResourceClaim":
        claim = _decode(_CLAIM, _with_namespace(raw, path), path)
        claim = replace(claim, spec=defaulted_claim(claim.spec))
        cluster.known.devices.claims.changed(None, claim)
    elif kind == "PodGroup":
        found.groups.append(_with_namespace(raw, path))
    elif kind in ADDED:
        _check_amounts(raw, kind, path)
        try:
            cluster.add(_prebound(_with_namespace(raw, path), kind))
        except ClusterObjectError as error:
            raise QuestionError(path, str(error)) from error
    elif kind in IGNORED:
        found.notes.append(f"{path}: {kind} objects are ignored.")
    else:
        known = ("Pod", "ResourceClaim", "ResourceClaimTemplate", *WORKLOADS, *ADDED)
        if not kind:
            raise QuestionError(child(path, "kind"), "is required")
        why = f"{kind} is no kind that a what-if can create{did_you_mean(kind, known)}"
        raise QuestionError(child(path, "kind"), why)


def _read_workload(
    raw: msgspec.Raw, kind: str, path: str, cluster: Cluster, found: Manifests
) -> None:
    """Add the pods of a workload, owned as its controller would own them."""
    workload: Workload = _decode(_WORKLOAD, raw, path)
    spec, name = workload.spec, workload.metadata.name
    where, count = (
        ("parallelism", spec.parallelism) if kind == "Job" else ("replicas", spec.replicas)
    )
    count = 1 if count is None else count
    if not 0 <= count <= MAX_REPLICAS:
        raise QuestionError(f"{path}.spec.{where}", f"must be from 0 to {MAX_REPLICAS}")
    if not name:
        raise QuestionError(f"{path}.metadata.name", "is required")
    namespace = workload.metadata.namespace or "default"
    kind = "ReplicaSet" if kind == "Deployment" else kind
    meta = WorkloadMeta(name, namespace, f"what-if-{kind}-{namespace}-{name}")
    _add_controller(kind, meta, spec.selector, path, cluster)
    owner = OwnerReference(_API_VERSIONS[kind], kind, name, meta.uid, controller=True)
    metadata = replace(
        spec.template.metadata, name=name, namespace=namespace, owner_references=(owner,)
    )
    pod = Pod(metadata, spec.template.spec)
    _add_pods(NewPods(pod, count), path, "spec.template", found)


def _add_controller(
    kind: str, meta: WorkloadMeta, selector: Mapping[str, Any], path: str, cluster: Cluster
) -> None:
    """Store a controller by whose selector its pods are spread by default."""
    changed = cluster.known.workloads.controller_changed
    try:
        if kind == "ReplicationController":
            labels = msgspec.convert(selector, dict[str, str])
            changed(None, ReplicationController(meta, ServiceSpec(labels)))
        elif kind in ("ReplicaSet", "StatefulSet"):
            spec = SetSpec(msgspec.convert(selector, LabelSelector))
            controller = ReplicaSet if kind == "ReplicaSet" else StatefulSet
            changed(None, controller(meta, spec))
    except msgspec.ValidationError as error:
        raise QuestionError(f"{path}.spec.selector", str(error)) from error


def _add_pods(new: NewPods, path: str, inner: str, found: Manifests) -> None:
    """Check a pod as far as the API server would refuse it, complete it, and add it.

    Parameters
    ----------
    path, inner
        Where the object stands, and where in it the pod is; ``inner`` is empty for a pod itself.
    """
    pod = new.pod
    pod_path = f"{path}.{inner}" if inner else path
    spec_path = f"{pod_path}.spec"
    if not pod.metadata.name:
        raise QuestionError(f"{path}.metadata.name", "is required")
    if not pod.spec.containers:
        raise QuestionError(f"{spec_path}.containers", "is required: a pod has a container")
    _check_selectors(pod, spec_path)
    if pod.spec.node_name:
        found.notes.append(f"{spec_path}.nodeName is ignored: where the pod runs is the question.")
    metadata = replace(
        pod.metadata,
        namespace=pod.metadata.namespace or "default",
        creation_timestamp=None,
        deletion_timestamp=None,
    )
    pod = replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=""))
    pod, note = defaulted(pod, found.classes)
    if note:
        found.notes.append(note)
    try:
        PodInfo(pod)
    except MalformedObjectError as error:
        raise QuestionError(f"{pod_path}.{error.path}", error.why) from error
    if new.count:
        found.pods.append(NewPods(pod, new.count))


def _check_selectors(pod: Pod, path: str) -> None:
    """Check the label selectors of a pod, which are compiled only where they are used."""
    found: list[tuple[str, LabelSelector | None]] = [
        (f"{path}.topologySpreadConstraints[{index}].labelSelector", each.label_selector)
        for index, each in enumerate(pod.spec.topology_spread_constraints)
    ]
    affinity = pod.spec.affinity
    if affinity is not None:
        for name, terms in (
            ("podAffinity", affinity.pod_affinity),
            ("podAntiAffinity", affinity.pod_anti_affinity),
        ):
            if terms is None:
                continue
            required = terms.required_during_scheduling_ignored_during_execution
            preferred = terms.preferred_during_scheduling_ignored_during_execution
            at = f"{path}.affinity.{name}"
            found += [
                (f"{at}.requiredDuringSchedulingIgnoredDuringExecution[{n}].labelSelector", t)
                for n, t in enumerate(each.label_selector for each in required)
            ]
            found += [
                (
                    f"{at}.preferredDuringSchedulingIgnoredDuringExecution[{n}]"
                    ".podAffinityTerm.labelSelector",
                    each.pod_affinity_term.label_selector,
                )
                for n, each in enumerate(preferred)
            ]
    for where, selector in found:
        try:
            compile_label_selector(selector, where)
        except MalformedObjectError as error:
            raise QuestionError(error.path, error.why) from error


def _decode(decoder: Decoder[Any], raw: msgspec.Raw, path: str) -> Any:
    try:
        return decoder.decode(raw)
    except UndecodableObjectError as error:
        where = f"{path}.{error.path}" if error.path else path
        raise QuestionError(where, error.why) from error


def _with_namespace(raw: msgspec.Raw, path: str) -> msgspec.Raw:
    """Return an object in the namespace ``default`` if it names none."""
    data = msgspec.json.decode(raw)
    metadata = data.get("metadata") if isinstance(data, dict) else None
    if not isinstance(metadata, dict) or not metadata.get("name"):
        raise QuestionError(f"{path}.metadata.name", "is required")
    data.pop("status", None)  # the API server ignores it as well
    metadata.setdefault("namespace", "default")
    metadata.setdefault("uid", f"what-if-{metadata['namespace']}-{metadata['name']}")
    return msgspec.Raw(msgspec.json.encode(data))


def _check_amounts(raw: msgspec.Raw, kind: str, path: str) -> None:
    """Check the amounts of limits, claims and volumes; raises QuestionError with the path."""
    try:
        if kind == "LimitRange":
            check_amounts(_decode(RANGES, raw, path))
        elif kind == "ResourceQuota":
            check_amounts(_decode(QUOTAS, raw, path))
        elif kind == "PersistentVolumeClaim":
            claim = _decode(_VOLUME_CLAIM, raw, path)
            check_quantities("spec.resources.requests", claim.spec.resources.requests)
        elif kind == "PersistentVolume":
            check_quantities("spec.capacity", _decode(_VOLUME, raw, path).spec.capacity)
    except MalformedObjectError as error:
        raise QuestionError(f"{path}.{error.path}", error.why) from error


def _prebound(raw: msgspec.Raw, kind: str) -> msgspec.Raw:
    """Return a claim that names its volume as the volume controller binds it; others as they are.

    Whether the volume exists is seen when a pod needs it.
    """
    if kind != "PersistentVolumeClaim":
        return raw
    data = msgspec.json.decode(raw)
    spec = data.get("spec")
    if isinstance(spec, dict) and spec.get("volumeName"):
        annotations = data["metadata"].get("annotations")
        kept = annotations if isinstance(annotations, dict) else {}
        data["metadata"]["annotations"] = {**kept, BIND_COMPLETED: "yes"}
    return msgspec.Raw(msgspec.json.encode(data))
