"""Credentials that are kept fresh while time goes by."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING

import pytest

from scheduler.client.auth_source import Grant, LibraryAuth, TokenFile
from scheduler.client.credentials import Credentials
from scheduler.client.errors import ClientConfigError
from scheduler.client.tls import CertificatePair, TlsFiles

if TYPE_CHECKING:
    from pathlib import Path

    from tests.scheduler.client.authority import Authority


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


class Scripted:
    """A source that hands out what it is given, one after the other, the last one for ever."""

    def __init__(self, *grants: Grant | ClientConfigError) -> None:
        self._grants = list(grants)
        self.asked = 0

    async def obtain(self) -> Grant:
        self.asked += 1
        await asyncio.sleep(0)
        grant = self._grants.pop(0) if len(self._grants) > 1 else self._grants[0]
        if isinstance(grant, ClientConfigError):
            raise grant
        return grant


def headers(credentials: Credentials, clock: Clock, *at_s: float) -> list[str | None]:
    async def main() -> list[str | None]:
        seen = []
        for moment_s in at_s:
            clock.now_s = 1000.0 + moment_s
            seen.append(await credentials.auth_header())
        return seen

    return asyncio.run(main())


def with_source(*grants: Grant | ClientConfigError) -> tuple[Credentials, Scripted, Clock]:
    clock = Clock()
    source = Scripted(*grants)
    return Credentials("http://x", source=source, clock=clock), source, clock


DOWN = ClientConfigError("the login server is down")


def test_what_is_fresh_is_not_asked_for_again() -> None:
    credentials, source, clock = with_source(Grant("a"))
    headers(credentials, clock, 0, 1, 10_000)
    assert source.asked == 1


def test_what_is_not_fresh_any_more_is_renewed() -> None:
    credentials, _, clock = with_source(Grant("a", fresh_for_s=60), Grant("b"))
    assert headers(credentials, clock, 0, 59, 60) == ["a", "a", "b"]


def test_what_cannot_be_renewed_stays_while_it_is_valid() -> None:
    credentials, _, clock = with_source(
        Grant("a", fresh_for_s=60, valid_for_s=100), DOWN, Grant("b")
    )
    assert headers(credentials, clock, 0, 61, 62, 70) == ["a", "a", "a", "b"]


def test_what_is_not_valid_any_more_is_not_used() -> None:
    credentials, _, clock = with_source(Grant("a", fresh_for_s=60, valid_for_s=100), DOWN)
    headers(credentials, clock, 0)
    with pytest.raises(ClientConfigError, match="down"):
        headers(credentials, clock, 101)


def test_a_renewal_that_fails_is_not_tried_again_at_once() -> None:
    credentials, source, clock = with_source(Grant("a", fresh_for_s=60), DOWN)
    headers(credentials, clock, 0, 61, 61, 62, 63)
    assert source.asked == 2


def test_many_who_need_it_ask_once() -> None:
    credentials, source, _ = with_source(Grant("a"))

    async def main() -> set[str | None]:
        return set(await asyncio.gather(*(credentials.auth_header() for _ in range(20))))

    assert (asyncio.run(main()), source.asked) == ({"a"}, 1)


def test_while_one_renews_the_others_go_on_with_the_old() -> None:
    credentials, source, clock = with_source(Grant("a", fresh_for_s=60), Grant("b"))

    async def main() -> list[str | None]:
        await credentials.auth_header()
        clock.now_s += 61
        return await asyncio.gather(*(credentials.auth_header() for _ in range(3)))

    assert asyncio.run(main()) == ["b", "a", "a"]
    assert source.asked == 2


def test_many_who_were_refused_together_refresh_once() -> None:
    credentials, source, clock = with_source(Grant("a"), Grant("b"))

    async def main() -> str | None:
        await credentials.auth_header()
        clock.now_s += 10
        await asyncio.gather(*(credentials.refresh() for _ in range(20)))
        return await credentials.auth_header()

    assert (asyncio.run(main()), source.asked) == ("b", 2)


# --- token files ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "meanwhile",
    [
        pytest.param("", id="empty"),
        pytest.param("  \n", id="blank"),
        pytest.param(None, id="gone"),
    ],
)
def test_a_token_file_that_is_unusable_for_a_moment_keeps_the_old_token(
    tmp_path: Path, meanwhile: str | None
) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    clock = Clock()
    credentials = Credentials("http://x", source=TokenFile(file, "test"), clock=clock)
    assert headers(credentials, clock, 0) == ["Bearer one"]
    if meanwhile is None:
        file.unlink()
    else:
        file.write_text(meanwhile)
    assert headers(credentials, clock, 61) == ["Bearer one"]
    file.write_text("two\n")
    assert headers(credentials, clock, 70) == ["Bearer two"]


def test_a_token_that_would_inject_a_header_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_bytes(b"abc\r\nX-Evil: 1")
    with pytest.raises(ClientConfigError, match="characters that no token"):
        asyncio.run(TokenFile(file, "test").obtain())


# --- auth-providers ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "result", [pytest.param(None, id="nothing"), pytest.param(5, id="no-text")]
)
def test_an_auth_provider_that_gives_nothing_is_a_failure(result: object) -> None:
    async def renew() -> object:
        return result

    with pytest.raises(ClientConfigError, match="gave no token"):
        asyncio.run(LibraryAuth(renew, "test").obtain())


def test_whatever_an_auth_provider_raises_is_a_failure() -> None:
    async def renew() -> object:
        raise KeyError("id-token")

    with pytest.raises(ClientConfigError, match="id-token"):
        asyncio.run(LibraryAuth(renew, "test").obtain())


# --- certificates -----------------------------------------------------------------------------


def contexts_at(credentials: Credentials, clock: Clock, *at_s: float) -> list[int]:
    contexts = []
    for moment_s in at_s:
        headers(credentials, clock, moment_s)
        contexts.append(id(credentials.ssl_context))
    return contexts


def test_certificates_that_did_not_change_are_not_loaded_again(authority: Authority) -> None:
    clock = Clock()
    tls = TlsFiles("test", ca_file=str(authority.ca_file))
    credentials = Credentials("https://x", tls=tls, clock=clock)
    first, second = contexts_at(credentials, clock, 0, 61)
    assert first == second


def test_certificates_that_changed_are_loaded_again(authority: Authority) -> None:
    clock = Clock()
    cert_file, key_file = authority.sign("client")
    tls = TlsFiles("test", str(authority.ca_file), str(cert_file), str(key_file))
    credentials = Credentials("https://x", tls=tls, clock=clock)
    headers(credentials, clock, 0)
    before = credentials.ssl_context
    authority.sign("client")
    headers(credentials, clock, 61)
    assert credentials.ssl_context is not before


def test_certificates_that_are_broken_for_a_moment_leave_the_old_ones(authority: Authority) -> None:
    clock = Clock()
    tls = TlsFiles("test", ca_file=str(authority.ca_file))
    credentials = Credentials("https://x", tls=tls, clock=clock)
    headers(credentials, clock, 0)
    before = credentials.ssl_context
    good = authority.ca_file.read_bytes()
    authority.ca_file.write_bytes(good[:50])
    headers(credentials, clock, 61)
    assert credentials.ssl_context is before
    authority.ca_file.write_bytes(good)
    headers(credentials, clock, 122)
    assert credentials.ssl_context is not None


def test_a_new_certificate_from_the_source_is_presented(authority: Authority) -> None:
    def pair(name: str) -> CertificatePair:
        cert_file, key_file = authority.sign(name)
        return CertificatePair(cert_file.read_text(), key_file.read_text())

    clock = Clock()
    source = Scripted(
        Grant(None, pair("one"), fresh_for_s=60), Grant(None, pair("two"), fresh_for_s=math.inf)
    )
    tls = TlsFiles("test", ca_file=str(authority.ca_file))
    credentials = Credentials("https://x", source=source, tls=tls, clock=clock)
    headers(credentials, clock, 0)
    before = credentials.ssl_context
    headers(credentials, clock, 61)
    assert credentials.ssl_context is not before
