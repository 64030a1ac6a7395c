"""A steady stream of pods for berth onto simulated nodes, and what became of each.

The pods are bound and never run, so that hundreds cost nothing. Times come from a watch.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import threading
import time
from typing import TYPE_CHECKING, Any, Final, Self

from tests.controlplane.api import ApiClient
from tests.e2e.cluster import SIMULATED_LABEL
from tests.e2e.images import BUSYBOX

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType

NAMESPACE: Final = "load"
RATE_VARIABLE: Final = "BERTH_E2E_RATE"
"""Pods a second while versions change; ten where it is not set."""
_PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
_WARM_PODS: Final = 20
_DEADLINE_S: Final = 90.0


@dataclasses.dataclass(slots=True)
class Placed:
    """The pods of one stream, in seconds of `time.monotonic`.

    Attributes
    ----------
    created, bound
        When a pod was created, and when it was first seen on a node, by name.
    """

    created: dict[str, float] = dataclasses.field(default_factory=dict)
    bound: dict[str, float] = dataclasses.field(default_factory=dict)

    @property
    def slowest_s(self) -> float:
        """The longest time from a pod's creation to its node."""
        return max(at - self.created[name] for name, at in self.bound.items())

    @property
    def all_bound(self) -> bool:
        """Whether no pod waits."""
        return self.created.keys() <= self.bound.keys()

    def describe(self) -> str:
        """Return one line for a report."""
        return (
            f"{len(self.bound)} of {len(self.created)} pods bound, slowest {self.slowest_s:.2f} s"
        )


class Load:
    """A stream of pods while its ``with`` block lasts; then all are waited for and deleted.

    Parameters
    ----------
    name
        Distinguishes this stream's pods from those of others.
    scheduler_names
        Whom the pods ask for, in turn.
    pods_per_s
        Pods created a second.

    Concurrency
    -----------
    Works in a thread of its own; `placed` may be read at any time and is whole after the block.
    """

    def __init__(
        self,
        kubeconfig: Path,
        name: str,
        *,
        scheduler_names: Sequence[str] = ("berth",),
        pods_per_s: float = 10.0,
    ) -> None:
        self.placed = Placed()
        self._kubeconfig = kubeconfig
        self._name = name
        self._scheduler_names = scheduler_names
        self._pause_s = 1 / pods_per_s
        self._stop = threading.Event()
        self._over = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"load-{name}")

    def __enter__(self) -> Self:
        """Start; returns when the stream flows."""
        self._thread.start()
        self.wait_for(_WARM_PODS)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        if error is not None:
            self._over.set()
        self._thread.join()
        if self._error is not None and error is None:
            raise self._error

    def wait_for(self, more: int) -> None:
        """Wait until `more` pods than now are bound.

        Raises
        ------
        TimeoutError
            They are not within 90 s.
        """
        wanted = len(self.placed.bound) + more
        deadline = time.monotonic() + _DEADLINE_S
        while len(self.placed.bound) < wanted:
            if self._error is not None:
                raise self._error
            if time.monotonic() > deadline:
                self._over.set()
                raise TimeoutError(
                    f"{len(self.placed.bound)} of {len(self.placed.created)} pods of "
                    f"{self._name} were bound"
                )
            time.sleep(0.02)

    def _run(self) -> None:
        try:
            asyncio.run(self._work())
        except Exception as error:  # noqa: BLE001 - raised in the thread that uses this
            self._error = error

    async def _work(self) -> None:
        async with ApiClient(self._kubeconfig) as client:
            _, version = await client.list_with_version(_PODS)
            watching = asyncio.create_task(self._watch(client, version))
            try:
                await self._create(client)
                deadline = time.monotonic() + _DEADLINE_S
                while not self.placed.all_bound and not self._over.is_set():
                    if watching.done():
                        watching.result()
                    if time.monotonic() > deadline:
                        waiting = self.placed.created.keys() - self.placed.bound.keys()
                        raise TimeoutError(
                            f"{len(waiting)} of {len(self.placed.created)} pods of {self._name} "
                            f"were not bound, such as {min(waiting)}"
                        )
                    await asyncio.sleep(0.02)
            finally:
                watching.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await watching
                await client.request(
                    "DELETE",
                    _PODS,
                    {"gracePeriodSeconds": 0},
                    query={"labelSelector": f"load={self._name}"},
                )

    async def _create(self, client: ApiClient) -> None:
        number = 0
        due = time.monotonic()
        while not self._stop.is_set():
            name = f"{self._name}-{number:05}"
            self.placed.created[name] = time.monotonic()
            asked = self._scheduler_names[number % len(self._scheduler_names)]
            await client.post(_PODS, self._pod(name, asked))
            number += 1
            due += self._pause_s
            await asyncio.sleep(max(due - time.monotonic(), 0))

    async def _watch(self, client: ApiClient, version: str) -> None:
        events = client.watch(_PODS, resource_version=version, labelSelector=f"load={self._name}")
        async with contextlib.aclosing(events):
            async for event in events:
                pod = event["object"]
                if pod["spec"].get("nodeName"):
                    self.placed.bound.setdefault(pod["metadata"]["name"], time.monotonic())

    def _pod(self, name: str, scheduler_name: str) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"load": self._name}},
            "spec": {
                "schedulerName": scheduler_name,
                "automountServiceAccountToken": False,
                "nodeSelector": {SIMULATED_LABEL: "true"},
                "tolerations": [{"key": SIMULATED_LABEL, "operator": "Exists"}],
                "containers": [
                    {
                        "name": "main",
                        "image": BUSYBOX,
                        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
                    }
                ],
            },
        }
