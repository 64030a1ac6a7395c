"""A kubelet that does one thing: it forwards ports of its pods, as the API server asks it to.

Which address stands for which pod is given; everything else of a node is absent.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiohttp import WSMsgType, web

from scheduler.serving.certificate import make_certificate

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

PROTOCOL = "v4.channel.k8s.io"


class ForwardingKubelet:
    """Forwards ports from ``with`` to its end.

    Attributes
    ----------
    addresses
        ``host:port`` by the name of a pod, whatever port is asked for.
    port
        Where it listens, on loopback.
    forwarded
        How many connections it has forwarded.
    """

    def __init__(self) -> None:
        self.forwarded = 0
        self.addresses: dict[str, str] = {}
        self.port = 0
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="kubelet")

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait(30)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)

    def node_status(self) -> dict[str, Any]:
        """Return the fields of a node's status by which the API server finds this kubelet."""
        return {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self.port}},
        }

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(self._runner.cleanup())
        self._loop.close()

    async def _serve(self) -> None:
        app = web.Application()
        app.router.add_get("/portForward/{namespace}/{pod}", self._forward)
        self._runner = web.AppRunner(app, shutdown_timeout=1.0)
        await self._runner.setup()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "kubelet.pem"
            file.write_bytes(make_certificate(["127.0.0.1"]))
            context.load_cert_chain(file)
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        port = int(request.query["port"])
        socket = web.WebSocketResponse(protocols=(PROTOCOL,))
        await socket.prepare(request)
        for channel in (0, 1):
            await socket.send_bytes(bytes([channel]) + port.to_bytes(2, "little"))
        host, _, number = self.addresses.get(request.match_info["pod"], "").rpartition(":")
        try:
            reader, writer = await asyncio.open_connection(host, int(number))
        except (OSError, ValueError) as error:
            await socket.send_bytes(b"\x01" + f"cannot connect: {error}".encode())
            return socket
        self.forwarded += 1
        back = asyncio.create_task(_copy_back(reader, socket))
        try:
            async for message in socket:
                if message.type is WSMsgType.BINARY and message.data[0] == 0:
                    writer.write(message.data[1:])
                    await writer.drain()
        except ConnectionError:
            pass
        finally:
            back.cancel()
            writer.close()
        return socket


async def _copy_back(reader: asyncio.StreamReader, socket: web.WebSocketResponse) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            await socket.send_bytes(b"\x00" + data)
    await socket.close()
