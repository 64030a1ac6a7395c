"""Who may send, and when: credentials, the limiter, the fence; and who is told of it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest
from aiohttp import web

from scheduler.client.errors import ApiError
from scheduler.client.limiter import InFlightLimiter
from tests.fakes.clock import FakeClock
from tests.scheduler.client.loopback import (
    Loopback,
    json_answer,
    ok,
    status_answer,
    transport_to,
    until,
)

if TYPE_CHECKING:
    from tests.scheduler.client.conftest import Run


class Rotating:
    """Credentials whose token the server has to refuse before a new one is fetched."""

    ssl_context = tls_server_name = proxy = None

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.refreshed = 0

    async def auth_header(self) -> str:
        return f"Bearer {self.refreshed}"

    async def refresh(self) -> str:
        self.refreshed += 1
        return f"Bearer {self.refreshed}"


@pytest.mark.parametrize(
    ("accepted", "tokens"),
    [
        pytest.param("Bearer 1", ["Bearer 0", "Bearer 1"], id="new-token-accepted"),
        pytest.param("Bearer 7", ["Bearer 0", "Bearer 1"], id="refused-again"),
    ],
)
def test_a_401_is_answered_once_with_fresh_credentials(
    run: Run, accepted: str, tokens: list[str]
) -> None:
    async def main() -> list[str]:
        async def handler(request: web.Request) -> web.Response:
            if request.headers["Authorization"] != accepted:
                return status_answer(401, "Unauthorized", "Unauthorized")
            return json_answer({})

        async with Loopback(handler) as server:
            credentials = Rotating(server.url)
            async with transport_to(server.url, credentials=credentials) as transport:
                with contextlib.suppress(ApiError):
                    await transport.request("POST", "/x", body=b"{}")
            return [received.headers["Authorization"] for received in server.received]

    assert run(main()) == tokens


def test_a_stream_too_is_opened_with_fresh_credentials_after_a_401(run: Run) -> None:
    async def main() -> int:
        async def handler(request: web.Request) -> web.Response:
            if request.headers["Authorization"] != "Bearer 1":
                return status_answer(401, "Unauthorized", "Unauthorized")
            return json_answer({})

        async with Loopback(handler) as server:
            credentials = Rotating(server.url)
            async with (
                transport_to(server.url, credentials=credentials) as transport,
                transport.stream("/x") as stream,
            ):
                return stream.status

    assert run(main()) == 200


BINDING = "/api/v1/namespaces/a/pods/b/binding"


def too_busy() -> web.Response:
    """Answer as the API server's own filters do, before they know what a request wants."""
    text = "Too many requests, please try again later."
    headers = {"Retry-After": "30", "X-Kubernetes-PF-FlowSchema-UID": "f"}
    return web.Response(status=429, text=text, headers=headers)


def denied(status: int = 429) -> web.Response:
    """Answer as it does when an admission webhook denies."""
    message = 'admission webhook "quota.example.com" denied the request: later'
    headers = {"Retry-After": "30", "X-Kubernetes-PF-FlowSchema-UID": "f"}
    return status_answer(status, "TooManyRequests", message, **headers)


@pytest.mark.parametrize(
    ("method", "path", "answer", "held"),
    [
        pytest.param("POST", BINDING, too_busy, "all", id="the-server-is-busy"),
        pytest.param("GET", "/api/v1/pods", too_busy, "all", id="too-busy-for-a-read"),
        pytest.param("GET", "/api/v1/pods", denied, "all", id="no-webhook-is-asked-for-a-read"),
        pytest.param("POST", BINDING, denied, "its like", id="a-webhook-denies"),
        pytest.param("POST", BINDING, lambda: denied(503), "its like", id="with-another-code"),
        pytest.param(
            "POST", "/api/v1/namespaces/a/pods/b/eviction", denied, "none", id="a-disruption-budget"
        ),
    ],
)
def test_retry_after_holds_what_it_is_about(run: Run, method, path, answer, held) -> None:
    now = [100.0]
    others = (
        ("POST", BINDING.replace("/a/", "/other/")),
        ("GET", "/api/v1/namespaces/a/pods/b"),
        ("PATCH", "/api/v1/namespaces/a/pods/b/status"),
        ("POST", "/apis/events.k8s.io/v1/namespaces/a/events"),
    )

    async def main() -> tuple[bool, bool, list[str], bool]:
        refuses = [True]

        async def handler(request: web.Request) -> web.Response:
            return answer() if refuses[0] else json_answer({})

        limiter = InFlightLimiter(8, clock=lambda: now[0])
        async with (
            Loopback(handler) as server,
            transport_to(server.url, limiter=limiter, clock=lambda: now[0]) as transport,
        ):
            with pytest.raises(ApiError):
                await transport.request(method, path)
            refuses[0] = False
            is_open = limiter.try_acquire()
            if not is_open:
                return False, False, [], False
            limiter.release()
            for other_method, other_path in others:
                await transport.request(other_method, other_path)
            sent = len(server.received)
            again: list[str] = []
            try:
                await transport.request(method, path.replace("/b/", "/c/"))
            except ApiError as error:
                again.append(f"{error.status} {error.retry_after_s:g}")
            was_sent = len(server.received) > sent
            now[0] += 30.0
            await transport.request(method, path)
            return True, was_sent, again, True

    is_open, was_sent, refused, came_back = run(main())
    if held == "all":
        assert not is_open
    elif held == "its like":
        assert (is_open, was_sent, refused, came_back) == (True, False, ["429 30"], True)
    else:
        assert (is_open, was_sent, refused, came_back) == (True, True, [], True)


def test_a_hold_reaches_requests_that_wait_in_line_already(run: Run) -> None:
    async def main() -> tuple[list[int | None], int, bool]:
        all_wait = asyncio.Event()

        async def handler(request: web.Request) -> web.Response:
            await all_wait.wait()
            return denied()

        limiter = InFlightLimiter(1)
        async with (
            Loopback(handler) as server,
            transport_to(server.url, limiter=limiter) as transport,
        ):
            tasks = [asyncio.create_task(transport.request("POST", BINDING)) for _ in range(3)]
            await until(lambda: limiter.waiting == 2)
            all_wait.set()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
            statuses = [end.status for end in ends if isinstance(end, ApiError)]
            return statuses, len(server.received), limiter.try_acquire()

    assert run(main()) == ([429, 429, 429], 1, True)


def test_a_hold_reaches_requests_that_wait_for_a_connection_already(run: Run) -> None:
    async def main() -> tuple[list[int | None], int, int]:
        all_wait = asyncio.Event()

        async def handler(request: web.Request) -> web.Response:
            await all_wait.wait()
            return denied()

        async with (
            Loopback(handler) as server,
            transport_to(
                server.url,
                limiter=InFlightLimiter(8),
                max_connections=1,
                write_fence=lambda timeout_s: timeout_s,
            ) as transport,
        ):
            tasks = [asyncio.create_task(transport.request("POST", BINDING)) for _ in range(3)]
            await until(lambda: transport.writes_in_flight == 3)
            all_wait.set()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
            statuses = [end.status for end in ends if isinstance(end, ApiError)]
            return statuses, len(server.received), transport.writes_in_flight

    assert run(main()) == ([429, 429, 429], 1, 0)


@pytest.mark.parametrize("outcome", ["answered", "refused", "dropped"])
def test_every_request_gives_its_permit_back(run: Run, outcome: str) -> None:
    async def main() -> None:
        async def handler(request: web.Request) -> web.Response:
            assert request.transport is not None
            if outcome == "dropped":
                request.transport.abort()
            return json_answer({}, 200 if outcome == "answered" else 500)

        limiter = InFlightLimiter(1)
        async with (
            Loopback(handler) as server,
            transport_to(server.url, limiter=limiter) as transport,
        ):
            for _ in range(3):
                with contextlib.suppress(ApiError):
                    await transport.request("POST", "/x")
        assert limiter.try_acquire()

    run(main())


def test_a_stream_is_not_limited(run: Run) -> None:
    async def main() -> int:
        limiter = InFlightLimiter(1)
        assert limiter.try_acquire()
        async with (
            Loopback(ok) as server,
            transport_to(server.url, limiter=limiter) as transport,
            transport.stream("/x") as stream,
        ):
            return stream.status

    assert run(main()) == 200


def test_the_fence_keeps_a_write_back_and_lets_reads_through(run: Run) -> None:
    async def main() -> tuple[list[str], list[float], ApiError]:
        asked: list[float] = []

        def fence(timeout_s: float) -> float:
            asked.append(timeout_s)
            return 0.0

        async with (
            Loopback(ok) as server,
            transport_to(server.url, write_fence=fence) as transport,
        ):
            await transport.request("GET", "/x")
            with pytest.raises(ApiError) as caught:
                await transport.request("POST", "/x", timeout_s=7.0)
            return [received.method for received in server.received], asked, caught.value

    methods, asked, error = run(main())
    assert (methods, asked) == (["GET"], [7.0])
    assert (error.reason, error.ambiguous) == ("Fenced", False)


def test_the_fence_is_asked_after_the_wait_for_the_limiter(run: Run) -> None:
    async def main() -> bool:
        open_fence = True
        limiter = InFlightLimiter(1)
        assert limiter.try_acquire()
        async with (
            Loopback(ok) as server,
            transport_to(
                server.url, limiter=limiter, write_fence=lambda timeout_s: timeout_s * open_fence
            ) as transport,
        ):
            pending = asyncio.ensure_future(transport.request("POST", "/x"))
            await until(lambda: limiter.waiting)
            open_fence = False
            limiter.release()
            with pytest.raises(ApiError, match="Fenced"):
                await pending
            return bool(server.received)

    assert run(main()) is False


def test_a_write_has_no_more_time_than_the_fence_grants(run: Run) -> None:
    async def main() -> tuple[ApiError, ApiError]:
        async def handler(request: web.Request) -> web.Response:
            await server.hang()
            return json_answer({})

        async with (
            Loopback(handler) as server,
            transport_to(server.url, write_fence=lambda _: 0.05) as transport,
        ):
            with pytest.raises(ApiError) as written:
                await transport.request("POST", "/x", timeout_s=3600.0)
            with pytest.raises(ApiError) as read:
                await transport.request("GET", "/x", timeout_s=0.2)
            return written.value, read.value

    written, read = run(main())
    assert (written.reason, written.ambiguous) == ("Timeout", True)
    assert "0.05 s" in written.message
    assert "0.2 s" in read.message


@pytest.mark.parametrize(
    "fence", [pytest.param(None, id="no fence"), pytest.param(lambda left_s: left_s, id="a fence")]
)
def test_whether_a_write_is_wanted_is_asked_after_the_wait_for_a_connection(
    run: Run, fence
) -> None:
    async def main() -> tuple[list[str], ApiError, int]:
        wanted, arrived, go_on = [True], asyncio.Event(), asyncio.Event()

        async def handler(request: web.Request) -> web.Response:
            arrived.set()
            await go_on.wait()
            return json_answer({})

        async with (
            Loopback(handler) as server,
            transport_to(server.url, max_connections=1, write_fence=fence) as transport,
        ):
            first = asyncio.ensure_future(transport.request("POST", "/first"))
            await arrived.wait()
            second = asyncio.ensure_future(
                transport.request("POST", "/second", may_send=lambda: wanted[-1])
            )
            await asyncio.sleep(0)
            wanted.append(False)
            go_on.set()
            await first
            with pytest.raises(ApiError) as caught:
                await second
            paths = [received.path for received in server.received]
            return paths, caught.value, transport.writes_in_flight

    paths, error, in_flight = run(main())
    assert (paths, error.reason, error.ambiguous) == (["/first"], "Withheld", False)
    assert in_flight == 0


def test_the_fence_is_asked_again_after_the_wait_for_a_connection(run: Run) -> None:
    async def main() -> tuple[list[str], ApiError, int]:
        is_open = True
        arrived = asyncio.Event()
        go_on = asyncio.Event()

        async def handler(request: web.Request) -> web.Response:
            arrived.set()
            await go_on.wait()
            return json_answer({})

        async with (
            Loopback(handler) as server,
            transport_to(
                server.url,
                max_connections=1,
                write_fence=lambda timeout_s: timeout_s if is_open else 0.0,
            ) as transport,
        ):
            first = asyncio.ensure_future(transport.request("POST", "/first"))
            await arrived.wait()
            second = asyncio.ensure_future(transport.request("POST", "/second"))
            await until(lambda: transport.writes_in_flight == 2)
            is_open = False
            go_on.set()
            await first
            with pytest.raises(ApiError) as caught:
                await second
            paths = [received.path for received in server.received]
            return paths, caught.value, transport.writes_in_flight

    paths, error, in_flight = run(main())
    assert paths == ["/first"]
    assert (error.reason, error.ambiguous) == ("Fenced", False)
    assert in_flight == 0


def test_a_write_whose_sender_was_cancelled_counts_until_its_time_is_over(run: Run) -> None:
    async def main() -> tuple[int, int]:
        async def handler(request: web.Request) -> web.Response:
            await server.hang()
            return json_answer({})

        clock = FakeClock()
        async with (
            Loopback(handler) as server,
            transport_to(server.url, write_fence=lambda _: 7.0, clock=clock) as transport,
        ):
            pending = asyncio.ensure_future(transport.request("POST", "/x"))
            await until(lambda: server.received)
            pending.cancel()
            await asyncio.gather(pending, return_exceptions=True)
            clock.advance(6.9)
            before = transport.writes_in_flight
            clock.advance(0.2)
            return before, transport.writes_in_flight

    assert run(main()) == (1, 0)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", id="may we"),
        pytest.param("/apis/authentication.k8s.io/v1/tokenreviews", id="who is it"),
    ],
)
def test_a_standby_may_ask_questions(run: Run, path: str) -> None:
    async def main() -> int:
        async with (
            Loopback(ok) as server,
            transport_to(server.url, write_fence=lambda _: 0.0) as transport,
        ):
            return (await transport.request("POST", path)).status

    assert run(main()) == 200


class Counted:
    """Takes in requests by method and status."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, int | None]] = []

    def requested(
        self,
        host: str,
        method: str,
        status: int | None,
        duration_s: float,
        sent: int,
        received: int | None,
    ) -> None:
        assert duration_s >= 0
        self.requests.append((method, status))

    def waited(self, host: str, method: str, duration_s: float) -> None:
        pass


def test_each_request_is_measured_with_its_status(run: Run) -> None:
    async def main() -> list[tuple[str, int | None]]:
        async def handler(request: web.Request) -> web.Response:
            if request.path.endswith("/c"):
                assert request.transport is not None
                request.transport.abort()
            return json_answer({}, 404 if request.path.endswith("/b") else 200)

        counted = Counted()
        async with Loopback(handler) as server, transport_to(server.url) as transport:
            transport.measure = counted
            for name in "abc":
                with contextlib.suppress(ApiError):
                    await transport.request("PATCH", f"/api/v1/namespaces/x/pods/{name}")
            async with transport.stream("/api/v1/pods"):
                pass
        return counted.requests

    assert run(main()) == [("PATCH", 200), ("PATCH", 404), ("PATCH", None), ("GET", 200)]


# --- the line for a connection ----------------------------------------------------------------


def test_a_request_that_gets_no_connection_in_time_was_not_sent(run: Run) -> None:
    async def main() -> ApiError:
        async def handler(request: web.Request) -> web.Response:
            await server.hang()
            return json_answer({})

        server = Loopback(handler)
        async with server, transport_to(server.url, max_connections=1) as transport:
            first = asyncio.ensure_future(transport.request("POST", "/x"))
            await until(lambda: server.received)
            with pytest.raises(ApiError) as caught:
                await transport.request("POST", "/x", timeout_s=0.05)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
        return caught.value

    error = run(main())
    assert (error.reason, error.ambiguous) == ("Timeout", False)


def test_whoever_leaves_the_line_takes_no_connection_with_him(run: Run) -> None:
    async def main() -> int:
        answered = asyncio.Event()

        async def handler(request: web.Request) -> web.Response:
            await answered.wait()
            return json_answer({})

        async with (
            Loopback(handler) as server,
            transport_to(server.url, max_connections=1) as transport,
        ):
            first, second, third = (
                asyncio.ensure_future(transport.request("GET", "/x")) for _ in range(3)
            )
            await until(lambda: server.received)
            second.cancel()
            answered.set()
            await asyncio.gather(first, second, return_exceptions=True)
            return (await third).status

    assert run(main()) == 200
