"""A real HTTP server that answers as told, on an I/O loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp import web

from cache.snapshot import Snapshot
from plugins.default_binder import DefaultBinder
from plugins.framework.cycle_state import CycleState
from plugins.framework.interfaces import ScorePlugin
from plugins.priority_sort import PrioritySort
from scheduler.config.extension_points import POINTS, points_of
from scheduler.cycle.host_selection import HostSelector
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from scheduler.extenders import ExtenderChain, ExtenderError
from scheduler.runtime.framework_runner import FrameworkRunner
from tests.builders import node, pod
from tests.scheduler.parts import NoBinding

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Coroutine

    from cache.pod_info import PodInfo
    from plugins.framework.status import Status
    from scheduler.config import Extender
    from scheduler.decision.decision import Decision

MAX_REQUEST_BYTES = 1 << 28


@dataclass
class Reply:
    """An answer as it goes over the wire; ``holds`` keeps it back until the server releases it."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    holds: bool = False


def says(value: Any) -> Callable[[Any], Reply]:
    """Answer with a value as JSON, whatever is asked."""
    return lambda asked: Reply(msgspec.json.encode(value))


class Objects:
    """Whole objects that carry a field which berth itself does not read."""

    def __init__(self) -> None:
        self.absent: set[str] = set()
        self.pod_is_gone = False
        self.pods_read = 0

    async def pod(self, info: PodInfo) -> msgspec.Raw:
        self.pods_read += 1
        if self.pod_is_gone:
            raise ExtenderError("the pod no longer exists")
        spec = {"schedulerName": "berth", "dnsPolicy": "ClusterFirst"}
        meta = {"name": info.name, "namespace": info.namespace, "uid": info.uid}
        return msgspec.Raw(msgspec.json.encode({"metadata": meta, "spec": spec}))

    def node(self, name: str) -> msgspec.Raw | None:
        if name in self.absent:
            return None
        value = {"metadata": {"name": name}, "spec": {"podCIDR": "10.0.0.0/24"}}
        return msgspec.Raw(msgspec.json.encode(value))


class ScriptedExtender:
    """The server: ``script`` has an answer by verb, ``asked`` what came."""

    def __init__(self, script: dict[str, Callable[[Any], Reply]]) -> None:
        self.script = script
        self.asked: list[tuple[str, Any]] = []
        self.content_types: set[str] = set()
        self.peers: set[Any] = set()
        self.url = ""
        self._released = asyncio.Event()

    def verbs(self) -> list[str]:
        return [verb for verb, _ in self.asked]

    async def start(self, context: ssl.SSLContext | None = None) -> None:
        app = web.Application(client_max_size=MAX_REQUEST_BYTES)
        app.router.add_post("/ext/{verb}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=10)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        port = self._runner.addresses[0][1]
        self.url = f"{'http' if context is None else 'https'}://127.0.0.1:{port}/ext"

    async def release(self) -> None:
        """Give the answers that are held back, and hold back no more."""
        self._released.set()

    async def stop(self) -> None:
        await self.release()
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        asked = msgspec.json.decode(await request.read())
        self.asked.append((request.match_info["verb"], asked))
        self.content_types.add(request.content_type)
        assert request.transport is not None
        self.peers.add(request.transport.get_extra_info("peername"))
        reply = self.script[request.match_info["verb"]](asked)
        if reply.holds:
            await self._released.wait()
        return web.Response(body=reply.body, status=reply.status, headers=reply.headers)


class Points(ScorePlugin):
    """Gives each node the points that ``given`` says, 0 for others."""

    name = "Points"

    def __init__(self, **given: int) -> None:
        super().__init__(None, NoBinding())
        self.given = given

    def score_one(self, state, info, node_info):
        return self.given.get(node_info.name, 0)


class Stage:
    """A loop in a thread, servers on it, and cycles run from the test's thread."""

    def __init__(self) -> None:
        self.objects = Objects()
        self.settled: Status | None = None
        self.settle_calls = 0
        self._servers: list[ScriptedExtender] = []
        self._closing: list[Callable[[], Coroutine[Any, Any, None]]] = []
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever)

    def __enter__(self) -> Stage:
        self._thread.start()
        return self

    def __exit__(self, *args: object) -> None:
        for close in self._closing:
            self.call(close())
        for server in self._servers:
            self.call(server.stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def call(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(60)

    def serve(
        self, context: ssl.SSLContext | None = None, **script: Callable[[Any], Reply]
    ) -> ScriptedExtender:
        server = ScriptedExtender(script)
        self.call(server.start(context))
        self._servers.append(server)
        return server

    def chain(
        self, *configs: Extender, write_fence: Callable[[float], float] | None = None
    ) -> ExtenderChain:
        made = ExtenderChain(configs, self.objects, self.loop, self._settle, write_fence)
        self._closing.append(made.close)
        return made

    async def _settle(self, info: PodInfo, node_name: str) -> Status | None:
        self.settle_calls += 1
        return self.settled

    def decide(
        self, *configs: Extender, points: Points | None = None, names: str = "abc", **made: Any
    ) -> Decision:
        """Run one cycle over nodes with one-letter names."""
        plugins = [PrioritySort(None, NoBinding()), DefaultBinder(None, NoBinding())]
        plugins += [] if points is None else [points]
        framework = FrameworkRunner(
            "berth",
            {point: [p for p in plugins if point in points_of(type(p))] for point in POINTS},
            {"Points": 1},
            extenders=self.chain(*configs),
        )
        snapshot = Snapshot.of([node(name).capacity(cpu="4").info() for name in names])
        cycle = SchedulingCycle(snapshot, HostSelector(1))
        info = made.get("info") or pod("p").info()
        return cycle.decide(framework, made.get("state") or CycleState(), info)
