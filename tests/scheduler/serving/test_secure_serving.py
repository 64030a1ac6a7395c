from __future__ import annotations

import asyncio
import ssl
import threading
from pathlib import Path

import aiohttp
import pytest
import structlog
from msgspec.structs import replace

from scheduler.client.errors import ApiError
from scheduler.serving import listener as listener_module
from scheduler.serving.access_reviews import User
from scheduler.serving.certificate import GivenCertificate, make_certificate
from scheduler.serving.health import Health
from scheduler.serving.listener import ServerError, parse_bind_address
from scheduler.serving.options import ServingOptions
from tests.fakes.clock import FakeClock
from tests.scheduler.serving.served import OwnServer

OPTIONS = ServingOptions(bind_address="127.0.0.1", secure_port=0)


class KnownPeople:
    """An API server that knows a scraper and a stranger."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.fails = False

    async def authorities(self) -> dict[str, str]:
        return {}

    async def user_of(self, token: str) -> User | None:
        self.asked.append(f"who is {token}")
        if self.fails:
            raise ApiError(None, "Unreachable", "nobody there")
        return User(username=token) if token in ("scraper", "stranger", "doubtful") else None

    async def is_allowed(self, user: User, verb: str, path: str) -> bool:
        self.asked.append(f"may {user.username} {verb} {path}")
        if user.username == "doubtful":
            raise ApiError(500, "InternalError", "who knows")
        return user.username == "scraper"


STUCK = threading.Event()
"""Set while the scheduling thread does not come back."""


@pytest.fixture
def stuck():
    STUCK.set()
    yield
    STUCK.clear()


async def serve(visit, *, options=OPTIONS, reviews=None):
    health = Health(
        liveness={"scheduling": lambda: "stuck" if STUCK.is_set() else None},
        details={"scheduling": lambda: "team-a/secret"},
    )
    server = OwnServer(options, health=health, reviews=reviews)
    await server.start()
    try:
        async with asyncio.timeout(30):
            return await visit(server)
    finally:
        await server.stop()


async def fetch(server: OwnServer, path: str, token: str | None, context=False) -> tuple[int, str]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        aiohttp.ClientSession() as client,
        client.get(f"{server.addresses[0]}{path}", headers=headers, ssl=context) as answer,
    ):
        return answer.status, await answer.text()


def get(path: str, token: str | None, *, reviews=None, options=OPTIONS) -> tuple[int, str]:
    people = reviews or KnownPeople()
    return asyncio.run(serve(lambda it: fetch(it, path, token), options=options, reviews=people))


# --- who may read -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "token", "status"),
    [
        pytest.param("/metrics", "scraper", 200, id="who may"),
        pytest.param("/metrics", "stranger", 403, id="who may not"),
        pytest.param("/metrics", "nonsense", 401, id="a token of nobody"),
        pytest.param("/metrics", None, 401, id="no token"),
        pytest.param("/metrics", "", 401, id="an empty token"),
        pytest.param("/metrics", "doubtful", 500, id="whose rights nobody knows"),
        pytest.param("/livez", None, 200, id="alive"),
        pytest.param("/readyz", None, 200, id="ready"),
        pytest.param("/healthz", "nonsense", 200, id="healthy"),
        pytest.param("/livez/ping", None, 401, id="one check is no open path"),
        pytest.param("/nothing", None, 401, id="what there is is told to nobody"),
        pytest.param("/nothing", "scraper", 404, id="but to those who may"),
    ],
)
def test_who_may_read(path, token, status):
    assert get(path, token)[0] == status


@pytest.mark.parametrize(
    ("open_paths", "path", "status"),
    [
        pytest.param(("/metrics",), "/metrics", 200, id="a path"),
        pytest.param(("/livez/*",), "/livez/ping", 200, id="all that begin so"),
        pytest.param((), "/livez", 401, id="none"),
    ],
)
def test_paths_that_are_open(open_paths, path, status):
    options = replace(OPTIONS, always_allowed_paths=open_paths)
    assert get(path, None, options=options)[0] == status


@pytest.mark.parametrize(
    ("open_paths", "path", "answer"),
    [
        pytest.param(("/livez",), "/livez/scheduling", "stuck: team-a/secret\n", id="who may"),
        pytest.param(("/livez/*",), "/livez/scheduling", "stuck\n", id="where anybody may"),
        pytest.param(
            ("/livez",),
            "/livez",
            "[+]ping ok\n[-]scheduling failed: stuck\nlivez check failed\n",
            id="not among all checks",
        ),
    ],
)
def test_the_name_of_a_pod_is_for_those_who_may_read_pages(stuck, open_paths, path, answer):
    options = replace(OPTIONS, always_allowed_paths=open_paths)
    assert get(path, "scraper", options=options) == (500, answer)


def test_a_refusal_names_who_wanted_what():
    assert 'User \\"stranger\\" cannot get path \\"/metrics\\"' in get("/metrics", "stranger")[1]


def test_without_an_api_server_nobody_is_anybody():
    people = KnownPeople()
    people.fails = True
    with structlog.testing.capture_logs() as lines:
        assert get("/metrics", "scraper", reviews=people)[0] == 401
    assert [line["event"] for line in lines] == ["token review failed"]


def test_answers_are_kept():
    people = KnownPeople()

    async def visit(server: OwnServer) -> None:
        await asyncio.gather(*(fetch(server, "/metrics", "scraper") for _ in range(3)))
        await fetch(server, "/metrics", "scraper")

    asyncio.run(serve(visit, reviews=people))
    assert people.asked == ["who is scraper", "may scraper get /metrics"]


def test_answers_that_hold_for_no_time_are_asked_for_again():
    people = KnownPeople()

    async def visit(server: OwnServer) -> None:
        for _ in range(2):
            await fetch(server, "/metrics", "stranger")

    asyncio.run(serve(visit, options=replace(OPTIONS, token_ttl_s=0.0), reviews=people))
    assert people.asked == [
        "who is stranger",
        "may stranger get /metrics",
        "who is stranger",
    ]


# --- TLS --------------------------------------------------------------------------------------


def write_certificate(folder: Path, name: str) -> tuple[str, str]:
    pem = make_certificate(["127.0.0.1", name])
    files = folder / f"{name}.crt", folder / f"{name}.key"
    for file in files:
        file.write_bytes(pem)
    return str(files[0]), str(files[1])


def test_a_given_certificate_is_served(tmp_path):
    cert, key = write_certificate(tmp_path, "first")
    options = replace(OPTIONS, tls_cert_file=cert, tls_private_key_file=key)
    trusting = ssl.create_default_context(cafile=cert)
    trusting.verify_flags &= ~ssl.VERIFY_X509_STRICT  # it signed itself and is no authority

    async def visit(server: OwnServer) -> int:
        return (await fetch(server, "/livez", None, trusting))[0]

    assert asyncio.run(serve(visit, options=options)) == 200


def test_a_renewed_certificate_is_read(tmp_path):
    clock = FakeClock()
    cert, key = write_certificate(tmp_path, "first")
    given = GivenCertificate(cert, key, clock=clock)
    before = given.context()
    for old, new in zip((cert, key), write_certificate(tmp_path, "second"), strict=True):
        Path(new).replace(old)
    assert given.context() is before
    clock.advance(61)
    assert given.context() is not before


def test_a_renewed_certificate_that_is_none_is_not_taken(tmp_path):
    clock = FakeClock()
    cert, key = write_certificate(tmp_path, "first")
    given = GivenCertificate(cert, key, clock=clock)
    before = given.context()
    Path(cert).write_text("nonsense")
    clock.advance(61)
    with structlog.testing.capture_logs() as lines:
        assert given.context() is before
    assert [line["event"] for line in lines] == ["certificate cannot be read again"]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        pytest.param({"tls_cert_file": "x"}, "together", id="half"),
        pytest.param(
            {"tls_cert_file": "/no/crt", "tls_private_key_file": "/no/key"},
            "cannot serve with /no/crt and /no/key: No such file or directory",
            id="no files",
        ),
        pytest.param({"bind_address": "nowhere.invalid"}, "cannot listen", id="no address"),
        pytest.param({"bind_address": "::1:80:", "secure_port": 70_000}, "bind", id="no port"),
    ],
)
def test_what_cannot_be_served_with_is_one_sentence(files, message):
    async def start() -> None:
        server = OwnServer(replace(OPTIONS, **files))
        try:
            await server.start()
        finally:
            await server.stop()

    with pytest.raises(ServerError, match=message):
        asyncio.run(start())


def talk(sent: bytes) -> bytes:
    """Return what the server says to somebody who speaks no TLS, until it closes."""

    async def visit(server: OwnServer) -> bytes:
        reader, writer = await asyncio.open_connection(*parse_bind_address(server.address))
        writer.write(sent)
        try:
            return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()

    return asyncio.run(serve(visit))


def test_plain_text_is_not_answered():
    assert b"HTTP" not in talk(b"GET /livez HTTP/1.1\r\nHost: here\r\n\r\n")


def test_a_handshake_that_never_ends_is_cut_off(monkeypatch):
    monkeypatch.setattr(listener_module, "_HANDSHAKE_S", 0.05)
    assert talk(b"\x16\x03\x01") == b""


def test_handshakes_that_hang_keep_nobody_out(monkeypatch):
    monkeypatch.setattr(listener_module, "MAX_CONNECTIONS", 2)

    async def visit(server: OwnServer) -> tuple[int, bytes]:
        address = parse_bind_address(server.address)
        held = [await asyncio.open_connection(*address) for _ in range(2)]
        status, _ = await fetch(server, "/livez", None)
        try:
            rest = await held[0][0].read()
        except ConnectionError:
            rest = b""
        for _, writer in held:
            writer.close()
        return status, rest

    assert asyncio.run(serve(visit)) == (200, b"")
