"""The DeviceClasses that provide extended resources."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from cache.objects import ApiStruct, ObjectMeta
from cache.resources import is_extended_resource_name
from cache.storage import KnownObjects

if TYPE_CHECKING:
    from cache.locks import MakeLock

IMPLICIT_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""What follows in the name of an extended resource is the name of a DeviceClass.

*Source*: ResourceDeviceClassPrefix, k8s.io/api/resource/v1 (0.36)."""


def may_be_devices(resource: str) -> bool:
    """Return whether a DeviceClass may provide a resource."""
    return is_extended_resource_name(resource) or resource.startswith(IMPLICIT_PREFIX)


class DeviceClassSpec(ApiStruct, frozen=True):
    """The fields of a class that are read: not its devices."""

    extended_resource_name: str = ""


class DeviceClass(ApiStruct, frozen=True):
    """A class of devices that a driver publishes."""

    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceClasses:
    """The DeviceClasses by the extended resource that they provide.

    Notes
    -----
    *Concurrency*: thread-safe; written from the I/O loop, read by the scheduling thread.
    """

    def __init__(self, make_lock: MakeLock = threading.Lock) -> None:
        self._classes: KnownObjects[str, DeviceClass] = KnownObjects(
            lambda known: known.metadata.name,
            make_lock,
            lambda known: known.spec.extended_resource_name,
        )
        self.changed = self._classes.changed

    def class_of(self, resource: str) -> str | None:
        """Return a class that provides an extended resource, or None.

        A resource may name its class itself; the existence of that class is not checked.
        """
        if resource.startswith(IMPLICIT_PREFIX):
            return resource.removeprefix(IMPLICIT_PREFIX)
        classes = self._classes.by_index(resource)
        return classes[0].metadata.name if classes else None
