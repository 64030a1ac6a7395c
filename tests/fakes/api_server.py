"""A small API server on a loopback socket, for what a real one cannot be made to do on demand.

It keeps an event log under one resourceVersion counter and serves from it lists with paging,
watches with bookmarks and initial events, 410 after a compaction, 504 for versions that are not
there yet, bindings with their UID check, merge patches, Events and Leases. It neither validates
nor authorises, and time means nothing to it: a watch ends and a bookmark is sent when a test says
so. What shall go wrong is switched on in :attr:`FakeApiServer.faults`.

Concurrency: loop-confined; clients may live anywhere.

Source: the semantics of list and watch are kube-apiserver 1.36's (k8s.io/apiserver,
pkg/storage/cacher), those of a binding pkg/registry/core/pod/storage.
"""

from __future__ import annotations

import asyncio
import base64
import copy
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self

import msgspec
from aiohttp import web

from tests.fakes.api_faults import (
    Cut,
    EndlessList,
    ErrorEvent,
    Faults,
    HalfOpen,
    HeldWatch,
    Hold,
    LostAnswer,
    Refusal,
    StaleList,
    WatchStrike,
)
from tests.fakes.api_objects import (
    CREATED_AT,
    RESOURCES,
    ApiProblemError,
    Change,
    JsonObject,
    Key,
    ObjectLog,
    discovery,
    merge,
    watch_line,
)
from tests.fakes.api_requests import RequestRecord, line_for, read_request, selects

if TYPE_CHECKING:
    from collections.abc import Mapping

_WRITE_BYTES: Final = 1 << 18


@dataclass(slots=True)
class _Watch:
    record: RequestRecord
    position: int
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    pending: deque[tuple[bytes, bool]] = field(default_factory=deque)  # a line; is it an event?
    sent_events: int = 0
    ended: bool = False
    strike: WatchStrike | None = None
    strike_at: int = 0


class FakeApiServer:
    """The server; an async context manager that listens while it is entered.

    Attributes
    ----------
    faults
        What shall go wrong.
    requests
        All requests so far.
    graceful_deletion
        Whether a DELETE request for a bound pod only marks it, as with a kubelet that has not
        acted yet; :meth:`delete` then removes it.
    """

    def __init__(self) -> None:
        self.faults = Faults(self._poke)
        self.requests: list[RequestRecord] = []
        self.graceful_deletion = False
        self._log = ObjectLog(self._changed)
        self._watches: list[_Watch] = []
        self._port = 0
        self._runner = web.ServerRunner(
            web.Server(self._handle, handler_cancellation=True, access_log=None),
            shutdown_timeout=5.0,
        )

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.faults.clear()
        self.end_watches()
        await self._runner.cleanup()

    # --- what a test does ---------------------------------------------------------------------

    @property
    def url(self) -> str:
        """``http://127.0.0.1:<port>``."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def version(self) -> int:
        """The version of the last change."""
        return self._log.version

    @property
    def kubeconfig(self) -> JsonObject:
        """A kubeconfig that leads here, without credentials."""
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "fake",
            "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "fake"}}],
            "clusters": [{"name": "fake", "cluster": {"server": self.url}}],
            "users": [{"name": "fake", "user": {}}],
        }

    def create(self, resource: str, obj: JsonObject) -> JsonObject:
        """Create an object and return it with uid and resourceVersion."""
        return copy.deepcopy(self._log.create(resource, obj))

    def update(self, resource: str, obj: JsonObject) -> JsonObject:
        """Replace an object; a resourceVersion in `obj` must be the last one."""
        return copy.deepcopy(self._log.update(resource, obj))

    def patch(
        self, resource: str, name: str, patch: JsonObject, *, namespace: str = ""
    ) -> JsonObject:
        """Merge `patch` into an object, as a strategic merge patch."""
        edited = self._log.edit(
            resource, _key(resource, namespace, name), lambda obj: merge(obj, patch)
        )
        return copy.deepcopy(edited)

    def delete(self, resource: str, name: str, *, namespace: str = "") -> None:
        """Remove an object at once."""
        self._log.delete(resource, _key(resource, namespace, name))

    def get(self, resource: str, name: str, *, namespace: str = "") -> JsonObject:
        """Return an object; raises ApiProblemError 404."""
        return copy.deepcopy(self._log.get(resource, _key(resource, namespace, name)))

    def objects(self, resource: str) -> list[JsonObject]:
        """Return all objects of a resource by namespace and name; not to be changed."""
        return self._log.objects(resource)

    def requests_of(
        self, verb: str | None = None, resource: str | None = None
    ) -> list[RequestRecord]:
        """Return the requests with that verb and resource, in order; None means any."""
        return [
            record
            for record in self.requests
            if verb in (None, record.verb) and resource in (None, record.resource)
        ]

    def open_watches(self, resource: str | None = None) -> int:
        """Return how many watches are open."""
        return sum(resource in (None, watch.record.resource) for watch in self._watches)

    def compact(self) -> None:
        """Forget the past: a watch from an older version gets 410, as does an older list token."""
        self._log.compact()

    def rewind(self, version: int) -> None:
        """Go back to `version` as an etcd restored from a backup does; all watches end."""
        self._log.rewind(version)
        self.end_watches()

    def end_watches(self, resource: str | None = None) -> None:
        """End watches cleanly, as the server does after its timeout."""
        for watch in self._live(resource):
            watch.ended = True
            watch.wake.set()

    def send_bookmarks(self, resource: str | None = None) -> None:
        """Send a bookmark on every watch that asked for bookmarks."""
        for watch in self._live(resource):
            if watch.record.query.get("allowWatchBookmarks") == "true":
                self._refill(watch)
                watch.pending.append((self._bookmark(watch), False))
                watch.wake.set()

    def send_line(self, resource: str | None, line: bytes) -> None:
        """Send a raw line (without its newline) on every watch."""
        for watch in self._live(resource):
            self._refill(watch)
            watch.pending.append((line + b"\n", False))
            watch.wake.set()

    def repeat_events(self, resource: str, count: int) -> None:
        """Send the last `count` events of a resource once more on every watch."""
        for watch in self._live(resource):
            self._refill(watch)
            for change in self._log.changes(resource)[-count:]:
                watch.pending.append((change.line(), False))
            watch.wake.set()

    # --- requests -----------------------------------------------------------------------------

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path in ("/livez", "/readyz", "/healthz"):
            return web.Response(text="ok")
        if request.path == "/version":
            return web.json_response({"major": "1", "minor": "36", "gitVersion": "v1.36.3"})
        if discovered := discovery(request.path):
            return web.json_response(discovered)
        try:
            record = read_request(request, await request.read())
        except ApiProblemError as problem:
            return _refusal(problem)
        self.requests.append(record)
        if hold := self.faults.take(Hold, record.resource, record.verb):
            hold.waiting += 1
            hold.arrived.set()
            await hold.gate.wait()
            hold.waiting -= 1
        response: web.StreamResponse
        try:
            if refusal := self.faults.take(Refusal, record.resource, record.verb):
                raise refusal.problem
            lost = self.faults.take(LostAnswer, record.resource, record.verb)
            if lost is not None and not lost.carried_out:
                _reset(request)
                return web.Response()
            if record.verb in ("watch", "watchlist"):
                return await self._serve_watch(request, record)
            status, body = self._answer(record)
            if lost is not None:
                _reset(request)
                return web.Response()
            response = web.Response(
                status=status, body=msgspec.json.encode(body), content_type="application/json"
            )
        except ApiProblemError as problem:
            response = _refusal(problem)
        record.status = response.status
        return response

    def _answer(self, record: RequestRecord) -> tuple[int, JsonObject]:
        resource, verb, body = record.resource, record.verb, record.body
        key = _key(resource, record.namespace, record.name)
        match verb:
            case "list" | "continue":
                return 200, self._list_page(record)
            case "get":
                return 200, self._log.get(resource, key)
            case "create":
                if RESOURCES[resource].namespaced:
                    body.setdefault("metadata", {})["namespace"] = record.namespace
                return 201, self._log.create(resource, body)
            case "update":
                return 200, self._log.update(resource, body)
            case "bind":
                self._bind(key, body)
                return 201, {"kind": "Status", "apiVersion": "v1", "status": "Success"}
            case "patch" | "status":
                self._check_preconditions(resource, key, body.get("metadata", {}))
                strategic = "strategic" in record.content_type
                return 200, self._log.edit(
                    resource, key, lambda obj: merge(obj, body, strategic=strategic)
                )
            case "delete":
                self._check_preconditions(resource, key, (body or {}).get("preconditions") or {})
                return 200, self._delete(resource, key)
        raise ApiProblemError(405, "MethodNotAllowed", f"{verb} is not served")

    def _check_preconditions(self, resource: str, key: Key, wanted: JsonObject) -> None:
        metadata = self._log.get(resource, key)["metadata"]
        for name in ("uid", "resourceVersion"):
            if wanted.get(name) not in (None, metadata[name]):
                raise ApiProblemError(
                    409,
                    "Conflict",
                    f'Operation cannot be fulfilled on {resource} "{key[1]}": precondition failed: '
                    f"{name} is {metadata[name]}, not {wanted[name]}",
                )

    def _bind(self, key: Key, binding: JsonObject) -> None:
        pod = self._log.get("pods", key)
        uid = binding.get("metadata", {}).get("uid")
        problem = ""
        if uid not in (None, "", pod["metadata"]["uid"]):
            problem = f"Precondition failed: UID is {pod['metadata']['uid']}, not {uid}"
        elif "deletionTimestamp" in pod["metadata"]:
            problem = f"pod {key[1]} is being deleted, cannot be assigned to a host"
        elif node := pod.get("spec", {}).get("nodeName"):
            problem = f'pod {key[1]} is already assigned to node "{node}"'
        elif pod.get("spec", {}).get("schedulingGates"):
            problem = f"pod {key[1]} has non-empty .spec.schedulingGates"
        if problem:
            raise ApiProblemError(
                409,
                "Conflict",
                f'Operation cannot be fulfilled on pods/binding "{key[1]}": {problem}',
            )
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": CREATED_AT}
        patch = {
            "spec": {"nodeName": binding["target"]["name"]},
            "status": {"nominatedNodeName": None, "conditions": [scheduled]},
        }
        self._log.edit("pods", key, lambda obj: merge(obj, patch))

    def _delete(self, resource: str, key: Key) -> JsonObject:
        obj = self._log.get(resource, key)
        if self.graceful_deletion and obj.get("spec", {}).get("nodeName"):
            mark = {"metadata": {"deletionTimestamp": CREATED_AT}}
            return self._log.edit(resource, key, lambda pod: merge(pod, mark))
        return self._log.delete(resource, key)

    # --- lists --------------------------------------------------------------------------------

    def _list_page(self, record: RequestRecord) -> JsonObject:
        query, log = record.query, self._log
        at, start = log.version, 0
        if token := query.get("continue"):
            at, start = (int(part) for part in base64.b64decode(token).split(b":"))
            if at < log.compacted_version:
                raise ApiProblemError(
                    410, "Expired", "The provided continue parameter is too old to continue"
                )
        elif stale := self.faults.take(StaleList, record.resource):
            at = max(1, at - stale.behind)  # 0 means "any version" and is never a list's
        else:
            self._check_not_in_future(query)
        objects = [obj for obj in log.objects(record.resource, at=at) if selects(record, obj)]
        metadata: JsonObject = {"resourceVersion": str(at)}
        # Limits are for reads that a cache does not answer whole: "0" is answered whole.
        limit = 0 if query.get("resourceVersion") == "0" else int(query.get("limit", "0"))
        page = objects[start : start + limit] if limit else objects[start:]
        if start + len(page) < len(objects):
            metadata["continue"] = base64.b64encode(b"%d:%d" % (at, start + limit)).decode()
            metadata["remainingItemCount"] = len(objects) - start - len(page)
        description = RESOURCES[record.resource]
        return {
            "kind": description.kind + "List",
            "apiVersion": description.api_version,
            "metadata": metadata,
            "items": page,
        }

    def _check_not_in_future(self, query: Mapping[str, str]) -> None:
        wanted = int(query.get("resourceVersion") or "0")
        if wanted > self._log.version:
            raise ApiProblemError(
                504,
                "Timeout",
                f"Too large resource version: {wanted}, current: {self._log.version}",
                retry_after_s=1,
            )

    # --- watches ------------------------------------------------------------------------------

    async def _serve_watch(
        self, request: web.BaseRequest, record: RequestRecord
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        record.status = 200
        try:
            watch = self._open_watch(record)
        except ApiProblemError as problem:
            # As the real server does: the error is the stream's only event.
            await response.write(watch_line("ERROR", problem.body()))
            return response
        self._watches.append(watch)
        try:
            while await self._deliver(watch, request, response):
                await watch.wake.wait()
        except ConnectionResetError:
            pass
        finally:
            self._watches.remove(watch)
        return response

    def _open_watch(self, record: RequestRecord) -> _Watch:
        query, log = record.query, self._log
        version = int(query.get("resourceVersion") or "0")
        initial = record.verb == "watchlist" or version == 0
        if not initial:
            if version < log.compacted_version:
                raise ApiProblemError(
                    410, "Expired", f"too old resource version: {version} ({log.version})"
                )
            return _Watch(record, position=version)
        at = log.version
        if stale := self.faults.take(StaleList, record.resource):
            at = max(1, at - stale.behind)  # 0 means "any version" and is never a list's
        else:
            self._check_not_in_future(query)
        watch = _Watch(record, position=at)
        for obj in log.objects(record.resource, at=at):
            if selects(record, obj):
                watch.pending.append((watch_line("ADDED", obj), True))
        endless = self.faults.take(EndlessList, record.resource)
        if record.verb == "watchlist" and endless is None:
            watch.pending.append((self._bookmark(watch, initial_events_end=True), False))
        return watch

    async def _deliver(
        self, watch: _Watch, request: web.BaseRequest, response: web.StreamResponse
    ) -> bool:
        """Send what there is to send; return False when the watch is over."""
        watch.wake.clear()
        self._refill(watch)
        resource = watch.record.resource
        if watch.strike is not None and not watch.strike.armed:
            watch.strike = None
        if watch.strike is None and not watch.ended:
            watch.strike = self.faults.take(WatchStrike, resource)
            if watch.strike is not None:
                watch.strike_at = watch.sent_events + watch.strike.after_events
        if self.faults.take(HeldWatch, resource) is not None:
            return not watch.ended
        strike, pending, chunk = watch.strike, watch.pending, bytearray()
        while pending and not (strike and watch.sent_events >= watch.strike_at):
            line, is_event = pending.popleft()
            watch.sent_events += is_event
            chunk += line
            if len(chunk) >= _WRITE_BYTES:
                await response.write(bytes(chunk))
                chunk.clear()
        if chunk:
            await response.write(bytes(chunk))
        if watch.ended:
            return False
        if strike is None or watch.sent_events < watch.strike_at:
            return True
        if isinstance(strike, ErrorEvent):
            await response.write(watch_line("ERROR", strike.problem.body()))
        if isinstance(strike, Cut) and strike.reset:
            _reset(request)
        return isinstance(strike, HalfOpen)

    def _refill(self, watch: _Watch) -> None:
        """Queue what has changed since `watch.position`."""
        changes = self._log.changes(watch.record.resource)
        start = bisect_right(changes, watch.position, key=lambda change: change.version)
        for change in changes[start:]:
            if not change.dropped and (line := line_for(watch.record, change)):
                watch.pending.append((line, True))
        # Never backwards: a watch may start at a version that is still to come.
        watch.position = max(watch.position, self._log.version)

    def _bookmark(self, watch: _Watch, *, initial_events_end: bool = False) -> bytes:
        description = RESOURCES[watch.record.resource]
        metadata: JsonObject = {
            "resourceVersion": str(watch.position if initial_events_end else self._log.version),
            "creationTimestamp": None,
        }
        if initial_events_end:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        obj: JsonObject = {
            "kind": description.kind,
            "apiVersion": description.api_version,
            "metadata": metadata,
        }
        if description.kind == "Pod":  # the real server encodes an empty Go struct
            obj |= {"spec": {"containers": None}, "status": {}}
        return watch_line("BOOKMARK", obj)

    def _live(self, resource: str | None) -> list[_Watch]:
        return [watch for watch in self._watches if resource in (None, watch.record.resource)]

    def _poke(self) -> None:
        for watch in self._watches:
            watch.wake.set()

    def _changed(self, resource: str, change: Change) -> None:
        change.dropped = self.faults.drops(resource, change)
        for watch in self._live(resource):
            watch.wake.set()


def _refusal(problem: ApiProblemError) -> web.Response:
    headers = {}
    if problem.retry_after_s is not None:
        headers["Retry-After"] = str(problem.retry_after_s)
    return web.json_response(problem.body(), status=problem.status, headers=headers)


def _reset(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()


def _key(resource: str, namespace: str, name: str) -> Key:
    return (namespace or "default") if RESOURCES[resource].namespaced else "", name
