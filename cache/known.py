"""The observed state of a cluster, in one value."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from cache.devices import Devices
from cache.disruption_budgets import DisruptionBudgets
from cache.namespaces import Namespaces
from cache.pod_groups import PodGroups
from cache.scheduler_cache import DEFAULT_TTL_S, SchedulerCache
from cache.storage import Storage
from cache.value import Value
from cache.workloads import Workloads

if TYPE_CHECKING:
    from typing import Self

    from cache.locks import MakeLock


class Known(Value, frozen=True):
    """The observed state of a cluster.

    Attributes
    ----------
    cache
        Nodes, and the pods that use them.
    namespaces, workloads, storage, devices, disruption_budgets
        The other objects on which decisions depend.
    pod_groups
        The groups of pods, with their members in all states.

    Notes
    -----
    *Concurrency*: immutable; each part is thread-safe.
    """

    cache: SchedulerCache
    namespaces: Namespaces
    workloads: Workloads
    storage: Storage
    devices: Devices
    disruption_budgets: DisruptionBudgets
    pod_groups: PodGroups

    @classmethod
    def nothing(cls, ttl_s: float = DEFAULT_TTL_S, make_lock: MakeLock = threading.Lock) -> Self:
        """Return the state of a cluster of which nothing has been read yet.

        Parameters
        ----------
        ttl_s
            As :class:`cache.scheduler_cache.SchedulerCache`.
        make_lock
            Creates the locks.
        """
        return cls(
            SchedulerCache(ttl_s=ttl_s, make_lock=make_lock),
            Namespaces(make_lock),
            Workloads(make_lock),
            Storage(make_lock),
            Devices(make_lock),
            DisruptionBudgets(make_lock),
            PodGroups(make_lock),
        )
