"""Carries changes of what selects pods, Services and controllers, into the workloads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scheduler.client.codec import (
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    SERVICES,
    STATEFUL_SETS,
)

if TYPE_CHECKING:
    from cache.workloads import Workloads
    from scheduler.informers import Informer, InformerFactory


def watch_workloads(workloads: Workloads, informers: InformerFactory) -> tuple[Informer[Any], ...]:
    """Watch what selects pods, and tell ``workloads`` of each change, on the I/O loop."""
    services = informers.informer(SERVICES)
    services.add_delta_handler(lambda d: workloads.service_changed(d.old, d.new))
    controllers = informers.informer(REPLICATION_CONTROLLERS)
    controllers.add_delta_handler(lambda d: workloads.replication_controller_changed(d.old, d.new))
    replica_sets = informers.informer(REPLICA_SETS)
    replica_sets.add_delta_handler(lambda d: workloads.replica_set_changed(d.old, d.new))
    stateful_sets = informers.informer(STATEFUL_SETS)
    stateful_sets.add_delta_handler(lambda d: workloads.stateful_set_changed(d.old, d.new))
    return services, controllers, replica_sets, stateful_sets
