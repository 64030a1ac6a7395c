"""Which servers a user's proof of identity is sent to: real TLS over loopback."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from scheduler.client.credentials import Credentials
from scheduler.client.errors import ClientConfigError
from scheduler.client.tls import TlsFiles
from scheduler.insight.port_forward import CertificateError, SecureTunnel
from scheduler.serving.certificate import GivenCertificate, SelfMadeCertificate
from tests.fakes.clock import FakeClock
from tests.scheduler.client.authority import Authority

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

NAME = "berth.berth-system.svc"


class Wire:
    """A tunnel that is a plain connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def receive(self) -> bytes:
        return await self._reader.read(1 << 16)


class Certificates:
    """What servers may have, and what users may expect."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder, "authority")
        self.other_authority = Authority(folder, "other")
        self.own, self.forged = SelfMadeCertificate(), SelfMadeCertificate()
        files = self.authority.sign("leader", host=NAME)
        self.given = GivenCertificate(*map(str, files))
        clients = Authority(folder, "clients")
        client_cert, client_key = clients.sign("client")
        self.user = Credentials(
            "https://127.0.0.1",
            tls=TlsFiles("test", cert_file=str(client_cert), key_file=str(client_key)),
        )
        self.client_ca = clients.ca_file.read_text()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certificates"))


class Seen:
    """What a server has received."""

    def __init__(self) -> None:
        self.data = b""
        self.client: Any = None


def ask(context: ssl.SSLContext, served: Any, client_ca: str) -> Seen:
    """Send a secret to a server, if it proves to be the right one; return what it received."""
    served.ask_clients(client_ca)
    seen, ended = Seen(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.client = writer.get_extra_info("peercert")
        seen.data = await reader.read()
        writer.close()
        ended.set()

    async def play() -> None:
        async with asyncio.timeout(30):
            server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=served.context())
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            try:
                secure = SecureTunnel(Wire(reader, writer), context, NAME)  # type: ignore[arg-type]
                await secure.handshake()
                await secure.send(b"secret")
                writer.write_eof()
                await ended.wait()
            finally:
                writer.close()
                server.close()
                await server.wait_closed()

    asyncio.run(play())
    return seen


@pytest.mark.parametrize(
    ("served", "published"),
    [
        pytest.param("own", "own", id="made by itself"),
        pytest.param("given", "given", id="given, signed by an unknown authority"),
    ],
)
def test_the_server_with_the_published_certificate_is_asked(certificates, served, published):
    context = certificates.user.context_for(certificate=getattr(certificates, published).pem)
    seen = ask(context, getattr(certificates, served), certificates.client_ca)
    assert seen.data == b"secret"
    assert seen.client


@pytest.mark.parametrize(
    ("served", "published"),
    [
        pytest.param("forged", "own", id="another that was made by itself"),
        pytest.param("own", "given", id="made by itself in place of a given one"),
        pytest.param("given", "own", id="given in place of its own"),
    ],
)
def test_another_server_receives_nothing(certificates, served, published):
    context = certificates.user.context_for(certificate=getattr(certificates, published).pem)
    with pytest.raises(CertificateError):
        ask(context, getattr(certificates, served), certificates.client_ca)


def test_the_name_and_the_authority_decide_where_an_authority_is_trusted(certificates, tmp_path):
    trusted = certificates.user.context_for(ca_file=str(certificates.authority.ca_file))
    assert ask(trusted, certificates.given, certificates.client_ca).data == b"secret"


@pytest.mark.parametrize(
    ("authority", "host"),
    [
        pytest.param("authority", "other.berth-system.svc", id="another name"),
        pytest.param("other_authority", NAME, id="another authority"),
    ],
)
def test_a_server_that_the_authority_has_not_signed_as_the_leader(certificates, authority, host):
    given = GivenCertificate(
        *map(str, getattr(certificates, authority).sign("impostor", host=host))
    )
    context = certificates.user.context_for(ca_file=str(certificates.authority.ca_file))
    with pytest.raises(CertificateError):
        ask(context, given, certificates.client_ca)


@pytest.mark.parametrize(
    "certificate",
    ["nonsense", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"],
)
def test_a_published_certificate_that_is_none_is_one_sentence(certificates, certificate):
    with pytest.raises(ClientConfigError, match="the leader: the certificate authority"):
        certificates.user.context_for(certificate=certificate)


def test_nothing_to_verify_by_is_a_mistake(certificates):
    with pytest.raises(ValueError, match="verified"):
        certificates.user.context_for()


def test_a_renewed_certificate_is_published(tmp_path):
    clock, authority = FakeClock(), Authority(tmp_path)
    files = authority.sign("leader")
    given = GivenCertificate(*map(str, files), clock=clock)
    assert given.pem == files[0].read_text()
    for old, new in zip(files, authority.sign("renewed"), strict=True):
        new.replace(old)
    clock.advance(61)
    given.context()
    assert given.pem == files[0].read_text()


def test_of_a_chain_only_the_servers_own_certificate_is_published(tmp_path):
    authority = Authority(tmp_path)
    cert, key = authority.sign("leader")
    own = cert.read_text()
    chain = tmp_path / "chain.pem"
    chain.write_text("# a comment\n" + own + authority.ca_file.read_text() + key.read_text())
    assert GivenCertificate(str(chain), str(key)).pem == own
