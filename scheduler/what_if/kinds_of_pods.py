"""How a drain treats a pod, by who manages it.

*Source*: k8s.io/kubectl pkg/drain/filters.go (0.36), with ``--force``, ``--ignore-daemonsets`` and
``--delete-emptydir-data``.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from cache.kept_annotations import MIRROR_ANNOTATION
from cache.pod_info import is_terminal

if TYPE_CHECKING:
    from cache.objects import OwnerReference, Pod


class DrainKind(Enum):
    """How a drain treats a pod."""

    ENDED = "ended"
    """It has succeeded or failed: it is deleted and uses nothing."""
    DAEMON_SET = "daemonSet"
    """Of a DaemonSet, which ignores the cordon: it stays."""
    MIRROR = "mirror"
    """The mirror of a static pod, which only the kubelet can end: it stays."""
    LEAVING = "leaving"
    """It is being deleted already; its controller has replaced it."""
    UNMANAGED = "unmanaged"
    """No controller replaces it: it is evicted with ``--force`` only, and lost."""
    MANAGED = "managed"
    """It is evicted, and its controller creates a successor."""


def controller_of(pod: Pod) -> OwnerReference | None:
    """Return the owner that manages a pod, or None."""
    owners = pod.metadata.owner_references
    return next((owner for owner in owners if owner.controller), None)


def drain_kind(pod: Pod) -> DrainKind:
    """Return how a drain treats a pod; the order is that of kubectl's filters."""
    controller = controller_of(pod)
    if is_terminal(pod):
        return DrainKind.ENDED
    if controller is not None and controller.kind == "DaemonSet":
        return DrainKind.DAEMON_SET
    if MIRROR_ANNOTATION in pod.metadata.annotations:
        return DrainKind.MIRROR
    if controller is not None and controller.kind == "Node":
        # The kubelet makes the node the owner of mirror pods; the annotation may not be kept.
        return DrainKind.MIRROR
    if pod.metadata.deletion_timestamp is not None:
        return DrainKind.LEAVING
    return DrainKind.UNMANAGED if controller is None else DrainKind.MANAGED
