"""What is nested too deeply, and what is left of it."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.profiles.operator.shallow_json import MAX_LEVELS, shallow, too_deep

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(json_values)
def test_what_is_not_deep_stays_as_it_is(value: object) -> None:
    text = msgspec.json.encode(value)
    assert shallow(text) == text


def listed(levels: int, begin: bytes = b"[", end: bytes = b"]") -> bytes:
    """Return a list of one object whose spec has so many levels; the innermost value is 1."""
    spec = begin * (levels - 1) + b"1" + end * (levels - 1)
    return b'{"items":[{"spec":{"a":' + spec + b',"]}":"]}"},"name":"n"}]}'


@pytest.mark.parametrize(("begin", "end"), [(b"[", b"]"), (b'{"a]}":', b"}")])
@pytest.mark.parametrize(
    ("levels", "is_deep"), [(MAX_LEVELS, False), (MAX_LEVELS + 1, True), (9_000, True)]
)
def test_what_is_too_deep_is_replaced_and_its_neighbours_stay(
    levels: int, is_deep: bool, begin: bytes, end: bytes
) -> None:
    data = msgspec.json.decode(shallow(listed(levels, begin, end)))
    (found,) = data["items"]
    assert (found["name"], found["spec"]["]}"]) == ("n", "]}")
    assert len(list(too_deep(found["spec"], "spec"))) == is_deep


def test_it_is_as_deep_in_an_event_as_in_a_list() -> None:
    text = listed(MAX_LEVELS + 50)
    (whole,), (cut,) = (msgspec.json.decode(each)["items"] for each in (text, shallow(text)))
    assert list(too_deep(whole["spec"], "spec")) == list(too_deep(cut["spec"], "spec"))
