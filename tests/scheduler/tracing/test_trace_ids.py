from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.tracing.trace_ids import (
    Sampler,
    attempt_span_id,
    pod_span_id,
    span_id_of,
    trace_id_of,
    trace_id_text,
)

UID = "1b4e28ba-2fa1-41d2-883f-0016d3cca427"


def test_the_trace_id_is_the_uid_without_dashes() -> None:
    assert trace_id_text(trace_id_of(UID)) == UID.replace("-", "")


@pytest.mark.parametrize(
    "uid",
    [
        pytest.param("", id="none"),
        pytest.param("0" * 32, id="zero"),
        pytest.param("z" * 32, id="no digits"),
        pytest.param("web-0", id="a name"),
        pytest.param("a" * 40_000, id="a long one"),
        pytest.param("²" * 32, id="other digits"),
    ],
)
def test_a_uid_that_is_no_uuid_has_a_valid_trace_id(uid: str) -> None:
    assert 0 < trace_id_of(uid) < 1 << 128


@given(st.uuids(version=4), st.floats(0, 1), st.floats(0, 1))
def test_whoever_is_sampled_stays_so_with_a_larger_share(uid: UUID, one: float, two: float) -> None:
    low, high = sorted((one, two))
    if Sampler(low).sampled(str(uid)):
        assert Sampler(high).sampled(str(uid)) == trace_id_of(str(uid))


@given(st.text())
def test_none_and_all_are_none_and_all(uid: str) -> None:
    assert Sampler(0.0).sampled(uid) == 0
    assert Sampler(1.0).sampled(uid) == trace_id_of(uid)


def test_the_share_of_sampled_pods_is_the_ratio() -> None:
    sampled = Sampler(0.25).sampled
    count = sum(bool(sampled(str(UUID(int=n * 7919 << 40, version=4)))) for n in range(65_536))
    assert count == pytest.approx(65_536 / 4, rel=0.05)


@given(st.uuids(version=4), st.integers(1, 1000), st.floats(0, 1e6))
def test_spans_of_a_trace_have_different_ids(uid: UUID, number: int, began: float) -> None:
    trace_id = trace_id_of(str(uid))
    ids = {
        pod_span_id(trace_id),
        attempt_span_id(trace_id, number, began),
        attempt_span_id(trace_id, number + 1, began),
        span_id_of(trace_id, "other"),
    }
    assert len(ids) == 4
    assert all(0 < each < 1 << 64 for each in ids)
