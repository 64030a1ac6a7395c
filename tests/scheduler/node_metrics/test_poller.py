"""From questions over HTTP to values on the board, and what can go wrong on the way."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time

import pytest

from plugins.framework.go_duration import GoDuration
from scheduler.client.errors import ClientConfigError
from scheduler.config import ExtenderTLS
from scheduler.node_metrics import (
    MetricQuery,
    MetricSource,
    NodeMetricsBoard,
    NodeMetricsConfig,
    NodeMetricsPoller,
    query_client,
)
from scheduler.node_metrics.configuration import Authorization
from tests.fakes.clock import FakeClock
from tests.scheduler.client.authority import Authority
from tests.scheduler.node_metrics.scripted_prometheus import (
    Reply,
    ScriptedPrometheus,
    of_nodes,
    poll_once,
    vector,
)


@contextlib.asynccontextmanager
async def prometheus(context=None, **script):
    server = ScriptedPrometheus(script)
    await server.start(context)
    try:
        yield server
    finally:
        await server.stop()


@contextlib.asynccontextmanager
async def polling(*sources, clock=time.monotonic):
    board = NodeMetricsBoard(clock)
    poller = NodeMetricsPoller(NodeMetricsConfig(sources), board, clock)
    try:
        yield board, poller
    finally:
        await poller.stop()


def values(board, name):
    reading = board.latest(name)
    return None if reading is None else dict(reading.by_node)


def once(source_of, context=None, **script):
    """Poll once; return the values of ``load``, the error told and what was asked."""

    async def run():
        async with prometheus(context, **script) as server, polling(source_of(server)) as made:
            board, poller = made
            await poll_once(poller)
            return values(board, "load"), poller.statistics["load"].error, server.asked

    return asyncio.run(run())


def load(server, **given):
    return server.source("load", **given)


def test_an_answer_comes_to_the_board():
    got, error, _ = once(load, load=lambda: of_nodes(a=0.25))
    assert (got, error) == ({"a": 0.25}, "")


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        pytest.param(
            Reply(b'{"status":"error","error":"parse error"}', 400),
            "code 400: parse error",
            id="a bad query",
        ),
        pytest.param(Reply(b"<html>", 502), "code 502", id="a proxy's page"),
        pytest.param(Reply(b"", 307, {"Location": "http://127.0.0.1:1/"}), "code 307", id="moved"),
        pytest.param(Reply(b"{}"), "not Prometheus' JSON", id="something else"),
    ],
)
def test_a_bad_answer_is_told_and_publishes_nothing(reply, why):
    got, error, _ = once(load, load=lambda: reply)
    assert got is None
    assert why in error


def test_nobody_there_is_told():
    with socket.create_server(("127.0.0.1", 0)) as bound:
        port = bound.getsockname()[1]
    source = MetricSource(f"http://127.0.0.1:{port}", (MetricQuery("load", "load"),))
    _, error, _ = once(lambda server: source)
    assert f"http://127.0.0.1:{port}/api/v1/query" in error


def test_no_answer_in_time_is_told():
    _, error, _ = once(
        lambda server: load(server, timeout=GoDuration(50_000_000)), load=lambda: Reply(holds=True)
    )
    assert "no answer within 0.05 s" in error


def test_an_answer_without_end_is_cut(monkeypatch):
    monkeypatch.setattr(query_client, "MAX_ANSWER_BYTES", 1 << 16)
    _, error, _ = once(load, load=lambda: Reply(b" " * (1 << 20)))
    assert "more than 65536 bytes" in error


def test_one_failing_query_takes_nothing_from_another():
    async def run():
        script = {"load": lambda: of_nodes(a=1), "broken": lambda: Reply(b"", 500)}
        async with (
            prometheus(**script) as server,
            polling(server.source("broken", "load")) as (board, poller),
        ):
            await poll_once(poller)
            return values(board, "load"), poller.statistics["broken"].failed

    assert asyncio.run(run()) == ({"a": 1.0}, 1)


def test_one_failing_source_takes_nothing_from_another():
    async def run():
        nowhere = MetricSource("http://127.0.0.1:1", (MetricQuery("gone", "x"),))
        async with (
            prometheus(load=lambda: of_nodes(a=1)) as server,
            polling(nowhere, server.source("load")) as (board, poller),
        ):
            await poll_once(poller)
            return values(board, "load"), values(board, "gone")

    assert asyncio.run(run()) == ({"a": 1.0}, None)


def test_the_last_values_count_until_they_are_too_old():
    replies = [of_nodes(a=1), Reply(b"", 500), Reply(b"", 500)]
    clock = FakeClock()

    async def run():
        async with prometheus(load=lambda: replies.pop(0)) as server:
            source = server.source("load", stale_after=GoDuration(60_000_000_000))
            async with polling(source, clock=clock) as (board, poller):
                seen = []
                for step_s in (0, 50, 20):
                    clock.advance(step_s)
                    await poll_once(poller)
                    seen.append(values(board, "load"))
                return seen

    assert asyncio.run(run()) == [{"a": 1.0}, {"a": 1.0}, None]


def test_a_started_poller_asks_again_and_again():
    answers = iter(range(1_000_000))
    enough = asyncio.Event()

    def answer():
        number = next(answers)
        if number == 3:
            enough.set()
        return of_nodes(a=number)

    async def run():
        async with prometheus(load=answer) as server:
            source = server.source("load", interval=GoDuration(1_000_000))
            async with polling(source) as (board, poller):
                poller.start()
                async with asyncio.timeout(30):
                    await enough.wait()
                return values(board, "load")["a"]

    # What is answered fourth is asked after the third answer has been published.
    assert asyncio.run(run()) >= 2.0


def test_a_complaint_is_logged_once_until_it_changes(capsys):
    doubled = vector(({"node": "a"}, "1"), ({"node": "a"}, "2"))
    replies = [doubled, doubled, of_nodes(a=1)]

    async def run():
        async with (
            prometheus(load=lambda: replies.pop(0)) as server,
            polling(server.source("load")) as (_, poller),
        ):
            for _ in range(3):
                await poll_once(poller)

    asyncio.run(run())
    told = capsys.readouterr().out
    assert (told.count("more than one series for a"), told.count("recovered")) == (1, 1)


# --- who we are, and who the server is --------------------------------------------------------


def test_a_token_is_read_again_before_each_question(tmp_path):
    token = tmp_path / "token"

    async def run():
        async with prometheus(load=lambda: of_nodes(a=1)) as server:
            source = server.source("load", authorization=Authorization(str(token)))
            async with polling(source) as (_, poller):
                for text in ("first\n", "second\n"):
                    token.write_text(text)
                    await poll_once(poller)
            return [header for _, header in server.asked]

    assert asyncio.run(run()) == ["Bearer first", "Bearer second"]


def test_a_token_that_is_missing_is_told(tmp_path):
    missing = str(tmp_path / "none")
    _, error, asked = once(
        lambda server: load(server, authorization=Authorization(missing)),
        load=lambda: of_nodes(a=1),
    )
    assert missing in error
    assert asked == []


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


def test_a_server_of_the_authority_is_trusted(authority):
    tls = ExtenderTLS(ca_file=str(authority.ca_file))
    got, error, _ = once(
        lambda server: load(server, tls_config=tls),
        authority.server_context(),
        load=lambda: of_nodes(a=1),
    )
    assert (got, error) == ({"a": 1.0}, "")


def test_we_prove_who_we_are(authority):
    cert, key = authority.sign("berth")
    tls = ExtenderTLS(ca_file=str(authority.ca_file), cert_file=str(cert), key_file=str(key))
    got, error, _ = once(
        lambda server: load(server, tls_config=tls),
        authority.server_context(clients=authority),
        load=lambda: of_nodes(a=1),
    )
    assert (got, error) == ({"a": 1.0}, "")


def test_a_stranger_gets_no_token(authority, tmp_path):
    token = tmp_path / "token"
    token.write_text("secret")
    other = Authority(tmp_path, "other")
    tls = ExtenderTLS(ca_file=str(authority.ca_file))
    got, _, asked = once(
        lambda server: load(server, tls_config=tls, authorization=Authorization(str(token))),
        other.server_context(),
        load=lambda: of_nodes(a=1),
    )
    assert (got, asked) == (None, [])


def test_a_configuration_that_cannot_work_is_refused_at_the_start():
    source = MetricSource(
        "https://127.0.0.1:1",
        (MetricQuery("load", "load"),),
        tls_config=ExtenderTLS(ca_file="/nowhere"),
    )
    with pytest.raises(ClientConfigError, match=r"sources\[0\]\.tlsConfig: .* /nowhere"):
        NodeMetricsPoller(NodeMetricsConfig((source,)), NodeMetricsBoard())
