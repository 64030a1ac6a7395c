from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cache.interning import Interner


def test_equal_values_share_an_id() -> None:
    interner: Interner[tuple[str, ...]] = Interner()
    assert interner.acquire(("a",)) == interner.acquire(("a",)) == interner.id_of(("a",))


def test_a_value_stays_until_its_last_holder_lets_go() -> None:
    interner: Interner[str] = Interner()
    value_id = interner.acquire("a")
    interner.acquire("a")
    interner.release(value_id)
    assert "a" in interner
    interner.release(value_id)
    assert "a" not in interner


def test_a_freed_id_is_given_to_the_next_new_value() -> None:
    interner: Interner[str] = Interner()
    first = interner.acquire("a")
    interner.acquire("b")
    interner.release(first)
    assert interner.acquire("c") == first
    assert interner.capacity == 2


def test_the_epoch_grows_when_an_id_gets_another_value_and_only_then() -> None:
    interner: Interner[str] = Interner()
    first = interner.acquire("a")
    interner.acquire("b")
    interner.release(first)
    before = interner.epoch
    interner.acquire("c")
    interner.acquire("d")
    assert (before, interner.epoch) == (0, 1)


def test_none_is_a_value_like_any_other() -> None:
    interner: Interner[str | None] = Interner()
    assert interner.value(interner.acquire(None)) is None


@pytest.mark.parametrize(
    "value_id",
    [
        pytest.param(0, id="freed"),
        pytest.param(7, id="never given"),
        pytest.param(-1, id="negative"),
    ],
)
def test_an_id_that_is_not_in_use_is_an_error(value_id: int) -> None:
    interner: Interner[str] = Interner()
    interner.release(interner.acquire("a"))
    with pytest.raises(KeyError, match="is not in use"):
        interner.value(value_id)
    with pytest.raises(KeyError, match="is not in use"):
        interner.release(value_id)


def test_a_value_that_nobody_holds_has_no_id() -> None:
    with pytest.raises(KeyError):
        Interner[str]().id_of("a")


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abcde")), max_size=40))
def test_ids_are_distinct_dense_and_stable_while_held(changes: list[tuple[bool, str]]) -> None:
    interner: Interner[str] = Interner()
    holders: Counter[str] = Counter()
    ids: dict[str, int] = {}
    most = 0
    for acquired, value in changes:
        if acquired:
            found = interner.acquire(value)
            assert ids.setdefault(value, found) == found
            holders[value] += 1
        elif holders[value]:
            interner.release(ids[value])
            holders[value] -= 1
            if not holders[value]:
                del ids[value]
        most = max(most, len(ids))
        assert dict(interner.items()) == {value_id: value for value, value_id in ids.items()}
    assert len(set(ids.values())) == len(ids) == len(interner)
    assert interner.capacity == most
    assert sorted(interner.values()) == sorted(ids)
    assert all(interner.value(value_id) == value for value, value_id in ids.items())
