"""A recorder of Events and a writer of pod statuses, each with its API and its clock."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from scheduler.api_writes.event_recorder import EventRecorder
from scheduler.api_writes.pod_status_writer import PodStatusWriter
from tests.builders import pod
from tests.fakes.clock import FakeClock
from tests.fakes.ports import FakeExecutor, fake_ports
from tests.fakes.refusals import lost, refusal
from tests.fakes.write_api import FakeWriteApi

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.objects import Pod
    from scheduler.client.errors import ApiError

POD = pod("web-0", namespace="shop").uid("u-1").build()


def play(scene):
    """Turn a coroutine function into a test."""
    return lambda: asyncio.run(scene())


def pods(count: int) -> list[Pod]:
    return [pod(f"p{number}").uid(f"u{number}").build() for number in range(count)]


class WriterScene:
    """A background writer that has been started, its API and its clock.

    Parameters
    ----------
    answers
        The API's.
    before_retry
        Called in each wait between two attempts.
    """

    VERB = ""

    def __init__(self, *answers: ApiError | None, before_retry=None, **options) -> None:
        self.api = FakeWriteApi(answers)
        self.clock = FakeClock()
        self._before_retry = before_retry
        ports = fake_ports(
            self.api, self.clock, wall=self.clock, executor=FakeExecutor(self._sleep)
        )
        self.writer = self._made(ports, options)

    def _made(self, ports: Any, options: dict[str, Any]) -> Any:
        raise NotImplementedError

    def refuse(self, message: str = "no room", of: Pod = POD) -> None:
        """Hand over that a pod was refused."""
        raise NotImplementedError

    @classmethod
    def error(cls, status: int | None, *, ambiguous: bool = False) -> ApiError:
        return lost(cls.VERB) if ambiguous else refusal(cls.VERB, status)

    async def _sleep(self, _: float) -> None:
        if self._before_retry is not None:
            self._before_retry(self)
        await asyncio.sleep(0)

    async def __aenter__(self):
        self.writer.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.writer.stop()

    async def written(self) -> None:
        assert await self.writer.drain(30) == 0

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(120):
            while not condition():  # noqa: ASYNC110 - not every condition has an event
                await asyncio.sleep(0)

    async def turns(self) -> None:
        """Let everybody come as far as they get."""
        for _ in range(20):
            await asyncio.sleep(0)


class EventScene(WriterScene):
    VERB = "POST"

    def _made(self, ports: Any, options: dict[str, Any]) -> EventRecorder:
        return EventRecorder(ports, instance="berth-test", **options)

    def refuse(self, message: str = "no room", of: Pod = POD) -> None:
        self.writer.event(of, "Warning", "FailedScheduling", "Scheduling", message)


class StatusScene(WriterScene):
    VERB = "PATCH"

    def _made(self, ports: Any, options: dict[str, Any]) -> PodStatusWriter:
        self.placed: set[str] = set()
        return PodStatusWriter(ports, self.placed.__contains__, **options)

    def refuse(self, message: str = "no room", of: Pod = POD, nominated: str | None = None) -> None:
        self.writer.unscheduled(of, "Unschedulable", message, nominated)

    @property
    def messages(self) -> list[str]:
        """The messages of all requests."""
        return [call.body["conditions"][0]["message"] for call in self.api.calls]
