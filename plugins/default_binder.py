"""Binds a pod to its node through the API.

*Source*: pkg/scheduler/framework/plugins/defaultbinder/default_binder.go (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugins import names
from plugins.framework.interfaces import BindPlugin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cache.pod_info import PodInfo
    from plugins.framework.cluster_events import EventRegistration
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.status import Status


class DefaultBinder(BindPlugin):
    """Posts the binding, with the pod's UID, by the scheduler's own connections."""

    name = names.DEFAULT_BINDER

    async def bind(self, state: CycleState, info: PodInfo, node_name: str) -> Status:
        """Bind the pod and return Success once the API server holds the binding. Never skips."""
        return await self.handle.bind_pod(info, node_name)

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Return nothing: a binding that fails is an error, not a rejection."""
        return ()
