"""Berth without what keeps preemption from deleting more than it needs."""

from __future__ import annotations

from typing import Any

from scheduler.api_writes.eviction import Evictor
from scheduler.client.api import Api
from tests.storm.mutations.registry import mutation, variant


@mutation(Evictor, "is_leaving", theme="preemption")
def _victims_are_deleted_again(real: Any) -> Any:
    """the look whether a victim is on its way out"""
    return lambda self, info: False


@mutation(Api, "delete_pod", theme="preemption")
def _evictions_without_uid(real: Any) -> Any:
    """the UID in the deletion of a victim"""

    async def delete_pod(self: Any, namespace: str, name: str, uid: str, **more: Any) -> None:
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        await self._transport.request("DELETE", path, discard_body=True, **more)

    return delete_pod


variant(
    "victims-go-whatever-becomes-of-the-preemptor",
    "the look whether the preemptor waits",
    extra="incidents",
)
variant(
    "not-found-means-evicted",
    "the question whether a victim is gone that a refusal calls gone",
    extra="incidents",
)
variant(
    "preemptors-spin-while-the-watch-is-behind",
    "the wait for the watch to show a victim gone",
    "losses",
)
variant("nominations-outlive-their-pods", "the end of a nomination with its pod", "preemption")
variant("nominations-are-never-cleared", "the end of a nomination that cannot hold", "nodes")
variant(
    "nominations-count-once-the-api-tells-of-them",
    "the nomination that counts at once",
    extra="incidents",
)
variant(
    "nominated-pods-wait-for-room",
    "the attempt of a nominated pod when a pod of its node ends",
    extra="incidents",
)
variant(
    "nominations-end-only-if-the-api-has-told-of-them",
    "the event of a nomination that ends before the API has heard of it",
    extra="incidents",
)
variant(
    "pods-in-binding-keep-their-room-when-deleted",
    "the room of a pod that is deleted while it is being bound",
    "names",
)
variant(
    "victims-are-waited-for-without-limit",
    "the time limit of a victim that does not end",
    extra="incidents",
)
