"""Keeps a pod out of the active queue until all its scheduling gates are removed.

*Source*: pkg/scheduler/framework/plugins/schedulinggates/scheduling_gates.go (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugins import names
from plugins.framework.cluster_events import Action, EventRegistration, Resource
from plugins.framework.interfaces import PreEnqueuePlugin
from plugins.framework.queueing_hints import AFTER_OWN_CHANGE
from plugins.framework.status import SUCCESS, Status, unresolvable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cache.objects import Pod


class SchedulingGates(PreEnqueuePlugin):
    """Admits a pod to the active queue when it has no gate left."""

    name = names.SCHEDULING_GATES

    def pre_enqueue(self, pod: Pod) -> Status:
        """Return Success for a pod without gates, else a rejection that names them in order."""
        gates = pod.spec.scheduling_gates
        if not gates:
            return SUCCESS
        listed = " ".join(gate.name for gate in gates)
        return unresolvable(f"waiting for scheduling gates: [{listed}]")

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Return the only event that can help: the last gate of a pod was removed."""
        return (
            EventRegistration.on(
                Resource.POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, AFTER_OWN_CHANGE
            ),
        )
