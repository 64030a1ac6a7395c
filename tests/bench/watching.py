"""The watching half of the scheduler in a thread of its own: transport, informers, handlers."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvloop
import yaml

from cache.pod_templates import PodTemplates
from scheduler.client.credential_search import load_credentials
from scheduler.client.transport import Transport
from scheduler.event_handlers.lost_events import LostEvents
from scheduler.informers import InformerFactory
from scheduler.kinds import NODES, PODS
from scheduler.metrics import Metrics
from tests.controlplane.control_plane import free_ports
from tests.controlplane.server_process import ServerProcess
from tests.fakes.ports import fake_ports

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scheduler.informers import Informer
    from tests.bench.deciding import Parts

_DEADLINE_S = 600.0
_POLL_S = 0.05


class _Received:
    """Counts the bytes of answers."""

    def __init__(self) -> None:
        self.size_bytes = 0

    def requested(
        self,
        host: str,
        method: str,
        status: int | None,
        duration_s: float,
        sent: int,
        received: int | None,
    ) -> None:
        self.size_bytes += received or 0

    def waited(self, host: str, method: str, duration_s: float) -> None:
        pass


class Watching:
    """Informers of nodes and pods, read from a server process, taken in by real handlers.

    Parameters
    ----------
    parts
        What the handlers tell.

    Attributes
    ----------
    loop
        Of the I/O thread.

    Concurrency: start and stop from one thread; the handlers run on the I/O thread.
    """

    def __init__(self, parts: Parts, port: int) -> None:
        self._parts = parts
        self._port = port
        self.loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="io")
        self._received = _Received()
        self._nodes: Informer[Any]
        self._pods: Informer[Any]

    def start(self) -> None:
        """Start; return once all that the server has is taken in."""
        self._thread.start()
        with tempfile.TemporaryDirectory() as folder:
            kubeconfig = Path(folder, "kubeconfig")
            kubeconfig.write_text(yaml.safe_dump(_kubeconfig(self._port)))
            self.run(self._start(str(kubeconfig)))

    def stop(self) -> None:
        """Stop, and end the thread."""
        self.run(self._stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def taken(self) -> int:
        """Return how many changes of pods were taken in."""
        return self._pods.statistics().deltas

    def cpu_s(self) -> float:
        """Return what the thread has used."""
        assert self._thread.ident is not None
        return time.clock_gettime(time.pthread_getcpuclockid(self._thread.ident))

    def lost_events(self) -> LostEvents:
        """Return what looks for events that these watches have lost."""
        parts = self._parts
        informers = (self._nodes, self._pods)
        return LostEvents(fake_ports(), lambda: informers, parts.handlers, Metrics(), lambda: True)

    def received_bytes(self) -> int:
        """Return how many bytes the answers to requests have had."""
        return self._received.size_bytes

    def nodes(self) -> Sequence[Any]:
        """Return all nodes that the watch knows."""
        return self._nodes.list()

    def pods(self) -> Sequence[Any]:
        """Return all pods that the watch knows."""
        return self._pods.list()

    def run(self, work: Any) -> Any:
        """Run a coroutine on the I/O thread and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(_DEADLINE_S)

    async def _start(self, kubeconfig: str) -> None:
        credentials = await load_credentials(kubeconfig)
        self._transport = Transport(credentials, user_agent="bench")
        self._transport.measure = self._received
        self._informers = InformerFactory(self._transport)
        self._nodes = self._informers.informer(NODES)
        self._pods = self._informers.informer(PODS, transform=PodTemplates().share)
        self._nodes.add_handler(self._parts.handlers.on_nodes)
        self._pods.add_handler(self._parts.handlers.on_pods)
        self._informers.start()
        await self._informers.wait_synced()

    async def _stop(self) -> None:
        await self._informers.stop()
        await self._transport.close()


@contextlib.contextmanager
def object_server(nodes: int, pods: int, rate: int) -> Iterator[int]:
    """Run an object server; give its port."""
    port = free_ports(1)[0]
    command = [sys.executable, "-m", "tests.bench.object_server"]
    command += [str(each) for each in (port, nodes, pods, rate)]
    with tempfile.TemporaryDirectory() as folder:
        process = ServerProcess(command, Path(folder, "object-server.log"))
        try:
            while not _listens(port):
                if not process.running:
                    raise RuntimeError(f"the object server has ended:\n{process.log_tail()}")
                time.sleep(_POLL_S)
            yield port
        finally:
            process.kill()


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
        return True
    return False


def _kubeconfig(port: int) -> dict[str, Any]:
    server = {"name": "bench", "cluster": {"server": f"http://127.0.0.1:{port}"}}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "bench",
        "clusters": [server],
        "users": [{"name": "bench", "user": {}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
    }
