"""Rejects pods with requests that no plugin of Berth supports, so that none is bound on a guess.

:data:`UNSUPPORTED` is the only list of these requests. A plugin that supports a request removes
its entry.
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
    from cache.pod_info import PodInfo
    from plugins.framework.cluster_events import EventRegistration
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
    asked_by: Callable[[PodInfo], bool]

    @property
    def reason(self) -> str:
        """The reason as users see it."""
        return f"pod asks for {self.feature}, which this scheduler does not support yet"


UNSUPPORTED: Final[tuple[UnsupportedRequest, ...]] = ()
"""All requests of pods that Berth does not support yet."""


class UnsupportedRequests(PreFilterPlugin):
    """Rejects a pod with an unsupported request, and names the request."""

    name = names.UNSUPPORTED_REQUESTS

    def pre_filter(self, state: CycleState, info: PodInfo, nodes: NodesView) -> PreFilterResult:
        """Return Success, or a rejection with one reason for each such request."""
        reasons = tuple(request.reason for request in UNSUPPORTED if request.asked_by(info))
        return PreFilterResult(unresolvable(*reasons)) if reasons else PROCEED

    def signature(self, info: PodInfo) -> Hashable:
        """Return the unsupported requests, which depend on the pod alone."""
        return tuple(request.feature for request in UNSUPPORTED if request.asked_by(info))

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Return no events: nothing in the cluster changes what this scheduler supports."""
        return ()
