"""Refuses pods that ask for what no plugin here honours yet, so that none is bound on a guess.

:data:`UNSUPPORTED` is the one place that says what is missing. Whoever builds the plugin that
honours a request removes its entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from plugins import names
from plugins.framework.interfaces import PreFilterPlugin
from plugins.framework.results import PROCEED, PreFilterResult
from plugins.framework.status import unresolvable

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from cache.columns import NodesView
    from cache.objects import Pod, PodSpec
    from cache.pod_info import PodInfo
    from plugins.framework.cluster_events import EventRegistration
    from plugins.framework.cycle_state import CycleState


@dataclass(frozen=True, slots=True)
class UnsupportedRequest:
    """Something that a pod may ask for and that is not looked at yet.

    Parameters
    ----------
    feature
        What it is, as it stands in the reason: "pod asks for <feature>, which is ...".
    needs
        The plugins of kube-scheduler that honour it.
    asked_by
        Tells whether a pod asks for it.
    """

    feature: str
    needs: tuple[str, ...]
    asked_by: Callable[[PodSpec], bool]

    @property
    def reason(self) -> str:
        """The sentence for people."""
        return f"pod asks for {self.feature}, which this scheduler does not support yet"


def _asks_for_resource_claims(spec: PodSpec) -> bool:
    return bool(spec.resource_claims)


UNSUPPORTED: Final[tuple[UnsupportedRequest, ...]] = (
    UnsupportedRequest("resource claims", (names.DYNAMIC_RESOURCES,), _asks_for_resource_claims),
)
"""Everything that pods may ask for and that is not looked at."""


def unsupported_requests(pod: Pod) -> tuple[UnsupportedRequest, ...]:
    """Return what the pod asks for and will not be given."""
    return tuple(request for request in UNSUPPORTED if request.asked_by(pod.spec))


class UnsupportedRequests(PreFilterPlugin):
    """Rejects a pod with a request that is not supported, and says which."""

    name = names.UNSUPPORTED_REQUESTS

    def pre_filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> PreFilterResult:
        """Return Success, or a rejection with one reason for each such request."""
        spec = info.pod.spec
        reasons = tuple(request.reason for request in UNSUPPORTED if request.asked_by(spec))
        return PreFilterResult(unresolvable(*reasons)) if reasons else PROCEED

    def signature(self, info: PodInfo) -> Hashable:
        """Return what is asked for and not honoured."""
        spec = info.pod.spec
        return tuple(request.feature for request in UNSUPPORTED if request.asked_by(spec))

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Return nothing: no event in the cluster changes what this scheduler can do."""
        return ()
