"""The read-only view of a pod that a user's plugin receives."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from cache.resources import PODS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cache.objects import OwnerReference, PodSpec
    from cache.pod_info import PodInfo


class Pod:
    """A pod, read-only.

    Notes
    -----
    *Cost*: constructed for each call in a fraction of a microsecond; it copies nothing.
    """

    __slots__ = ("_info",)

    def __init__(self, info: PodInfo) -> None:
        self._info = info

    @property
    def name(self) -> str:
        """The name of the pod."""
        return self._info.name

    @property
    def namespace(self) -> str:
        """The namespace of the pod."""
        return self._info.namespace

    @property
    def uid(self) -> str:
        """The UID of the pod, which, unlike its name, is never used again."""
        return self._info.uid

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of the pod."""
        return MappingProxyType(self._info.labels)

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations of the pod that Berth stores: see docs/plugins.md."""
        return MappingProxyType(self._info.pod.metadata.annotations)

    @property
    def priority(self) -> int:
        """The priority of the pod, 0 if none is set."""
        return self._info.priority

    @property
    def scheduler_name(self) -> str:
        """The name of the profile that schedules the pod."""
        return self._info.pod.spec.scheduler_name

    def requests(self, resource: str) -> int:
        """Return the request of the pod: milli-CPU for ``cpu``, bytes or counts for all others."""
        return 1 if resource == PODS else self._info.requests.get(resource, 0)

    @property
    def node_selector(self) -> Mapping[str, str]:
        """``spec.nodeSelector``."""
        return MappingProxyType(self._info.pod.spec.node_selector)

    @property
    def owner_kind(self) -> str:
        """The kind of the pod's controller, such as ``ReplicaSet``; empty without one."""
        owner = self._owner()
        return "" if owner is None else owner.kind

    @property
    def owner_name(self) -> str:
        """The name of the pod's controller; empty without one."""
        owner = self._owner()
        return "" if owner is None else owner.name

    @property
    def node_name(self) -> str:
        """The node to which the pod is assigned; empty for the pod that is being scheduled."""
        return self._info.node_name

    @property
    def is_terminating(self) -> bool:
        """Whether the deletion of the pod has been requested."""
        return self._info.is_terminating

    @property
    def spec(self) -> PodSpec:
        """The fields of the spec that scheduling reads, with the API's names in snake_case."""
        return self._info.pod.spec

    def _owner(self) -> OwnerReference | None:
        owners = self._info.pod.metadata.owner_references
        return next((owner for owner in owners if owner.controller), None)

    def __repr__(self) -> str:
        return f"Pod({self._info.key})"
