from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache.ages import Ages
from cache.byte_bounded import ByteBounded, deep_bytes, remembered
from tests.builders import pod


def of_numbers(max_bytes: int = 800) -> ByteBounded[str, int]:
    """Return a cache in which a number weighs as much as it says."""
    return ByteBounded(max_bytes, lambda _, value: value)


@given(
    st.lists(
        st.tuples(st.sampled_from("gppd"), st.sampled_from("abcdefgh"), st.integers(1, 120)),
        max_size=60,
    )
)
def test_all_entries_together_weigh_no_more_than_they_may(history):
    known = of_numbers()
    latest: dict[str, int] = {}
    for action, key, weight in history:
        if action == "p":
            known.put(key, weight)
            latest[key] = weight
        elif action == "d":
            known.pop(key)
            latest.pop(key, None)
        assert known.get(key) in (None, latest.get(key))
        assert known.bytes == sum(known.values()) <= 800


def test_an_entry_that_would_take_more_than_its_share_is_not_kept():
    known = of_numbers()
    known.put("small", 10)
    known.put("huge", 101)
    assert (known.get("small"), known.get("huge")) == (10, None)


@pytest.mark.parametrize("scanned", [100, 1000])
def test_one_who_asks_for_thousands_does_not_push_out_what_others_use(scanned):
    known = of_numbers()
    known.put("used", 50)
    for _ in range(4):
        assert known.get("used") == 50
    for _ in range(3):
        for index in range(scanned):
            for _ in range(3):
                if known.get(f"scan {index}") is None:
                    known.put(f"scan {index}", 50)
    assert known.get("used") == 50


def test_what_is_asked_for_again_soon_after_it_was_dropped_stays():
    known = of_numbers()
    for key in ["again", *(f"filler {index}" for index in range(20)), "again"]:
        known.put(key, 50)
    for index in range(1000):
        known.put(f"scan {index}", 50)
    assert known.get("again") == 50


def test_entries_that_have_grown_are_weighed_again():
    weights = dict.fromkeys("abcdefgh", 100)
    known: ByteBounded[str, str] = ByteBounded(800, lambda key, _: weights[key])
    for key in weights:
        known.put(key, key)
    weights["h"] = 300
    known.weigh_again()
    assert known.bytes == 800
    assert "h" in known


def test_a_function_remembers_small_results_and_not_large_ones():
    calls: list[str] = []

    @remembered(max_bytes=80_000)
    def doubled(text: str) -> tuple[str, ...]:
        calls.append(text[:3])
        return (text, text + text)

    for text in ("abc", "abc", "x" * 20_000, "x" * 20_000):
        assert doubled(text) == (text, text + text)
    assert calls == ["abc", "xxx", "xxx"]


def test_a_pod_weighs_what_its_parts_weigh_and_shared_parts_once():
    small = pod("a").build()
    large = pod("a").request({f"x/key-{index}": "1" for index in range(1000)}).build()
    weight = deep_bytes(large, at_most=10**9)
    assert weight > deep_bytes(small, at_most=10**9) + 1000 * len("x/key-0")
    assert deep_bytes(large, large, at_most=10**9) == weight
    assert weight > deep_bytes(large, at_most=5000) > 5000


def aging() -> tuple[ByteBounded[str, int], Ages]:
    ages = Ages()
    return ByteBounded(800, lambda _, value: value, ages), ages


@pytest.mark.parametrize("look", ["put", "values"])
@pytest.mark.parametrize(
    ("asked", "stays"),
    [
        pytest.param([], False, id="never"),
        pytest.param([0], True, id="often as a newcomer"),
        pytest.param([1], True, id="an age ago"),
        pytest.param([0, 1, 2], True, id="in each age"),
    ],
)
def test_what_nobody_asks_for_during_an_age_is_dropped(asked: list[int], stays: bool, look: str):
    known, ages = aging()
    known.put("old", 50)
    for age in range(3):
        if age in asked:
            for _ in range(4):
                assert known.get("old") == 50
        if age < 2:
            ages.begin()
            known.put(f"fresh {age}", 10)
    ages.begin() if 2 in asked else None
    if look == "put":
        known.put("last", 10)
    assert (50 in list(known.values())) == stays
    assert known.bytes == sum(known.values())


def test_nothing_remains_of_what_was_remembered_two_ages_ago():
    known, ages = aging()
    for index in range(500):
        known.put(f"{index}", 7)
        for _ in range(index % 6):
            known.get(f"{index}")
    for _ in range(4):
        ages.begin()
        known.put("one", 1)
    assert list(known) == ["one"]
