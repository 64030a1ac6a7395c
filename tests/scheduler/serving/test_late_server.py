from __future__ import annotations

import asyncio
import functools
import socket

import aiohttp
import pytest

from scheduler.metrics import Metrics
from scheduler.serving import late_server
from scheduler.serving.health import Health
from scheduler.serving.late_server import LateServer
from scheduler.serving.listener import ServerError
from scheduler.serving.options import ServingOptions
from scheduler.serving.server import Server

PLAIN = ServingOptions(secure_port=None, insecure_bind_address="127.0.0.1:0")


def on_a_loop(test):
    """Run an ``async def`` test."""

    @functools.wraps(test)
    def run(*args, **kwargs):
        return asyncio.run(test(*args, **kwargs))

    return run


def late(*, options=PLAIN, make=None, is_busy=lambda: False, on_failure=lambda: None):
    def a_server(listeners):
        return Server(options, listeners, Metrics(), Health())

    return LateServer(options, make or a_server, is_busy, on_failure)


async def status_of(server, path="/livez", **how):
    url = f"{server.addresses[0]}{path}"
    async with aiohttp.ClientSession() as client, client.get(url, **how) as answer:
        return answer.status


@on_a_loop
async def test_it_listens_at_once_and_answers_when_told_to():
    server = late()
    server.listen()
    asked = asyncio.create_task(status_of(server))
    with socket.create_connection(server.address.rsplit(":", 1)):
        assert not asked.done()
    server.answer()
    assert await asyncio.wait_for(asked, 30) == 200
    await server.stop()


@on_a_loop
async def test_it_waits_while_somebody_is_busy():
    looks = iter([True, True, False])
    server = late(is_busy=lambda: next(looks))
    server.listen()
    server.answer()
    assert await asyncio.wait_for(status_of(server), 30) == 200
    assert next(looks, None) is None
    await server.stop()


@on_a_loop
@pytest.mark.parametrize("is_told", [False, True], ids=["never told to", "busy for ever"])
async def test_whoever_asks_does_not_wait_for_ever(is_told, monkeypatch):
    monkeypatch.setattr(late_server, "PATIENCE_S", 0.01)
    server = late(is_busy=lambda: True)
    server.listen()
    if is_told:
        server.answer()
    assert await asyncio.wait_for(status_of(server), 30) == 200
    await server.stop()


@on_a_loop
async def test_while_somebody_is_busy_and_nobody_asks_it_is_not_made(monkeypatch):
    monkeypatch.setattr(late_server, "PATIENCE_S", 0.0)
    made = []

    def a_server(listeners):
        made.append(listeners)
        return Server(PLAIN, listeners, Metrics(), Health())

    server = late(make=a_server, is_busy=lambda: True)
    server.listen()
    server.answer()
    for _ in range(100):
        await asyncio.sleep(0)
    assert not made
    assert await asyncio.wait_for(status_of(server), 30) == 200
    assert len(made) == 1
    await server.stop()


@on_a_loop
async def test_it_makes_itself_a_certificate():
    server = late(options=ServingOptions(bind_address="127.0.0.1", secure_port=0))
    server.listen()
    server.answer()
    assert await asyncio.wait_for(status_of(server, ssl=False), 30) == 200
    await server.stop()


@on_a_loop
async def test_a_port_that_is_taken_is_told_before_anything_else():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        options = ServingOptions(secure_port=None, insecure_bind_address=address)
        with pytest.raises(ServerError, match=address):
            late(options=options).listen()


@on_a_loop
async def test_a_certificate_that_cannot_be_used_is_told_before_anything_else():
    options = ServingOptions(
        bind_address="127.0.0.1", secure_port=0, tls_cert_file="/no", tls_private_key_file="/no"
    )
    with pytest.raises(ServerError, match="cannot serve with /no"):
        late(options=options).listen()


@on_a_loop
async def test_whoever_waits_for_it_learns_that_there_will_be_no_server():
    def broken(_):
        raise RuntimeError("no entropy")

    failed = asyncio.Event()
    server = late(make=broken, on_failure=failed.set)
    server.listen()
    server.answer()
    await asyncio.wait_for(failed.wait(), 30)
    assert str(server.failure) == "no entropy"
    await server.stop()


@on_a_loop
async def test_it_can_be_stopped_before_it_answers():
    server = late()
    server.listen()
    host, port = server.address.rsplit(":", 1)
    await server.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, port))


@on_a_loop
async def test_what_never_listened_can_be_stopped():
    await late().stop()
