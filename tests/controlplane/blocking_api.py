"""The plain client for synchronous tests."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING, Any, Self, TypeVar

from tests.controlplane.api import ApiClient, BindProgress

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping
    from concurrent.futures import Future
    from pathlib import Path
    from types import TracebackType

T = TypeVar("T")


class BlockingApi:
    """`ApiClient` for synchronous tests: the same calls through an event loop of its own.

    with BlockingApi(control_plane.admin_kubeconfig) as api:
        api.create_many(nodes)
        api.wait_bound(100)

    The loop runs in a thread all the time, so that it notices at once when a server is killed
    and no later call is sent down a dead connection.

    Concurrency
    -----------
    Thread-safe between entering and leaving.
    """

    def __init__(self, kubeconfig: Path) -> None:
        self.client = ApiClient(kubeconfig)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="blocking-api")

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self.run(self.client.__aenter__())
        except BaseException:
            self._end_loop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self.run(self.client.__aexit__(kind, error, traceback))
        finally:
            self._end_loop()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run one coroutine to its end and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin one coroutine on the client's loop, to be ended by whoever began it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def get(self, path: str, **query: str) -> Any:
        """As `ApiClient.get`."""
        return self.run(self.client.get(path, **query))

    def post(self, path: str, body: object) -> Any:
        """As `ApiClient.post`."""
        return self.run(self.client.post(path, body))

    def put(self, path: str, body: object) -> Any:
        """As `ApiClient.put`."""
        return self.run(self.client.put(path, body))

    def patch(
        self, path: str, body: object, content_type: str = "application/merge-patch+json"
    ) -> Any:
        """As `ApiClient.patch`."""
        return self.run(self.client.patch(path, body, content_type))

    def delete(self, path: str, *, grace_period_s: int | None = 0) -> Any:
        """As `ApiClient.delete`."""
        return self.run(self.client.delete(path, grace_period_s=grace_period_s))

    def list_all(self, path: str, **query: str) -> list[dict[str, Any]]:
        """As `ApiClient.list_all`."""
        return self.run(self.client.list_all(path, **query))

    def create_many(
        self, objects: Iterable[Mapping[str, Any]], *, concurrency: int = 64
    ) -> list[dict[str, Any]]:
        """As `ApiClient.create_many`."""
        return self.run(self.client.create_many(objects, concurrency=concurrency))

    def pods(self, namespace: str | None = None) -> list[dict[str, Any]]:
        """As `ApiClient.pods`."""
        return self.run(self.client.pods(namespace))

    def wait_bound(
        self,
        count: int,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        timeout_s: float = 120.0,
    ) -> BindProgress:
        """As `ApiClient.wait_bound`."""
        return self.run(
            self.client.wait_bound(
                count, namespace=namespace, label_selector=label_selector, timeout_s=timeout_s
            )
        )

    def wait_until(self, holds: Callable[[], bool], what: str, *, timeout_s: float = 180.0) -> None:
        """Ask `holds` again and again until it is true.

        Raises
        ------
        TimeoutError
            It did not come true in `timeout_s` seconds; the message names `what`.
        """
        deadline = time.monotonic() + timeout_s
        while not holds():
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {timeout_s:.0f} s: {what}")
            time.sleep(0.05)

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
