"""Carries changes of DeviceClasses to those who ask which extended resources stand for devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog

from scheduler.client.codec import DEVICE_CLASSES
from scheduler.client.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cache.device_classes import DeviceClasses
    from scheduler.client.api import Api, Permission
    from scheduler.informers import Informer, InformerFactory

log = structlog.get_logger(__name__)


async def serves_devices(api: Api) -> bool:
    """Tell whether the cluster has DeviceClasses at all: an older one has none."""
    try:
        return await api.serves(DEVICE_CLASSES.group_version)
    except ApiError as error:
        log.warning("cannot ask for the API's groups", error=str(error))
        return False


async def may_watch_devices(api: Api, missing: Sequence[Permission]) -> bool:
    """Tell whether the cluster has DeviceClasses and we may watch them.

    Parameters
    ----------
    missing
        Rights that watching them needs and that we do not have; a warning names them.
    """
    if not await serves_devices(api):
        return False
    if missing:
        log.warning(
            "DeviceClasses are not watched, for a right is missing",
            missing="; ".join(map(str, missing)),
            consequence="devices count as ordinary extended resources",
        )
    return not missing


def watch_devices(classes: DeviceClasses, informers: InformerFactory) -> tuple[Informer[Any], ...]:
    """Watch DeviceClasses, and tell ``classes`` of each change, on the I/O loop."""
    informer = informers.informer(DEVICE_CLASSES)
    informer.add_delta_handler(lambda d: classes.changed(d.old, d.new))
    return (informer,)
