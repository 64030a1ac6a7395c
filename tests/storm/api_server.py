"""One of several API servers before one etcd, with a watch cache that lags behind it.

Requests that change something, and reads of one object, go to etcd. Lists and watches are answered
from the cache of the server that a connection happens to lead to: not before it has caught up, if
the request asks for a version, or for the most recent state.

*Source*: k8s.io/apiserver 1.36, pkg/storage/cacher.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Final

import msgspec

from tests.fakes.api_objects import ApiProblemError, watch_line
from tests.storm.etcd import ALL
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

    from tests.storm.api_servers import ApiServers
    from tests.storm.etcd import Stored
    from tests.storm.network import Connection
    from tests.storm.troubles import Fate

CATCH_UP_S: Final = 3.0
"""How long a list waits for a cache that lags, before it is refused."""

BOOKMARK_S: Final = 60.0

LOST: Final = {("pods", "DELETED"): "F8 ", ("pods", "ADDED"): "F9 ", ("nodes", "DELETED"): "F10 "}
"""Faults by the events that a watch loses."""

UNAUTHORIZED: Final = ApiProblemError(401, "Unauthorized", "Unauthorized")


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


def _told(request: Request) -> str:
    body = request.body
    if request.verb == "bind":
        return str(body["target"]["name"])
    if request.resource == "events":
        return str(body.get("reason", ""))
    if request.resource == "leases":
        return str(body["spec"]["holderIdentity"])
    return msgspec.json.encode(body).decode() if body else ""
