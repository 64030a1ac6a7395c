"""The watches that are needed whatever the profiles are: an informer for each kind.

Pods and nodes go to the event handlers, volumes and what belongs to them to the storage events;
the others keep up to date what plugins ask about the cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cache.pod_templates import PodTemplates
from scheduler.client.codec import NAMESPACES, NODES, POD_DISRUPTION_BUDGETS, PODS
from scheduler.device_events import watch_devices
from scheduler.informers import InformerFactory
from scheduler.workload_events import watch_workloads

if TYPE_CHECKING:
    from scheduler.client.transport import Transport
    from scheduler.event_handlers import EventHandlers
    from scheduler.informers import Informer
    from scheduler.plugin_handle import PluginHandle
    from scheduler.storage_events import StorageEvents
    from scheduler.vital import OnDeath


class Watches:
    """The informers of all kinds that are needed whatever the profiles are.

    Parameters
    ----------
    known
        What plugins know of the cluster besides pods and nodes; kept up to date.
    handlers, storage_events
        What receives pods and nodes, and volumes and what belongs to them.
    has_devices
        Whether DeviceClasses are watched.
    on_death
        Called with the name of an informer that ends without being stopped.

    Attributes
    ----------
    all
        Each of them once.

    Notes
    -----
    *Concurrency*: loop-confined, but for :meth:`staleness_s`, :meth:`relists` and
    :meth:`restores`.
    """

    def __init__(
        self,
        transport: Transport,
        known: PluginHandle,
        handlers: EventHandlers,
        storage_events: StorageEvents,
        *,
        has_devices: bool,
        on_death: OnDeath,
    ) -> None:
        self._informers = informers = InformerFactory(transport, on_death=on_death)
        templates = PodTemplates()
        self.pods = informers.informer(PODS, transform=templates.share)
        self.pods.add_handler(handlers.on_pods)
        self.pods.add_delta_handler(lambda d: templates.pod_changed(d.old, d.new))
        self.nodes = informers.informer(NODES)
        self.nodes.add_handler(handlers.on_nodes)
        self.namespaces = informers.informer(NAMESPACES)
        self.namespaces.add_delta_handler(lambda d: known.namespaces.changed(d.old, d.new))
        self.workloads = watch_workloads(known.workloads, informers)
        storage = storage_events.watch(informers)
        devices = watch_devices(known.device_classes, informers) if has_devices else ()
        self.budgets = informers.informer(POD_DISRUPTION_BUDGETS)
        self.budgets.add_delta_handler(
            lambda d: known.disruption_budgets.budget_changed(d.old, d.new)
        )
        others = (*self.workloads, *storage, *devices)
        self.all: tuple[Informer[Any], ...] = (
            *(self.pods, self.nodes, self.namespaces, self.budgets),
            *others,
        )

    def start(self) -> None:
        """List and watch, from now on."""
        self._informers.start()

    async def stop(self) -> None:
        """End all watches."""
        await self._informers.stop()

    async def wait_synced(self) -> None:
        """Return once the first list of each kind has been taken in."""
        await self._informers.wait_synced()

    def staleness_s(self, now_s: float) -> dict[str, float]:
        """Return the seconds since each watch last said anything, by resource."""
        return {each.kind.name: each.staleness_s(now_s) for each in self.all}

    def relists(self) -> dict[str, float]:
        """Return the lists after the first, by resource."""
        return {each.kind.name: max(each.statistics().reflector.lists - 1, 0) for each in self.all}

    def restores(self) -> dict[str, float]:
        """Return the lists from before what was known that were believed, by resource."""
        return {each.kind.name: each.statistics().reflector.rewinds for each in self.all}
