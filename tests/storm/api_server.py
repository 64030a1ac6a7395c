"""Several API servers before one etcd, each with a watch cache that lags behind it.

Requests that change something, and reads of one object, go to etcd. Lists and watches are answered
from the cache of the server that a connection happens to lead to: not before it has caught up, if
the request asks for a version, or for the most recent state.

*Source*: k8s.io/apiserver 1.36, pkg/storage/cacher; pkg/registry/core/pod/storage for bindings.
"""

from __future__ import annotations

import base64
from bisect import bisect_right
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from tests.fakes.api_objects import ApiProblemError, merge, watch_line
from tests.storm.etcd import ALL, Change, Etcd, Key, Stored, conflict
from tests.storm.machine import EPOCH_S
from tests.storm.requests import (
    STREAM_END,
    STREAM_HEAD,
    Request,
    answer,
    chunk,
    read_request,
    refusal,
)
from tests.storm.watch_cache import ResourceCache, Watch, bookmark, selects, too_large, version_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.storm.network import Connection
    from tests.storm.simulation import Simulation
    from tests.storm.troubles import Fate, Troubles

CATCH_UP_S: Final = 3.0
"""How long a list waits for a cache that lags, before it is refused."""

BOOKMARK_S: Final = 60.0

LOST: Final = {("pods", "DELETED"): "F8 ", ("pods", "ADDED"): "F9 ", ("nodes", "DELETED"): "F10 "}
"""Faults by the events that a watch loses."""


def stamp(now_s: float) -> str:
    """Return a time as the API writes it."""
    return datetime.fromtimestamp(int(EPOCH_S + now_s), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


UNAUTHORIZED: Final = ApiProblemError(401, "Unauthorized", "Unauthorized")


class ApiServers:
    """All API servers.

    Attributes
    ----------
    written
        Called with the name of the replica, the request and the status of each request that
        changes something, once it has been carried out or refused, and whether the answer is sent.
    refused
        Called with the name of the replica and a request that is answered with a Retry-After: when
        the answer arrives, and when its time is over at the earliest, for its clock may be fast.
    """

    def __init__(self, simulation: Simulation, troubles: Troubles, count: int) -> None:
        self.simulation = simulation
        self.troubles = troubles
        self.rng = simulation.rng("servers")
        self.etcd = Etcd(self._changed, lambda: stamp(simulation.now_s))
        self.frontends = [ApiServer(self, f"server-{number}") for number in range(count)]
        self.written: Callable[[str, Request, int, bool], None] = _nobody
        self.on_change: Callable[[str, Change], None] = lambda resource, change: None
        self.on_deleted: Callable[[str, Change], None] = lambda resource, change: None
        self.refused: Callable[[str, Request, tuple[float, float]], None] = lambda *_: None
        self.admits: Callable[[bytes], bool] | None = None
        """Whether a request comes from somebody who is known; None where all are."""
        self.lossy: set[str] = set()
        """Replicas that have not been told of something by a watch."""
        self._tokens: dict[str, tuple[int, list[Stored]]] = {}
        self._pages = 0

    def _changed(self, resource: str, change: Change) -> None:
        for frontend in self.frontends:
            frontend.expect(resource)
        self.on_change(resource, change)
        if change.type == "DELETED":
            self.on_deleted(resource, change)

    # --- what requests do ---------------------------------------------------------------------

    def perform(self, request: Request) -> tuple[int, bytes]:
        """Carry out a request about one object; raises ApiProblemError."""
        etcd, resource, key, body = self.etcd, request.resource, request.key, request.body
        match request.verb:
            case "get":
                return 200, etcd.get(resource, key).raw
            case "create":
                body["metadata"].setdefault("namespace", request.namespace)
                return 201, etcd.create(resource, body).raw
            case "update":
                stored = etcd.get(resource, key)
                _check(resource, stored, body["metadata"])
                return 200, etcd.replace(resource, key, body).raw
            case "patch" | "status":
                stored = etcd.get(resource, key)
                wanted = body.get("metadata", {})
                _check(resource, stored, wanted, status=422 if "uid" in wanted else 409)
                is_strategic = "strategic" in request.content_type
                wanted.pop("resourceVersion", None)
                edited = etcd.edit(
                    resource, key, lambda obj: merge(obj, body, strategic=is_strategic)
                )
                return 200, edited.raw
            case "bind":
                self.bind(key, body["target"]["name"], body["metadata"].get("uid", ""))
                return 201, b'{"kind":"Status","apiVersion":"v1","status":"Success"}'
            case "delete":
                wanted = (body or {}).get("preconditions") or {}
                _check(resource, etcd.get(resource, key), wanted)
                return 200, self.delete(resource, key).raw
        raise ApiProblemError(405, "MethodNotAllowed", f"{request.verb} is not served")

    def bind(self, key: Key, node_name: str, uid: str) -> None:
        """Bind a pod, whoever asks for it."""
        pod = self.etcd.get("pods", key).data
        problem = ""
        if uid not in ("", pod["metadata"]["uid"]):
            problem = f"Precondition failed: UID in precondition: {uid}, UID in object meta: "
            problem += pod["metadata"]["uid"]
        elif "deletionTimestamp" in pod["metadata"]:
            problem = f"pod {key[1]} is being deleted, cannot be assigned to a host"
        elif pod["spec"].get("nodeName"):
            problem = f"pod {key[1]} is already assigned to node {pod['spec']['nodeName']!r}"
        elif pod["spec"].get("schedulingGates"):
            problem = f"pod {key[1]} has non-empty .spec.schedulingGates"
        if problem:
            raise conflict("pods/binding", key[1], problem)
        now = stamp(self.simulation.now_s)
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": now}
        patch = {
            "spec": {"nodeName": node_name},
            "status": {"nominatedNodeName": None, "conditions": [scheduled]},
        }
        self.etcd.edit("pods", key, lambda obj: merge(obj, patch))

    def delete(self, resource: str, key: Key) -> Stored:
        """Delete an object; a pod on a node, or one with a finalizer, is only marked."""
        stored = self.etcd.get(resource, key)
        metadata = stored.data["metadata"]
        on_node = resource == "pods" and stored.data["spec"].get("nodeName")
        over = stored.data.get("status", {}).get("phase") in ("Succeeded", "Failed")
        if not metadata.get("finalizers") and (not on_node or over):
            return self.etcd.delete(resource, key)
        if "deletionTimestamp" in metadata:
            return stored
        mark = {
            "deletionTimestamp": stamp(self.simulation.now_s + 30.0),
            "deletionGracePeriodSeconds": 30,
        }
        return self.etcd.edit(resource, key, lambda obj: obj["metadata"].update(mark))

    # --- lists in pages -----------------------------------------------------------------------

    def first_page(self, version: int, items: list[Stored], limit: int) -> tuple[str, list[Stored]]:
        """Return a page and the token for the next one."""
        if not limit or len(items) <= limit:
            return "", items
        self._pages += 1
        token = base64.b64encode(b"%d:%d:%d" % (version, limit, self._pages)).decode()
        self._tokens[token] = version, items[limit:]
        return token, items[:limit]

    def next_page(self, token: str, limit: int) -> tuple[int, str, list[Stored]]:
        """Return the version of a list, the token for what follows, and its next page."""
        version, rest = self._tokens.pop(token, (0, []))
        if version < self.etcd.compacted:
            raise ApiProblemError(
                410, "Expired", "The provided continue parameter is too old to continue"
            )
        more, page = self.first_page(version, rest, limit)
        return version, more, page

    def forget_pages(self) -> None:
        """Answer all requests for a next page with 410."""
        self._tokens.clear()


def _check(resource: str, stored: Stored, wanted: dict[str, Any], status: int = 409) -> None:
    metadata = stored.data["metadata"]
    if wanted.get("uid") not in (None, metadata["uid"]):
        problem = conflict(
            resource, metadata["name"], f"Precondition failed: UID is {metadata['uid']}"
        )
        if status == 422:
            message = f"{metadata['name']} is invalid: metadata.uid: field is immutable"
            raise ApiProblemError(422, "Invalid", message)
        raise problem
    if wanted.get("resourceVersion") not in (None, "", metadata["resourceVersion"]):
        raise conflict(resource, metadata["name"], "the object has been modified")


class ApiServer:
    """One API server.

    Attributes
    ----------
    lag_s
        How far its watch cache is behind, at most.
    frozen
        Resources whose caches hear nothing any more.
    lies
        Lists of the most recent state are answered from the cache as it is: a stale server.
    """

    def __init__(self, servers: ApiServers, name: str) -> None:
        self.name = name
        self.is_up = True
        self.lag_s = 0.003
        self.frozen: set[str] = set()
        self.lies = False
        self.status_410 = False
        self._servers = servers
        self._simulation = servers.simulation
        self._etcd = servers.etcd
        self._caches = {resource: ResourceCache() for resource in ALL}
        self._streams: dict[Connection, Watch] = {}
        self._open: dict[Connection, None] = {}

    # --- the watch cache ----------------------------------------------------------------------

    def expect(self, resource: str) -> None:
        """Hear of a change, after a while."""
        cache = self._caches[resource]
        if not cache.is_expecting and resource not in self.frozen:
            cache.is_expecting = True
            delay_s = self._servers.rng.random() * self.lag_s
            self._simulation.after(delay_s, lambda: self._catch_up(resource))

    def thaw(self) -> None:
        """Hear of everything again."""
        self.frozen.clear()
        self.lies = False
        for resource in ALL:
            self.expect(resource)

    def _catch_up(self, resource: str) -> None:
        cache = self._caches[resource]
        cache.is_expecting = False
        if resource in self.frozen or not self.is_up:
            return
        changes = self._etcd.changes[resource]
        if cache.position < self._etcd.lost[resource]:
            # It missed something for good: it lists, and its watches have to do so too.
            cache.objects = dict(self._etcd.objects[resource])
            for watch in list(cache.watches):
                self.end_watch(watch)
        else:
            start = bisect_right(changes, cache.position, key=version_of)
            for change in changes[start:]:
                if change.type == "DELETED":
                    cache.objects.pop(change.key, None)
                else:
                    cache.objects[change.key] = change.stored
        cache.position = self._etcd.version
        for watch in cache.watches:
            self._tell(watch, cache)
        self._answer_waiting(cache)

    def _answer_waiting(self, cache: ResourceCache) -> None:
        if not cache.waiting:
            return
        waiting, cache.waiting = cache.waiting, []
        for version, until_s, proceed in waiting:
            if version <= cache.position:
                proceed(True)
            else:
                cache.waiting.append((version, until_s, proceed))

    def _give_up_waiting(self, cache: ResourceCache, entry: Any) -> None:
        if entry in cache.waiting:
            cache.waiting.remove(entry)
            entry[2](False)

    def _progress(self, resource: str) -> int:
        """Return the version that the cache has reached, as etcd's progress notices tell it."""
        cache = self._caches[resource]
        changes = self._etcd.changes[resource]
        if resource in self.frozen or cache.is_expecting:
            return cache.position
        if not changes or changes[-1].version <= cache.position:
            cache.position = self._etcd.version
        return cache.position

    # --- connections --------------------------------------------------------------------------

    def accept(self, connection: Connection) -> None:
        self._open[connection] = None

    def closed(self, connection: Connection) -> None:
        self._open.pop(connection, None)
        watch = self._streams.pop(connection, None)
        if watch is not None:
            self._end_watch(watch)

    def stop(self) -> None:
        """Be down: all connections break."""
        self.is_up = False
        for connection in list(self._open):
            connection.end(reset=True)
            self.closed(connection)
        for cache in self._caches.values():
            cache.waiting.clear()

    def start(self) -> None:
        """Be up again, with a cache that is filled anew."""
        self.is_up = True
        for resource, cache in self._caches.items():
            cache.objects = dict(self._etcd.objects[resource])
            cache.position = self._etcd.version

    def receive(self, connection: Connection, data: bytes) -> None:
        """Take in a request."""
        if connection not in self._open:
            return
        try:
            request = read_request(data)
        except ApiProblemError as problem:
            connection.send(refusal(problem))
            return
        admits = self._servers.admits
        if admits is not None and not admits(data):
            connection.send(refusal(UNAUTHORIZED))
            return
        fate = self._servers.troubles.fate(connection.machine.name, request)
        if fate is not None and fate.delay_s:
            self._simulation.after(fate.delay_s, lambda: self._process(connection, request, fate))
        else:
            self._process(connection, request, fate)

    def _process(self, connection: Connection, request: Request, fate: Fate | None) -> None:
        if connection not in self._open or not self.is_up:
            return
        if fate is not None and not fate.carried_out:
            self._finish(connection, request, fate)
            return
        if request.verb == "watch":
            self._open_watch(connection, request)
            return
        if request.verb == "list":
            self._list(connection, request)
            return
        name = connection.machine.name
        if request.is_write:
            self._simulation.note(f"{name} {request} {_told(request)}")
        try:
            status, body = self._servers.perform(request)
            reply = answer(status, body)
        except ApiProblemError as problem:
            status, reply = problem.status, refusal(problem)
        if request.is_write:
            self._servers.written(name, request, status, fate is None or not fate.is_bad)
        if fate is not None and fate.is_bad:
            self._finish(connection, request, fate)
        elif fate is not None and fate.late_s:
            self._simulation.after(fate.late_s, lambda: self._answer_late(connection, reply))
        else:
            connection.send(reply, 0.001)

    def _answer_late(self, connection: Connection, reply: bytes) -> None:
        if connection in self._open and self.is_up:
            connection.send(reply, 0.001)

    def _finish(self, connection: Connection, request: Request, fate: Fate) -> None:
        """Answer otherwise than the request deserves."""
        problem = fate.problem
        if problem is not None:
            at_s = connection.send(refusal(problem))
            if problem.retry_after_s and not connection.silent:
                until_s = at_s + 0.95 * problem.retry_after_s
                self._servers.refused(connection.machine.name, request, (at_s, until_s))
        elif fate.reset:
            connection.end(reset=True)
            self.closed(connection)

    # --- lists --------------------------------------------------------------------------------

    def _list(self, connection: Connection, request: Request) -> None:
        query, resource = request.query, request.resource
        limit = int(query.get("limit", "0"))
        token = query.get("continue")
        if token:
            try:
                version, more, page = self._servers.next_page(token, limit)
            except ApiProblemError as problem:
                connection.send(refusal(problem))
            else:
                self._send_list(connection, request, version, more, page)
            return

        def proceed(has_caught_up: bool) -> None:
            if not has_caught_up:
                connection.send(refusal(too_large(wanted, self._caches[resource].position)))
                return
            cache = self._caches[resource]
            items = [stored for key, stored in cache.objects.items() if selects(request, key)]
            more, page = self._servers.first_page(cache.position, items, limit)
            self._send_list(connection, request, cache.position, more, page)

        wanted = self._wanted(query.get("resourceVersion", ""))
        self._when_at(resource, wanted, proceed)

    def _wanted(self, version: str) -> int:
        """Return the version that a list must not be older than."""
        if self.lies:
            return 0
        return int(version) if version else self._etcd.version

    def _when_at(self, resource: str, version: int, proceed: Callable[[bool], None]) -> None:
        """Go on when the cache has reached a version, or cannot in time."""
        cache = self._caches[resource]
        if self._progress(resource) >= version:
            proceed(True)
            return
        entry = (version, self._simulation.now_s + CATCH_UP_S, proceed)
        cache.waiting.append(entry)
        self._simulation.after(CATCH_UP_S, lambda: self._give_up_waiting(cache, entry))
        if not cache.is_expecting:
            self.expect(resource)

    def _send_list(
        self, connection: Connection, request: Request, version: int, more: str, page: list[Stored]
    ) -> None:
        description = ALL[request.resource]
        if request.wants_metadata:
            raws = [msgspec.json.encode({"metadata": each.data["metadata"]}) for each in page]
        else:
            raws = [each.raw for each in page]
        body = (
            b'{"kind":"%bList","apiVersion":"%b","metadata":{"resourceVersion":"%d"%b},"items":['
            % (
                description.kind.encode(),
                description.api_version.encode(),
                version,
                b',"continue":"%b"' % more.encode() if more else b"",
            )
        )
        connection.send(answer(200, body + b",".join(raws) + b"]}"), 0.002)

    # --- watches ------------------------------------------------------------------------------

    def _open_watch(self, connection: Connection, request: Request) -> None:
        query, resource = request.query, request.resource
        if connection in self._streams:
            return
        if query.get("sendInitialEvents") == "true":

            def proceed(has_caught_up: bool) -> None:
                if connection not in self._open:
                    return
                position = self._caches[resource].position
                if has_caught_up:
                    self._begin_stream(connection, request, position, is_list=True)
                else:
                    connection.send(refusal(too_large(wanted, position)))

            wanted = self._wanted(query.get("resourceVersion", ""))
            self._when_at(resource, wanted, proceed)
            return
        version = int(query["resourceVersion"])
        if version < self._etcd.compacted:
            self._refuse_old(connection, version)
            return
        self._begin_stream(connection, request, version, is_list=False)

    def _refuse_old(self, connection: Connection, version: int) -> None:
        problem = ApiProblemError(
            410, "Expired", f"too old resource version: {version} ({self._etcd.version})"
        )
        if self._servers.rng.random() < 0.5:
            self._simulation.counts["F3 410 as status"] += 1
            connection.send(refusal(problem))
        else:
            self._simulation.counts["F3 410 as ERROR event"] += 1
            connection.send(STREAM_HEAD + chunk(watch_line("ERROR", problem.body())) + STREAM_END)
        connection.end(reset=False)
        self.closed(connection)

    def _begin_stream(
        self, connection: Connection, request: Request, version: int, *, is_list: bool
    ) -> None:
        resource = request.resource
        cache = self._caches[resource]
        watch = Watch(connection, resource, version)
        lines = []
        if is_list:
            lines = [
                b'{"type":"ADDED","object":%b}\n' % stored.raw for stored in cache.objects.values()
            ]
            lines.append(bookmark(resource, version, is_end=True))
        self._streams[connection] = watch
        cache.watches.append(watch)
        connection.send(STREAM_HEAD + (chunk(b"".join(lines)) if lines else b""), 0.002)
        self._tell(watch, cache)
        timeout_s = float(request.query.get("timeoutSeconds", "300"))
        self._simulation.after(timeout_s, lambda: self.end_watch(watch))
        self._simulation.after(
            BOOKMARK_S * (0.9 + 0.2 * self._servers.rng.random()), lambda: self._bookmark(watch)
        )

    def _tell(self, watch: Watch, cache: ResourceCache) -> None:
        """Send what has changed since the watch's position."""
        if cache.position <= watch.position:
            return
        changes = self._etcd.changes[watch.resource]
        start = bisect_right(changes, watch.position, key=version_of)
        is_deaf = self._simulation.now_s < watch.deaf_until_s
        lines = []
        for change in changes[start:]:
            if change.version > cache.position:
                break
            if is_deaf or (watch.drop and change.type in watch.drop):
                if not is_deaf:
                    watch.drop.remove(change.type)
                self._servers.lossy.add(watch.connection.machine.name)
                number = LOST.get((watch.resource, change.type), "")
                label = f"{number}event dropped: {watch.resource} {change.type}"
                self._simulation.counts[label] += 1
                continue
            lines.append(change.line)
        watch.position = cache.position
        if lines:
            self._send(watch, b"".join(lines))

    def _send(self, watch: Watch, data: bytes) -> None:
        rng = self._servers.rng
        if len(data) > 2 and rng.random() < 0.02:
            at = rng.randrange(1, len(data))
            watch.connection.send(chunk(data[:at]))
            data = data[at:]
        watch.connection.send(chunk(data))

    def _bookmark(self, watch: Watch) -> None:
        if watch.is_over:
            return
        version = self._progress(watch.resource)
        if version >= watch.position:
            self._send(watch, bookmark(watch.resource, version))
            watch.position = version
        elif self.lies:
            self._send(watch, bookmark(watch.resource, version))
        self._simulation.after(BOOKMARK_S, lambda: self._bookmark(watch))

    def end_watch(self, watch: Watch, *, reset: bool = False) -> None:
        """End a watch."""
        if watch.is_over:
            return
        if not reset:
            watch.connection.send(STREAM_END)
        watch.connection.end(reset=reset)
        self.closed(watch.connection)

    def fail_watch(self, watch: Watch, problem: ApiProblemError) -> None:
        """End a watch with an ERROR event."""
        self._send(watch, watch_line("ERROR", problem.body()))
        self.end_watch(watch)

    def repeat(self, watch: Watch, count: int, but: int) -> None:
        """Send events of a watch again, but not the very last ones."""
        cache = self._caches[watch.resource]
        changes = [
            each for each in self._etcd.recent[watch.resource] if each.version <= watch.position
        ]
        changes = changes[max(len(changes) - but - count, 0) :][:count]
        if changes and cache.watches:
            self._send(watch, b"".join(each.line for each in changes))

    def send_line(self, watch: Watch, line: bytes) -> None:
        """Send something that no server should."""
        self._servers.lossy.add(watch.connection.machine.name)
        self._send(watch, line)

    def watches(self, resource: str = "") -> list[Watch]:
        """Return the watches that are open."""
        return [each for each in self._streams.values() if resource in ("", each.resource)]

    def _end_watch(self, watch: Watch) -> None:
        watch.is_over = True
        watches = self._caches[watch.resource].watches
        if watch in watches:
            watches.remove(watch)


def _nobody(name: str, request: Request, status: int, is_answered: bool) -> None:
    pass


def _told(request: Request) -> str:
    body = request.body
    if request.verb == "bind":
        return str(body["target"]["name"])
    if request.resource == "events":
        return str(body.get("reason", ""))
    if request.resource == "leases":
        return str(body["spec"]["holderIdentity"])
    return msgspec.json.encode(body).decode() if body else ""
