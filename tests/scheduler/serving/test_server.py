from __future__ import annotations

import asyncio
import socket

import aiohttp
import pytest
import structlog

from scheduler.serving import listener as listener_module
from scheduler.serving import server as server_module
from scheduler.serving.health import Health
from scheduler.serving.listener import ServerError, parse_bind_address
from scheduler.serving.options import ServingOptions
from tests.scheduler.serving.served import OwnServer


def plain(bind_address: str = "127.0.0.1:0") -> ServingOptions:
    return ServingOptions(secure_port=None, insecure_bind_address=bind_address)


def fine() -> str | None:
    return None


def not_synced() -> str | None:
    return "the first lists are not complete"


def broken() -> str | None:
    raise RuntimeError("secret")


async def serve(visit, *, readiness=None, liveness=None, bind_address="127.0.0.1:0"):
    server = OwnServer(plain(bind_address), health=Health(readiness or {}, liveness or {}))
    await server.start()
    try:
        async with asyncio.timeout(30):
            return await visit(server)
    finally:
        await server.stop()


def get(path: str, *, headers=None, **checks):
    """Return status, text and headers of one request."""

    async def visit(server: OwnServer):
        async with (
            aiohttp.ClientSession() as client,
            client.get(f"http://{server.address}{path}", headers=headers) as answer,
        ):
            return answer.status, await answer.text(), answer.headers

    return asyncio.run(serve(visit, **checks))


def exchange(sent: bytes) -> bytes:
    """Return everything that the server says to `sent` until it closes the connection."""

    async def visit(server: OwnServer) -> bytes:
        host, port = parse_bind_address(server.address)
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(sent)
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer

    return asyncio.run(serve(visit))


# --- health -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "checks", "status"),
    [
        pytest.param("/livez", {}, 200, id="alive"),
        pytest.param("/healthz", {}, 200, id="healthy"),
        pytest.param("/readyz", {}, 200, id="ready"),
        pytest.param("/readyz", {"readiness": {"informers": fine}}, 200, id="all is well"),
        pytest.param("/readyz", {"readiness": {"informers": not_synced}}, 500, id="not ready"),
        pytest.param("/livez", {"readiness": {"informers": not_synced}}, 200, id="but alive"),
        pytest.param("/livez", {"liveness": {"thread": not_synced}}, 500, id="not alive"),
        pytest.param("/healthz", {"liveness": {"thread": not_synced}}, 500, id="not healthy"),
        pytest.param(
            "/readyz?exclude=informers",
            {"readiness": {"informers": not_synced}},
            200,
            id="excluded",
        ),
        pytest.param("/livez/ping", {}, 200, id="one check"),
        pytest.param(
            "/readyz/informers", {"readiness": {"informers": not_synced}}, 500, id="one that fails"
        ),
        pytest.param("/readyz/nothing", {}, 404, id="a check that there is not"),
    ],
)
def test_health(path, checks, status):
    assert get(path, **checks)[0] == status


@pytest.mark.parametrize(
    ("path", "checks", "text"),
    [
        pytest.param("/readyz", {"a": fine}, "ok", id="in short"),
        pytest.param(
            "/readyz?verbose",
            {"a": fine},
            "[+]ping ok\n[+]a ok\nreadyz check passed\n",
            id="at length",
        ),
        pytest.param(
            "/readyz",
            {"a": fine, "informers": not_synced},
            "[+]ping ok\n[+]a ok\n[-]informers failed: the first lists are not complete\n"
            "readyz check failed\n",
            id="what is wrong is always told",
        ),
        pytest.param(
            "/readyz?verbose&exclude=a",
            {"a": not_synced},
            "[+]ping ok\n[+]a excluded: ok\nreadyz check passed\n",
            id="excluded",
        ),
    ],
)
def test_what_health_says(path, checks, text):
    assert get(path, readiness=checks)[1] == text


def test_a_check_that_fails_itself_is_not_well_and_keeps_its_secret():
    with structlog.testing.capture_logs() as lines:
        status, text, _ = get("/readyz", readiness={"broken": broken})
    assert status == 500
    assert "secret" not in text
    assert [line["check"] for line in lines] == ["broken"]


# --- metrics ----------------------------------------------------------------------------------


def test_metrics_are_served_as_text():
    status, text, headers = get("/metrics")
    assert status == 200
    assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "# TYPE scheduler_schedule_attempts_total counter\n" in text


def test_metrics_are_served_as_openmetrics_when_asked_for():
    _, text, headers = get("/metrics", headers={"Accept": "application/openmetrics-text"})
    assert headers["Content-Type"].startswith("application/openmetrics-text")
    assert text.endswith("# EOF\n")


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param(b"GET /nothing HTTP/1.1\r\n", b"404", id="no such path"),
        pytest.param(b"POST /metrics HTTP/1.1\r\n", b"405", id="nothing can be changed"),
        pytest.param(b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n", b"400", id="a long path"),
        pytest.param(
            b"GET /livez HTTP/1.1\r\nX: " + b"x" * 20_000 + b"\r\n", b"400", id="a long header"
        ),
        pytest.param(b"GET /livez HTTP/1.1\r\n" + b"X: y\r\n" * 1_000, b"400", id="many headers"),
        pytest.param(b"nonsense\r\n", b"400", id="no HTTP"),
    ],
)
def test_what_is_refused(sent, status):
    answer = exchange(sent + b"Host: here\r\nConnection: close\r\n\r\n")
    assert answer.split(b" ")[1] == status


def test_a_body_is_not_read():
    answer = exchange(
        b"GET /livez HTTP/1.1\r\nHost: here\r\nContent-Length: 1000000000\r\n\r\n" + b"x" * 10_000
    )
    assert answer.startswith(b"HTTP/1.1 200")


def test_a_request_that_never_ends_is_cut_off(monkeypatch):
    monkeypatch.setattr(server_module, "_IDLE_S", 0.05)
    assert exchange(b"GET /livez HTTP/1.1\r\nHost: ") == b""


def test_of_too_many_connections_the_oldest_is_closed(monkeypatch):
    monkeypatch.setattr(listener_module, "MAX_CONNECTIONS", 2)

    async def visit(server: OwnServer) -> tuple[bytes, bytes]:
        host, port = parse_bind_address(server.address)
        held = []
        for _ in range(3):
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(b"GET /livez HTTP/1.1\r\nHost: here\r\n\r\n")
            answer = await reader.readuntil(b"\r\n\r\nok")
            held.append((reader, writer))
        try:
            rest = await held[0][0].read()
        except ConnectionError:
            rest = b""
        for _, writer in held:
            writer.close()
        return answer[:15], rest

    assert asyncio.run(serve(visit)) == (b"HTTP/1.1 200 OK", b"")


def test_connections_that_have_ended_cost_no_other(monkeypatch):
    monkeypatch.setattr(listener_module, "MAX_CONNECTIONS", 3)

    async def visit(server: OwnServer) -> bytes:
        host, port = parse_bind_address(server.address)
        first, first_writer = await asyncio.open_connection(host, port)
        for _ in range(20):
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(b"GET /livez HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
            await reader.read()
            writer.close()
            await writer.wait_closed()
        first_writer.write(b"GET /livez HTTP/1.1\r\nHost: here\r\n\r\n")
        answer = await first.readuntil(b"\r\n\r\nok")
        first_writer.close()
        return answer[:15]

    assert asyncio.run(serve(visit)) == b"HTTP/1.1 200 OK"


def test_a_request_that_takes_too_long_is_given_up(monkeypatch):
    monkeypatch.setattr(server_module, "_REQUEST_S", 0.05)

    async def visit(server: OwnServer) -> int:
        async with (
            server._rendering,
            aiohttp.ClientSession() as client,
            client.get(f"http://{server.address}/metrics") as answer,
        ):
            return answer.status

    assert asyncio.run(serve(visit)) == 503


# --- where it listens -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("127.0.0.1:80", ("127.0.0.1", 80), id="IPv4"),
        pytest.param("[::1]:80", ("::1", 80), id="IPv6"),
        pytest.param(":80", ("", 80), id="everywhere"),
        pytest.param("localhost:0", ("localhost", 0), id="any port"),
    ],
)
def test_a_bind_address(text, expected):
    assert parse_bind_address(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("127.0.0.1", id="no port"),
        pytest.param("127.0.0.1:", id="an empty port"),
        pytest.param("127.0.0.1:http", id="a named port"),
        pytest.param("127.0.0.1:65536", id="a port too high"),
        pytest.param("127.0.0.1:-1", id="a negative port"),
        pytest.param("127.0.0.1:\u0661", id="a digit of another script"),
        pytest.param("::1:80", id="IPv6 without brackets"),
    ],
)
def test_what_is_no_bind_address(text):
    with pytest.raises(ServerError, match="bind address"):
        parse_bind_address(text)


@pytest.mark.parametrize(
    ("bind_address", "prefix"),
    [
        pytest.param("127.0.0.1:0", "127.0.0.1:", id="IPv4"),
        pytest.param("localhost:0", "", id="by name"),
    ],
)
def test_the_port_that_was_taken_is_told(bind_address, prefix):
    async def visit(server: OwnServer) -> str:
        return server.address

    address = asyncio.run(serve(visit, bind_address=bind_address))
    assert address.startswith(prefix)
    assert parse_bind_address(address)[1] > 0


def test_a_port_that_is_taken_is_one_sentence():
    async def start() -> None:
        with socket.create_server(("127.0.0.1", 0)) as other:
            address = f"127.0.0.1:{other.getsockname()[1]}"
            server = OwnServer(plain(address))
            try:
                with pytest.raises(
                    ServerError, match=f"^cannot listen on {address}: Address already in use$"
                ):
                    await server.start()
            finally:
                await server.stop()

    asyncio.run(start())


def test_a_host_of_another_machine_is_one_sentence():
    server = OwnServer(plain("192.0.2.1:0"))
    with pytest.raises(
        ServerError, match=r"^cannot listen on 192\.0\.2\.1:0: Cannot assign [a-z ]+$"
    ):
        asyncio.run(server.start())


def test_after_the_end_nobody_listens():
    async def visit(server: OwnServer) -> str:
        return server.address

    host, port = parse_bind_address(asyncio.run(serve(visit)))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, port), timeout=5)
