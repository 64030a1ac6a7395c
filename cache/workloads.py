"""Services and the controllers of pods, by namespace: default spreading uses their selectors."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from cache.workload_objects import ReplicaSet, ReplicationController, StatefulSet

if TYPE_CHECKING:
    from cache.locks import MakeLock
    from cache.workload_objects import Service

Controller: TypeAlias = ReplicationController | ReplicaSet | StatefulSet
"""What manages pods and says by a selector which."""

C = TypeVar("C", bound=Controller)


class Workloads:
    """The Services and controllers whose selectors default spreading uses.

    Notes
    -----
    *Concurrency*: thread-safe; written from the I/O loop, read by the scheduling thread.
    """

    def __init__(self, make_lock: MakeLock = threading.Lock) -> None:
        self._lock = make_lock()
        self._services: dict[str, dict[str, Service]] = {}
        self._listed: dict[str, tuple[Service, ...]] = {}
        self._controllers: dict[tuple[type[object], str, str], Controller] = {}
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

    def controller(self, kind: type[C], namespace: str, name: str) -> C | None:
        """Return the controller of a kind with this name, or None."""
        found = self._controllers.get((kind, namespace, name))
        return found if isinstance(found, kind) else None

    # --- changes ------------------------------------------------------------------------------

    def service_changed(self, old: Service | None, new: Service | None) -> None:
        """Store a Service; ``new`` is None for a deleted one."""
        with self._lock:
            if old is not None:
                namespace = old.metadata.namespace
                services = self._services.get(namespace, {})
                services.pop(old.metadata.name, None)
                if not services:
                    self._services.pop(namespace, None)
                self._listed.pop(namespace, None)
            if new is not None:
                held = self._services.setdefault(new.metadata.namespace, {})
                held[new.metadata.name] = new
                self._listed.pop(new.metadata.namespace, None)
            self.version += 1

    def controller_changed(self, old: Controller | None, new: Controller | None) -> None:
        """Store a controller; ``new`` is None for a deleted one."""
        with self._lock:
            if old is not None:
                self._controllers.pop(_key(old), None)
            if new is not None:
                self._controllers[_key(new)] = new
            self.version += old is None or new is None or old.spec != new.spec


def _key(controller: Controller) -> tuple[type[object], str, str]:
    return type(controller), controller.metadata.namespace, controller.metadata.name
