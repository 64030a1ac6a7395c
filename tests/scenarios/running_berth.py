"""berth in a thread of the test's own process, so that a test can look inside."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from cache.comparer import Mismatch, compare
from cache.objects import Node, Pod
from cache.pod_info import is_terminal
from cache.resources import pod_amounts, resource_amounts
from scheduler.app import App
from scheduler.client.codec import Decoder
from scheduler.client.errors import ApiError
from scheduler.client.http1 import Headers, RawResponse
from scheduler.client.limiter import MAX_REQUESTS_IN_FLIGHT, InFlightLimiter
from scheduler.client.transport import Transport
from scheduler.config import default_config, with_election
from scheduler.options import Options
from scheduler.serving.options import ServingOptions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from scheduler.client.credentials import Credentials
    from scheduler.config import SchedulerConfig
    from scheduler.informers import Informer
    from scheduler.kinds import WatchedKind
    from tests.controlplane.blocking_api import BlockingApi


class BindFailure(NamedTuple):
    """How a binding fails: what its client sees, and whether it was sent."""

    error: ApiError
    is_sent: bool = False


class MeddlingTransport(Transport):
    """Stands between berth and the API server and spoils what a test asks it to spoil."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.swallowed: set[str] = set()
        """Names of pods whose next binding is answered with 201 and never sent."""
        self.bind_failures: dict[str, list[BindFailure]] = {}
        """By name of the pod: how its next bindings fail, in this order."""
        self.binding = asyncio.Event()
        """While clear, no binding is sent."""
        self.binding.set()
        self.flowing = asyncio.Event()
        """While clear, what the pod watch brings is held back."""
        self.flowing.set()
        self.holds_after_bind = False
        """Whether the pod watch is held back from the moment of the next binding."""
        self.cuts = 0
        """How often the pod watch is still to be cut, each time after something came through."""
        self.forgeries: dict[bytes, bytes] = {}
        """What is replaced in everything that any watch brings."""
        self.forged = 0
        """How many chunks have been changed by that."""

    async def request(self, method: str, path: str, **kwargs: Any) -> RawResponse:
        if method == "POST" and path.endswith("/binding"):
            name = path.split("/")[-2]
            if name in self.swallowed:
                self.swallowed.discard(name)
                return RawResponse(201, Headers(b""), b"{}", reusable=True)
            if self.holds_after_bind:
                self.holds_after_bind = False
                self.flowing.clear()
            await self.binding.wait()
            if failures := self.bind_failures.get(name):
                failure = failures.pop(0)
                if failure.is_sent:
                    await super().request(method, path, **kwargs)
                raise failure.error
        return await super().request(method, path, **kwargs)

    @contextlib.asynccontextmanager
    async def stream(self, path: str, **kwargs: Any) -> AsyncIterator[Any]:
        async with super().stream(path, **kwargs) as stream:
            yield _SpoiledStream(stream, self, of_pods=path == "/api/v1/pods")


class _SpoiledStream:
    def __init__(self, stream: Any, meddler: MeddlingTransport, *, of_pods: bool) -> None:
        self._stream = stream
        self._of_pods = of_pods
        self._meddler = meddler
        self.status = stream.status
        self.headers = stream.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream.chunks():
            if self._of_pods:
                await self._meddler.flowing.wait()
            for genuine, forged in self._meddler.forgeries.items():
                self._meddler.forged += genuine in chunk
                chunk = chunk.replace(genuine, forged)
            yield chunk
            if self._of_pods and self._meddler.cuts:
                self._meddler.cuts -= 1
                raise ApiError(None, "Disconnected", "the watch was cut")


class _MeddledApp(App):
    def make_transport(self, credentials: Credentials) -> Transport:
        self.transport = MeddlingTransport(
            credentials,
            user_agent="berth/test",
            limiter=InFlightLimiter(MAX_REQUESTS_IN_FLIGHT),
            write_fence=self.write_fence,
        )
        return self.transport


def without_election() -> SchedulerConfig:
    return with_election(default_config("berth"), leader_elect=False)


class RunningBerth:
    """A berth that schedules from ``with`` to its end.

    Parameters
    ----------
    kubeconfig
        berth's own service account.
    changes
        Fields of the app's Options.
    config
        Without one it schedules with the default profile and elects nobody: it is alone.
    """

    def __init__(
        self, kubeconfig: Path, *, config: SchedulerConfig | None = None, **changes: Any
    ) -> None:
        serving = ServingOptions(secure_port=None, insecure_bind_address="127.0.0.1:0")
        settings = {"serving": serving, "seed": 1, **changes}
        options = Options(kubeconfig=str(kubeconfig), **settings)
        self.app = _MeddledApp(config or without_election(), options)
        self.exit_status: int | None = None
        self._failure: BaseException | None = None
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="berth")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> int | None:
        """Do what SIGTERM does, wait, and return the exit status."""
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)
        assert not self._thread.is_alive(), "berth did not stop"
        if self._failure is not None:
            raise self._failure
        return self.exit_status

    def on_loop(self, call: Any) -> None:
        """Call something on berth's I/O loop."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(call)

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended yet."""
        return self._thread.is_alive()

    @property
    def is_ready(self) -> bool:
        """Whether the first lists are complete; raises when berth has died instead."""
        if self._failure is not None:
            raise self._failure
        return self.app.ready

    @property
    def is_at_rest(self) -> bool:
        """I5: nothing is assumed, in flight, waiting, about to be tried or being preempted."""
        counts = self.app.known.pods.queue.counts()
        return (
            self.app.known.pods.cache.counts().assumed_pods == 0
            and counts.in_flight == 0
            and counts.active == 0
            and self.app.acting.bindings.in_flight == 0
            and not self.app.known.pods.waiting.list()
            and not self.app.acting.preemptions._running
        )

    def watch(self, kind: WatchedKind[Any]) -> Informer[Any]:
        """Return the informer of a kind."""
        (informer,) = (each for each in self.app.watches.all if each.kind is kind)
        return informer

    def expired(self, outcome: str) -> float:
        """How many overdue pods were settled so."""
        line = f'berth_assumed_pods_expired_total{{outcome="{outcome}"}} '
        body, _ = self.app.metrics.render()
        found = [each for each in body.decode().splitlines() if each.startswith(line)]
        return float(found[0].removeprefix(line)) if found else 0.0

    def mismatches(self, api: BlockingApi) -> list[Mismatch]:
        """Hold the cache against what the API server says now."""
        nodes = [_node(each) for each in api.list_all("/api/v1/nodes")]
        pods = [_pod(each) for each in api.pods()]
        return compare(self.app.known.pods.cache.dump(), nodes, pods)

    def _run(self) -> None:
        async def scene() -> int:
            self._loop = asyncio.get_running_loop()
            self._stop = asyncio.Event()
            return await self.app.run(self._stop)

        try:
            self.exit_status = asyncio.run(scene())
        except BaseException as error:  # noqa: BLE001 - handed to the test's thread
            self._failure = error


_decode_node = Decoder(Node).decode
_decode_pod = Decoder(Pod).decode


def _node(manifest: dict[str, Any]) -> Node:
    return _decode_node(msgspec.json.encode(manifest))


def _pod(manifest: dict[str, Any]) -> Pod:
    return _decode_pod(msgspec.json.encode(manifest))


def overcommitted(api: BlockingApi) -> list[str]:
    """Recompute from the API alone which nodes hold more than they have."""
    used: dict[str, dict[str, int]] = {}
    for manifest in api.pods():
        pod = _pod(manifest)
        if pod.spec.node_name and not is_terminal(pod):
            totals = used.setdefault(pod.spec.node_name, {})
            totals["pods"] = totals.get("pods", 0) + 1
            for name, amount in pod_amounts(pod)[0].items():
                totals[name] = totals.get(name, 0) + amount
    found = []
    for manifest in api.list_all("/api/v1/nodes"):
        node = _node(manifest)
        has = resource_amounts(node.status.allocatable, "status.allocatable")
        for name, amount in used.get(node.metadata.name, {}).items():
            if amount > has.get(name, 0):
                found.append(f"{node.metadata.name}: {name} {amount} of {has.get(name, 0)}")
    return found
