"""Carries changes of DeviceClasses to those who ask which extended resources stand for devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog

from scheduler.client.codec import DEVICE_CLASSES
from scheduler.client.errors import ApiError

if TYPE_CHECKING:
    from cache.device_classes import DeviceClasses
    from scheduler.client.api import Api
    from scheduler.informers import Informer, InformerFactory

log = structlog.get_logger(__name__)


async def serves_devices(api: Api) -> bool:
    """Tell whether the cluster has DeviceClasses at all: an older one has none."""
    try:
        return await api.serves(DEVICE_CLASSES.group_version)
    except ApiError as error:
        log.warning("cannot ask for the API's groups", error=str(error))
        return False


def watch_devices(classes: DeviceClasses, informers: InformerFactory) -> tuple[Informer[Any], ...]:
    """Watch DeviceClasses, and tell ``classes`` of each change, on the I/O loop."""
    informer = informers.informer(DEVICE_CLASSES)
    informer.add_delta_handler(lambda d: classes.changed(d.old, d.new))
    return (informer,)
