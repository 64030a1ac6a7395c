"""The load generator's way to the API server: as little CPU as can be, since the cores are shared.

It goes through the scheduler's own connections, which take a third of what a general HTTP client
takes; what it sees of the bindings is the same for every contender.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Self

import msgspec

from scheduler.client.credential_search import load_credentials
from scheduler.client.errors import ApiError
from scheduler.client.transport import Bounds, Transport
from tests.controlplane.api import collection_path

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping
    from pathlib import Path

CONCURRENCY = 64
"""Requests under way at a time while a cluster is being set up."""

_LIST_AGAIN_S = 0.1
_WATCH_S = 7200


class LoadClient:
    """Creates, deletes and watches.

    Parameters
    ----------
    kubeconfig
        Of somebody who may do everything.

    Concurrency: loop-confined; use it with ``async with``.
    """

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig

    async def __aenter__(self) -> Self:
        credentials = await load_credentials(str(self._kubeconfig))
        self.transport = Transport(credentials, user_agent="bench", bounds=Bounds(CONCURRENCY))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.transport.close()

    async def get(self, path: str, **query: str) -> Any:
        """GET and decode."""
        answer = await self.transport.request("GET", path, query=list(query.items()))
        return msgspec.json.decode(answer.body)

    async def create(self, manifest: Mapping[str, Any]) -> None:
        """Create one object, and write the status of a claim that has one."""
        await self.transport.request(
            "POST",
            collection_path(manifest),
            body=msgspec.json.encode(manifest),
            discard_body=True,
        )
        if manifest["kind"] == "ResourceClaim" and "status" in manifest:
            await self.patch(manifest, {"status": manifest["status"]}, "/status")

    async def patch(
        self, manifest: Mapping[str, Any], patch: Mapping[str, Any], subresource: str = ""
    ) -> None:
        """Merge a patch into one object."""
        await self.transport.request(
            "PATCH",
            f"{collection_path(manifest)}/{manifest['metadata']['name']}{subresource}",
            body=msgspec.json.encode(patch),
            content_type="application/merge-patch+json",
            discard_body=True,
        )

    async def create_many(self, manifests: Iterable[Mapping[str, Any]]) -> None:
        """Create all, many at a time; each is begun in its order.

        Raises
        ------
        ApiError
            One was refused; which of the others exist is then open.
        """
        waiting = iter(manifests)

        async def work() -> None:
            # One iterator for all workers: each takes the next one.
            for manifest in waiting:
                await self.create(manifest)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(CONCURRENCY):
                    group.create_task(work())
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None

    async def watch_bound(self, path: str, version: str) -> AsyncIterator[list[bytes]]:
        """Watch the pods of a collection that have a node; yield the lines that came at once.

        Ends where the server ends the watch.
        """
        query = [
            ("watch", "true"),
            ("resourceVersion", version),
            ("fieldSelector", "spec.nodeName!="),
            ("timeoutSeconds", str(_WATCH_S)),
        ]
        async with self.transport.stream(path, query=query, read_timeout_s=_WATCH_S) as stream:
            rest = b""
            async for chunk in stream.chunks():
                *lines, rest = (rest + chunk).split(b"\n")
                yield lines

    async def give_back(self, claim: Mapping[str, Any]) -> None:
        """Deallocate and delete a claim, as the controllers do once its pod is gone."""
        await self.patch(claim, {"status": None}, "/status")
        await self.patch(claim, {"metadata": {"finalizers": None}})
        await self.delete(claim)

    async def delete(self, manifest: Mapping[str, Any]) -> None:
        """Delete one object at once; that it is gone already is no error."""
        try:
            await self.transport.request(
                "DELETE",
                f"{collection_path(manifest)}/{manifest['metadata']['name']}",
                body=b'{"gracePeriodSeconds":0}',
                discard_body=True,
            )
        except ApiError as error:
            if error.status != 404:
                raise


class BoundWatch:
    """When each pod of a namespace came to a node, as a watch tells it.

    Parameters
    ----------
    lists_again
        Whether it lists and watches anew where the watch fails, as when the API server is killed;
        a pod that was bound meanwhile has the time of the list.

    Attributes
    ----------
    bound_s
        By name of the pod: `time.monotonic` when the chunk with its event had arrived.
    begun
        Set with the first of them.
    restarts
        How often the server has ended the watch.
    """

    def __init__(self, client: LoadClient, namespace: str, *, lists_again: bool = False) -> None:
        self._client = client
        self._lists_again = lists_again
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self.bound_s: dict[str, float] = {}
        self.restarts = 0
        self._wanted = 0
        self._reached = asyncio.Event()
        self._more = asyncio.Event()
        self.begun = asyncio.Event()
        self._version = ""

    async def open(self) -> None:
        """Find out where to watch from; no pod may be bound yet."""
        page = await self._client.get(self._path, fieldSelector="spec.nodeName!=", limit="1")
        if page["items"]:
            raise RuntimeError("there are bound pods already")
        self._version = page["metadata"]["resourceVersion"]

    async def run(self) -> None:
        """Watch until cancelled; where the server ends the watch, go on from there.

        The API server does that to a watch whose reader it finds too slow, which may happen on a
        machine that is very busy.

        Raises
        ------
        ApiError, RuntimeError
            The watch failed: what was measured so far is not whole.
        """
        while True:
            try:
                await self._follow()
            except (ApiError, RuntimeError):
                if not self._lists_again:
                    raise
                await self._list()
            self.restarts += 1

    async def _follow(self) -> None:
        async for lines in self._client.watch_bound(self._path, self._version):
            now_s = time.monotonic()
            for line in lines:
                self._take(line, now_s)
            self._more.set()
            if len(self.bound_s) >= self._wanted:
                self._reached.set()

    async def _list(self) -> None:
        """List until the server answers, and watch from there."""
        while True:
            try:
                page = await self._client.get(self._path, fieldSelector="spec.nodeName!=")
            except ApiError:
                await asyncio.sleep(_LIST_AGAIN_S)
                continue
            now_s = time.monotonic()
            for pod in page["items"]:
                self.bound_s.setdefault(pod["metadata"]["name"], now_s)
            self._version = page["metadata"]["resourceVersion"]
            self._more.set()
            if len(self.bound_s) >= self._wanted:
                self._reached.set()
            return

    async def wait(self, count: int, timeout_s: float) -> bool:
        """Wait until so many pods are bound; return whether they were in time."""
        self._wanted = count
        if len(self.bound_s) >= count:
            return True
        self._reached.clear()
        try:
            async with asyncio.timeout(timeout_s):
                await self._reached.wait()
        except TimeoutError:
            return False
        return True

    async def reached(self, count: int) -> None:
        """Wait until so many pods are bound."""
        while len(self.bound_s) < count:
            self._more.clear()
            await self._more.wait()

    def _take(self, line: bytes, now_s: float) -> None:
        # A pod that gets its node enters the selection: that is an addition, and the only one.
        if line.startswith(b'{"type":"ADDED"'):
            metadata = _LINE.decode(line).object.metadata
            self.bound_s.setdefault(metadata.name, now_s)
            self.begun.set()
            self._version = metadata.resource_version
        elif line.startswith(b'{"type":"ERROR"'):
            raise RuntimeError(f"the watch has failed: {line[:300]!r}")


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    resource_version: str


class _Object(msgspec.Struct):
    metadata: _Metadata


class _Line(msgspec.Struct):
    object: _Object


_LINE = msgspec.json.Decoder(_Line)
