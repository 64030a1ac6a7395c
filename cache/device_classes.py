"""The DeviceClasses, and the extended resources that they provide."""

from __future__ import annotations

import threading
from itertools import islice
from typing import TYPE_CHECKING, Final

from cache.resources import is_extended_resource_name

if TYPE_CHECKING:
    from cache.device_objects import DeviceClass
    from cache.locks import MakeLock

IMPLICIT_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""What follows in the name of an extended resource is the name of a DeviceClass.

*Source*: ResourceDeviceClassPrefix, k8s.io/api/resource/v1 (0.36)."""


def may_be_devices(resource: str) -> bool:
    """Return whether a DeviceClass may provide a resource."""
    return is_extended_resource_name(resource) or resource.startswith(IMPLICIT_PREFIX)


class DeviceClasses:
    """The DeviceClasses by name and by the extended resource that they provide.

    Notes
    -----
    *Concurrency*: thread-safe; written from the I/O loop, read from any thread.
    """

    def __init__(self, make_lock: MakeLock = threading.Lock) -> None:
        self._lock = make_lock()
        self._classes: dict[str, DeviceClass] = {}
        self._of_resource: dict[str, dict[str, DeviceClass]] = {}

    def get(self, name: str) -> DeviceClass | None:
        """Return a class, or None."""
        return self._classes.get(name)

    def names(self, most: int) -> list[str]:
        """Return the names of so many classes at most, the oldest entries first."""
        with self._lock:
            return list(islice(self._classes, most))

    def for_resource(self, resource: str) -> DeviceClass | None:
        """Return the class that provides an extended resource, or None.

        Each class provides a resource that has its name, and perhaps one more. Of several classes
        that provide a resource it is the youngest one; of equal age, the first by name.

        Notes
        -----
        # Differs: in kube-scheduler it depends on the order of events as well. There a class that
        is not the youngest when it is added does not provide the resource of its own name either;
        the deletion of any class of a resource leaves it without a class; and an update that keeps
        the resource keeps the old version of the class.

        *Source*: k8s.io/dynamic-resource-allocation 0.36, deviceclass/extendedresourcecache.
        """
        if resource.startswith(IMPLICIT_PREFIX):
            return self._classes.get(resource.removeprefix(IMPLICIT_PREFIX))
        with self._lock:
            classes = self._of_resource.get(resource)
            if not classes:
                return None
            youngest = max(map(_age, classes.values()))
            return classes[min(name for name, each in classes.items() if _age(each) == youngest)]

    def class_of(self, resource: str) -> str | None:
        """Return the name of a class that provides an extended resource, or None.

        A resource may name its class itself; the existence of that class is not checked.
        """
        if resource.startswith(IMPLICIT_PREFIX):
            return resource.removeprefix(IMPLICIT_PREFIX)
        known = self.for_resource(resource)
        return None if known is None else known.metadata.name

    def changed(self, old: DeviceClass | None, new: DeviceClass | None) -> None:
        """Store a class; ``new`` is None for a deleted one."""
        subject = new if new is not None else old
        if subject is None:
            return
        name = subject.metadata.name
        with self._lock:
            before = self._classes.pop(name, None)
            if before is not None:
                self._unindex_locked(before)
            if new is not None:
                self._classes[name] = new
                resource = new.spec.extended_resource_name
                if resource:
                    self._of_resource.setdefault(resource, {})[name] = new

    def _unindex_locked(self, known: DeviceClass) -> None:
        resource = known.spec.extended_resource_name
        if resource:
            classes = self._of_resource[resource]
            del classes[known.metadata.name]
            if not classes:
                del self._of_resource[resource]


def _age(known: DeviceClass) -> str:
    """Return the creation time of a class, as a text that grows with it."""
    return known.metadata.creation_timestamp or ""
