"""Simulated kubelets, and a record of what happens to pods."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.controlplane.api import ApiError
from tests.what_if.workloads import NEVER_READY

if TYPE_CHECKING:
    from tests.controlplane.api import ApiClient

PODS: Final = "/api/v1/namespaces/default/pods"


def running(*, ready: bool) -> dict[str, Any]:
    """Return the status of a pod that runs."""
    return {
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": "Ready", "status": str(ready)},
                {"type": "PodScheduled", "status": "True"},
            ],
        }
    }


class Happening(NamedTuple):
    """One change of a pod: created, bound, runs, deleted."""

    at_s: float
    what: str
    pod: str
    node: str

    def __str__(self) -> str:
        return f"{self.at_s:8.2f} s  {self.what:8} {self.pod} {self.node}"


class Kubelets:
    """Lets pods run as soon as they have a node, and remembers what happens to pods."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api
        self._seen: dict[str, str] = {}
        self.happenings: list[Happening] = []
        self.pods: dict[str, dict[str, Any]] = {}
        """All pods by UID, as the watch has them."""
        self.changes = 0
        """Grows with every change of a pod."""

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            with contextlib.suppress(ApiError, TimeoutError, OSError):
                pods, version = await self._api.list_with_version(PODS)
                self.pods = {pod["metadata"]["uid"]: pod for pod in pods}
                self.changes += 1
                for pod in pods:
                    await self._take(pod)
                watch = self._api.watch(PODS, resource_version=version)
                async with contextlib.aclosing(watch) as events:
                    async for event in events:
                        if event["type"] == "DELETED":
                            self._forget(event["object"])
                        elif event["type"] in ("ADDED", "MODIFIED"):
                            await self._take(event["object"])

    def _forget(self, pod: dict[str, Any]) -> None:
        self._note("deleted", pod)
        self.changes += 1
        for known in (self._seen, self.pods):
            known.pop(pod["metadata"]["uid"], None)

    async def _take(self, pod: dict[str, Any]) -> None:
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName", "")
        self.pods[uid] = pod
        self.changes += 1
        before = self._seen.get(uid)
        self._seen[uid] = node
        if before is None:
            self._note("created", pod)
        if node and not before:
            self._note("bound", pod)
        if node and pod["status"].get("phase") == "Pending":
            ready = NEVER_READY not in pod["metadata"].get("labels", {})
            with contextlib.suppress(ApiError):
                path = f"{PODS}/{pod['metadata']['name']}/status"
                await self._api.patch(path, running(ready=ready))

    def _note(self, what: str, pod: dict[str, Any]) -> None:
        node = pod["spec"].get("nodeName", "")
        self.happenings.append(Happening(time.monotonic(), what, pod["metadata"]["name"], node))
