"""A pod as a user's plugin sees it."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from cache.resources import PODS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cache.objects import OwnerReference, PodSpec
    from cache.pod_info import PodInfo


class Pod:
    """A pod; nothing of it can be changed.

    Notes
    -----
    *Cost*: made for each call in a fraction of a microsecond; it holds nothing of its own.
    """

    __slots__ = ("_info",)

    def __init__(self, info: PodInfo) -> None:
        self._info = info

    @property
    def name(self) -> str:
        """Its name."""
        return self._info.name

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return self._info.namespace

    @property
    def uid(self) -> str:
        """What no other pod ever has, unlike its name."""
        return self._info.uid

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""
        return MappingProxyType(self._info.labels)

    @property
    def annotations(self) -> Mapping[str, str]:
        """Its annotations, as far as they are kept: see docs/plugins.md."""
        return MappingProxyType(self._info.pod.metadata.annotations)

    @property
    def priority(self) -> int:
        """Its priority, 0 when none is set."""
        return self._info.priority

    @property
    def scheduler_name(self) -> str:
        """The profile that it asks for."""
        return self._info.pod.spec.scheduler_name

    def requests(self, resource: str) -> int:
        """Return what the pod asks for: milli-CPU for ``cpu``, bytes or counts for all others."""
        return 1 if resource == PODS else self._info.requests.get(resource, 0)

    @property
    def node_selector(self) -> Mapping[str, str]:
        """``spec.nodeSelector``."""
        return MappingProxyType(self._info.pod.spec.node_selector)

    @property
    def owner_kind(self) -> str:
        """The kind of the controller that made it, such as ``ReplicaSet``; empty without one."""
        owner = self._owner()
        return "" if owner is None else owner.kind

    @property
    def owner_name(self) -> str:
        """The name of the controller that made it; empty without one."""
        owner = self._owner()
        return "" if owner is None else owner.name

    @property
    def node_name(self) -> str:
        """The node that it runs on; empty for the pod that is to be placed."""
        return self._info.node_name

    @property
    def is_terminating(self) -> bool:
        """Whether somebody asked for its deletion."""
        return self._info.is_terminating

    @property
    def spec(self) -> PodSpec:
        """All of the spec that scheduling reads, in the API's words and snake_case."""
        return self._info.pod.spec

    def _owner(self) -> OwnerReference | None:
        owners = self._info.pod.metadata.owner_references
        return next((owner for owner in owners if owner.controller), None)

    def __repr__(self) -> str:
        return f"Pod({self._info.key})"
