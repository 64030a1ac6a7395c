"""Connections between replicas and API servers: bytes arrive in order, later, or never.

A replica's side is an asyncio transport; what the real client writes into it arrives at the server
as it was written, and the reverse.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.storm.machine import Machine
    from tests.storm.simulation import Simulation


class Frontend(Protocol):
    """An API server, as the network sees it."""

    is_up: bool

    def accept(self, connection: Connection) -> None:
        """Take in a new connection."""
        ...

    def receive(self, connection: Connection, data: bytes) -> None:
        """Take in what was written."""
        ...

    def closed(self, connection: Connection) -> None:
        """Take in that the other side is gone."""
        ...


class Network:
    """Connects replicas with API servers.

    Attributes
    ----------
    cut_off
        Names of replicas whose messages wait until they are connected again.
    slow_s
        Added to each message.
    healed_s
        When a replica was connected again the last time.
    on_request
        Called with the name of a replica and each request when it is sent.
    """

    def __init__(self, simulation: Simulation, frontends: list[Frontend]) -> None:
        self.simulation = simulation
        self.rng = simulation.rng("network")
        self.frontends = frontends
        self.cut_off: set[str] = set()
        self.slow_s = 0.0
        self.healed_s = -1.0
        self.on_request: Callable[[str, bytes], None] = lambda name, request: None
        self.connections: dict[Connection, None] = {}

    def latency_s(self) -> float:
        """Return how long a message takes: half a millisecond, rarely much more."""
        random = self.rng.random
        delay_s = 0.0002 + random() * 0.0006 + self.slow_s
        if random() < 0.01:
            delay_s += random() * 0.1
        return delay_s

    async def connect(self, machine: Machine, factory: Any) -> Any:
        """Connect a process to one of the API servers.

        Raises
        ------
        ConnectionRefusedError
            It is down.
        """
        arrived: asyncio.Future[Frontend | None] = machine.loop.create_future()

        def arrive() -> None:
            if machine.name in self.cut_off:
                self.simulation.after(1.0, arrive)  # SYN is sent again
                return
            frontend = self.frontends[int(self.rng.random() * len(self.frontends))]
            machine.loop.call_soon(_set, arrived, frontend if frontend.is_up else None)

        self.simulation.after(self.latency_s(), arrive)
        frontend = await arrived
        if frontend is None:
            raise ConnectionRefusedError("connection refused")
        connection = Connection(self, machine, frontend, factory())
        self.connections[connection] = None
        frontend.accept(connection)
        connection.protocol.connection_made(connection)
        return connection, connection.protocol

    def heal(self, name: str) -> None:
        """Connect a replica again: what was sent meanwhile arrives."""
        self.cut_off.discard(name)
        self.healed_s = self.simulation.now_s
        for connection in list(self.connections):
            if connection.machine.name == name:
                connection.flush()


def _set(future: asyncio.Future[Any], value: Any) -> None:
    if not future.done():
        future.set_result(value)


class Connection(asyncio.Transport):
    """A connection; the object itself is the replica's side.

    Attributes
    ----------
    silent
        Half open: nothing arrives any more, on either side, and nobody is told.
    """

    def __init__(
        self, network: Network, machine: Machine, frontend: Frontend, protocol: Any
    ) -> None:
        super().__init__()
        self.machine = machine
        self.frontend = frontend
        self.protocol = protocol
        self.silent = False
        self._network = network
        self._is_closed = False
        self._to_server_s = 0.0
        self._to_client_s = 0.0
        self._is_paused = False
        self._waiting: list[bytes] = []
        self._held: list[tuple[bool, Any]] = []

    # --- the replica's side -------------------------------------------------------------------

    def write(self, data: Any) -> None:
        if not self._is_closed:
            request = bytes(data)
            self._network.on_request(self.machine.name, request)
            self._send_to_server(request)

    def is_closing(self) -> bool:
        return self._is_closed

    def close(self) -> None:
        self.abort()

    def abort(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._network.connections.pop(self, None)
        self.machine.loop.call_soon(self.protocol.connection_lost, None)
        self._network.simulation.after(
            self._network.latency_s(), lambda: self.frontend.closed(self)
        )

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False
        waiting, self._waiting = self._waiting, []
        for data in waiting:
            self.machine.loop.call_soon(self._receive, data)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    # --- the server's side --------------------------------------------------------------------

    def send(self, data: bytes, delay_s: float = 0.0) -> float:
        """Send an answer, or a part of it; return when it arrives."""
        network = self._network
        at_s = max(network.simulation.now_s + delay_s + network.latency_s(), self._to_client_s)
        self._to_client_s = at_s
        network.simulation.at(at_s, lambda: self._arrive(data))
        return at_s

    def end(self, *, reset: bool, delay_s: float = 0.0) -> None:
        """Close the connection, after everything that was sent before."""
        network = self._network
        at_s = max(network.simulation.now_s + delay_s + network.latency_s(), self._to_client_s)
        self._to_client_s = at_s
        network.simulation.at(at_s, lambda: self._arrive(reset))

    # --- on the way ---------------------------------------------------------------------------

    def _send_to_server(self, data: bytes) -> None:
        network = self._network
        at_s = max(network.simulation.now_s + network.latency_s(), self._to_server_s)
        self._to_server_s = at_s
        network.simulation.at(at_s, lambda: self._arrive_at_server(data))

    def _arrive_at_server(self, data: bytes) -> None:
        if self.silent:
            return
        if self.machine.name in self._network.cut_off:
            self._held.append((True, data))
        else:
            self.frontend.receive(self, data)

    def _arrive(self, data: bytes | bool) -> None:
        if self.silent:
            return
        if self.machine.name in self._network.cut_off:
            self._held.append((False, data))
        elif isinstance(data, bool):
            self.machine.loop.call_soon(self._lose, data)
        else:
            self.machine.loop.call_soon(self._receive, data)

    def flush(self) -> None:
        """Let everything arrive that was held back."""
        held, self._held = self._held, []
        for to_server, data in held:
            if to_server:
                self._arrive_at_server(data)
            else:
                self._arrive(data)

    def _receive(self, data: bytes) -> None:
        if self._is_closed:
            return
        if self._is_paused:
            self._waiting.append(data)
        else:
            self.protocol.data_received(data)

    def _lose(self, reset: bool) -> None:
        if self._is_closed:
            return
        if not reset:
            self.protocol.eof_received()
        if not self._is_closed:
            self._is_closed = True
            self._network.connections.pop(self, None)
            error = ConnectionResetError("connection reset by peer") if reset else None
            self.protocol.connection_lost(error)
