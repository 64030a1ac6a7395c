"""What queueing hints read of one version of a waiting pod, worked out once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from cache.pod_info import PodInfo
    from plugins.framework.queueing_hints import Likeness


class Unreadable:
    """What stands for a pod of which a likeness could not be worked out; like no other."""

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
        """Return what a likeness reads of the pod, or an :class:`Unreadable`."""
        known = self._known
        if likeness not in known:
            try:
                facts = likeness.of(self.info)
                hash(facts)
            except Exception as error:  # noqa: BLE001 - a plugin's failure must not strand the pod
                facts = Unreadable(error)
            known[likeness] = facts
        return known[likeness]
