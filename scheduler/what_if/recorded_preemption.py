"""Preemption in a what-if: the plugin's choice is recorded, and then made true at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugins.framework.status import SUCCESS
from scheduler.offline.offline_framework import NoPreemption

if TYPE_CHECKING:
    from cache.pod_info import PodInfo
    from plugins.framework.status import Status
    from plugins.framework.victims import Victims


class RecordedPreemption(NoPreemption):
    """Records which pods a plugin wants to evict. See :class:`plugins.framework.handle.Preemption`.

    Notes
    -----
    *Concurrency*: confined to its owner.
    """

    def __init__(self) -> None:
        self._victims: tuple[PodInfo, ...] = ()

    def start(self, info: PodInfo, node_name: str, victims: Victims, plugin: str) -> Status:
        """Record the victims; return success."""
        self._victims = victims.pods
        return SUCCESS

    def take(self) -> tuple[PodInfo, ...]:
        """Return the victims of the last decision, once."""
        victims, self._victims = self._victims, ()
        return victims
