"""A plain client of the API server for arranging and checking: JSON in, JSON out, many at once.

It shares nothing with the scheduler's client, so a fault there cannot hide here.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import dataclasses
import ssl
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, Self

import aiohttp
import msgspec
import yaml

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

_PAGE: Final = 500
# What goes wrong for a moment while a server restarts.
_TRANSIENT: Final = (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, TimeoutError)

_COLLECTIONS: Final[Mapping[str, str]] = {
    "Namespace": "/api/v1/namespaces",
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/namespaces/{namespace}/pods",
    "Service": "/api/v1/namespaces/{namespace}/services",
    "ConfigMap": "/api/v1/namespaces/{namespace}/configmaps",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "PersistentVolumeClaim": "/api/v1/namespaces/{namespace}/persistentvolumeclaims",
    "ReplicationController": "/api/v1/namespaces/{namespace}/replicationcontrollers",
    "ResourceQuota": "/api/v1/namespaces/{namespace}/resourcequotas",
    "LimitRange": "/api/v1/namespaces/{namespace}/limitranges",
    "DaemonSet": "/apis/apps/v1/namespaces/{namespace}/daemonsets",
    "ReplicaSet": "/apis/apps/v1/namespaces/{namespace}/replicasets",
    "StatefulSet": "/apis/apps/v1/namespaces/{namespace}/statefulsets",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "CSINode": "/apis/storage.k8s.io/v1/csinodes",
    "CSIDriver": "/apis/storage.k8s.io/v1/csidrivers",
    "CSIStorageCapacity": "/apis/storage.k8s.io/v1/namespaces/{namespace}/csistoragecapacities",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims",
    "ResourceClaimTemplate": (
        "/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaimtemplates"
    ),
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets",
    "Lease": "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
}


class ApiError(Exception):
    """The API server answered with a status of 400 or more, or a watch with an ERROR event.

    Attributes
    ----------
    status
        HTTP status code (of the Status object, for a watch).
    body
        The decoded Status object; ``{"message": text}`` where the answer was no JSON object.
    """

    def __init__(self, request: str, status: int, body: Mapping[str, Any]) -> None:
        super().__init__(f"{request}: {status} {body.get('reason', '')}: {body.get('message', '')}")
        self.status = status
        self.body = body

    @property
    def reason(self) -> str:
        """The Status object's reason, such as ``Conflict``."""
        return str(self.body.get("reason", ""))


@dataclasses.dataclass(slots=True)
class BindProgress:
    """What a watch on bound pods saw, in seconds of `time.monotonic`."""

    nodes: dict[str, str] = dataclasses.field(default_factory=dict)
    first_s: float = 0.0
    last_s: float = 0.0

    @property
    def pods_per_s(self) -> float:
        """Pods bound for each second from the first bind to the last."""
        return (len(self.nodes) - 1) / max(self.last_s - self.first_s, 1e-9)


class ApiClient:
    """An asynchronous client for one kubeconfig (bearer token and CA, as `ControlPlane` writes).

    Use it with ``async with``.

    Concurrency
    -----------
    Confined to the event loop that entered it; any number of requests at once.
    """

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
        cluster = config["clusters"][0]["cluster"]
        self.url: str = cluster["server"]
        self._authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._token: str = config["users"][0]["user"]["token"]
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            base_url=self.url,
            connector=aiohttp.TCPConnector(
                ssl=ssl.create_default_context(cadata=self._authority), limit=0
            ),
            headers={
                "Authorization": f"Bearer {self._token}",
                "Accept": "application/json",
                "User-Agent": "berth-tests",
            },
            timeout=aiohttp.ClientTimeout(total=30),
            read_bufsize=1 << 20,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
            await asyncio.sleep(0)  # an aborted transport closes its socket in the next round

    async def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Any:
        """Make one request and return the decoded answer (text where it is no JSON).

        Raises
        ------
        ApiError
            The answer's status is 400 or more.
        """
        async with self._open.request(
            method,
            path,
            params=query,
            data=None if body is None else msgspec.json.encode(body),
            headers={"Content-Type": content_type},
        ) as answer:
            content = await answer.read()
            decoded = _decode(content)
            if answer.status >= 400:
                status = decoded if isinstance(decoded, dict) else {"message": decoded}
                raise ApiError(f"{method} {path}", answer.status, status)
            return decoded

    async def get(self, path: str, **query: str) -> Any:
        """GET `path`; keywords become the query."""
        return await self.request("GET", path, query=query)

    async def post(self, path: str, body: object) -> Any:
        """POST `body` to `path`."""
        return await self.request("POST", path, body)

    async def put(self, path: str, body: object) -> Any:
        """PUT `body` to `path`."""
        return await self.request("PUT", path, body)

    async def patch(
        self, path: str, body: object, content_type: str = "application/merge-patch+json"
    ) -> Any:
        """PATCH `path`, as a JSON merge patch unless said otherwise."""
        return await self.request("PATCH", path, body, content_type=content_type)

    async def delete(self, path: str, *, grace_period_s: int | None = 0) -> Any:
        """DELETE `path`; at once unless `grace_period_s` says otherwise (None: its default)."""
        body = None if grace_period_s is None else {"gracePeriodSeconds": grace_period_s}
        return await self.request("DELETE", path, body)

    async def list_all(self, path: str, **query: str) -> list[dict[str, Any]]:
        """Return all items of a collection, page by page."""
        items, _ = await self.list_with_version(path, **query)
        return items

    async def list_with_version(self, path: str, **query: str) -> tuple[list[dict[str, Any]], str]:
        """Return all items of a collection and the list's resourceVersion."""
        items: list[dict[str, Any]] = []
        token = ""
        while True:
            page = await self.get(path, limit=str(_PAGE), **{"continue": token}, **query)
            items += page["items"]
            token = page["metadata"].get("continue", "")
            if not token:
                return items, page["metadata"]["resourceVersion"]

    async def create_many(
        self, objects: Iterable[Mapping[str, Any]], *, concurrency: int = 64
    ) -> list[dict[str, Any]]:
        """Create `objects` with many requests in flight; the created ones, in the same order.

        Raises
        ------
        ApiError
            One was refused; which of the others exist is then open.

        Cost
        ----
        About half a millisecond of this process's CPU for each object.
        """
        pending = list(enumerate(objects))
        pending.reverse()
        created: list[dict[str, Any]] = [{}] * len(pending)

        async def work() -> None:
            while pending:
                index, manifest = pending.pop()
                created[index] = await self.post(collection_path(manifest), manifest)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(concurrency, len(pending))):
                    group.create_task(work())
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None  # the first says it; the others were cancelled
        return created

    async def pods(self, namespace: str | None = None) -> list[dict[str, Any]]:
        """Return all pods, of one namespace or of all."""
        inside = f"/namespaces/{namespace}" if namespace else ""
        return await self.list_all(f"/api/v1{inside}/pods")

    async def watch(
        self, path: str, *, resource_version: str, **query: str
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Yield watch events (``{"type": ..., "object": ...}``) until the server ends the watch.

        Who stops earlier closes the generator (``contextlib.aclosing``).

        Raises
        ------
        ApiError
            The watch was refused or an ERROR event came; 410 means the version is gone.
        """
        async with self._open.get(
            path,
            params={"watch": "true", "resourceVersion": resource_version, **query},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=90),
        ) as answer:
            if answer.status >= 400:
                raise ApiError(f"WATCH {path}", answer.status, _status(await answer.read()))
            partial = b""
            try:
                async for chunk in answer.content.iter_any():
                    *lines, partial = (partial + chunk).split(b"\n")
                    for line in lines:
                        event = msgspec.json.decode(line, type=dict[str, Any])
                        if event["type"] == "ERROR":
                            status = event["object"]
                            raise ApiError(f"WATCH {path}", int(status.get("code", 0)), status)
                        yield event
            finally:
                # A polite TLS farewell would outlive the loop when the server is gone.
                if answer.connection is not None and answer.connection.transport is not None:
                    answer.connection.transport.abort()

    async def wait_bound(
        self,
        count: int,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        timeout_s: float = 120.0,
    ) -> BindProgress:
        """Wait until `count` different pods (by UID) are seen on a node; when and where.

        Restarts of the server and gone resourceVersions are survived by listing again.

        Raises
        ------
        TimeoutError
            Fewer were bound within `timeout_s` seconds; the message says how many.
        """
        progress = BindProgress()
        try:
            async with asyncio.timeout(timeout_s):
                await self._count_bound(progress, count, namespace, label_selector)
        except TimeoutError:
            raise TimeoutError(
                f"{len(progress.nodes)} of {count} pods were bound within {timeout_s:.0f} s"
            ) from None
        return progress

    async def _count_bound(
        self, progress: BindProgress, count: int, namespace: str | None, label_selector: str
    ) -> None:
        inside = f"/namespaces/{namespace}" if namespace else ""
        path = f"/api/v1{inside}/pods"
        selectors = {"fieldSelector": "spec.nodeName!="}
        if label_selector:
            selectors["labelSelector"] = label_selector

        def saw(pod: Mapping[str, Any]) -> None:
            uid = pod["metadata"]["uid"]
            if uid not in progress.nodes:
                progress.nodes[uid] = pod["spec"]["nodeName"]
                progress.last_s = time.monotonic()
                progress.first_s = progress.first_s or progress.last_s

        while True:
            try:
                pods, version = await self.list_with_version(path, **selectors)
                for pod in pods:
                    saw(pod)
                if len(progress.nodes) >= count:
                    return
                watch = self.watch(path, resource_version=version, **selectors)
                async with contextlib.aclosing(watch) as events:
                    async for event in events:
                        if event["type"] in ("ADDED", "MODIFIED"):
                            saw(event["object"])
                            if len(progress.nodes) >= count:
                                return
            except _TRANSIENT:
                await asyncio.sleep(0.05)
            except ApiError as error:
                if error.status not in (410, 429, 500, 503):
                    raise
                await asyncio.sleep(0.05)

    @property
    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("use ApiClient with 'async with'")
        return self._session


def collection_path(manifest: Mapping[str, Any]) -> str:
    """Return the path to which `manifest` is posted."""
    namespace = manifest["metadata"].get("namespace", "default")
    if manifest["kind"] == "PodGroup":  # two APIs have this kind
        return f"/apis/{manifest['apiVersion']}/namespaces/{namespace}/podgroups"
    return _COLLECTIONS[manifest["kind"]].format(namespace=namespace)


def bind(namespace: str, name: str, uid: str, node: str) -> tuple[str, dict[str, Any]]:
    """Return path and body of the POST that binds a pod to a node."""
    return (
        f"/api/v1/namespaces/{namespace}/pods/{name}/binding",
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"namespace": namespace, "name": name, "uid": uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        },
    )


def by_node(pods: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Group pods by the node they are bound to; pending ones are under the empty name."""
    groups: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for pod in pods:
        groups[pod["spec"].get("nodeName", "")].append(pod)
    return dict(groups)


def _decode(content: bytes) -> Any:
    try:
        return msgspec.json.decode(content)
    except msgspec.DecodeError:
        return content.decode(errors="replace")


def _status(content: bytes) -> Mapping[str, Any]:
    decoded = _decode(content)
    return decoded if isinstance(decoded, dict) else {"message": decoded}
