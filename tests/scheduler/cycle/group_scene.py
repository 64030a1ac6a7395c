"""The parts that report about groups, an API server and a clock that runs while all wait."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from cache.pod_group_objects import GroupSource
from cache.pod_groups import PodGroups
from cache.pod_info import PodInfo
from scheduler.api_writes.event_recorder import EventRecorder
from scheduler.api_writes.member_conditions import MemberConditions
from scheduler.api_writes.pod_group_status_writer import PodGroupStatusWriter
from scheduler.api_writes.pod_status_writer import PodStatusWriter
from scheduler.client.errors import ApiError
from scheduler.cycle.group_reports import GroupReports
from tests.fakes.clock import FakeClock
from tests.fakes.object_api import FakeObjectApi
from tests.fakes.ports import FakeExecutor, fake_ports
from tests.pod_group_builders import KEY, KINDS, member, raw_group, raw_x_group

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cache.objects import Pod
    from cache.pod_group_objects import GroupKey

OURS = frozenset({"berth"})


def play(scene):
    """Turn a coroutine function into a test."""
    return lambda: asyncio.run(scene())


class GroupApi(FakeObjectApi):
    """Objects, and the Events and deletions of pods that were asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[Mapping[str, Any]] = []
        self.deleted: list[str] = []
        self.delete_answers: list[ApiError | None] = []
        self.gate = asyncio.Event()
        """Statuses of pods wait until it is set; it is, unless it is cleared."""
        self.gate.set()

    async def patch_pod_status(
        self, namespace: str, name: str, uid: str, patch: Mapping[str, Any]
    ) -> None:
        await self.gate.wait()
        await super().patch_pod_status(namespace, name, uid, patch)

    async def create_event(self, namespace: str, body: Mapping[str, Any]) -> str:
        self.events.append(body)
        return "event"

    async def patch_event(self, namespace: str, name: str, patch: Mapping[str, Any]) -> None:
        pass

    async def delete_pod(
        self,
        namespace: str,
        name: str,
        uid: str,
        *,
        may_send: Callable[[], bool] | None = None,
    ) -> None:
        await asyncio.sleep(0)
        if may_send is not None and not may_send():
            raise ApiError(None, "Withheld", "not sent")
        answer = self.delete_answers.pop(0) if self.delete_answers else None
        if answer is not None:
            raise answer
        self.deleted.append(name)

    async def get_pod(self, namespace: str, name: str) -> Pod | None:
        return None


class GroupScene:
    """A leader's reports about groups."""

    def __init__(self) -> None:
        self.api = GroupApi()
        self.clock = FakeClock()
        self.groups = PodGroups()
        self.pods: dict[str, Pod] = {}
        self.api.watch(KINDS[GroupSource.FIELD], self.groups.pod_group_changed)
        self.api.watch(KINDS[GroupSource.LABEL], self.groups.x_pod_group_changed)
        executor = FakeExecutor(self._sleep)
        self.ports = fake_ports(self.api, self.clock, wall=self.clock, executor=executor)
        self.writer = PodGroupStatusWriter(self.ports, self.groups, KINDS.get, lambda: OURS)
        self.events = EventRecorder(self.ports, instance="test")
        self.statuses = PodStatusWriter(self.ports, lambda uid: False)
        self.conditions = MemberConditions(executor, self.statuses, self.live_pod)
        self.reports = self.new_leader()

    def new_leader(self) -> GroupReports:
        """Return reports that remember nothing."""
        return GroupReports(
            self.ports, self.groups, KINDS.get, self.writer, self.events, self.conditions
        )

    async def _sleep(self, seconds: float) -> None:
        self.clock.advance(seconds)
        await asyncio.sleep(0)

    def live_pod(self, namespace: str, name: str) -> Pod | None:
        return self.pods.get(name)

    async def __aenter__(self):
        for part in (self.writer, self.events, self.statuses):
            part.start()
        self.writer.lead()
        return self

    async def __aexit__(self, *_: object) -> None:
        for part in (self.writer, self.events, self.statuses):
            await part.stop()

    # --- the cluster --------------------------------------------------------------------------

    def put(self, key: GroupKey = KEY, minimum: int = 3, **more: Any) -> None:
        """Let somebody create or replace a group."""
        make = raw_group if key.source is GroupSource.FIELD else raw_x_group
        self.api.put(KINDS[key.source], key.namespace, key.name, make(minimum, key=key, **more))

    def join(
        self, *numbers: int, of: GroupKey = KEY, phase: str = "Pending", **more: Any
    ) -> list[PodInfo]:
        """Let members come, or change to a phase; return all of them."""
        for number in numbers:
            pod = member(number, phase, of=of, **more)
            self.groups.pod_changed(self.pods.get(pod.metadata.name), pod)
            self.pods[pod.metadata.name] = pod
        return [PodInfo(pod) for pod in self.pods.values()]

    def leave(self, *numbers: int, of: GroupKey = KEY) -> None:
        """Let members be deleted."""
        for number in numbers:
            self.groups.pod_changed(self.pods.pop(f"{of.name}-{number}"), None)

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until something is true."""
        async with asyncio.timeout(120):
            while not condition():  # noqa: ASYNC110 - not every condition has an event
                await asyncio.sleep(0)

    async def settled(self) -> None:
        """Wait until everything is written."""
        for _ in range(10):
            await asyncio.sleep(0)
        for part in (self.statuses, self.writer, self.events):
            assert await part.drain(3_600) == 0

    # --- what was written ---------------------------------------------------------------------

    def said(self, key: GroupKey = KEY) -> list[tuple[str, str, str]]:
        """The conditions of a group."""
        status = self.api.raw(KINDS[key.source], key.namespace, key.name).get("status", {})
        conditions = status.get("conditions", ())
        return [(each["status"], each["reason"], each["message"]) for each in conditions]

    @property
    def told(self) -> list[tuple[str, str, str]]:
        """Kind, reason and note of all Events."""
        return [(each["regarding"]["kind"], each["reason"], each["note"]) for each in self.events_]

    @property
    def events_(self) -> list[Mapping[str, Any]]:
        return self.api.events

    @property
    def member_texts(self) -> list[tuple[str, str, str]]:
        """UID, reason and message of each condition that was written into a member."""
        return [
            (uid, patch["conditions"][0]["reason"], patch["conditions"][0]["message"])
            for uid, patch in self.api.pod_statuses
            if "conditions" in patch
        ]
