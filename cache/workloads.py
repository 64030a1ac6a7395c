"""Services and the controllers of pods, by namespace: default spreading asks what they select."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cache.locks import MakeLock
    from cache.objects import ReplicaSet, ReplicationController, Service, StatefulSet

    Name = tuple[str, str]


class Workloads:
    """What selects pods, as far as spreading by default looks at it.

    Notes
    -----
    *Concurrency*: thread-safe; written from the I/O loop, read by the scheduling thread.
    """

    def __init__(self, make_lock: MakeLock = threading.Lock) -> None:
        self._lock = make_lock()
        self._services: dict[str, dict[str, Service]] = {}
        self._listed: dict[str, tuple[Service, ...]] = {}
        self._replication_controllers: dict[Name, ReplicationController] = {}
        self._replica_sets: dict[Name, ReplicaSet] = {}
        self._stateful_sets: dict[Name, StatefulSet] = {}
        self.version = 0
        """Grows with every change: whatever was worked out from an older one may be wrong."""

    def services(self, namespace: str) -> tuple[Service, ...]:
        """Return the Services of a namespace that have a selector."""
        with self._lock:
            listed = self._listed.get(namespace)
            if listed is None:
                held = self._services.get(namespace)
                if held is None:
                    return ()
                listed = tuple(service for service in held.values() if service.spec.selector)
                self._listed[namespace] = listed
            return listed

    def replication_controller(self, namespace: str, name: str) -> ReplicationController | None:
        """Return a ReplicationController, or None."""
        return self._replication_controllers.get((namespace, name))

    def replica_set(self, namespace: str, name: str) -> ReplicaSet | None:
        """Return a ReplicaSet, or None."""
        return self._replica_sets.get((namespace, name))

    def stateful_set(self, namespace: str, name: str) -> StatefulSet | None:
        """Return a StatefulSet, or None."""
        return self._stateful_sets.get((namespace, name))

    # --- changes ------------------------------------------------------------------------------

    def service_changed(self, old: Service | None, new: Service | None) -> None:
        """Take over a Service: ``new`` is None for one that is gone."""
        with self._lock:
            for gone in () if old is None else (old,):
                namespace = gone.metadata.namespace
                services = self._services.get(namespace, {})
                services.pop(gone.metadata.name, None)
                if not services:
                    self._services.pop(namespace, None)
                self._listed.pop(namespace, None)
            if new is not None:
                held = self._services.setdefault(new.metadata.namespace, {})
                held[new.metadata.name] = new
                self._listed.pop(new.metadata.namespace, None)
            self.version += 1

    def replication_controller_changed(
        self, old: ReplicationController | None, new: ReplicationController | None
    ) -> None:
        """Take over a ReplicationController: ``new`` is None for one that is gone."""
        with self._lock:
            if old is not None:
                self._replication_controllers.pop(_name(old), None)
            if new is not None:
                self._replication_controllers[_name(new)] = new
            self.version += old is None or new is None or old.spec != new.spec

    def replica_set_changed(self, old: ReplicaSet | None, new: ReplicaSet | None) -> None:
        """Take over a ReplicaSet: ``new`` is None for one that is gone."""
        with self._lock:
            if old is not None:
                self._replica_sets.pop(_name(old), None)
            if new is not None:
                self._replica_sets[_name(new)] = new
            self.version += old is None or new is None or old.spec != new.spec

    def stateful_set_changed(self, old: StatefulSet | None, new: StatefulSet | None) -> None:
        """Take over a StatefulSet: ``new`` is None for one that is gone."""
        with self._lock:
            if old is not None:
                self._stateful_sets.pop(_name(old), None)
            if new is not None:
                self._stateful_sets[_name(new)] = new
            self.version += old is None or new is None or old.spec != new.spec


def _name(owner: ReplicationController | ReplicaSet | StatefulSet) -> Name:
    return owner.metadata.namespace, owner.metadata.name
