"""Groups of pods and their members, as the API shows them."""

from __future__ import annotations

from typing import Any

import msgspec

from cache.objects import Pod
from cache.pod_group_objects import GROUP_LABEL, GroupKey, GroupSource, PodGroup, XPodGroup
from cache.pod_groups import PodGroups
from scheduler.kinds import ResourceKind

NAMESPACE = "ns"
X_KEY = GroupKey(NAMESPACE, "gang", GroupSource.LABEL)
KEY = GroupKey(NAMESPACE, "gang", GroupSource.FIELD)

KINDS: dict[GroupSource, ResourceKind[Any]] = {
    GroupSource.FIELD: ResourceKind(
        "podgroups.scheduling.k8s.io", "/apis/scheduling.k8s.io/v1alpha2/podgroups", PodGroup
    ),
    GroupSource.LABEL: ResourceKind(
        "podgroups.scheduling.x-k8s.io", "/apis/scheduling.x-k8s.io/v1alpha1/podgroups", XPodGroup
    ),
}


def member(
    number: int,
    phase: str = "Pending",
    *,
    node: str = "",
    gate: bool = False,
    scheduler: str = "berth",
    owners: tuple[str, ...] = (),
    of: GroupKey = X_KEY,
    **status: Any,
) -> Pod:
    """Return a member; one that runs or has ended has a node."""
    spec: dict[str, Any] = {"schedulerName": scheduler}
    metadata: dict[str, Any] = {
        "name": f"{of.name}-{number}",
        "namespace": of.namespace,
        "uid": f"{of.name}-{number}",
        "ownerReferences": [{"name": name, "uid": name} for name in owners],
    }
    if of.source is GroupSource.FIELD:
        spec["schedulingGroup"] = {"podGroupName": of.name}
    else:
        metadata["labels"] = {GROUP_LABEL: of.name}
    if node or phase != "Pending":
        spec["nodeName"] = node or "n1"
    if gate:
        spec["schedulingGates"] = [{"name": "wait"}]
    return msgspec.convert(
        {"metadata": metadata, "spec": spec, "status": {"phase": phase, **status}}, Pod
    )


def raw_x_group(
    minimum: int | None = 3,
    *,
    key: GroupKey = X_KEY,
    annotations: dict[str, str] | None = None,
    **status: Any,
) -> dict[str, Any]:
    """Return a PodGroup of ``scheduling.x-k8s.io`` that shows this status, as JSON."""
    return {
        "metadata": _metadata(key, annotations),
        "spec": {} if minimum is None else {"minMember": minimum},
        "status": status,
    }


def raw_group(
    minimum: int = 3,
    *conditions: dict[str, Any],
    key: GroupKey = KEY,
    annotations: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Return a PodGroup of ``scheduling.k8s.io`` that shows these conditions, as JSON."""
    return {
        "metadata": _metadata(key, annotations),
        "spec": {"schedulingPolicy": {"gang": {"minCount": minimum}}},
        "status": {"conditions": list(conditions)} if conditions else {},
    }


def x_group(minimum: int | None = 3, **more: Any) -> XPodGroup:
    """Return a PodGroup of ``scheduling.x-k8s.io``, as :func:`raw_x_group`."""
    return msgspec.convert(raw_x_group(minimum, **more), XPodGroup)


def group(minimum: int = 3, *conditions: dict[str, Any], **more: Any) -> PodGroup:
    """Return a PodGroup of ``scheduling.k8s.io``, as :func:`raw_group`."""
    return msgspec.convert(raw_group(minimum, *conditions, **more), PodGroup)


def _metadata(key: GroupKey, annotations: dict[str, str] | None) -> dict[str, Any]:
    return {
        "name": key.name,
        "namespace": key.namespace,
        "uid": f"{key.name}-uid",
        "generation": 4,
        "annotations": annotations or {},
    }


def known_groups(described_by: PodGroup | XPodGroup | None, *members: Pod) -> PodGroups:
    """Return groups with one of which this is known."""
    groups = PodGroups()
    describe(groups, None, described_by)
    for pod in members:
        groups.pod_changed(None, pod)
    return groups


def describe(
    groups: PodGroups, old: PodGroup | XPodGroup | None, new: PodGroup | XPodGroup | None
) -> None:
    """Let the watch bring an object."""
    if isinstance(old, XPodGroup) or isinstance(new, XPodGroup):
        groups.x_pod_group_changed(old, new)
    else:
        groups.pod_group_changed(old, new)
