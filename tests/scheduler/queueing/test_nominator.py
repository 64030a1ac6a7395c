from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.queueing.nominator import Nominator
from tests.builders import pod
from tests.scheduler.queueing.stage import version

A, B = pod("a").priority(5), pod("b")


@pytest.fixture
def waiting() -> set[str]:
    return {A.info().uid, B.info().uid}


@pytest.fixture
def nominator(waiting) -> Nominator:
    return Nominator(waiting.__contains__)


def names(nominator: Nominator, node_name: str) -> list[str]:
    return [info.name for info in nominator.nominated_pods_for_node(node_name)]


def test_a_nominated_pod_is_found_by_its_node(nominator):
    assert nominator.add(B.info(), "n1")
    assert nominator.add(A.info(), "n1")
    assert names(nominator, "n1") == ["b", "a"]
    assert names(nominator, "n2") == []
    assert nominator.node_of(A.info().uid) == "n1"
    assert nominator.latest.node_names() == ["n1"]


def test_a_pod_is_nominated_for_one_node_only(nominator):
    nominator.add(A.info(), "n1")
    nominator.add(A.info(), "n2")
    assert names(nominator, "n1") == []
    assert names(nominator, "n2") == ["a"]
    assert len(nominator) == 1


def test_the_empty_name_takes_a_nomination_away(nominator):
    nominator.add(A.info(), "n1")
    assert not nominator.add(A.info(), "")
    assert nominator.latest.node_names() == []


def test_nobody_is_nominated_who_no_longer_waits(nominator, waiting):
    waiting.clear()
    assert not nominator.add(A.info(), "n1")
    assert len(nominator) == 0


def test_deleting_leaves_nothing_behind(nominator):
    nominator.add(A.info(), "n1")
    nominator.delete(A.info().uid)
    nominator.delete(A.info().uid)
    assert len(nominator) == 0
    assert nominator.latest.node_names() == []
    assert nominator.node_of(A.info().uid) is None


def test_the_answer_is_a_copy(nominator):
    nominator.add(A.info(), "n1")
    nominator.nominated_pods_for_node("n1").clear()
    assert names(nominator, "n1") == ["a"]


@pytest.mark.parametrize(
    ("here", "before", "after", "expected"),
    [
        pytest.param("n1", "", "", "n1", id="the API has not heard of it yet"),
        pytest.param("n1", "", "n1", "n1", id="the API confirms"),
        pytest.param("", "", "n2", "n2", id="nominated by the API"),
        pytest.param("n1", "n1", "n2", "n2", id="changed in the API"),
        pytest.param("n1", "n1", "", None, id="cleared in the API"),
        pytest.param("n2", "n1", "n1", "n2", id="ahead of the API"),
        pytest.param("", "n1", "n1", None, id="given up ahead of the API"),
        pytest.param("", "", "", None, id="never nominated"),
    ],
)
def test_an_update_follows_what_changed_in_the_api(nominator, here, before, after, expected):
    nominator.add(A.info(), here)
    old = version(A, 1, nominated_node_name=before).pod
    new = version(A, 2, nominated_node_name=after)
    nominator.update(old, new)
    assert nominator.node_of(new.uid) == expected


def test_an_update_brings_the_pod_s_new_version(nominator):
    nominator.add(A.info(), "n1")
    new = A.label("app", "web").info()
    nominator.update(A.build(), new)
    assert nominator.nominated_pods_for_node("n1") == [new]


@pytest.mark.parametrize(
    ("priority", "level"),
    [
        pytest.param(-1, 0, id="below all"),
        pytest.param(0, 0, id="the lowest"),
        pytest.param(1, 5, id="between"),
        pytest.param(5, 5, id="the highest"),
        pytest.param(6, None, id="above all"),
    ],
)
def test_pods_with_one_level_mind_the_same_nominations(nominator, priority, level):
    nominator.add(A.info(), "n1")
    nominator.add(B.info(), "n2")
    assert nominator.latest.level(priority) == level


def test_a_level_ends_with_its_last_pod(nominator):
    nominator.add(A.info(), "n1")
    nominator.add(B.info(), "n1")
    nominator.delete(B.info().uid)
    assert nominator.latest.level(0) == 5


def test_changes_are_told_once(nominator):
    nominator.add(A.info(), "n1")
    nominator.add(A.info(), "n2")
    assert nominator.latest.take_changes() == {"n1", "n2"}
    assert nominator.latest.take_changes() == set()


def test_a_new_version_of_a_nominated_pod_is_a_change(nominator):
    nominator.add(A.info(), "n1")
    nominator.latest.take_changes()
    nominator.update(None, A.label("app", "web").info())
    assert nominator.latest.take_changes() == {"n1"}


def test_what_ends_is_a_change(nominator):
    nominator.add(A.info(), "n1")
    nominator.latest.take_changes()
    nominator.delete(A.info().uid)
    assert nominator.latest.take_changes() == {"n1"}


def frozen(nominator: Nominator) -> dict[str, list[str]]:
    seen = nominator.frozen
    return {
        name: [info.name for info in seen.nominated_pods_for_node(name)]
        for name in seen.node_names()
    }


def test_what_is_frozen_does_not_change_until_it_is_frozen_again(nominator):
    nominator.add(A.info(), "n1")
    assert frozen(nominator) == {}
    nominator.freeze()
    nominator.delete(A.info().uid)
    nominator.add(B.info(), "n2")
    assert frozen(nominator) == {"n1": ["a"]}
    assert nominator.frozen.node_of(A.info().uid) == "n1"
    assert nominator.frozen.level(0) == 5
    nominator.freeze()
    assert frozen(nominator) == {"n2": ["b"]}
    assert nominator.frozen.node_of(A.info().uid) is None
    assert nominator.frozen.level(0) == 0


def test_a_pod_that_moved_between_two_looks_is_nominated_once(nominator):
    nominator.add(A.info(), "n2")
    nominator.add(B.info(), "n2")
    nominator.freeze()
    nominator.add(A.info(), "n1")
    nominator.freeze()
    assert frozen(nominator) == {"n1": ["a"], "n2": ["b"]}
    assert len(nominator.frozen) == 2


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["", "n1", "n2", "n3", "!"]))))
def test_what_is_frozen_is_what_was_nominated_then(changes):
    nominator = Nominator(lambda uid: True)
    for name, node_name in changes:
        if node_name == "!":
            nominator.freeze()
        else:
            nominator.add(pod(name).uid(name).priority(ord(name)).info(), node_name)
    nominator.freeze()
    latest, seen = nominator.latest, nominator.frozen
    assert sorted(seen.node_names()) == sorted(latest.node_names())
    for name in latest.node_names():
        assert seen.nominated_pods_for_node(name) == latest.nominated_pods_for_node(name)
    assert seen.level(0) == latest.level(0)
    assert len(seen) == len(latest)
