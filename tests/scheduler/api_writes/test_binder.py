from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
import structlog

from cache.resources import MalformedObjectError
from plugins.framework.status import SUCCESS, unschedulable
from scheduler.api_writes import binder
from scheduler.api_writes.binder import (
    MAX_ANSWERED,
    MAX_FAILING,
    MAX_TRIES,
    SLOW_S,
    Binder,
    BoundElsewhereError,
    PodGoneError,
)
from scheduler.api_writes.binding_slots import BindingSlots
from scheduler.api_writes.settle import MAX_PAUSE_S
from scheduler.client.errors import ApiError
from tests.builders import pod
from tests.fakes.binding_api import FakeBindingApi
from tests.fakes.clock import FakeClock
from tests.fakes.ports import FakeExecutor, fake_ports
from tests.fakes.refusals import lost, refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.pod_info import PodInfo
    from plugins.framework.status import Status

INFO = pod("a").uid("uid-a").info()

UNBOUND = pod("a").uid("uid-a").build()
OURS = pod("a").uid("uid-a").on("n1").build()
THEIRS = pod("a").uid("uid-a").on("n2").build()
AGAIN = pod("a").uid("uid-b").build()
DYING = pod("a").uid("uid-a").terminating().build()

UNREADABLE = MalformedObjectError("spec.priority", "too large")
LOST = lost("POST")


def post(status: int | None, **more) -> ApiError:
    return refusal("POST", status, **more)


def get(status: int | None) -> ApiError:
    return refusal("GET", status)


FAILING = [post(500)] * MAX_ANSWERED


@dataclass
class Scene:
    """A binder whose pauses take no time but that of its clock."""

    api: FakeBindingApi
    clock: FakeClock = field(default_factory=FakeClock)
    slots: BindingSlots = field(default_factory=lambda: BindingSlots(1))
    slept: list[float] = field(default_factory=list)
    abandoned: list[str] = field(default_factory=list)
    taken_while_asleep: list[int] = field(default_factory=list)
    check: Callable[[PodInfo], Status] = lambda _: SUCCESS

    def __post_init__(self) -> None:
        self.binder = Binder(
            fake_ports(self.api, self.clock, executor=FakeExecutor(self._sleep)),
            self.slots,
            self.abandoned.append,
            self.check,
        )

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.taken_while_asleep.append(len(self.slots))
        self.clock.advance(seconds)
        await asyncio.sleep(0)

    def bind(self, info=INFO) -> Status:
        self.slots.acquire(info.uid)
        try:
            return asyncio.run(self.binder.bind_pod(info, "n1"))
        finally:
            self.slots.release(info.uid)


def bind(api: FakeBindingApi) -> tuple[Status, Scene]:
    scene = Scene(api)
    return scene.bind(), scene


def test_an_accepted_binding_is_a_success():
    status, _ = bind(FakeBindingApi([None]))
    assert status.is_success


@pytest.mark.parametrize(
    ("binds", "pods"),
    [
        pytest.param([LOST], [OURS], id="it was made although no answer came"),
        pytest.param([LOST, None], [UNBOUND], id="it was not made and is sent again"),
        pytest.param([LOST, LOST, None], [UNBOUND, UNBOUND], id="lost twice"),
        pytest.param([LOST], [get(503), get(None), OURS], id="the GET fails at first"),
        pytest.param([LOST], [UNREADABLE, OURS], id="the pod cannot be read at first"),
        pytest.param([LOST, post(409)], [UNBOUND, OURS], id="the first one came through late"),
        pytest.param([post(409)], [OURS], id="made by an earlier attempt of ours"),
        pytest.param([post(404)], [OURS], id="made by an earlier attempt, says a webhook's 404"),
        pytest.param([post(429), None], [], id="too many requests"),
        pytest.param([post(None), None], [], id="unreachable"),
        pytest.param([post(503), None], [UNBOUND], id="server is not available"),
        pytest.param([post(503)], [OURS], id="made in spite of a 503"),
        pytest.param([*[LOST] * (MAX_TRIES - 1), None], [UNBOUND] * 9, id="the last attempt"),
        pytest.param(
            [post(500)] * MAX_ANSWERED, [*[UNBOUND] * (MAX_ANSWERED - 1), OURS], id="late"
        ),
    ],
)
def test_a_binding_is_settled_as_made(binds, pods):
    api = FakeBindingApi(binds, pods)
    status, scene = bind(api)
    assert status.is_success
    assert set(api.bound_to) == {"n1"}
    assert scene.abandoned == []


TERMINATING = {"causes": [{"reason": "NamespaceTerminating", "message": "it is being deleted"}]}


@pytest.mark.parametrize(
    ("binds", "pods", "expected", "abandoned"),
    [
        pytest.param([post(404)], [None], PodGoneError, [], id="deleted"),
        pytest.param([post(404)], [AGAIN], PodGoneError, [], id="404: made again under its name"),
        pytest.param([post(404)], [THEIRS], BoundElsewhereError, [], id="404: bound elsewhere"),
        pytest.param([post(404)], [UNBOUND], ApiError, ["not_found"], id="404: it is still there"),
        pytest.param([post(410)], [UNBOUND], ApiError, ["not_found"], id="410: it is still there"),
        pytest.param([post(409)], [AGAIN], PodGoneError, [], id="made again under its name"),
        pytest.param([post(409)], [None], PodGoneError, [], id="deleted meanwhile"),
        pytest.param([post(409)], [DYING], PodGoneError, [], id="being deleted"),
        pytest.param([post(409)], [THEIRS], BoundElsewhereError, [], id="bound by somebody else"),
        pytest.param([LOST], [THEIRS], BoundElsewhereError, [], id="lost, then bound elsewhere"),
        pytest.param([post(409)], [UNBOUND], ApiError, ["conflict"], id="an unexplained conflict"),
        pytest.param([post(403)], [], ApiError, ["forbidden"], id="forbidden"),
        pytest.param(
            [post(403, details=TERMINATING)],
            [],
            ApiError,
            [],
            id="its namespace is being deleted",
        ),
        pytest.param([post(422)], [], ApiError, ["refused"], id="invalid"),
        pytest.param(
            [post(403, message='admission webhook "a.b" denied the request: no')],
            [],
            ApiError,
            ["refused"],
            id="denied by a webhook",
        ),
        pytest.param(
            [post(429)] * MAX_ANSWERED, [], ApiError, ["retries"], id="refused to the end"
        ),
        pytest.param(
            [post(500)] * MAX_ANSWERED,
            [UNBOUND] * MAX_ANSWERED,
            ApiError,
            ["retries"],
            id="failing",
        ),
        pytest.param(
            [LOST] * MAX_TRIES, [UNBOUND] * MAX_TRIES, ApiError, ["retries"], id="lost each time"
        ),
        pytest.param(
            [post(429, details={"retryAfterSeconds": 60})],
            [],
            ApiError,
            ["throttled"],
            id="to be left alone for longer than a pod may hold its room",
        ),
        pytest.param(
            [post(503, details={"retryAfterSeconds": 60})],
            [UNBOUND],
            ApiError,
            ["throttled"],
            id="in doubt, and to be left alone",
        ),
    ],
)
def test_a_binding_that_failed_says_how(binds, pods, expected, abandoned):
    api = FakeBindingApi(binds, pods)
    status, scene = bind(api)
    assert isinstance(status.error, expected)
    assert set(api.bound_to) == {"n1"}
    assert scene.abandoned == abandoned
    assert all(seconds <= MAX_PAUSE_S for seconds in scene.slept)


def test_an_unclear_binding_is_never_given_up_before_it_is_settled():
    api = FakeBindingApi([LOST], [*[get(503)] * 50, OURS])
    status, scene = bind(api)
    assert status.is_success
    assert min(scene.slept) > 0


def test_the_node_of_another_scheduler_is_named():
    status, _ = bind(FakeBindingApi([post(409)], [THEIRS]))
    assert isinstance(status.error, BoundElsewhereError)
    assert status.error.node_name == "n2"


@pytest.mark.parametrize(
    ("error", "is_missing_right"),
    [
        pytest.param(
            post(403, message='User "berth" cannot create resource "pods/binding"'), True, id="rbac"
        ),
        pytest.param(
            post(403, message='admission webhook "a.b" denied the request: no'), False, id="webhook"
        ),
        pytest.param(post(403, details=TERMINATING), False, id="the namespace is being deleted"),
    ],
)
def test_only_a_missing_right_is_logged_as_one(error, is_missing_right):
    with structlog.testing.capture_logs() as logs:
        bind(FakeBindingApi([error]))
    told = [each["event"] for each in logs if each["log_level"] == "error"]
    assert told == (["binding pods is forbidden"] if is_missing_right else [])


def test_a_binding_that_waits_has_no_slot():
    binds = [post(500), post(429), LOST, None]
    _, scene = bind(FakeBindingApi(binds, [UNBOUND, get(503), UNBOUND]))
    assert scene.taken_while_asleep == [0] * 4


def test_no_request_is_sent_after_too_long(monkeypatch):
    monkeypatch.setattr(binder, "MAX_TRYING_S", 0.0)
    api = FakeBindingApi([post(500)], [UNBOUND])
    _, scene = bind(api)
    assert scene.abandoned == ["retries"]


def test_where_bindings_fail_for_ever_each_is_sent_once_until_one_is_accepted():
    refused = [post(500)] * (MAX_ANSWERED + 2)
    scene = Scene(FakeBindingApi([*refused, None, post(500), None], [UNBOUND] * 99))
    requests: list[int] = []
    for _ in range(5):
        before = len(scene.api.bound_to)
        scene.bind()
        requests.append(len(scene.api.bound_to) - before)
    assert requests == [MAX_ANSWERED, 1, 1, 1, 2]
    assert scene.abandoned == ["retries"] * 3


def test_one_namespace_that_fails_costs_another_nothing():
    elsewhere = pod("b", namespace="other").uid("uid-b").info()
    refused = [post(500)] * MAX_ANSWERED
    scene = Scene(FakeBindingApi([*refused, post(500), None], [UNBOUND] * MAX_ANSWERED + [AGAIN]))
    scene.bind()
    scene.api._pods[0] = pod("b", namespace="other").uid("uid-b").build()
    assert scene.bind(elsewhere).is_success


def test_where_bindings_hang_only_a_few_requests_are_under_way():
    async def play() -> tuple[int, list[str], bool]:
        clock, answered = FakeClock(), asyncio.Event()
        slots, abandoned = BindingSlots(100), []

        class HangingApi:
            sent = 0

            async def bind_pod(self, namespace, name, uid, node_name, **_) -> None:
                self.sent += 1
                if namespace == "default":
                    await answered.wait()
                    clock.advance(SLOW_S + 1)
                    raise post(500)

            async def get_pod(self, namespace, name):
                return pod(name).uid(name).build()

        async def sleep(seconds: float) -> None:
            await asyncio.sleep(0)

        api = HangingApi()
        made = Binder(fake_ports(api, clock, executor=FakeExecutor(sleep)), slots, abandoned.append)
        answered.set()
        await made.bind_pod(pod("first").uid("first").info(), "n1")
        answered.clear()
        abandoned.clear()
        before = api.sent
        infos = [pod(f"p{i}").uid(f"p{i}").info() for i in range(20)]
        tasks = [asyncio.create_task(made.bind_pod(info, "n1")) for info in infos]
        for _ in range(5):
            await asyncio.sleep(0)
        sent = api.sent - before
        elsewhere = pod("b", namespace="other").uid("uid-b").info()
        is_bound = (await made.bind_pod(elsewhere, "n1")).is_success
        answered.set()
        await asyncio.gather(*tasks)
        return sent, abandoned, is_bound

    sent, abandoned, is_bound = asyncio.run(play())
    assert (sent, is_bound) == (MAX_FAILING, True)
    assert abandoned == ["crowded"] * (20 - MAX_FAILING) + ["retries"] * MAX_FAILING


def test_only_so_many_bindings_pause_at_a_time(monkeypatch):
    monkeypatch.setattr(binder, "MAX_PAUSING", 2)

    async def play() -> tuple[list[str], int]:
        forever = asyncio.Event()
        api = FakeBindingApi([post(429)] * 3)
        slots, abandoned = BindingSlots(3), []

        async def sleep(seconds: float) -> None:
            await forever.wait()

        made = Binder(fake_ports(api, executor=FakeExecutor(sleep)), slots, abandoned.append)
        infos = [pod(name).uid(name).info() for name in ("a", "b", "c")]
        async with asyncio.TaskGroup() as group:
            tasks = []
            for info in infos:
                slots.acquire(info.uid)
                tasks.append(group.create_task(made.bind_pod(info, "n1")))
                await asyncio.sleep(0)
            await tasks[-1]
            for task in tasks:
                task.cancel()
        return abandoned, len(api.bound_to)

    assert asyncio.run(play()) == (["crowded"], 3)


@pytest.mark.parametrize(
    "answer",
    [pytest.param(LOST, id="in doubt"), pytest.param(post(503), id="not taken up")],
)
def test_the_guard_is_asked_before_a_binding_is_sent_again(answer):
    taken = unschedulable("taken")
    looks = iter([SUCCESS, taken])
    scene = Scene(FakeBindingApi([answer], [UNBOUND]), check=lambda _: next(looks))
    assert scene.bind() is taken
    assert scene.api.bound_to == ["n1"]
    assert scene.abandoned == []


def test_the_guard_is_asked_once_more_after_the_wait_for_a_connection():
    taken, statuses = unschedulable("taken"), [SUCCESS]
    scene = Scene(FakeBindingApi([None]), check=lambda _: statuses[-1])
    scene.api.in_line = lambda: statuses.append(taken)
    assert scene.bind() is taken
    assert scene.api.bound_to == []
    assert (scene.abandoned, scene.slept) == ([], [])
