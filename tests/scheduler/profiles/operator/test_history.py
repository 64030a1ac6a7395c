"""The last good generations: kept in order, once each, and not without bound."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.profiles.operator.history import (
    KEPT,
    KEPT_BYTES,
    digest_of,
    entries_of,
    last_good,
    with_entry,
)
from tests.scheduler.profiles.operator.objects import profile

NOW = "2026-01-01T00:00:00Z"


def entry(generation: int, spec: Any) -> dict[str, Any]:
    return {"generation": generation, "activeSince": NOW, "spec": spec}


def test_the_newest_stands_first() -> None:
    assert with_entry([entry(1, {"a": 1})], 2, {"a": 2}, NOW) == [
        entry(2, {"a": 2}),
        entry(1, {"a": 1}),
    ]


def test_the_same_generation_is_not_written_twice() -> None:
    entries = [entry(2, {"a": 2})]
    assert with_entry(entries, 2, {"a": 2}, "later") == entries


def test_a_spec_that_comes_back_is_kept_under_its_new_generation() -> None:
    entries = [entry(2, {"a": 2}), entry(1, {"a": 1})]
    assert with_entry(entries, 3, {"a": 1}, NOW) == [entry(3, {"a": 1}), entry(2, {"a": 2})]


@given(st.lists(st.integers(0, 30), max_size=40))
def test_any_history_has_each_spec_once_and_is_bounded(specs: list[int]) -> None:
    entries: list[Any] = []
    for generation, spec in enumerate(specs, start=1):
        entries = with_entry(entries, generation, {"a": spec}, NOW)
        assert entries[0]["generation"] == generation
        assert len(entries) <= KEPT
        assert len({each["spec"]["a"] for each in entries}) == len(entries)


def test_large_specs_are_fewer() -> None:
    entries: list[Any] = []
    for generation in range(5):
        entries = with_entry(entries, generation, {"a": str(generation) * 100_000}, NOW)
    assert [each["generation"] for each in entries] == [4, 3]
    assert with_entry([], 1, {"a": "x" * KEPT_BYTES}, NOW) == []


@pytest.mark.parametrize(
    "history",
    [
        pytest.param("text", id="no-list"),
        pytest.param([7], id="no-objects"),
        pytest.param([{"generation": 1}], id="no-spec"),
        pytest.param([{"generation": "1", "spec": {}}], id="no-number"),
    ],
)
def test_what_is_no_entry_is_left_out(history: Any) -> None:
    assert entries_of({"history": history}, ["1:none"]) == []


def test_the_last_good_generation_is_the_object_as_it_was() -> None:
    found = profile(generation=5, status={"history": [entry(4, {"a": 4}), entry(1, {"a": 1})]})
    good = last_good(found)
    assert good is not None
    assert (good.generation, good.spec, good.uid) == (4, {"a": 4}, found.uid)


def test_there_is_none_but_the_present_one() -> None:
    assert last_good(profile(generation=4, status={"history": [entry(4, {"a": 4})]})) is None


FORGED = entry(4, {"a": "evil"})


@pytest.mark.parametrize(
    ("history", "sealed", "kept"),
    [
        pytest.param([FORGED, entry(2, {"a": 2})], [entry(2, {"a": 2})], [2], id="one-put-before"),
        pytest.param([FORGED], [entry(4, {"a": 4})], [], id="another-spec"),
        pytest.param([entry(5, {"a": 4})], [entry(4, {"a": 4})], [], id="another-generation"),
        pytest.param([FORGED], [], [], id="nothing-was-ever-good"),
        pytest.param(
            [entry(2, {"a": 2}), entry(4, {"a": 4})],
            [entry(4, {"a": 4}), entry(2, {"a": 2})],
            [4, 2],
            id="another-order",
        ),
    ],
)
def test_an_entry_counts_as_far_as_the_annotation_has_its_digest(
    history: list[Any], sealed: list[Any], kept: list[int]
) -> None:
    entries = entries_of({"history": history}, [digest_of(each) for each in sealed])
    assert [each["generation"] for each in entries] == kept


@pytest.mark.parametrize(
    "history",
    [
        pytest.param([FORGED, entry(2, {"a": 2})], id="a-forged-one"),
        pytest.param([entry(2, {"a": 2})], id="an-older-good-one"),
        pytest.param([entry(2, {"a": 2}), FORGED], id="both"),
    ],
)
def test_a_status_that_lost_the_last_good_generation_brings_back_no_other(
    history: list[Any],
) -> None:
    sealed = [entry(4, {"a": 4}), entry(2, {"a": 2})]
    assert last_good(profile(generation=5, status={"history": history}, sealed=sealed)) is None


def test_the_order_of_keys_does_not_matter() -> None:
    assert digest_of(entry(1, {"a": 1, "b": {"c": 2, "d": 3}})) == digest_of(
        entry(1, {"b": {"d": 3, "c": 2}, "a": 1})
    )
