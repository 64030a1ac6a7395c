"""Groups of pods and their members, as the API shows them."""

from __future__ import annotations

from typing import Any

import msgspec

from cache.objects import Pod
from cache.pod_group_objects import GROUP_LABEL, GroupKey, GroupSource, PodGroup, XPodGroup
from cache.pod_groups import PodGroups

NAMESPACE = "ns"
X_KEY = GroupKey(NAMESPACE, "gang", GroupSource.LABEL)
KEY = GroupKey(NAMESPACE, "gang", GroupSource.FIELD)


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


def x_group(
    minimum: int | None = 3,
    *,
    key: GroupKey = X_KEY,
    annotations: dict[str, str] | None = None,
    **status: Any,
) -> XPodGroup:
    """Return a PodGroup of ``scheduling.x-k8s.io`` that shows this status."""
    return msgspec.convert(
        {
            "metadata": _metadata(key, annotations),
            "spec": {} if minimum is None else {"minMember": minimum},
            "status": status,
        },
        XPodGroup,
    )


def group(
    minimum: int = 3,
    *conditions: dict[str, Any],
    key: GroupKey = KEY,
    annotations: dict[str, str] | None = None,
) -> PodGroup:
    """Return a PodGroup of ``scheduling.k8s.io`` that shows these conditions."""
    return msgspec.convert(
        {
            "metadata": _metadata(key, annotations),
            "spec": {"schedulingPolicy": {"gang": {"minCount": minimum}}},
            "status": {"conditions": conditions},
        },
        PodGroup,
    )


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
