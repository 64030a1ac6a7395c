"""What the scheduler lends to its plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from cache.namespaces import Namespaces
    from cache.pod_info import PodInfo
    from cache.workloads import Workloads
    from plugins.framework.status import Status


class Handle(Protocol):
    """Services for plugins; given to each plugin's constructor.

    Later extension points add to it what they need; a plugin uses only what it names here. A
    constructor keeps its handle and does not use it: the services start after the plugins.
    """

    @property
    def namespaces(self) -> Namespaces:
        """The labels of namespaces."""

    @property
    def workloads(self) -> Workloads:
        """Services and the controllers of pods."""

    async def bind_pod(self, info: PodInfo, node_name: str) -> Status:
        """Bind a pod through the API, carrying its UID, and settle an unclear answer by a GET.

        Returns Success once the API server holds the binding; never raises for an answer of
        the API. Runs on the I/O loop.
        """
        ...
