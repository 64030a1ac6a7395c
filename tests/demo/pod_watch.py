"""Follows the pods of a scene on the API server until each of them is settled."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

from tests.demo.outcome import scheduled_condition
from tests.demo.scene import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.controlplane.api import ApiClient
    from tests.demo.scene import Scene

PODS_PATH = f"/api/v1/namespaces/{NAMESPACE}/pods"
EVENTS_PATH = f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events"


class PodWatch:
    """What is known of the scene's pods so far.

    Parameters
    ----------
    on_progress
        Called with the number of bound pods whenever it has grown.

    Attributes
    ----------
    first_s, last_s
        When the first and the latest pod were seen on a node, by `time.monotonic`.
    """

    def __init__(self, scene: Scene, on_progress: Callable[[int], None]) -> None:
        self.first_s = 0.0
        self.last_s = 0.0
        self._bound: set[str] = set()
        self._unbound = set(scene.placeable)
        self._unexplained = set(scene.pending)
        self._on_progress = on_progress

    def is_settled(self) -> bool:
        """Whether all pods that should be bound are, and the others of berth's say why not."""
        return not self._unbound and not self._unexplained

    def describe(self) -> str:
        """Return what is still open, for an error message."""
        parts = [
            f"{len(names)} pods {what} ({', '.join(sorted(names)[:5])}"
            + (", ...)" if len(names) > 5 else ")")
            for names, what in (
                (self._unbound, "are not bound yet"),
                (self._unexplained, "do not say yet why they wait"),
            )
            if names
        ]
        return " and ".join(parts) or "nothing"

    async def run(self, api: ApiClient) -> None:
        """Follow the pods; return once all are settled."""
        while True:  # a watch ends after a while of the server's choosing
            pods, version = await api.list_with_version(PODS_PATH)
            for pod in pods:
                self.see(pod)
            if self.is_settled():
                return
            watch = api.watch(PODS_PATH, resource_version=version)
            async with contextlib.aclosing(watch) as events:
                async for event in events:
                    if event["type"] != "DELETED":
                        self.see(event["object"])
                    if self.is_settled():
                        return

    def see(self, pod: Mapping[str, Any]) -> None:
        """Take in one version of a pod."""
        name = pod["metadata"]["name"]
        if pod["spec"].get("nodeName"):
            self._unbound.discard(name)
            self._unexplained.discard(name)
            if name not in self._bound:
                self._bound.add(name)
                self.last_s = time.monotonic()
                self.first_s = self.first_s or self.last_s
                self._on_progress(len(self._bound))
        elif scheduled_condition(dict(pod)).get("status") == "False":
            self._unexplained.discard(name)
