"""What can go wrong between here and an extender."""

from __future__ import annotations

import socket
import zlib

import pytest

from plugins.framework.go_duration import GoDuration
from plugins.framework.status import Code
from scheduler.client.errors import ClientConfigError
from scheduler.client.http_poster import MAX_REDIRECTS
from scheduler.config import Extender, ExtenderTLS
from scheduler.extenders import extender_client
from tests.scheduler.client.authority import Authority
from tests.scheduler.extenders.scripted_extender import Reply, says

BY_NAME = {"filter_verb": "filter", "node_cache_capable": True}
PASS_B = {"NodeNames": ["b"]}


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        pytest.param(Reply(status=500), "code 500", id="a wrong status"),
        pytest.param(Reply(b'{"NodeNames":["b"]}', status=201), "code 201", id="not quite 200"),
        pytest.param(Reply(b"<html>"), "with garbage", id="no JSON"),
        pytest.param(Reply(b'{"NodeNames":["b"'), "with garbage", id="half of it"),
        pytest.param(Reply(b'{"Error":"\xff"}'), "with garbage", id="no UTF-8"),
        pytest.param(Reply(b"[" * 100_000), "with garbage", id="nested without end"),
    ],
)
def test_a_bad_answer_fails_the_attempt(stage, reply, why):
    server = stage.serve(filter=lambda asked: reply)
    decision = stage.decide(Extender(server.url, **BY_NAME))
    assert decision.status.code is Code.ERROR
    assert why in decision.message()


def test_no_answer_fails_the_attempt(stage):
    server = stage.serve(filter=lambda asked: Reply(holds=True))
    config = Extender(server.url, http_timeout=GoDuration(50_000_000), **BY_NAME)
    assert "no answer within 0.05 s" in stage.decide(config).message()


def test_nobody_there_fails_the_attempt(stage):
    with socket.create_server(("127.0.0.1", 0)) as bound:
        port = bound.getsockname()[1]
    decision = stage.decide(Extender(f"http://127.0.0.1:{port}", **BY_NAME))
    assert "failed filter with extender" in decision.message()


@pytest.mark.parametrize("headers", [{}, {"Content-Encoding": "deflate"}], ids=["plain", "packed"])
def test_an_answer_without_end_is_cut(stage, headers, monkeypatch):
    monkeypatch.setattr(extender_client, "MAX_ANSWER_BYTES", 1 << 16)
    body = b" " * (1 << 20)
    body = zlib.compress(body) if headers else body
    server = stage.serve(filter=lambda asked: Reply(body, headers=headers))
    assert "has more than" in stage.decide(Extender(server.url, **BY_NAME)).message()


def test_slashes_at_the_end_of_the_prefix_do_not_count(stage):
    server = stage.serve(filter=says(PASS_B))
    assert stage.decide(Extender(f"{server.url}//", **BY_NAME)).node_name == "b"


@pytest.mark.parametrize("status", [307, 308])
def test_a_redirect_within_the_origin_is_followed_with_the_question(stage, status):
    script = {"filter": Reply(status=status, headers={"Location": "elsewhere"})}
    server = stage.serve(filter=lambda asked: script["filter"], elsewhere=says(PASS_B))
    assert stage.decide(Extender(server.url, **BY_NAME)).node_name == "b"
    (_, asked), (verb, again) = server.asked
    assert (verb, again) == ("elsewhere", asked)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_leads_to_another_origin(stage, status):
    stranger = stage.serve(filter=says(PASS_B))
    headers = {"Location": f"{stranger.url}/filter"}
    server = stage.serve(filter=lambda asked: Reply(status=status, headers=headers))
    decision = stage.decide(Extender(server.url, **BY_NAME))
    assert f"code {status}" in decision.message()
    assert stranger.asked == []


def test_redirects_without_end_are_given_up(stage):
    server = stage.serve(filter=lambda asked: Reply(status=307, headers={"Location": "filter"}))
    assert "code 307" in stage.decide(Extender(server.url, **BY_NAME)).message()
    assert len(server.asked) == 1 + MAX_REDIRECTS


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


def test_a_server_of_the_authority_is_trusted(stage, authority):
    server = stage.serve(authority.server_context(), filter=says(PASS_B))
    tls = ExtenderTLS(ca_file=str(authority.ca_file))
    config = Extender(server.url, enable_https=True, tls_config=tls, **BY_NAME)
    assert stage.decide(config).node_name == "b"


def test_data_goes_before_files(stage, authority):
    server = stage.serve(authority.server_context(), filter=says(PASS_B))
    tls = ExtenderTLS(ca_file="/nowhere", ca_data=authority.ca_file.read_bytes())
    config = Extender(server.url, enable_https=True, tls_config=tls, **BY_NAME)
    assert stage.decide(config).node_name == "b"


def test_a_server_may_have_another_name(stage, authority):
    context = authority.server_context(host="extender.example.com")
    server = stage.serve(context, filter=says(PASS_B))
    tls = ExtenderTLS(ca_file=str(authority.ca_file), server_name="extender.example.com")
    config = Extender(server.url, enable_https=True, tls_config=tls, **BY_NAME)
    assert stage.decide(config).node_name == "b"


@pytest.mark.parametrize("as_data", [False, True], ids=["files", "data"])
def test_we_prove_who_we_are(stage, authority, as_data):
    context = authority.server_context(clients=authority)
    server = stage.serve(context, filter=says(PASS_B))
    cert, key = authority.sign("berth")
    pair = (
        {"cert_data": cert.read_bytes(), "key_data": key.read_bytes()}
        if as_data
        else {"cert_file": str(cert), "key_file": str(key)}
    )
    tls = ExtenderTLS(ca_file=str(authority.ca_file), **pair)
    config = Extender(server.url, enable_https=True, tls_config=tls, **BY_NAME)
    assert stage.decide(config).node_name == "b"


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"enable_https": True}, id="enableHTTPS without a CA"),
        pytest.param({"tls_config": ExtenderTLS(insecure=True)}, id="insecure"),
    ],
)
def test_anybody_is_trusted_where_asked_for(stage, authority, how):
    server = stage.serve(authority.server_context(), filter=says(PASS_B))
    assert stage.decide(Extender(server.url, **how, **BY_NAME)).node_name == "b"


def test_a_stranger_is_not_trusted(stage, authority, tmp_path):
    other = Authority(tmp_path, "other")
    server = stage.serve(other.server_context(), filter=says(PASS_B))
    tls = ExtenderTLS(ca_file=str(authority.ca_file))
    config = Extender(server.url, enable_https=True, tls_config=tls, **BY_NAME)
    assert stage.decide(config).status.code is Code.ERROR


@pytest.mark.parametrize(
    ("tls", "why"),
    [
        pytest.param(
            ExtenderTLS(ca_file="/nowhere"),
            "extenders[0].tlsConfig: the certificate authority /nowhere cannot be used: No such",
            id="no file",
        ),
        pytest.param(
            ExtenderTLS(ca_data=b"garbage"),
            "extenders[0].tlsConfig: the certificate authority",
            id="no CA",
        ),
        pytest.param(
            ExtenderTLS(ca_data=b"\xff"),
            "extenders[0].tlsConfig: the certificate authority",
            id="no text",
        ),
        pytest.param(
            ExtenderTLS(cert_data=b"garbage", key_data=b"garbage"),
            "extenders[0].tlsConfig: the client certificate",
            id="no certificate",
        ),
    ],
)
def test_a_configuration_that_cannot_work_is_refused_at_the_start(stage, tls, why):
    with pytest.raises(ClientConfigError) as caught:
        stage.chain(Extender("https://127.0.0.1:1", tls_config=tls, **BY_NAME))
    assert why in str(caught.value)
