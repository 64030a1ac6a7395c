from __future__ import annotations

import asyncio
import random

import pytest

from cache.resources import MalformedObjectError
from scheduler.binder import MAX_RETRIES, Binder, BoundElsewhereError, PodGoneError
from scheduler.client.errors import ApiError
from tests.builders import pod
from tests.fakes.binding_api import FakeBindingApi

INFO = pod("a").uid("uid-a").info()

UNBOUND = pod("a").uid("uid-a").build()
OURS = pod("a").uid("uid-a").on("n1").build()
THEIRS = pod("a").uid("uid-a").on("n2").build()
AGAIN = pod("a").uid("uid-b").build()
DYING = pod("a").uid("uid-a").terminating().build()


def error(status: int | None, *, ambiguous: bool = False) -> ApiError:
    return ApiError(status, "Why", "because", ambiguous=ambiguous)


UNREADABLE = MalformedObjectError("spec.priority", "too large")
LOST = error(None, ambiguous=True)


def bind(api: FakeBindingApi):
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    return asyncio.run(Binder(api, random.Random(1), sleep).bind_pod(INFO, "n1")), slept


def test_an_accepted_binding_is_a_success():
    status, _ = bind(FakeBindingApi([None]))
    assert status.is_success


@pytest.mark.parametrize(
    ("binds", "pods"),
    [
        pytest.param([LOST], [OURS], id="it was made although no answer came"),
        pytest.param([LOST, None], [UNBOUND], id="it was not made and is sent again"),
        pytest.param([LOST, LOST, None], [UNBOUND, UNBOUND], id="lost twice"),
        pytest.param([LOST], [error(503), error(None), OURS], id="the GET fails at first"),
        pytest.param([LOST], [UNREADABLE, OURS], id="the pod cannot be read at first"),
        pytest.param([LOST, error(409)], [UNBOUND, OURS], id="the first one came through late"),
        pytest.param([error(409)], [OURS], id="made by an earlier attempt of ours"),
        pytest.param([error(429), None], [], id="too many requests"),
        pytest.param([error(503), None], [], id="server is not available"),
    ],
)
def test_a_binding_is_settled_as_made(binds, pods):
    api = FakeBindingApi(binds, pods)
    status, _ = bind(api)
    assert status.is_success
    assert set(api.bound_to) == {"n1"}


@pytest.mark.parametrize(
    ("binds", "pods", "expected"),
    [
        pytest.param([error(404)], [], PodGoneError, id="deleted"),
        pytest.param([error(409)], [AGAIN], PodGoneError, id="made again under its name"),
        pytest.param([error(409)], [None], PodGoneError, id="deleted meanwhile"),
        pytest.param([error(409)], [DYING], PodGoneError, id="being deleted"),
        pytest.param([error(409)], [THEIRS], BoundElsewhereError, id="bound by somebody else"),
        pytest.param([LOST], [THEIRS], BoundElsewhereError, id="lost, then bound elsewhere"),
        pytest.param([error(409)], [UNBOUND], ApiError, id="a conflict that explains itself not"),
        pytest.param([error(403)], [], ApiError, id="forbidden"),
        pytest.param([error(422)], [], ApiError, id="invalid"),
        pytest.param([error(503)] * (MAX_RETRIES + 1), [], ApiError, id="refused to the end"),
    ],
)
def test_a_binding_that_failed_says_how(binds, pods, expected):
    api = FakeBindingApi(binds, pods)
    status, _ = bind(api)
    assert isinstance(status.error, expected)
    assert set(api.bound_to) == {"n1"}


def test_an_unclear_binding_is_never_given_up_before_it_is_settled():
    api = FakeBindingApi([LOST], [*[error(503)] * 50, OURS])
    status, slept = bind(api)
    assert status.is_success
    assert min(slept) > 0


def test_the_node_of_another_scheduler_is_named():
    status, _ = bind(FakeBindingApi([error(409)], [THEIRS]))
    assert isinstance(status.error, BoundElsewhereError)
    assert status.error.node_name == "n2"
