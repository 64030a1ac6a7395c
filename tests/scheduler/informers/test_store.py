from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from cache.objects import Node, NodeMeta, Pod, PodMeta, PodSpec
from scheduler.informers.store import LOOKED_AT, DeltaKind, Store
from scheduler.informers.watch_events import EventType
from tests.scheduler.informers.harness import Mirror, versions

if TYPE_CHECKING:
    from scheduler.informers.store import Delta


def pod(name: str, uid: str, version: int | str, *, node: str = "", namespace: str = "shop") -> Pod:
    return Pod(
        metadata=PodMeta(name=name, namespace=namespace, uid=uid, resource_version=str(version)),
        spec=PodSpec(node_name=node),
    )


def apply(store: Store[Pod], event_type: EventType, obj: Pod) -> list[Delta[Pod]]:
    deltas: list[Delta[Pod]] = []
    store.apply(event_type, obj, deltas)
    return deltas


def replace(store: Store[Pod], objects: list[Pod], **how: object) -> list[Delta[Pod]]:
    return [delta for batch in store.replace_in_batches(objects, **how) for delta in batch]


def holding(*pods: Pod) -> Store[Pod]:
    store: Store[Pod] = Store()
    for obj in pods:
        assert len(apply(store, EventType.ADDED, obj)) == 1
    return store


def told(deltas: list[Delta[Pod]]) -> list[tuple[DeltaKind, str, str]]:
    return [
        (
            delta.kind,
            delta.old.metadata.resource_version if delta.old is not None else "",
            delta.new.metadata.resource_version if delta.new is not None else "",
        )
        for delta in deltas
    ]


# --- one event --------------------------------------------------------------------------------

OLD = pod("web", "u1", 5)


@pytest.mark.parametrize(
    ("event_type", "obj", "expected"),
    [
        pytest.param(
            EventType.MODIFIED, pod("web", "u1", 6), [(DeltaKind.UPDATED, "5", "6")], id="newer"
        ),
        pytest.param(
            EventType.ADDED, pod("web", "u1", 6), [(DeltaKind.UPDATED, "5", "6")], id="added again"
        ),
        pytest.param(EventType.MODIFIED, pod("web", "u1", 5), [], id="the same"),
        pytest.param(EventType.MODIFIED, pod("web", "u1", 4), [], id="older"),
        pytest.param(
            EventType.MODIFIED, pod("web", "u1", 10), [(DeltaKind.UPDATED, "5", "10")], id="digits"
        ),
        pytest.param(
            EventType.MODIFIED, pod("web", "u1", "x"), [(DeltaKind.UPDATED, "5", "x")], id="opaque"
        ),
        pytest.param(
            EventType.MODIFIED, pod("db", "u2", 6), [(DeltaKind.ADDED, "", "6")], id="unknown"
        ),
        pytest.param(
            EventType.DELETED, pod("web", "u1", 6), [(DeltaKind.DELETED, "5", "")], id="deleted"
        ),
        pytest.param(
            EventType.DELETED,
            pod("web", "u1", 4),
            [(DeltaKind.DELETED, "5", "")],
            id="dead is dead",
        ),
        pytest.param(EventType.DELETED, pod("web", "u2", 6), [], id="deletion of a namesake"),
        pytest.param(
            EventType.ADDED,
            pod("web", "u2", 6),
            [(DeltaKind.DELETED, "5", ""), (DeltaKind.ADDED, "", "6")],
            id="recreated without a deletion",
        ),
        pytest.param(EventType.ADDED, pod("web", "u0", 4), [], id="a namesake of the past"),
        pytest.param(
            EventType.ADDED,
            pod("web", "u2", 6, namespace="bank"),
            [(DeltaKind.ADDED, "", "6")],
            id="same name elsewhere",
        ),
        pytest.param(
            EventType.MODIFIED,
            pod("renamed", "u1", 6),
            [(DeltaKind.DELETED, "5", ""), (DeltaKind.ADDED, "", "6")],
            id="renamed",
        ),
    ],
)
def test_one_event(
    event_type: EventType, obj: Pod, expected: list[tuple[DeltaKind, str, str]]
) -> None:
    assert told(apply(holding(OLD), event_type, obj)) == expected


def test_an_object_is_found_by_name_and_by_uid() -> None:
    store = holding(OLD)
    assert store.get("shop", "web") is store.get_by_uid("u1") is OLD


def test_a_deleted_object_is_not_found() -> None:
    store = holding(OLD)
    apply(store, EventType.DELETED, OLD)
    assert store.get("shop", "web") is None
    assert store.get_by_uid("u1") is None
    assert len(store) == 0


def test_objects_of_one_namespace() -> None:
    store = holding(OLD, pod("web", "u2", 6, namespace="bank"))
    assert versions(store.objects("bank")) == {"u2": "6"}
    assert versions(store.objects("nowhere")) == {}


def test_a_cluster_scoped_object_has_no_namespace() -> None:
    store: Store[Node] = Store()
    node = Node(metadata=NodeMeta(name="n1", uid="u1", resource_version="1"))
    store.apply(EventType.ADDED, node, [])
    assert store.get("", "n1") is node


def test_an_equal_copy_gives_way_to_the_object_at_hand() -> None:
    store = holding(OLD)
    assert store.known(msgspec.structs.replace(OLD)) is OLD
    newer = pod("web", "u1", 6)
    assert store.known(newer) is newer


# --- a whole list -----------------------------------------------------------------------------


def test_a_list_tells_missed_deletions_with_the_last_known_state() -> None:
    bound = pod("web", "u1", 5, node="n1")
    (delta,) = replace(holding(bound), [])
    assert delta.kind is DeltaKind.DELETED
    assert delta.old is bound


def test_an_unchanged_object_makes_no_delta() -> None:
    assert replace(holding(OLD), [msgspec.structs.replace(OLD)]) == []


def test_a_list_never_goes_back_for_an_object() -> None:
    store = holding(OLD)
    assert replace(store, [pod("web", "u1", 4)]) == []
    assert store.get("shop", "web") is OLD


def test_a_rewind_goes_back() -> None:
    store = holding(OLD, pod("db", "u2", 6), pod("log", "u3", 3))
    deltas = replace(store, [pod("web", "u1", 4), pod("log", "u3", 3)], rewind=True)
    assert told(deltas) == [(DeltaKind.UPDATED, "5", "4"), (DeltaKind.DELETED, "6", "")]


def test_a_rewind_sees_another_content_under_the_same_version() -> None:
    deltas = replace(holding(OLD), [pod("web", "u1", 5, node="n1")], rewind=True)
    assert told(deltas) == [(DeltaKind.UPDATED, "5", "5")]


def test_a_missed_recreation_is_a_deletion_and_an_addition() -> None:
    deltas = replace(holding(OLD), [pod("web", "u2", 9)])
    assert told(deltas) == [(DeltaKind.DELETED, "5", ""), (DeltaKind.ADDED, "", "9")]


def test_what_is_new_comes_before_what_is_gone() -> None:
    deltas = replace(holding(OLD), [pod("db", "u2", 9)])
    assert told(deltas) == [(DeltaKind.ADDED, "", "9"), (DeltaKind.DELETED, "5", "")]


def test_an_object_that_cannot_be_decoded_keeps_its_last_good_version() -> None:
    store = holding(OLD)
    assert replace(store, [], present={"u1"}) == []
    assert store.get("shop", "web") is OLD


def test_a_list_comes_in_batches_and_each_is_in_the_store_when_it_is_told() -> None:
    store = holding(*(pod(f"old-{i}", f"o{i}", 1) for i in range(7)))
    fresh = [pod(f"new-{i}", f"n{i}", 2) for i in range(7)]
    mirror, sizes = Mirror(), []
    for obj in store.objects():
        mirror.objects[obj.metadata.uid] = obj
    for batch in store.replace_in_batches(fresh, batch_size=3):
        mirror(batch)
        sizes.append(len(batch))
        assert mirror.objects == {obj.metadata.uid: obj for obj in store.objects()}
    assert max(sizes) <= 4
    assert sum(sizes) == 14


def test_a_long_list_pauses_where_nothing_changes() -> None:
    same = [pod(f"same-{i}", f"s{i}", 1) for i in range(3 * LOOKED_AT)]
    store = holding(*same)
    assert list(store.replace_in_batches(same)) == [[]] * 6
    fresh = pod("fresh", "f", 2)
    batches = list(store.replace_in_batches([*same[1:], fresh]))
    assert [len(each) for each in batches if each] == [1, 1]
    assert len(batches) == 6


# --- algebra ----------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c"])
PODS = st.builds(
    lambda name, generation, version: pod(name, f"{name}{generation}", version),
    NAMES,
    st.integers(0, 2),
    st.integers(1, 12),
)


class StoreHistory(RuleBasedStateMachine):
    """Whatever a store is fed, its deltas tell all of it, and it never goes back."""

    def __init__(self) -> None:
        super().__init__()
        self.store: Store[Pod] = Store()
        self.mirror = Mirror()

    @rule(event_type=st.sampled_from(EventType), obj=PODS)
    def event(self, event_type: EventType, obj: Pod) -> None:
        before = self.store.get_by_uid(obj.metadata.uid)
        self.mirror(apply(self.store, event_type, obj))
        after = self.store.get_by_uid(obj.metadata.uid)
        if before is not None and after is not None:
            assert int(after.metadata.resource_version) >= int(before.metadata.resource_version)

    @rule(listed=st.lists(PODS, unique_by=lambda obj: obj.metadata.name), rewind=st.booleans())
    def listing(self, listed: list[Pod], rewind: bool) -> None:
        self.mirror(replace(self.store, listed, rewind=rewind))
        assert {obj.metadata.uid for obj in listed} == set(versions(self.store.objects()))

    @invariant()
    def deltas_replayed_are_the_store(self) -> None:
        assert self.mirror.objects == {obj.metadata.uid: obj for obj in self.store.objects()}

    @invariant()
    def each_object_is_found_by_its_name(self) -> None:
        for obj in self.store.objects():
            assert self.store.get("shop", obj.metadata.name) is obj
        assert len(self.store) == len(self.store.objects("shop"))


TestStoreHistory = StoreHistory.TestCase
TestStoreHistory.settings = settings(max_examples=60, stateful_step_count=30)


@given(st.lists(PODS, unique_by=lambda obj: obj.metadata.name), st.lists(PODS))
def test_a_list_taken_in_twice_changes_nothing_more(listed: list[Pod], before: list[Pod]) -> None:
    store: Store[Pod] = Store()
    for obj in before:
        apply(store, EventType.ADDED, obj)
    replace(store, listed)
    assert replace(store, listed) == []
