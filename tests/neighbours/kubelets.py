"""All kubelets of the cluster, and the controller that replaces the pods that they reject.

One watch shows the pods of all nodes, in the order in which they were bound; that is the order in
which each kubelet's own watch would show them.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from tests.neighbours.admission import Kubelet, Rejection, pod_requests
from tests.neighbours.cluster import NAMESPACE, PARTY, original, successor
from tests.neighbours.patience import create, insist

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping

    from tests.bench.load_client import LoadClient

MAX_SUCCESSORS: Final = 20
PODS_PATH: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
_MERGE: Final = "application/strategic-merge-patch+json"
_RUNNING: Final = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
_WRITERS: Final = 8
_POLL_S: Final = 0.05
_OVER: Final = frozenset({"Failed", "Succeeded"})


class Arrival(NamedTuple):
    """A pod that a kubelet saw for the first time.

    Attributes
    ----------
    at_s
        By the machine's clock.
    party
        The name of its scheduler; empty for pods that came with their node.
    """

    at_s: float
    uid: str
    name: str
    party: str
    node: str
    requests: Mapping[str, int]
    rejection: Rejection | None


class Kubelets:
    """Admit or reject pods, report their statuses, and replace those that were rejected.

    Parameters
    ----------
    nodes
        All nodes, by name.
    pods
        The pods that a controller replaces.
    max_successors
        Of one pod. A pod that was rejected after so many is given up.

    Attributes
    ----------
    arrivals
        All pods that have come to a node, in their order.
    given_up
        The schedulers of pods that were rejected too often.
    restarts
        How often the server has ended the watch.

    Notes
    -----
    *Concurrency*: confined to the loop.
    """

    def __init__(
        self,
        client: LoadClient,
        nodes: Mapping[str, Mapping[str, Any]],
        pods: Iterable[dict[str, Any]],
        max_successors: int = MAX_SUCCESSORS,
    ) -> None:
        self._client = client
        self._max_successors = max_successors
        self._kubelets = {
            name: Kubelet(node["status"]["allocatable"]) for name, node in nodes.items()
        }
        self._manifests = {original(pod["metadata"]["name"]): pod for pod in pods}
        self._requests = {name: pod_requests(pod["spec"]) for name, pod in self._manifests.items()}
        self.arrivals: list[Arrival] = []
        self.given_up: list[str] = []
        self.restarts = 0
        self._known: dict[str, str] = {}
        self._admitted: Counter[str] = Counter()
        # What was rejected is written before what runs: a real kubelet writes for its node only.
        self._rejected: deque[tuple[str, dict[str, Any]]] = deque()
        self._started: deque[tuple[str, dict[str, Any]]] = deque()
        self._failed: deque[dict[str, Any]] = deque()
        self._work = asyncio.Semaphore(0)
        self._task: asyncio.Future[None] | None = None
        self._version = ""

    def admitted(self, party: str) -> int:
        """Return how many pods of a scheduler run; of all that came with their node for ``""``."""
        return self._admitted[party]

    @property
    def settled(self) -> int:
        """How many of the pods that a controller replaces run, or are given up."""
        replaced = self._admitted.total() - self._admitted[""]
        return replaced + len(self.given_up)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the kubelets and the controller within the context; there are no pods yet."""
        page = await self._client.get(PODS_PATH, limit="1")
        self._version = page["metadata"]["resourceVersion"]
        self._task = asyncio.ensure_future(self._run())
        try:
            yield
        finally:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def until(self, holds: Callable[[], bool], *, quiet_s: float, deadline_s: float) -> bool:
        """Wait until something holds; return False when too long nothing came to a node.

        Raises
        ------
        ApiError, RuntimeError
            The watch or a write failed: what was seen so far is not whole.
        """
        ends_s = time.monotonic() + deadline_s
        count, since_s = len(self.arrivals), time.monotonic()
        while not holds():
            if self._task is None or self._task.done():
                raise RuntimeError("the kubelets have ended") from _failure(self._task)
            now_s = time.monotonic()
            if len(self.arrivals) > count:
                count, since_s = len(self.arrivals), now_s
            if now_s > min(ends_s, since_s + quiet_s):
                return False
            await asyncio.sleep(_POLL_S)
        return True

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch())
            for _ in range(_WRITERS):
                group.create_task(self._write())

    # --- the watch ----------------------------------------------------------------------------

    async def _watch(self) -> None:
        while True:
            async for lines in self._client.watch_bound(PODS_PATH, self._version):
                now_s = time.time()
                for line in lines:
                    self._take(line, now_s)
            self.restarts += 1

    def _take(self, line: bytes, now_s: float) -> None:
        event = _LINE.decode(line)
        if event.type == "ERROR":
            raise RuntimeError(f"the watch has failed: {line[:300]!r}")
        pod = event.object
        self._version = pod.metadata.resource_version
        uid, node = pod.metadata.uid, pod.spec.node_name
        if event.type == "DELETED":
            self._kubelets[node].remove(uid)
            return
        phase = pod.status.phase
        if uid not in self._known and phase not in _OVER:
            self._known[uid] = phase
            self._arrive(pod, now_s)
        elif phase == "Failed" and self._known.get(uid) != "Failed":
            self._known[uid] = phase
            self._replace(pod.metadata.name)

    def _arrive(self, pod: _Pod, now_s: float) -> None:
        metadata, node = pod.metadata, pod.spec.node_name
        party = metadata.labels.get(PARTY, "")
        requests = self._requests.get(original(metadata.name)) if party else None
        if requests is None:
            requests = pod_requests(msgspec.to_builtins(pod.spec))
        rejection = self._kubelets[node].admit(metadata.uid, requests)
        self.arrivals.append(
            Arrival(now_s, metadata.uid, metadata.name, party, node, requests, rejection)
        )
        if rejection is None:
            self._admitted[party] += 1
            self._started.append((metadata.name, _RUNNING))
        else:
            self._rejected.append((metadata.name, rejection.status()))
        self._work.release()

    def _replace(self, name: str) -> None:
        manifest = self._manifests.get(original(name))
        if manifest is None:
            return
        if int(name.rpartition("-")[2]) >= self._max_successors:
            self.given_up.append(manifest["spec"]["schedulerName"])
            return
        key = original(name)
        self._manifests[key] = manifest = successor(manifest)
        self._failed.append(manifest)
        self._work.release()

    # --- writes -------------------------------------------------------------------------------

    async def _write(self) -> None:
        while True:
            await self._work.acquire()
            if self._rejected:
                await self._write_status(*self._rejected.popleft())
            elif self._failed:
                await create(self._client, self._failed.popleft())
            else:
                await self._write_status(*self._started.popleft())

    async def _write_status(self, name: str, status: dict[str, Any]) -> None:
        async def patch() -> None:
            await self._client.transport.request(
                "PATCH",
                f"{PODS_PATH}/{name}/status",
                body=msgspec.json.encode({"status": status}),
                content_type=_MERGE,
                discard_body=True,
            )

        await insist(patch, fine=(404,))


def _failure(task: asyncio.Future[None] | None) -> BaseException | None:
    return None if task is None or task.cancelled() else task.exception()


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    uid: str
    resource_version: str
    labels: dict[str, str] = {}


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str
    containers: list[dict[str, Any]] = []


class _Status(msgspec.Struct):
    phase: str = ""


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec
    status: _Status


class _Event(msgspec.Struct):
    type: str
    object: _Pod


_LINE = msgspec.json.Decoder(_Event)
