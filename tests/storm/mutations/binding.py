"""Berth without what makes of each decision one binding, or none."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import msgspec

from cache.scheduler_cache import SchedulerCache
from plugins.framework.status import SUCCESS
from scheduler.api_writes.binder import Binder
from scheduler.api_writes.pod_status_writer import PodStatusWriter
from scheduler.client.api import STRATEGIC_MERGE_PATCH, Api
from scheduler.client.connection_pool import ConnectionPool
from scheduler.client.transport import Transport
from scheduler.cycle.binding_cycle import BindingCycles
from scheduler.cycle.reaper import Reaper
from tests.storm.mutations.registry import mutation, variant

# --- bindings -----------------------------------------------------------------------------------


@mutation(Api, "bind_pod", theme="names")
def _bindings_without_uid(real: Any) -> Any:
    """the UID in a binding"""

    async def bind(self: Any, namespace: str, name: str, uid: str, *more: Any, **named: Any) -> Any:
        return await real(self, namespace, name, "", *more, **named)

    return bind


@mutation(Api, "patch_pod_status", theme="names")
def _statuses_without_uid(real: Any) -> Any:
    """the UID in a patch of a pod's status"""

    async def patch_status(
        self: Any, namespace: str, name: str, uid: str, status: Any, **more: Any
    ) -> None:
        await self._transport.request(
            "PATCH",
            f"/api/v1/namespaces/{namespace}/pods/{name}/status",
            body=msgspec.json.encode({"status": status}),
            content_type=STRATEGIC_MERGE_PATCH,
            discard_body=True,
        )

    return patch_status


@mutation(Binder, "settle", theme="answers")
def _no_answer_means_bound(real: Any) -> Any:
    """the question what became of a binding without an answer: it counts as made"""

    async def settle(self: Any, info: Any, node_name: str) -> Any:
        return SUCCESS

    return settle


@mutation(Binder, "settle", theme="answers")
def _no_answer_means_unbound(real: Any) -> Any:
    """the same question: it counts as not made"""

    async def settle(self: Any, info: Any, node_name: str) -> Any:
        return None

    return settle


variant(
    "not-found-means-gone",
    "the question whether a pod is gone that a refusal calls gone",
    "answers",
)
variant(
    "bindings-overtake-statuses",
    "the wait of a binding for the pod's status under way",
    extra="incidents",
)


@mutation(PodStatusWriter, "__init__", theme="answers")
def _statuses_of_placed_pods_are_written(real: Any) -> Any:
    """the look whether a pod has a node before its status says that it has none"""

    def init(self: Any, ports: Any, is_placed: Any, **more: Any) -> None:
        real(self, ports, lambda uid: False, **more)

    return init


@mutation(ConnectionPool, "exchange", theme="answers")
def _answers_are_waited_for_without_end(real: Any) -> Any:
    """the timeout of requests"""

    async def exchange(self: Any, request: bytes, *, timeout_s: float, **more: Any) -> Any:
        return await real(self, request, timeout_s=1e6, **more)

    return exchange


@mutation(Transport, "_hold", "_refuse_held", theme="refusals")
def _retry_after_is_for_others(hold: Any, refuse_held: Any) -> Any:
    """the pause of all like requests after a Retry-After"""
    return lambda self, *args: None, lambda self, *args: None


# --- undo ---------------------------------------------------------------------------------------


@mutation(SchedulerCache, "assume_pod")
def _nothing_is_assumed(real: Any) -> Any:
    """the assumption of a pod on its node"""
    return lambda self, info, node_name: None


@mutation(SchedulerCache, "forget_pod", theme="refusals")
def _undone_pods_stay_assumed(real: Any) -> Any:
    """the end of the assumption when a binding fails"""
    return lambda self, info: True


@mutation(BindingCycles, "undo", theme="refusals")
def _undone_pods_are_not_queued(real: Any) -> Any:
    """the return to the queue when a binding fails"""

    def undo(self: Any, job: Any, status: Any) -> None:
        with patch.object(self._failures, "handle", lambda *args, **more: None):
            real(self, job, status)

    return undo


variant(
    "undo-wakes-nobody",
    "the event of the room that a failed binding gives back",
    extra="incidents",
)
variant(
    "undo-ends-where-forget-fails",
    "the end of an attempt whose pod is not assumed any more",
    "answers",
)

# --- bound, and never confirmed -----------------------------------------------------------------


@mutation(SchedulerCache, "finish_binding", theme="losses")
def _bindings_never_finish(real: Any) -> Any:
    """the time limit of an assumed pod from its binding on"""
    return lambda self, info, now_s: None


@mutation(SchedulerCache, "overdue", theme="losses")
def _assumed_pods_never_expire(real: Any) -> Any:
    """the look for assumed pods past their time limit"""
    return lambda self, now_s: []


@mutation(Reaper, "_settle", theme="losses")
def _overdue_pods_are_given_up_unasked(real: Any) -> Any:
    """the API server's word about an overdue pod"""
    return lambda self, info, node_name, pod: real(self, info, node_name, None)


variant(
    "answers-count-whatever-has-happened-since",
    "the look whether an overdue pod is still assumed when the answer comes",
    extra="incidents",
)
