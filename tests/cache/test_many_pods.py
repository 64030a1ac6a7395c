"""Pods of a node in chunks that copies share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cache.many_pods import CHUNK, MANY, ManyPods
from cache.node_info import NodeInfo
from tests.builders import pod

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cache.pod_info import PodInfo


@dataclass(frozen=True)
class Stub:
    uid: str
    version: int = 0


def stub(number: int, version: int = 0) -> PodInfo:
    return cast("PodInfo", Stub(str(number), version))


def many(numbers: Iterable[int]) -> ManyPods:
    return ManyPods({str(number): stub(number) for number in numbers})


def test_pods_are_given_in_the_order_of_their_arrival() -> None:
    pods = many(range(3 * CHUNK))
    assert list(pods) == [str(n) for n in range(3 * CHUNK)]
    assert [info.uid for info in pods.values()] == list(pods)
    assert [uid for uid, _ in pods.items()] == list(pods)


def test_a_copy_stands_still_while_the_original_changes() -> None:
    pods = many(range(2 * CHUNK))
    copy = pods.copy()
    pods["new"] = stub(1)
    del pods["0"]
    pods["1"] = stub(1, version=7)
    assert (len(copy), "0" in copy, "new" in copy, copy["1"]) == (2 * CHUNK, True, False, stub(1))
    assert (len(pods), "0" in pods, "new" in pods) == (2 * CHUNK, False, True)
    assert pods["1"] == stub(1, version=7)


def test_the_original_stands_still_while_a_copy_changes() -> None:
    pods = many(range(2 * CHUNK))
    copy = pods.copy()
    copy["0"] = stub(0, version=7)
    del copy["1"]
    assert (pods["0"], "1" in pods, len(pods)) == (stub(0), True, 2 * CHUNK)


def test_a_pod_that_is_not_there_is_not_found() -> None:
    pods = many(range(3))
    with pytest.raises(KeyError, match="gone"):
        pods["gone"]
    with pytest.raises(KeyError, match="gone"):
        del pods["gone"]
    assert pods.get("gone") is None


def test_chunks_that_emptied_are_given_up() -> None:
    pods = many(range(40 * CHUNK))
    for number in range(40 * CHUNK):
        if number % 20:
            del pods[str(number)]
    assert len(pods.chunks) <= 8
    assert list(pods) == [str(n) for n in range(0, 40 * CHUNK, 20)]


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 700), st.sampled_from("sdc")), max_size=60))
def test_it_behaves_as_a_dict(steps: list[tuple[int, str]]) -> None:
    pods, truth = many(range(600)), {str(n): stub(n) for n in range(600)}
    for version, (number, step) in enumerate(steps):
        uid = str(number)
        if step == "s":
            pods[uid] = truth[uid] = stub(number, version)
        elif step == "c":
            pods = pods.copy()
        elif uid in truth:
            del pods[uid], truth[uid]
    assert dict(pods.items()) == truth
    assert list(pods) == list(truth)


def test_a_node_with_very_many_pods_copies_them_in_chunks() -> None:
    node = NodeInfo("node")
    for number in range(MANY - 1):
        node.add_pod(pod(f"p{number}").info())
    assert isinstance(node.clone().pods, dict)
    node.add_pod(pod("last").info())
    twin = node.clone()
    uid = next(iter(node.pods))
    node.remove_pod(uid)
    assert isinstance(twin.pods, ManyPods)
    assert (len(node.pods), len(twin.pods), uid in twin.pods) == (MANY - 1, MANY, True)
