"""Orders the active queue by priority, and by waiting time within one priority.

*Source*: pkg/scheduler/framework/plugins/queuesort/priority_sort.go (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugins import names
from plugins.framework.interfaces import QueueSortPlugin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cache.objects import Pod
    from plugins.framework.cluster_events import EventRegistration


class PrioritySort(QueueSortPlugin):
    """Sorts by priority, highest first, and by waiting time within one priority, longest first."""

    name = names.PRIORITY_SORT

    def sort_key(self, pod: Pod, since_s: float) -> tuple[float, ...]:
        """Return ``(-priority, since_s)``; a pod without a priority has 0."""
        return (-(pod.spec.priority or 0), since_s)

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Return nothing: ordering rejects no pod."""
        return ()
