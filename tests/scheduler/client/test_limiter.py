from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.client.limiter import InFlightLimiter, TokenBucketLimiter
from tests.scheduler.client.virtual_loop import run_in_virtual_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from scheduler.client.limiter import Limiter


def loop_clock() -> Callable[[], float]:
    return asyncio.get_running_loop().time


def in_flight() -> InFlightLimiter:
    return InFlightLimiter(1, clock=loop_clock())


def token_bucket() -> TokenBucketLimiter:
    return TokenBucketLimiter(10.0, 1, clock=loop_clock())


BOTH = [
    pytest.param(in_flight, id="in-flight"),
    pytest.param(token_bucket, id="token-bucket"),
]


@pytest.mark.parametrize("make", BOTH)
def test_waiters_are_served_in_the_order_in_which_they_came(make: Callable[[], Limiter]) -> None:
    async def main() -> list[int]:
        limiter = make()
        served: list[int] = []

        async def one(i: int) -> None:
            await limiter.acquire()
            served.append(i)
            await asyncio.sleep(0.01)
            limiter.release()

        async with asyncio.TaskGroup() as group:
            for i in range(20):
                group.create_task(one(i))
        return served

    assert run_in_virtual_time(main()) == list(range(20))


@pytest.mark.parametrize("make", BOTH)
def test_a_newcomer_does_not_overtake_the_line(make: Callable[[], Limiter]) -> None:
    async def main() -> bool:
        limiter = make()
        assert limiter.try_acquire()
        waiter = asyncio.ensure_future(limiter.acquire())
        await asyncio.sleep(0)
        overtook = limiter.try_acquire()
        limiter.release()
        await waiter
        return overtook

    assert run_in_virtual_time(main()) is False


@pytest.mark.parametrize("make", BOTH)
def test_a_hold_keeps_everybody_waiting_until_its_end(make: Callable[[], Limiter]) -> None:
    async def main() -> tuple[bool, float]:
        limiter = make()
        limiter.hold_until(5.0)
        at_once = limiter.try_acquire()
        await limiter.acquire()
        return at_once, asyncio.get_running_loop().time()

    at_once, served_at = run_in_virtual_time(main())
    assert (at_once, served_at) == (False, pytest.approx(5.0, abs=0.01))


@pytest.mark.parametrize("make", BOTH)
def test_a_hold_reaches_those_who_wait_already(make: Callable[[], Limiter]) -> None:
    async def main() -> float:
        limiter = make()
        await limiter.acquire()
        waiter = asyncio.ensure_future(limiter.acquire())
        await asyncio.sleep(0)
        limiter.hold_until(7.0)
        limiter.release()
        await waiter
        return asyncio.get_running_loop().time()

    assert run_in_virtual_time(main()) == pytest.approx(7.0, abs=0.01)


@pytest.mark.parametrize("make", BOTH)
def test_a_shorter_hold_does_not_end_a_longer_one(make: Callable[[], Limiter]) -> None:
    async def main() -> float:
        limiter = make()
        limiter.hold_until(9.0)
        limiter.hold_until(2.0)
        await limiter.acquire()
        return asyncio.get_running_loop().time()

    assert run_in_virtual_time(main()) == pytest.approx(9.0, abs=0.01)


@pytest.mark.parametrize("make", BOTH)
def test_a_hold_that_is_over_is_forgotten(make: Callable[[], Limiter]) -> None:
    async def main() -> bool:
        limiter = make()
        limiter.hold_until(1.0)
        await asyncio.sleep(2.0)
        return limiter.try_acquire()

    assert run_in_virtual_time(main()) is True


@pytest.mark.parametrize("make", BOTH)
def test_who_is_cancelled_in_line_takes_no_permit(make: Callable[[], Limiter]) -> None:
    async def main() -> None:
        limiter = make()
        await limiter.acquire()
        cancelled, second = (asyncio.ensure_future(limiter.acquire()) for _ in range(2))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.sleep(0)
        limiter.release()
        await second

    run_in_virtual_time(main())


@pytest.mark.parametrize("make", BOTH)
def test_a_permit_given_to_somebody_cancelled_goes_to_the_next(
    make: Callable[[], Limiter],
) -> None:
    async def main() -> float:
        limiter = make()
        limiter.hold_until(1.0)
        first, second = (asyncio.ensure_future(limiter.acquire()) for _ in range(2))
        await asyncio.sleep(0)
        # In the same turn of the loop the permit is given and its receiver cancelled.
        asyncio.get_running_loop().call_at(1.0, first.cancel)
        await second
        return asyncio.get_running_loop().time()

    assert run_in_virtual_time(main()) == pytest.approx(1.0, abs=0.2)


def test_no_more_than_the_bound_are_in_flight() -> None:
    async def main() -> int:
        limiter = InFlightLimiter(7, clock=loop_clock())
        flying = most = 0

        async def one() -> None:
            nonlocal flying, most
            await limiter.acquire()
            flying += 1
            most = max(most, flying)
            await asyncio.sleep(0.5)
            flying -= 1
            limiter.release()

        async with asyncio.TaskGroup() as group:
            for _ in range(50):
                group.create_task(one())
        return most

    assert run_in_virtual_time(main()) == 7


@given(
    qps=st.floats(0.5, 500),
    burst=st.integers(1, 50),
    arrivals=st.lists(st.floats(0, 2), min_size=1, max_size=80),
)
def test_in_no_span_more_start_than_burst_and_rate_allow(
    qps: float, burst: int, arrivals: list[float]
) -> None:
    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        limiter = TokenBucketLimiter(qps, burst, clock=loop.time)
        starts: list[float] = []

        async def one(at: float) -> None:
            await asyncio.sleep(at)
            await limiter.acquire()
            starts.append(loop.time())
            limiter.release()

        async with asyncio.TaskGroup() as group:
            for at in arrivals:
                group.create_task(one(at))
        return starts

    starts = run_in_virtual_time(main())
    assert len(starts) == len(arrivals)
    for i, start in enumerate(starts):
        for j in range(i, len(starts)):
            assert j - i + 1 <= burst + (starts[j] - start) * qps + 1e-3


def test_a_full_bucket_lets_a_burst_go_at_once() -> None:
    async def main() -> float:
        limiter = TokenBucketLimiter(10.0, 5, clock=loop_clock())
        for _ in range(5):
            await limiter.acquire()
        return asyncio.get_running_loop().time()

    assert run_in_virtual_time(main()) == 0.0


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: InFlightLimiter(0), id="nothing-in-flight"),
        pytest.param(lambda: TokenBucketLimiter(0.0, 1), id="no-rate"),
        pytest.param(lambda: TokenBucketLimiter(float("nan"), 1), id="rate-is-nan"),
        pytest.param(lambda: TokenBucketLimiter(1.0, 0), id="no-burst"),
    ],
)
def test_a_limit_that_lets_nothing_through_is_refused(make: Callable[[], Limiter]) -> None:
    with pytest.raises(ValueError, match="must be"):
        make()
