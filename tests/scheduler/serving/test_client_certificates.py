"""Users who prove themselves by certificates, over real connections."""

from __future__ import annotations

import asyncio
import json
import ssl
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from aiohttp import web

from scheduler.client.errors import ApiError
from scheduler.serving.access_reviews import User
from scheduler.serving.client_certificates import Authorities
from scheduler.serving.options import ServingOptions
from scheduler.serving.server import UserPage
from tests.scheduler.serving.client_authorities import DAY, Authority, client_context
from tests.scheduler.serving.served import OwnServer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

OPTIONS = ServingOptions(bind_address="127.0.0.1", secure_port=0)
CLIENTS, PROXIES, STRANGERS = Authority("clients"), Authority("proxies"), Authority("strangers")
FORGED = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}

PUBLISHED = {
    "client-ca-file": CLIENTS.pem,
    "requestheader-client-ca-file": PROXIES.pem,
    "requestheader-allowed-names": '["front-proxy"]',
    "requestheader-username-headers": '["X-Remote-User"]',
    "requestheader-uid-headers": '["X-Remote-Uid"]',
    "requestheader-group-headers": '["X-Remote-Group"]',
    "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
}


class Published:
    """An API server that publishes authorities, and knows one token."""

    def __init__(self, data: Mapping[str, str] | None = PUBLISHED) -> None:
        self._data = data

    async def authorities(self) -> Mapping[str, str]:
        if self._data is None:
            raise ApiError(403, "Forbidden", "may not")
        return self._data

    async def user_of(self, token: str) -> User | None:
        return User(username="by-token") if token == "good" else None

    async def is_allowed(self, user: User, verb: str, path: str) -> bool:
        return False


async def whoami(request: web.Request, visitor: Any) -> web.Response:
    user = visitor.user
    return web.json_response([user.username, list(user.groups), sorted(user.extra)])


def ask(
    certificate: str | None = None,
    headers: Mapping[str, str] | None = None,
    published: Mapping[str, str] | None = PUBLISHED,
) -> Any:
    """Return name, groups and extra keys of the user whom a request proves; None for nobody."""

    async def visit() -> Any:
        server = OwnServer(
            OPTIONS, reviews=Published(published), pages=[UserPage("GET", "/me", whoami)]
        )
        await server.start()
        try:
            async with (
                asyncio.timeout(30),
                aiohttp.ClientSession() as client,
                client.get(
                    f"{server.addresses[0]}/me", headers=headers, ssl=client_context(certificate)
                ) as answer,
            ):
                if answer.status == 401:
                    return None
                assert answer.status == 200
                return json.loads(await answer.text())
        finally:
            await server.stop()

    return asyncio.run(visit())


def test_a_client_certificate_names_the_user_and_its_groups(tmp_path: Path):
    user = ask(CLIENTS.sign(tmp_path, "jane", "team-a", "team-b"))
    groups = ["team-a", "team-b", "system:authenticated"]
    assert user == ["jane", groups, ["authentication.kubernetes.io/credential-id"]]


def test_the_front_proxy_names_the_user_in_headers(tmp_path: Path):
    headers = {"X-Remote-User": "jane", "X-Remote-Group": "team-a", "X-Remote-Extra-A%2Fb": "c"}
    user = ask(PROXIES.sign(tmp_path, "front-proxy"), headers)
    assert user == ["jane", ["team-a", "system:authenticated"], ["a/b"]]


@pytest.mark.parametrize(
    ("authority", "name", "token", "user"),
    [
        pytest.param(None, "", None, None, id="without any proof"),
        pytest.param(None, "", "good", "by-token", id="with a token: its user"),
        pytest.param(None, "", "bad", None, id="with a token of nobody"),
        pytest.param(CLIENTS, "jane", None, "jane", id="with a client certificate: its user"),
        pytest.param(CLIENTS, "front-proxy", None, "front-proxy", id="with the proxy's name only"),
        pytest.param(PROXIES, "other", None, None, id="by a proxy whose name is not allowed"),
        pytest.param(PROXIES, "other", "good", "by-token", id="the same with a token"),
    ],
)
def test_a_forged_header_proves_nothing(tmp_path: Path, authority, name, token, user):
    headers = dict(FORGED) if token is None else {**FORGED, "Authorization": f"Bearer {token}"}
    certificate = None if authority is None else authority.sign(tmp_path, name)
    answer = ask(certificate, headers)
    assert (answer and answer[0]) == user


@pytest.mark.parametrize(
    ("authority", "name"),
    [
        pytest.param(CLIENTS, "", id="a client without a name"),
        pytest.param(PROXIES, "front-proxy", id="a front proxy that names nobody"),
    ],
)
def test_a_certificate_that_proves_nobody(tmp_path: Path, authority, name):
    assert ask(authority.sign(tmp_path, name)) is None


@pytest.mark.parametrize(
    ("authority", "age"),
    [
        pytest.param(STRANGERS, 0 * DAY, id="of an authority that is not published"),
        pytest.param(CLIENTS, 3 * DAY, id="that has expired"),
        pytest.param(PROXIES, 3 * DAY, id="of the front proxy that has expired"),
    ],
)
def test_a_certificate_that_is_not_good_ends_the_connection(tmp_path: Path, authority, age):
    certificate = authority.sign(tmp_path, "front-proxy", "system:masters", age=age)
    with pytest.raises((aiohttp.ClientError, ssl.SSLError, ConnectionError)):
        ask(certificate, FORGED)


def test_any_name_of_the_front_proxy_where_the_cluster_allows_any(tmp_path: Path):
    published = {**PUBLISHED, "requestheader-allowed-names": "[]"}
    assert ask(PROXIES.sign(tmp_path, "any"), FORGED, published)[0] == "admin"


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({"requestheader-allowed-names": "nonsense"}, id="names"),
        pytest.param({"requestheader-username-headers": "nonsense"}, id="headers"),
        pytest.param({"requestheader-username-headers": ""}, id="no headers"),
        pytest.param({"requestheader-client-ca-file": "nonsense"}, id="authority"),
    ],
)
def test_a_front_proxy_that_cannot_be_read_is_believed_nothing(tmp_path: Path, broken):
    authorities = Authorities.of({**PUBLISHED, **broken})
    if PROXIES.pem.strip() in authorities.pem():
        certificate = PROXIES.sign(tmp_path, "front-proxy")
    else:
        certificate = None  # the handshake would refuse it
    assert ask(certificate, FORGED, {**PUBLISHED, **broken}) is None


def test_tokens_are_good_where_authorities_cannot_be_read():
    assert ask(None, {"Authorization": "Bearer good"}, None)[0] == "by-token"
