"""How connections are made when many requests come at once; others are tests of the transport."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from scheduler.client.connection import ExchangeError
from scheduler.client.connection_pool import ConnectionPool
from scheduler.client.connector import Address, Connector
from tests.scheduler.client.loopback import Loopback, json_answer, until

if TYPE_CHECKING:
    from aiohttp import web

    from tests.scheduler.client.conftest import Run

MANY = 40
AT_ONCE = 8
REQUEST = b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n"


class Gate(Connector):
    """Connects once the gate is open, or fails."""

    def __init__(self, url: str, failure: ExchangeError | None = None) -> None:
        super().__init__(Address.of(url, None, None), lambda: None)
        self.gate = asyncio.Event()
        self.failure = failure
        self.connecting = self.most = self.made = 0

    async def connect(self, make: Any, timeout_s: float) -> Any:
        self.connecting += 1
        self.most = max(self.most, self.connecting)
        try:
            await self.gate.wait()
            if self.failure is not None:
                raise self.failure
            self.made += 1
            return await super().connect(make, timeout_s)
        finally:
            self.connecting -= 1


def pool_with(gate: Gate) -> ConnectionPool:
    return ConnectionPool(gate, ssl_context=lambda: None, max_connections=64)


async def send(pool: ConnectionPool, timeout_s: float = 60.0) -> str:
    """Return the status of the answer, or the reason why there was none."""
    try:
        answer = await pool.exchange(REQUEST, timeout_s=timeout_s, max_body_bytes=1 << 20)
    except ExchangeError as error:
        return "sent" if error.sent else error.reason
    return str(answer.status)


async def answer(_: web.Request) -> web.Response:
    return json_answer({})


def test_a_burst_makes_few_connections_at_a_time_and_uses_them_again(run: Run) -> None:
    async def main() -> tuple[list[str], int, int]:
        async with Loopback(answer) as server:
            gate = Gate(server.url)
            pool = pool_with(gate)
            sending = [asyncio.ensure_future(send(pool)) for _ in range(MANY)]
            await until(lambda: gate.connecting == AT_ONCE)
            gate.gate.set()
            statuses = await asyncio.gather(*sending)
            await pool.close()
            return statuses, gate.most, gate.made

    statuses, most, made = run(main())
    assert statuses == ["200"] * MANY
    assert most == AT_ONCE
    assert made <= MANY


def test_all_of_a_burst_fail_when_no_connection_can_be_made(run: Run) -> None:
    async def main() -> list[str]:
        gate = Gate("http://127.0.0.1:9", ExchangeError("Unreachable", "no", sent=False))
        pool = pool_with(gate)
        gate.gate.set()
        return await asyncio.gather(*(send(pool) for _ in range(MANY)))

    assert run(main()) == ["Unreachable"] * MANY


def test_a_request_waits_for_its_turn_to_connect_no_longer_than_its_timeout(run: Run) -> None:
    async def main() -> str:
        gate = Gate("http://127.0.0.1:9")
        pool = pool_with(gate)
        first = [asyncio.ensure_future(send(pool)) for _ in range(AT_ONCE)]
        await until(lambda: gate.connecting == AT_ONCE)
        reason = await send(pool, timeout_s=0.01)
        for each in first:
            each.cancel()
        await asyncio.gather(*first, return_exceptions=True)
        return reason

    assert run(main()) == "Timeout"


def test_the_turn_of_a_request_that_is_cancelled_goes_to_the_next(run: Run) -> None:
    async def main() -> list[str]:
        async with Loopback(answer) as server:
            gate = Gate(server.url)
            pool = pool_with(gate)
            sending = [asyncio.ensure_future(send(pool)) for _ in range(MANY)]
            await until(lambda: gate.connecting == AT_ONCE)
            for each in sending[: MANY // 2]:
                each.cancel()
            gate.gate.set()
            answers = await asyncio.gather(*sending[MANY // 2 :])
            await pool.close()
            return answers

    assert run(main()) == ["200"] * (MANY - MANY // 2)


@pytest.mark.parametrize("waiting", [1, MANY - AT_ONCE])
def test_those_that_wait_to_connect_end_with_the_pool(run: Run, waiting: int) -> None:
    async def main() -> list[str]:
        gate = Gate("http://127.0.0.1:9")
        pool = pool_with(gate)
        first = [asyncio.ensure_future(send(pool)) for _ in range(AT_ONCE)]
        await until(lambda: gate.connecting == AT_ONCE)
        others = [asyncio.ensure_future(send(pool)) for _ in range(waiting)]
        await asyncio.sleep(0)
        await pool.close()
        reasons = await asyncio.gather(*others)
        for each in first:
            each.cancel()
        await asyncio.gather(*first, return_exceptions=True)
        return reasons

    assert run(main()) == ["Unreachable"] * waiting
