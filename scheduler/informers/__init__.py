"""The package keeps the API server's objects in memory: list, watch, stores and their handlers.

It knows nothing of scheduling: the meaning of a change belongs to :mod:`scheduler.event_handlers`.
"""

from __future__ import annotations

from scheduler.informers.informer import Informer
from scheduler.informers.informer_factory import (
    InformerFactory,
    relists,
    restores,
    staleness_s,
)
from scheduler.informers.metadata_list import ListedObject, MetadataPage
from scheduler.informers.reflector_options import ReflectorOptions, pages_come_from_cache
from scheduler.informers.reflector_statistics import ReflectorStatistics
from scheduler.informers.store import Delta, DeltaKind, Store
from scheduler.informers.watch_events import ApiObject, EventType

__all__ = [
    "ApiObject",
    "Delta",
    "DeltaKind",
    "EventType",
    "Informer",
    "InformerFactory",
    "ListedObject",
    "MetadataPage",
    "ReflectorOptions",
    "ReflectorStatistics",
    "Store",
    "pages_come_from_cache",
    "relists",
    "restores",
    "staleness_s",
]
