"""A real HTTP server that answers queries as told."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
from aiohttp import web

from scheduler.node_metrics import MetricQuery, MetricSource

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping

    from scheduler.node_metrics import NodeMetricsPoller


@dataclass
class Reply:
    """An answer as it goes over the wire; ``holds`` keeps it back until the server stops."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    holds: bool = False


def vector(*series: tuple[Mapping[str, str], str]) -> Reply:
    """Answer with an instant vector of labels and values."""
    result = [{"metric": labels, "value": [1700000000.123, value]} for labels, value in series]
    data = {"resultType": "vector", "result": result}
    return Reply(msgspec.json.encode({"status": "success", "data": data}))


def of_nodes(**values: str | float) -> Reply:
    """Answer with one series for each node."""
    return vector(*(({"node": name}, str(value)) for name, value in values.items()))


class ScriptedPrometheus:
    """The server: ``script`` has an answer by query, ``asked`` what came with which header."""

    def __init__(self, script: Mapping[str, Callable[[], Reply]]) -> None:
        self.script = dict(script)
        self.asked: list[tuple[str, str | None]] = []
        self.url = ""
        self._released = asyncio.Event()

    async def start(self, context: ssl.SSLContext | None = None) -> None:
        app = web.Application()
        app.router.add_post("/prom/api/v1/query", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=context).start()
        port = self._runner.addresses[0][1]
        self.url = f"{'http' if context is None else 'https'}://127.0.0.1:{port}/prom"

    async def stop(self) -> None:
        self._released.set()
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        form = await request.post()
        query = str(form["query"])
        self.asked.append((query, request.headers.get("Authorization")))
        reply = self.script[query]()
        if reply.holds:
            await self._released.wait()
        return web.Response(body=reply.body, status=reply.status, headers=reply.headers)

    def source(self, *queries: str, **given: object) -> MetricSource:
        """Return a source that asks this server; each metric is called as its query is."""
        metrics = tuple(MetricQuery(query, query) for query in queries)
        return MetricSource(self.url, metrics, **given)  # type: ignore[arg-type] - rows say it


async def poll_once(poller: NodeMetricsPoller) -> None:
    """Have a poller that was not started ask every source for every metric once."""
    await asyncio.gather(*(poller._round(*source) for source in poller._sources))
