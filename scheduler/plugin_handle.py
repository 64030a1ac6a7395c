"""What plugins are lent: see :class:`plugins.framework.handle.Handle`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from cache.namespaces import Namespaces
    from cache.pod_info import PodInfo
    from cache.workloads import Workloads
    from plugins.framework.status import Status


class PodBinder(Protocol):
    """Binds pods."""

    async def bind_pod(self, info: PodInfo, node_name: str) -> Status:
        """Bind a pod through the API."""
        ...


class PluginHandle:
    """The services for plugins, put together from those who give them.

    Parameters
    ----------
    binder
        Binds pods, on the I/O loop.
    namespaces, workloads
        What the watches tell of them.
    """

    def __init__(self, binder: PodBinder, namespaces: Namespaces, workloads: Workloads) -> None:
        self._binder = binder
        self.namespaces = namespaces
        self.workloads = workloads

    async def bind_pod(self, info: PodInfo, node_name: str) -> Status:
        """Bind a pod through the API; see :meth:`scheduler.binder.Binder.bind_pod`."""
        return await self._binder.bind_pod(info, node_name)
