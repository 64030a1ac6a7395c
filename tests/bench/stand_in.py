"""A stand-in for an API server with clusters that no control plane on one machine could hold.

It serves all that ``berth run`` asks for: discovery, access reviews, lists in pages or as a stream,
watches with bookmarks, label selectors on nodes, bindings and patches with their preconditions,
Events and Leases. Pods that run since before the start are not stored but written when they are
listed: each follows from its number. It checks what no scheduler may do: bind a pod twice, or onto
a node without room.

``python -m tests.bench.stand_in PORT NODES PODS POOLS``

Besides the API it answers ``POST /bench/pods?count=N&pool=I&cpu=C`` and ``GET /bench/state``.

*Source*: kube-apiserver 1.36: pkg/registry/core/pod/storage for bindings, and
k8s.io/apiserver/pkg/storage/cacher for watches.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import time
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from cache.selector_text import parse_selector
from tests.bench.large_clusters import ZONES, node_name
from tests.bench.object_server import end_of_list, pod_line
from tests.controlplane.objects import make_node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

JsonObject = dict[str, Any]

POOL: Final = "example.com/pool"
POD_CPU: Final = 10
"""Milli-CPUs that each running pod requests; see :mod:`tests.bench.object_server`."""

NODE_CPU: Final = 4000
NODE_PODS: Final = 1000
BIG_CPU: Final = 16000
"""Of the nodes of the last pool, where there are several: for pods that fit nowhere else."""

_BOOKMARK_S: Final = 20.0
_BATCH: Final = 256
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.decode

_KINDS: Final = {
    "/api/v1": {
        "namespaces": "Namespace",
        "nodes": "Node",
        "pods": "Pod",
        "services": "Service",
        "replicationcontrollers": "ReplicationController",
        "persistentvolumes": "PersistentVolume",
        "persistentvolumeclaims": "PersistentVolumeClaim",
    },
    "/apis/apps/v1": {"replicasets": "ReplicaSet", "statefulsets": "StatefulSet"},
    "/apis/policy/v1": {"poddisruptionbudgets": "PodDisruptionBudget"},
    "/apis/storage.k8s.io/v1": {
        "storageclasses": "StorageClass",
        "csinodes": "CSINode",
        "csidrivers": "CSIDriver",
        "csistoragecapacities": "CSIStorageCapacity",
        "volumeattachments": "VolumeAttachment",
    },
}


class ProblemError(Exception):
    """A refusal."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason = status, reason

    def body(self) -> bytes:
        """Return the Status."""
        return _encode(
            {
                "kind": "Status",
                "apiVersion": "v1",
                "status": "Failure",
                "reason": self.reason,
                "message": str(self),
                "code": self.status,
            }
        )


class StandIn:
    """The server.

    Parameters
    ----------
    num_nodes, num_pods
        What there is before the start; the pods are dealt out to the nodes.
    pools
        Node i has the label ``example.com/pool=p<i modulo pools>``.
    """

    def __init__(self, num_nodes: int, num_pods: int, pools: int) -> None:
        self.num_nodes, self.num_pods, self.pools = num_nodes, num_pods, pools
        self.version = num_nodes + num_pods + 10
        self.first_version = self.version
        self.pods: dict[str, JsonObject] = {}
        self.leases: dict[str, JsonObject] = {}
        self.log: list[tuple[int, bytes]] = []
        self.watchers: set[asyncio.Queue[bytes]] = set()
        self.counts: dict[str, int] = {}
        self.problems: list[str] = []
        self.bound_s: list[float] = []
        self.created = 0
        each, more = divmod(num_pods, num_nodes)
        self.used_pods = [each + (index < more) for index in range(num_nodes)]
        self.used_cpu = [POD_CPU * count for count in self.used_pods]

    def node_cpu(self, index: int) -> int:
        """Return the milli-CPUs of a node."""
        last = self.pools > 1 and index % self.pools == self.pools - 1
        return BIG_CPU if last else NODE_CPU

    def node(self, index: int) -> JsonObject:
        """Return a node."""
        made: JsonObject = make_node(
            node_name(index),
            zone=f"zone-{index % ZONES}",
            pods=str(NODE_PODS),
            cpu=f"{self.node_cpu(index)}m",
        )
        made["metadata"]["labels"][POOL] = f"p{index % self.pools}"
        made["metadata"] |= {"uid": f"uid-node-{index}", "resourceVersion": str(index + 1)}
        return made

    # --- writes -------------------------------------------------------------------------------

    def changed(self, kind: bytes, pod: JsonObject) -> None:
        """Give a pod a new version, and tell the watches."""
        self.version += 1
        pod["metadata"]["resourceVersion"] = str(self.version)
        line = b'{"type":"%b","object":%b}\n' % (kind, _encode(pod))
        self.log.append((self.version, line))
        for watcher in self.watchers:
            watcher.put_nowait(line)

    def create(self, count: int, pool: int, cpu: int, owner: str) -> None:
        """Create pods; those of a pool select its nodes."""
        for _ in range(count):
            number, self.created = self.created, self.created + 1
            name = f"waits-{number:07}"
            pod: JsonObject = {
                "kind": "Pod",
                "apiVersion": "v1",
                "metadata": {
                    "name": name,
                    "namespace": "default",
                    "uid": f"uid-{name}",
                    "creationTimestamp": "2026-01-01T00:00:00Z",
                    "labels": {"app": f"app-{number % 20}"},
                },
                "spec": {
                    "schedulerName": "berth",
                    "containers": [
                        {
                            "name": "main",
                            "image": "registry.example/web:v1",
                            "resources": {"requests": {"cpu": f"{cpu}m", "memory": "16Mi"}},
                        }
                    ],
                },
                "status": {"phase": "Pending"},
            }
            if pool >= 0:
                pod["spec"]["nodeSelector"] = {POOL: f"p{(pool + number) % self.pools}"}
            if owner:
                pod["metadata"]["annotations"] = {"scheduling.berth.dev/pool": owner}
            self.pods[name] = pod
            self.changed(b"ADDED", pod)

    def pod(self, name: str, metadata: Mapping[str, Any]) -> JsonObject:
        pod = self.pods.get(name)
        if pod is None:
            raise ProblemError(404, "NotFound", f"pods {name!r} not found")
        for key in ("uid", "resourceVersion"):
            wanted = metadata.get(key)
            if wanted and wanted != pod["metadata"][key]:
                raise ProblemError(409, "Conflict", f"{key} is {pod['metadata'][key]}")
        return pod

    def bind(self, name: str, binding: JsonObject) -> None:
        """Bind a pod, once."""
        pod = self.pod(name, binding["metadata"])
        if pod["spec"].get("nodeName"):
            self.counts["refused"] = self.counts.get("refused", 0) + 1
            raise ProblemError(409, "Conflict", f"pod {name} is already assigned to a node")
        node = binding["target"]["name"]
        index = int(node.rpartition("-")[2])
        cpu = int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"][:-1])
        self.used_pods[index] += 1
        self.used_cpu[index] += cpu
        if self.used_pods[index] > NODE_PODS or self.used_cpu[index] > self.node_cpu(index):
            self.problems.append(f"{node} has more than it can run")
        wanted = pod["spec"].get("nodeSelector", {}).get(POOL, f"p{index % self.pools}")
        if wanted != f"p{index % self.pools}":
            self.problems.append(f"{name} is on {node} of another pool")
        pod["spec"]["nodeName"] = node
        pod["status"].setdefault("conditions", [])
        self.bound_s.append(time.monotonic())
        self.changed(b"MODIFIED", pod)

    def patch(self, name: str, patch: JsonObject) -> JsonObject:
        """Carry out a patch of a pod's status, and of its annotations."""
        metadata = patch.get("metadata") or {}
        pod = self.pod(name, metadata)
        if annotations := metadata.get("annotations"):
            pod["metadata"].setdefault("annotations", {}).update(annotations)
            self.counts["handed on"] = self.counts.get("handed on", 0) + 1
        status = patch.get("status") or {}
        for key, value in status.items():
            if key.startswith("$"):
                continue
            if key == "conditions":
                known = {each["type"]: each for each in pod["status"].get("conditions", ())}
                for each in value:
                    known[each["type"]] = {**known.get(each["type"], {}), **each}
                pod["status"]["conditions"] = list(known.values())
            elif value is None:
                pod["status"].pop(key, None)
            else:
                pod["status"][key] = value
        self.changed(b"MODIFIED", pod)
        return pod

    def lease(self, method: str, name: str, body: bytes) -> JsonObject:
        """Read or write a Lease."""
        if method == "GET":
            if name not in self.leases:
                raise ProblemError(404, "NotFound", f"leases {name!r} not found")
            return self.leases[name]
        sent: JsonObject = _decode(body)
        name = sent["metadata"]["name"]
        known = self.leases.get(name)
        if method == "POST" and known is not None:
            raise ProblemError(409, "AlreadyExists", f"leases {name!r} exists")
        if method == "PUT" and known is not None:
            version = sent["metadata"].get("resourceVersion")
            if version != known["metadata"]["resourceVersion"]:
                raise ProblemError(409, "Conflict", "another version")
        self.version += 1
        sent["metadata"]["resourceVersion"] = str(self.version)
        self.leases[name] = sent
        return sent

    # --- lists --------------------------------------------------------------------------------

    def objects(self, resource: str, query: Mapping[str, str], begin: int = 0) -> Iterator[bytes]:
        """Yield the objects of a kind from one on, as lines of a watch."""
        if resource == "nodes":
            matches = parse_selector(query.get("labelSelector", "")).matches
            for index in range(begin, self.num_nodes):
                # The label that pools are selected by, before all else is made.
                if self.pools > 1 and not matches({POOL: f"p{index % self.pools}"}):
                    continue
                yield b'{"type":"ADDED","object":%b}\n' % _encode(self.node(index))
        elif resource == "pods":
            for index in range(begin, self.num_pods):
                yield pod_line(b"ADDED", index, self.num_nodes, self.num_nodes + index + 1)
            for pod in list(self.pods.values())[max(0, begin - self.num_pods) :]:
                yield b'{"type":"ADDED","object":%b}\n' % _encode(pod)
        elif resource == "namespaces":
            for name in ("default", *(f"team-{number}" for number in range(20)))[begin:]:
                meta = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"}
                yield b'{"type":"ADDED","object":%b}\n' % _encode({"metadata": meta})

    def page(self, resource: str, query: Mapping[str, str]) -> bytes:
        """Return a page of a list; the token of the next one is where it begins."""
        begin, limit = int(query.get("continue") or 0), int(query.get("limit") or 0)
        lines = self.objects(resource, query, begin)
        some = list(itertools.islice(lines, limit or None))
        more = bool(limit) and next(lines, None) is not None
        items = b",".join(line[line.index(b'"object":') + 9 : -2] for line in some)
        token = str(begin + limit) if more else ""
        return b'{"metadata":{"resourceVersion":"%d","continue":"%b"},"items":[%b]}' % (
            self.version,
            token.encode(),
            items,
        )

    def state(self) -> JsonObject:
        """Return what the benchmark wants to know."""
        waiting = sum(not pod["spec"].get("nodeName") for pod in self.pods.values())
        return {
            "waiting": waiting,
            "bound": len(self.bound_s),
            "first_bound_s": self.bound_s[0] if self.bound_s else None,
            "last_bound_s": self.bound_s[-1] if self.bound_s else None,
            "now_s": time.monotonic(),
            "problems": self.problems[:10],
            "leaders": {
                name: lease["spec"].get("holderIdentity") for name, lease in self.leases.items()
            },
            "watches": len(self.watchers),
            **self.counts,
        }


class Connection:
    """One connection: requests one after the other, the last of which may be a watch."""

    def __init__(
        self, server: StandIn, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._server, self._reader, self._writer = server, reader, writer

    async def serve(self) -> None:
        """Answer until the client has gone."""
        try:
            while True:
                head = await self._reader.readuntil(b"\r\n\r\n")
                line, _, rest = head.partition(b"\r\n")
                method, target, _ = line.decode().split(" ", 2)
                size = 0
                for field in rest.lower().split(b"\r\n"):
                    if field.startswith(b"content-length:"):
                        size = int(field[15:])
                body = await self._reader.readexactly(size) if size else b""
                url = urlsplit(target)
                query = dict(parse_qsl(url.query, keep_blank_values=True))
                if query.get("watch") in ("true", "1"):
                    await self._watch(url.path.rpartition("/")[2], query)
                    return
                self._answer(method, unquote(url.path), query, body)
                await self._writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has gone
        finally:
            self._writer.close()

    def _answer(self, method: str, path: str, query: Mapping[str, str], body: bytes) -> None:
        status, answer = 200, b"{}"
        try:
            found = self._carry_out(method, path, query, body)
            answer = found if isinstance(found, bytes) else _encode(found)
        except ProblemError as problem:
            status, answer = problem.status, problem.body()
        self._writer.write(
            b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
            % (status, len(answer), answer)
        )

    def _carry_out(
        self, method: str, path: str, query: Mapping[str, str], body: bytes
    ) -> JsonObject | bytes:
        server = self._server
        parts = path.strip("/").split("/")
        if parts[-1] == "binding":
            server.bind(parts[-2], _decode(body))
            return {"kind": "Status", "status": "Success"}
        if "events" in parts:
            server.counts["events"] = server.counts.get("events", 0) + 1
            return body
        if "pods" in parts and method == "PATCH":
            server.counts["patches"] = server.counts.get("patches", 0) + 1
            return server.patch(parts[parts.index("pods") + 1], _decode(body))
        if "leases" in parts:
            return server.lease(method, parts[-1], body)
        if parts[-1] == "selfsubjectaccessreviews":
            return {**_decode(body), "status": {"allowed": True}}
        if path == "/bench/pods":
            numbers = {key: int(query[key]) for key in ("count", "pool", "cpu")}
            server.create(**numbers, owner=query.get("owner", ""))
            return {}
        if path == "/bench/state":
            return server.state()
        if path == "/version":
            return {"gitVersion": "v1.36.0", "major": "1", "minor": "36"}
        if path == "/apis":
            names = [name.removeprefix("/apis/") for name in _KINDS if name != "/api/v1"]
            return {
                "groups": [
                    {"name": name.partition("/")[0], "versions": [{"groupVersion": name}]}
                    for name in names
                ]
            }
        if path in _KINDS:
            return {"resources": [{"name": name} for name in _KINDS[path]]}
        if parts[:4] == ["api", "v1", "namespaces", "default"] and method == "GET" and parts[5:]:
            return server.pod(parts[5], {})
        if method == "GET":
            return server.page(parts[-1], query)
        raise ProblemError(404, "NotFound", path)

    async def _watch(self, resource: str, query: Mapping[str, str]) -> None:
        server, writer = self._server, self._writer
        kind = next((kinds[resource] for kinds in _KINDS.values() if resource in kinds), "")
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        changes: asyncio.Queue[bytes] = asyncio.Queue()
        since = server.version
        if resource == "pods":
            server.watchers.add(changes)
        try:
            if query.get("sendInitialEvents") == "true":
                await self._send(server.objects(resource, query))
                await self._send(iter([end_of_list(kind.encode(), since)]))
            else:
                known = int(query.get("resourceVersion") or 0)
                if resource == "pods":
                    start = bisect_right(server.log, known, key=lambda entry: entry[0])
                    await self._send(line for number, line in server.log[start:] if number <= since)
            while True:
                try:
                    lines = [await asyncio.wait_for(changes.get(), _BOOKMARK_S)]
                except TimeoutError:
                    lines = [
                        b'{"type":"BOOKMARK","object":{"kind":"%b","apiVersion":"v1","metadata":'
                        b'{"resourceVersion":"%d"}}}\n' % (kind.encode(), server.version)
                    ]
                while not changes.empty() and len(lines) < _BATCH:
                    lines.append(changes.get_nowait())
                await self._send(iter(lines))
        finally:
            server.watchers.discard(changes)

    async def _send(self, lines: Iterator[bytes]) -> None:
        while batch := b"".join(itertools.islice(lines, _BATCH)):
            if self._writer.is_closing():
                raise ConnectionResetError
            self._writer.write(b"%x\r\n%b\r\n" % (len(batch), batch))
            await self._writer.drain()


async def serve(server: StandIn, port: int, on_ready: Callable[[], object] = bool) -> None:
    """Serve on loopback until cancelled."""
    listening = await asyncio.start_server(
        lambda reader, writer: Connection(server, reader, writer).serve(), "127.0.0.1", port
    )
    on_ready()
    async with listening:
        await listening.serve_forever()


if __name__ == "__main__":
    import uvloop

    _port, *_sizes = map(int, sys.argv[1:])
    uvloop.run(serve(StandIn(*_sizes), _port, lambda: print("ready", flush=True)))
