from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache.sharded_map import MAX_CHANGED, ShardedMap, SnapshotDict

KEYS = st.integers(0, 6)
CHANGES = st.lists(st.dictionaries(KEYS, st.none() | st.integers(0, 3), max_size=4), max_size=6)


@given(CHANGES)
def test_it_is_a_dictionary(history: list[dict[int, int | None]]) -> None:
    model: dict[int, int] = {}
    sharded: ShardedMap[int, int] = ShardedMap()
    for changes in history:
        sharded = sharded.with_changes(changes)
        model = {k: v for k, v in (model | changes).items() if v is not None}
        assert dict(sharded) == model
        assert len(sharded) == len(model)
        assert {key: key in sharded for key in range(7)} == {k: k in model for k in range(7)}


def test_a_change_leaves_the_mapping_before_it_alone() -> None:
    before = ShardedMap[str, int]().with_changes({"a": 1, "b": 2})
    after = before.with_changes({"a": 3, "b": None})
    assert (dict(before), dict(after)) == ({"a": 1, "b": 2}, {"a": 3})


def test_an_absent_key_raises() -> None:
    with pytest.raises(KeyError):
        ShardedMap[str, int]()["a"]


def test_a_change_copies_few_entries() -> None:
    before = ShardedMap[str, int]().with_changes({str(i): i for i in range(10_000)})
    after = before.with_changes({"7": -1})
    copied = [
        len(new) for old, new in zip(before._shards, after._shards, strict=True) if old is not new
    ]
    assert len(copied) == 1
    assert copied[0] < 200


def test_a_snapshot_of_nothing_new_is_the_same_object() -> None:
    values: SnapshotDict[str, int] = SnapshotDict()
    values.put("a", 1)
    first = values.snapshot()
    assert values.snapshot() is first
    values.put("a", None)
    assert (dict(first), dict(values.snapshot()), values.get("a")) == ({"a": 1}, {}, None)


def test_keys_that_come_and_go_do_not_pile_up_without_snapshots() -> None:
    values: SnapshotDict[int, int] = SnapshotDict()
    values.put(-1, 1)
    for key in range(2 * MAX_CHANGED):
        values.put(key, 1)
        values.put(key, None)
    assert len(values._changed) < MAX_CHANGED
    assert dict(values.snapshot()) == {-1: 1}
