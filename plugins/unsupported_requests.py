"""Rejects pods with requests that no plugin of Berth supports, so that none is bound on a guess.

:data:`UNSUPPORTED` is the only list of these requests. A plugin that supports a request removes
its entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from cache.device_classes import may_be_devices
from plugins import names
from plugins.framework.cluster_events import Action, EventRegistration, Hint, Resource
from plugins.framework.interfaces import PreFilterPlugin
from plugins.framework.results import PROCEED, PreFilterResult
from plugins.framework.status import unresolvable

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from cache.columns import NodesView
    from cache.device_classes import DeviceClasses
    from cache.objects import Node, Pod
    from cache.pod_info import PodInfo
    from plugins.framework.cycle_state import CycleState


@dataclass(frozen=True, slots=True)
class UnsupportedRequest:
    """A request of a pod that Berth does not support yet.

    Parameters
    ----------
    feature
        The request, as the reason names it: "pod asks for <feature>, which is ...".
    needs
        The plugins of kube-scheduler that support it.
    asked_by
        Returns whether a pod has the request.
    """

    feature: str
    needs: tuple[str, ...]
    asked_by: Callable[[Asked], bool]

    @property
    def reason(self) -> str:
        """The reason as users see it."""
        return f"pod asks for {self.feature}, which this scheduler does not support yet"


class Asked(NamedTuple):
    """A pod, and the nodes on which it could be placed."""

    info: PodInfo
    nodes: NodesView
    device_classes: DeviceClasses


def _asks_for_resource_claims(asked: Asked) -> bool:
    return bool(asked.info.pod.spec.resource_claims)


def _belongs_to_a_group(asked: Asked) -> bool:
    return asked.info.pod.spec.scheduling_group is not None


def _asks_for_devices(asked: Asked) -> bool:
    """Return whether a DeviceClass stands for an extended resource that no node reports.

    Where a node reports it, the pod is an ordinary one there.
    """
    return any(
        asked.device_classes.class_of(resource) is not None
        and not asked.nodes.allocatable(resource).any()
        for resource in _extended_resources(asked.info)
    )


def _extended_resources(info: PodInfo) -> list[str]:
    return [name for name, amount in info.requests.items() if amount and may_be_devices(name)]


UNSUPPORTED: Final[tuple[UnsupportedRequest, ...]] = (
    UnsupportedRequest("resource claims", (names.DYNAMIC_RESOURCES,), _asks_for_resource_claims),
    UnsupportedRequest(
        "devices by an extended resource of a DeviceClass",
        (names.DYNAMIC_RESOURCES,),
        _asks_for_devices,
    ),
    UnsupportedRequest("a scheduling group", (names.GANG_SCHEDULING,), _belongs_to_a_group),
)
"""All requests of pods that Berth does not support yet."""


class UnsupportedRequests(PreFilterPlugin):
    """Rejects a pod with an unsupported request, and names the request."""

    name = names.UNSUPPORTED_REQUESTS

    def pre_filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> PreFilterResult:
        """Return Success, or a rejection with one reason for each such request."""
        asked = Asked(info, nodes, self.handle.devices.classes)
        reasons = tuple(request.reason for request in UNSUPPORTED if request.asked_by(asked))
        return PreFilterResult(unresolvable(*reasons)) if reasons else PROCEED

    def signature(self, info: PodInfo) -> Hashable | None:
        """Return the unsupported requests, as far as they depend on the pod alone.

        None for a pod with extended resources: they depend on classes and nodes as well.
        """
        spec = info.pod.spec
        if any(map(may_be_devices, info.requests)):
            return None
        return bool(spec.resource_claims), spec.scheduling_group is not None

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Return the events: a node that may report a resource.

        No other event in the cluster changes what this scheduler supports.
        """
        nodes = Action.ADD | Action.UPDATE_NODE_ALLOCATABLE
        return (EventRegistration.on(Resource.NODE, nodes, _after_node),)


def _after_node(pod: Pod, old: Node | None, new: Node | None) -> Hint:
    """Return the hint for a node: Queue if it reports an extended resource of the pod."""
    if new is None:
        return Hint.QUEUE
    wanted = {
        name
        for container in (*pod.spec.containers, *pod.spec.init_containers)
        for name in container.resources.requests
        if may_be_devices(name)
    }
    return Hint.SKIP if wanted.isdisjoint(new.status.allocatable) else Hint.QUEUE
