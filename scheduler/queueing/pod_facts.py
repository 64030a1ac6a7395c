"""The fields of a queued pod that queueing hints read, computed once for each version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from cache.pod_info import PodInfo
    from plugins.framework.queueing_hints import Likeness


class Unreadable:
    """The value for a pod whose likeness could not be computed; it equals no other value."""

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.error = error


class PodFacts:
    """The facts of one version of a pod, by likeness. They are dropped with the pod.

    Notes
    -----
    *Concurrency*: belongs to the queue and its lock.

    *Cost*: what the plugin's ``of`` costs, once for each likeness; then a look-up.
    """

    __slots__ = ("_known", "info")

    def __init__(self, info: PodInfo) -> None:
        self.info: Final = info
        self._known: dict[Likeness[Any], Any] = {}

    def of(self, likeness: Likeness[Any]) -> Any:
        """Return the value of a likeness for the pod, or an :class:`Unreadable`."""
        known = self._known
        if likeness not in known:
            try:
                facts = likeness.of(self.info)
                hash(facts)
            except Exception as error:  # noqa: BLE001 - a plugin's failure must not strand the pod
                facts = Unreadable(error)
            known[likeness] = facts
        return known[likeness]
