"""Requests and streams over TLS, and through a proxy."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest
from aiohttp import web

from scheduler.client.credentials import Credentials
from scheduler.client.errors import ApiError
from scheduler.client.tls import TlsFiles
from tests.scheduler.client.authority import Authority
from tests.scheduler.client.loopback import Loopback, ok, transport_to

if TYPE_CHECKING:
    from pathlib import Path

    from scheduler.client.transport import Transport
    from tests.scheduler.client.conftest import Run


async def two_lines(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(request)
    for line in (b"one\n", b"two\n"):
        await answer.write(line)
    return answer


async def ask(transport: Transport, how: str) -> int:
    if how == "request":
        return (await transport.request("GET", "/x")).status
    async with transport.stream("/x") as stream:
        return stream.status


def test_requests_and_streams_work_over_tls(run: Run, authority: Authority) -> None:
    async def main() -> tuple[bytes, bytes]:
        tls = TlsFiles("test", ca_file=str(authority.ca_file))
        async with (
            Loopback(two_lines, authority.server_context()) as server,
            transport_to(server.url, tls=tls) as transport,
        ):
            answer = await transport.request("GET", "/x")
            async with transport.stream("/x") as stream:
                return answer.body, b"".join([chunk async for chunk in stream.chunks()])

    assert run(main()) == (b"one\ntwo\n", b"one\ntwo\n")


@pytest.mark.parametrize("how", ["request", "stream"])
def test_a_server_that_cannot_prove_itself_gets_no_request(
    run: Run, authority: Authority, how: str
) -> None:
    async def main() -> int:
        async with (
            Loopback(ok, authority.server_context()) as server,
            transport_to(server.url, tls=TlsFiles("test")) as transport,
        ):
            with pytest.raises(ApiError, match="Unreachable"):
                await ask(transport, how)
            return len(server.received)

    assert run(main()) == 0


@pytest.mark.parametrize("how", ["request", "stream"])
def test_a_server_may_prove_another_name(run: Run, authority: Authority, how: str) -> None:
    async def main() -> int:
        context = authority.server_context(host="api.example.org")
        async with Loopback(ok, context) as server:
            credentials = Credentials(
                server.url,
                tls=TlsFiles("test", ca_file=str(authority.ca_file)),
                tls_server_name="api.example.org",
            )
            async with transport_to(server.url, credentials=credentials) as transport:
                return await ask(transport, how)

    assert run(main()) == 200


async def serve_proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve one CONNECT of a user "u" with the password "p w"."""
    head = await reader.readuntil(b"\r\n\r\n")
    target = head.split()[1].decode()
    if b"Proxy-Authorization: Basic dTpwIHc=" not in head:
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        writer.close()
        return
    host, _, port = target.rpartition(":")
    upstream_reader, upstream_writer = await asyncio.open_connection(host, int(port))
    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")

    async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await source.read(65536):
                sink.write(data)
                await sink.drain()
        sink.close()

    await asyncio.gather(pump(reader, upstream_writer), pump(upstream_reader, writer))


@pytest.mark.parametrize("how", ["request", "stream"])
@pytest.mark.parametrize(
    ("user", "works"),
    [pytest.param("u:p%20w@", True, id="known"), pytest.param("", False, id="unknown")],
)
def test_a_tls_server_is_reached_through_a_proxy(
    run: Run, authority: Authority, how: str, user: str, works: bool
) -> None:
    async def main() -> int | str:
        proxy = await asyncio.start_server(serve_proxy, "127.0.0.1", 0)
        port = proxy.sockets[0].getsockname()[1]
        async with Loopback(ok, authority.server_context()) as server:
            credentials = Credentials(
                server.url,
                tls=TlsFiles("test", ca_file=str(authority.ca_file)),
                proxy=f"http://{user}127.0.0.1:{port}",
            )
            async with transport_to(server.url, credentials=credentials) as transport:
                try:
                    return await ask(transport, how)
                except ApiError as error:
                    return error.reason
                finally:
                    proxy.close()

    assert run(main()) == (200 if works else "Unreachable")


@pytest.mark.parametrize("how", ["request", "stream"])
@pytest.mark.parametrize("silent", ["server", "proxy"])
def test_whoever_is_silent_during_the_handshake_is_unreachable(
    run: Run, authority: Authority, how: str, silent: str
) -> None:
    async def main() -> None:
        closing = asyncio.Event()

        async def keep_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await closing.wait()
            writer.close()

        listener = await asyncio.start_server(keep_silent, "127.0.0.1", 0)
        url = f"127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        credentials = Credentials(
            f"https://{url}" if silent == "server" else "https://api.example",
            tls=TlsFiles("test", ca_file=str(authority.ca_file)),
            proxy=f"http://{url}" if silent == "proxy" else None,
        )
        async with transport_to("", credentials=credentials) as transport:
            with pytest.raises(ApiError, match="Unreachable") as caught:
                await (
                    transport.request("POST", "/x", timeout_s=0.05)
                    if how == "request"
                    else transport.stream("/x", connect_timeout_s=0.05).__aenter__()
                )
        closing.set()
        listener.close()
        assert not caught.value.ambiguous

    run(main())


def test_new_certificates_are_used_on_new_connections(run: Run, tmp_path: Path) -> None:
    async def main() -> int:
        old, new = Authority(tmp_path, "old"), Authority(tmp_path, "new")
        ca_file = tmp_path / "ca.crt"
        ca_file.write_bytes(old.ca_file.read_bytes())
        now = 0.0
        async with Loopback(ok, new.server_context()) as server:
            credentials = Credentials(
                server.url, tls=TlsFiles("test", ca_file=str(ca_file)), clock=lambda: now
            )
            async with transport_to(server.url, credentials=credentials) as transport:
                with pytest.raises(ApiError, match="Unreachable"):
                    await transport.request("GET", "/x")
                ca_file.write_bytes(new.ca_file.read_bytes() + b"\n")
                now = 61.0
                return (await transport.request("GET", "/x")).status

    assert run(main()) == 200
