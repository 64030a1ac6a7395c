from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scheduler.queueing.pod_heap import PodHeap
from scheduler.queueing.queued_pod import QueuedPod
from tests.builders import pod

INFOS = [pod(f"p{index}").info() for index in range(8)]


def queued(index: int, sequence: int = 0) -> QueuedPod:
    return QueuedPod(INFOS[index], 0.0, sequence or index, ())


def test_the_smallest_key_comes_first():
    heap = PodHeap()
    for index, key in enumerate([3.0, 1.0, 2.0]):
        heap.push(queued(index), (key,))
    names = [heap.pop().info.name for _ in range(3)]
    assert names == ["p1", "p2", "p0"]


def test_equal_keys_are_ordered_by_sequence():
    heap = PodHeap()
    for index, sequence in enumerate([3, 1, 2]):
        heap.push(queued(index, sequence), (0.0,))
    names = [heap.pop().info.name for _ in range(3)]
    assert names == ["p1", "p2", "p0"]


def test_an_empty_heap_has_nothing_to_give():
    heap = PodHeap()
    heap.push(queued(0), (0.0,))
    assert heap.remove(INFOS[0].uid)
    assert heap.first() is None
    assert heap.pop() is None
    assert not heap.remove(INFOS[0].uid)


def test_what_comes_is_known_before_it_is_taken_out():
    heap = PodHeap()
    for index, key in enumerate([3.0, 1.0, 5.0, 2.0, 4.0]):
        heap.push(queued(index), (key,))
    heap.remove(INFOS[3].uid)
    coming = [each.info.name for each in heap.coming(3)]
    assert coming == ["p1", "p0", "p4"] == [heap.pop().info.name for _ in range(3)]


def test_entries_left_behind_take_no_room_for_ever():
    heap = PodHeap()
    heap.push(queued(0), (0.0,))
    one = queued(1)
    for key in range(10_000):
        heap.push(one, (float(key % 7),))
    assert len(heap) == 2
    assert len(heap._heap) < 100


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("push"), st.integers(0, 7), st.integers(0, 3)),
            st.tuples(st.just("remove"), st.integers(0, 7), st.just(0)),
            st.tuples(st.just("pop"), st.just(0), st.just(0)),
        ),
        max_size=60,
    )
)
def test_after_any_history_it_is_a_sorted_dict(history):
    heap, model = PodHeap(), {}
    pods = [queued(index) for index in range(8)]
    for what, index, key in history:
        uid = INFOS[index].uid
        if what == "push":
            heap.push(pods[index], (float(key),))
            model[uid] = (float(key), index)
        elif what == "remove":
            assert heap.remove(uid) == (model.pop(uid, None) is not None)
        else:
            expected = min(model, key=model.__getitem__, default=None)
            got = heap.pop()
            assert (None if got is None else got.info.uid) == expected
            model.pop(expected, None)
        in_order = sorted(model, key=model.__getitem__)
        coming = [each.info.uid for each in heap.coming(3)]
        # Fewer where many entries of pods that left are in between.
        assert coming == in_order[: len(coming)]
        assert len(heap) == len(model)
        assert {each.info.uid for each in heap} == set(model)
