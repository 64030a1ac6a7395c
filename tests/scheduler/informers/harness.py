"""What the tests of the informers share: a reflector against the fake server, without waiting."""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from scheduler.client.credentials import Credentials
from scheduler.client.transport import Bounds, Transport
from scheduler.informers.informer import Informer
from scheduler.informers.reflector_options import ReflectorOptions
from scheduler.informers.store import Delta, DeltaKind
from scheduler.kinds import PODS
from tests.fakes.api_server import FakeApiServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Sequence

    from cache.objects import Pod
    from tests.fakes.api_objects import JsonObject

ResultT = TypeVar("ResultT")


class Clock:
    """Monotonic seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Naps:
    """A sleep that takes no time and remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked_s: list[float] = []

    async def __call__(self, delay_s: float) -> None:
        self.asked_s.append(delay_s)
        await asyncio.sleep(0)


class Mirror:
    """A handler that knows only what it is told, and checks that it could have happened."""

    def __init__(self) -> None:
        self.objects: dict[str, Pod] = {}
        self.deltas: list[Delta[Pod]] = []
        self.batches: list[int] = []

    def __call__(self, deltas: Sequence[Delta[Pod]]) -> None:
        self.batches.append(len(deltas))
        for delta in deltas:
            self.deltas.append(delta)
            obj = delta.new if delta.new is not None else delta.old
            assert obj is not None
            uid = obj.metadata.uid
            match delta.kind:
                case DeltaKind.ADDED:
                    assert delta.new is not None
                    assert delta.old is None
                    assert uid not in self.objects
                    assert name_of(obj) not in map(name_of, self.objects.values())
                    self.objects[uid] = delta.new
                case DeltaKind.UPDATED:
                    assert delta.new is not None
                    assert delta.old is self.objects[uid]
                    self.objects[uid] = delta.new
                case DeltaKind.DELETED:
                    assert delta.new is None
                    assert delta.old is self.objects.pop(uid)

    def told(self) -> list[tuple[str, str]]:
        """Return kind and name of each delta so far, and forget them."""
        deltas, self.deltas = self.deltas, []
        return [
            (delta.kind.value, name_of(delta.new if delta.new is not None else delta.old)[1])
            for delta in deltas
        ]


class Rig:
    """A pod informer that runs against a fake server."""

    def __init__(self, server: FakeApiServer, transport: Transport, **options: Any) -> None:
        self.server = server
        self.clock = Clock()
        self.naps = Naps()
        self.mirror = Mirror()
        kept = {key: options.pop(key) for key in ("transform",) if key in options}
        selector = options.pop("label_selector", "")
        self.informer: Informer[Pod] = Informer(
            transport,
            replace(PODS, label_selector=selector),
            **kept,
            options=ReflectorOptions(
                **{"clock": self.clock, "sleep": self.naps, "rng": random.Random(7), **options}
            ),
        )
        self.informer.add_handler(self.mirror)

    @property
    def counts(self) -> Any:
        return self.informer.statistics()

    async def caught_up(self) -> None:
        """Return when the informer has seen the server's last version."""
        await until(lambda: self.informer.resource_version == str(self.server.version))

    async def resumed(self, watches: int = 1) -> None:
        """Return when so many watches from a version have been asked for."""
        await until(lambda: len(self.server.requests_of("watch")) >= watches)


@asynccontextmanager
async def rig(
    *,
    synced: bool = True,
    prepare: Callable[[FakeApiServer], None] | None = None,
    max_body_bytes: int = 1 << 20,
    **options: Any,
) -> AsyncIterator[Rig]:
    """Run a pod informer against a fake server that `prepare` has filled.

    Parameters
    ----------
    options
        Of the informer, and fields of ReflectorOptions.
    """
    async with FakeApiServer() as server:
        if prepare is not None:
            prepare(server)
        transport = Transport(
            Credentials(server.url), user_agent="test", bounds=Bounds(body_bytes=max_body_bytes)
        )
        made = Rig(server, transport, **options)
        task = asyncio.create_task(made.informer.run())
        try:
            if synced:
                await asyncio.wait_for(made.informer.wait_synced(), 10)
            yield made
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await transport.close()


async def until(condition: Callable[[], object], *, deadline_s: float = 120.0) -> None:
    """Return when `condition` holds; fail when it does not in time."""
    loop = asyncio.get_running_loop()
    end = loop.time() + deadline_s
    while not condition():
        if loop.time() > end:
            raise AssertionError(f"not in {deadline_s} s: {condition}")
        await asyncio.sleep(0.001)


def run(main: Callable[[], Coroutine[Any, Any, ResultT]]) -> ResultT:
    """Run a test's coroutine function; one that hangs is given up."""

    async def bounded() -> ResultT:
        return await asyncio.wait_for(main(), 240)

    return asyncio.run(bounded())


def pod(name: str, **labels: str) -> JsonObject:
    """Return a pod as it is posted."""
    return {
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"schedulerName": "berth", "containers": [{"name": "main", "image": "app"}]},
        "status": {"phase": "Pending"},
    }


def name_of(obj: Pod | None) -> tuple[str, str]:
    assert obj is not None
    return obj.metadata.namespace, obj.metadata.name


def versions(objects: Sequence[Pod]) -> dict[str, str]:
    """Return uid -> resourceVersion."""
    return {obj.metadata.uid: obj.metadata.resource_version for obj in objects}


def truth(server: FakeApiServer) -> dict[str, str]:
    """Return uid -> resourceVersion of the server's pods."""
    return {
        obj["metadata"]["uid"]: obj["metadata"]["resourceVersion"] for obj in server.objects("pods")
    }


def fill(count: int) -> Callable[[FakeApiServer], None]:
    def prepare(server: FakeApiServer) -> None:
        for number in range(count):
            server.create("pods", pod(f"web-{number:04}"))

    return prepare


def holds_the_truth(rig: Rig) -> bool:
    mirror = {uid: obj.metadata.resource_version for uid, obj in rig.mirror.objects.items()}
    return versions(list(rig.informer.list())) == truth(rig.server) == mirror


def gone_event(server: FakeApiServer) -> None:
    server.faults.error_event("pods", 410)


def gone_status(server: FakeApiServer) -> None:
    server.faults.refuse("pods", "watch", 410)
    server.end_watches("pods")
