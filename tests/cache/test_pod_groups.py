"""Groups by their objects and their members: what is counted follows each change."""

from __future__ import annotations

import sys
import threading
import tracemalloc
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cache.pod_group_objects import (
    GROUP_LABEL,
    GroupKey,
    GroupSource,
    UnreadableXPodGroup,
    XPodGroup,
    rules_of_pod_group,
    rules_of_x_pod_group,
)
from cache.pod_groups import GroupCounts, GroupStanding, MemberState, PodGroups, member_of
from tests.builders import pod
from tests.pod_group_builders import KEY, X_KEY, describe, group, known_groups, member, x_group

if TYPE_CHECKING:
    from cache.objects import Pod
    from cache.pod_group_objects import GroupRules, PodGroup

OTHER = GroupKey("ns", "other", GroupSource.LABEL)


def told_by(groups: PodGroups) -> list[GroupKey]:
    """Return a list that gets the key of each group that is told of from now on."""
    told: list[GroupKey] = []
    groups.subscribe(told.append)
    return told


# --- one group ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "counts"),
    [
        pytest.param(member(0), GroupCounts(waiting=1), id="waits"),
        pytest.param(member(0, gate=True), GroupCounts(gated=1), id="has a gate"),
        pytest.param(member(0, node="n1"), GroupCounts(assigned=1), id="has a node"),
        pytest.param(member(0, "Running"), GroupCounts(assigned=1, running=1), id="runs"),
        pytest.param(member(0, "Succeeded"), GroupCounts(succeeded=1), id="has succeeded"),
        pytest.param(member(0, "Failed"), GroupCounts(failed=1), id="has failed"),
    ],
)
def test_a_member_counts_by_its_state(made: Pod, counts: GroupCounts) -> None:
    assert known_groups(None, made).standing(X_KEY).counts == counts


def test_gated_and_failed_members_do_not_count_for_the_minimum() -> None:
    counts = GroupCounts(gated=1, waiting=2, assigned=4, succeeded=8, failed=16)
    assert (counts.known, counts.satisfied) == (14, 12)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        pytest.param([member(0)], (False, 3), id="waits"),
        pytest.param([member(0, "Failed")], (False, 3), id="failed"),
        pytest.param([member(0, node="n1")], (True, 2), id="one has a node"),
        pytest.param([member(0, "Succeeded")], (True, 2), id="one has succeeded"),
        pytest.param([member(n, node="n1") for n in range(4)], (True, 0), id="more than enough"),
    ],
)
def test_a_group_has_begun_when_a_member_has_or_had_a_node(
    made: list[Pod], expected: tuple[bool, int]
) -> None:
    standing = known_groups(x_group(3), *made).standing(X_KEY)
    assert (standing.has_begun, standing.missing) == expected


def test_a_group_without_an_object_misses_nobody() -> None:
    assert known_groups(None, member(0)).standing(X_KEY).missing == 0


def test_the_object_and_the_members_may_come_in_any_order() -> None:
    late = known_groups(None, member(0))
    describe(late, None, x_group())
    assert late.standing(X_KEY) == known_groups(x_group(), member(0)).standing(X_KEY)


def test_two_apis_may_have_groups_of_one_name() -> None:
    groups = known_groups(x_group(3), member(0), member(1, of=KEY))
    describe(groups, None, group(5))
    assert groups.standing(X_KEY).rules == rules_of_x_pod_group(x_group(3))
    assert groups.standing(KEY).rules == rules_of_pod_group(group(5))
    assert set(groups.members(X_KEY)) == set(groups.members(KEY)) ^ {"gang-0", "gang-1"}


def test_a_changed_rule_counts_at_once() -> None:
    groups = known_groups(old := x_group(3), member(0, node="n1"))
    told = told_by(groups)
    describe(groups, old, x_group(5))
    assert groups.standing(X_KEY).missing == 4
    assert told == [X_KEY]


def test_a_status_is_no_news_to_anybody() -> None:
    groups = known_groups(old := x_group(3))
    told = told_by(groups)
    describe(groups, old, x_group(3, phase="Running"))
    assert told == []


def test_a_group_that_is_deleted_and_made_again_has_the_new_rules() -> None:
    groups = known_groups(old := x_group(3), member(0))
    describe(groups, old, None)
    assert groups.rules(X_KEY) is None
    describe(groups, None, x_group(2))
    assert groups.standing(X_KEY).rules == rules_of_x_pod_group(x_group(2))


def test_a_group_that_cannot_be_read_keeps_its_members() -> None:
    groups = known_groups(old := x_group(3), member(0))
    bad = UnreadableXPodGroup(old.metadata, problem="spec.minMember: no number")
    describe(groups, old, bad)
    standing = groups.standing(X_KEY)
    assert standing.rules is not None
    assert standing.rules.problem == "the PodGroup cannot be read: spec.minMember: no number"
    assert standing.counts.waiting == 1


def test_what_has_neither_object_nor_member_is_forgotten() -> None:
    groups = known_groups(described := x_group(), pending := member(0))
    describe(groups, described, None)
    groups.pod_changed(pending, None)
    assert groups.keys() == ()
    assert groups.standing(X_KEY) == GroupStanding(None, GroupCounts(), ())


def test_a_pod_that_names_no_group_takes_no_lock() -> None:
    class Untouched:
        def __enter__(self) -> None:
            pytest.fail("the lock was taken")

        def __exit__(self, *_: object) -> None: ...

    groups = PodGroups(Untouched)  # type: ignore[arg-type]
    groups.pod_changed(pod("a").build(), pod("a").on("n1").build())


def test_listeners_are_called_without_the_lock() -> None:
    lock = threading.Lock()
    groups = PodGroups(lambda: lock)
    held: list[bool] = []
    groups.subscribe(lambda key: held.append(lock.locked()))
    describe(groups, None, x_group())
    groups.pod_changed(None, member(0))
    assert held == [False, False]


# --- who changes its group ----------------------------------------------------------------------


def relabelled(made: Pod, name: str) -> Pod:
    """Return a pod that names another group, or none."""
    labels = {GROUP_LABEL: name} if name else {}
    return msgspec.structs.replace(
        made, metadata=msgspec.structs.replace(made.metadata, labels=labels)
    )


@pytest.mark.parametrize(
    ("name", "keys"),
    [pytest.param("other", (OTHER,), id="another"), pytest.param("", (), id="none")],
)
def test_a_waiting_pod_leaves_one_group_and_joins_the_other(
    name: str, keys: tuple[GroupKey, ...]
) -> None:
    groups = known_groups(None, was := member(0))
    told = told_by(groups)
    groups.pod_changed(was, relabelled(was, name))
    assert groups.keys() == keys
    assert told == [X_KEY, *keys]


STAYING = [
    pytest.param(member(0, node="n1"), id="bound"),
    pytest.param(member(0, "Succeeded"), id="succeeded"),
    pytest.param(member(0, "Failed"), id="failed"),
]


@pytest.mark.parametrize("name", ["other", ""])
@pytest.mark.parametrize("was", STAYING)
def test_a_pod_with_a_node_stays_what_it_was(was: Pod, name: str) -> None:
    groups = known_groups(None, was)
    groups.pod_changed(was, now := relabelled(was, name))
    assert groups.keys() == (X_KEY,)
    assert groups.key_of(now) == X_KEY


def test_a_pod_with_a_node_joins_no_group_that_has_not_begun() -> None:
    groups = known_groups(x_group(3), member(1))
    was = relabelled(member(0, node="n1"), "")
    groups.pod_changed(None, was)
    groups.pod_changed(was, now := member(0, node="n1"))
    assert not groups.standing(X_KEY).has_begun
    assert groups.key_of(now) is None


@pytest.mark.parametrize("name", ["other", ""])
def test_a_pod_that_stayed_goes_on_from_there(name: str) -> None:
    groups = known_groups(None, was := member(0, node="n1"))
    bound, ended = relabelled(was, name), relabelled(member(0, "Succeeded"), name)
    groups.pod_changed(was, bound)
    groups.pod_changed(bound, ended)
    assert groups.standing(X_KEY).counts == GroupCounts(succeeded=1)
    groups.pod_changed(ended, None)
    assert groups.keys() == ()


def test_a_pod_that_names_its_group_again_is_an_ordinary_member() -> None:
    groups = known_groups(None, was := member(0, node="n1"))
    groups.pod_changed(was, away := relabelled(was, "other"))
    groups.pod_changed(away, was)
    assert not groups._stayed
    assert groups.keys() == (X_KEY,)


# --- what is assumed ----------------------------------------------------------------------------


def test_an_assumed_member_is_satisfied() -> None:
    groups = known_groups(x_group(3), member(0), member(1))
    groups.assume(X_KEY, ["gang-0"])
    assert groups.standing(X_KEY).missing == 2


@pytest.mark.parametrize(
    "made",
    [
        pytest.param([], id="nobody"),
        pytest.param([member(0, node="n1")], id="with a node"),
        pytest.param([member(0, "Failed")], id="ended"),
    ],
)
def test_only_members_without_a_node_are_assumed(made: list[Pod]) -> None:
    groups = known_groups(x_group(3), *made)
    groups.assume(X_KEY, ["gang-0"])
    assert groups.standing(X_KEY).counts.assumed == 0


@pytest.mark.parametrize(
    "then",
    [
        pytest.param(member(0, node="n1"), id="bound"),
        pytest.param(member(0, "Failed"), id="failed"),
        pytest.param(None, id="deleted"),
        pytest.param(relabelled(member(0), "other"), id="of another group"),
    ],
)
def test_an_assumption_ends_with_what_the_api_shows(then: Pod | None) -> None:
    groups = known_groups(x_group(3), was := member(0))
    groups.assume(X_KEY, ["gang-0"])
    groups.pod_changed(was, then)
    assert groups.standing(X_KEY).counts.assumed == 0


def test_an_assumption_is_taken_back_once() -> None:
    groups = known_groups(x_group(3), member(0))
    groups.assume(X_KEY, ["gang-0"])
    told = told_by(groups)
    groups.forget(X_KEY, "gang-0")
    groups.forget(X_KEY, "gang-0")
    assert told == [X_KEY]
    assert not groups.standing(X_KEY).has_begun


# --- what is evicted ----------------------------------------------------------------------------


LEAVING = msgspec.structs.replace(
    member(0, node="n1"),
    metadata=msgspec.structs.replace(member(0).metadata, deletion_timestamp="2025-01-01T00:00:00Z"),
)


@pytest.mark.parametrize("then", [LEAVING, None], ids=["is leaving", "is gone"])
def test_a_group_is_evicted_until_the_api_shows_that_its_members_leave(then: Pod | None) -> None:
    groups = known_groups(x_group(2), was := member(0, node="n1"), member(1))
    groups.begin_eviction(X_KEY)
    groups.end_eviction(X_KEY, ["gang-0"])
    seen = [groups.standing(X_KEY)]
    groups.pod_changed(was, then)
    seen.append(groups.standing(X_KEY))
    assert [each.is_evicted for each in seen] == [True, False]
    assert not any(each.has_begun for each in seen)


@pytest.mark.parametrize(
    "leaving",
    [
        pytest.param([], id="nobody"),
        pytest.param(["gang-1"], id="one without a node"),
        pytest.param(["gang-9"], id="one that is gone"),
    ],
)
def test_a_group_whose_members_stay_is_not_evicted_any_more(leaving: list[str]) -> None:
    groups = known_groups(x_group(2), member(0, node="n1"), member(1))
    groups.begin_eviction(X_KEY)
    groups.end_eviction(X_KEY, leaving)
    assert groups.standing(X_KEY).has_begun


def test_of_two_evictions_of_a_group_both_have_to_end() -> None:
    groups = known_groups(x_group(2), member(0, node="n1"))
    groups.begin_eviction(X_KEY)
    groups.begin_eviction(X_KEY)
    groups.end_eviction(X_KEY, [])
    assert groups.standing(X_KEY).is_evicted


# --- any history --------------------------------------------------------------------------------

NAMES = ("a", "b", "")
UIDS = ("p0", "p1", "p2", "p3")
KEYS = tuple(GroupKey("ns", name, source) for name in "ab" for source in GroupSource)


@dataclass
class Model:
    """The same by the simplest means: all pods and objects, counted anew each time."""

    pods: dict[str, Pod] = field(default_factory=dict)
    key_of: dict[str, GroupKey | None] = field(default_factory=dict)
    objects: dict[GroupKey, PodGroup | XPodGroup] = field(default_factory=dict)
    assumed: set[tuple[GroupKey, str]] = field(default_factory=set)

    def members(self, key: GroupKey) -> list[Pod]:
        return [made for uid, made in self.pods.items() if self.key_of[uid] == key]

    def rules(self, key: GroupKey) -> GroupRules | None:
        described = self.objects.get(key)
        if described is None:
            return None
        if isinstance(described, XPodGroup):
            return rules_of_x_pod_group(described)
        return rules_of_pod_group(described)

    def standing(self, key: GroupKey) -> GroupStanding:
        members = [member_of(made) for made in self.members(key)]
        states = Counter(each.state for each in members)
        counts = GroupCounts(
            states[MemberState.GATED],
            states[MemberState.WAITING],
            sum(of == key for of, _ in self.assumed),
            states[MemberState.ASSIGNED],
            states[MemberState.SUCCEEDED],
            states[MemberState.FAILED],
            sum(made.status.phase == "Running" for made in self.members(key)),
        )
        names = {each.scheduler_name for each in members if not each.has_ended}
        return GroupStanding(self.rules(key), counts, tuple(sorted(names)))

    def keys(self) -> set[GroupKey]:
        named = {self.key_of[uid] for uid in self.pods} - {None}
        return {*self.objects, *(key for key in named if key is not None)}

    def drop_assumed(self, uid: str) -> None:
        self.assumed = {each for each in self.assumed if each[1] != uid}


def named_pod(uid: str, key: GroupKey | None, state: str, scheduler: str) -> Pod:
    builder = pod(uid, namespace="ns").uid(uid).scheduler(scheduler)
    if key is not None:
        builder = (
            builder.label(GROUP_LABEL, key.name)
            if key.source is GroupSource.LABEL
            else builder.scheduling_group(key.name)
        )
    if state == "gated":
        builder = builder.gate("wait")
    elif state != "waiting":
        builder = builder.on("n1").phase(state)
    return builder.build()


STATES = ("gated", "waiting", "", "Running", "Succeeded", "Failed")
CHANGES = st.one_of(
    st.tuples(
        st.just("pod"),
        st.sampled_from(UIDS),
        st.sampled_from((*KEYS, None)),
        st.sampled_from(STATES),
        st.sampled_from(("berth", "other")),
    ),
    st.tuples(st.just("gone"), st.sampled_from(UIDS)),
    st.tuples(st.just("object"), st.sampled_from(KEYS), st.integers(-1, 3)),
    st.tuples(st.just("no object"), st.sampled_from(KEYS)),
    st.tuples(st.just("assume"), st.sampled_from(KEYS), st.sets(st.sampled_from(UIDS))),
    st.tuples(st.just("forget"), st.sampled_from(KEYS), st.sampled_from(UIDS)),
)


def apply(change: tuple, groups: PodGroups, model: Model) -> None:  # type: ignore[type-arg]
    """Let something happen to both."""
    what, *rest = change
    if what == "pod":
        uid, key, state, scheduler = rest
        old, new = model.pods.get(uid), named_pod(uid, key, state, scheduler)
        groups.pod_changed(old, new)
        waits = old is None or member_of(old).state in (MemberState.GATED, MemberState.WAITING)
        if waits:
            if key != model.key_of.get(uid) or member_of(new).state not in (
                MemberState.GATED,
                MemberState.WAITING,
            ):
                model.drop_assumed(uid)
            model.key_of[uid] = key
        model.pods[uid] = new
    elif what == "gone":
        (uid,) = rest
        groups.pod_changed(model.pods.pop(uid, None), None)
        model.drop_assumed(uid)
    elif what == "object":
        key, minimum = rest
        make = x_group if key.source is GroupSource.LABEL else group
        describe(groups, model.objects.get(key), made := make(minimum, key=key))
        model.objects[key] = made
    elif what == "no object":
        (key,) = rest
        describe(groups, model.objects.pop(key, None), None)
    elif what == "assume":
        key, uids = rest
        groups.assume(key, uids)
        for made in model.members(key):
            uid = made.metadata.uid
            if uid in uids and member_of(made).state in (MemberState.GATED, MemberState.WAITING):
                model.assumed.add((key, uid))
    else:
        key, uid = rest
        groups.forget(key, uid)
        model.assumed.discard((key, uid))


@settings(max_examples=300, deadline=None)
@given(st.lists(CHANGES, max_size=30))
def test_counts_that_follow_each_change_are_those_counted_anew(
    changes: list[tuple],  # type: ignore[type-arg]
) -> None:
    groups, model = PodGroups(), Model()
    for change in changes:
        apply(change, groups, model)
        for key in KEYS:
            assert groups.standing(key) == model.standing(key)
            assert set(groups.members(key)) == {p.metadata.uid for p in model.members(key)}
        assert set(groups.keys()) == model.keys()
        for uid, made in model.pods.items():
            assert groups.key_of(made) == model.key_of[uid]


@settings(max_examples=200, deadline=None)
@given(st.lists(CHANGES, max_size=20))
def test_a_listener_hears_of_every_group_that_is_another(
    changes: list[tuple],  # type: ignore[type-arg]
) -> None:
    groups, model = PodGroups(), Model()
    told = told_by(groups)
    for change in changes:
        before = {key: model.standing(key) for key in KEYS}
        told.clear()
        apply(change, groups, model)
        if change[0] != "assume":  # the caller knows it
            assert {key for key in KEYS if model.standing(key) != before[key]} <= set(told)


@settings(max_examples=100, deadline=None)
@given(st.lists(CHANGES, max_size=30))
def test_nothing_is_left_when_all_are_gone(changes: list[tuple]) -> None:  # type: ignore[type-arg]
    groups, model = PodGroups(), Model()
    for change in changes:
        apply(change, groups, model)
    for uid in UIDS:
        apply(("gone", uid), groups, model)
    for key in KEYS:
        apply(("no object", key), groups, model)
    assert (groups._groups, groups._stayed, groups.partial()) == ({}, {}, ())


# --- what a user can make large -----------------------------------------------------------------


@pytest.mark.parametrize("length", [12, 253])
def test_a_group_without_pods_takes_less_than_two_kilobytes(length: int) -> None:
    """100 000 of them take 130 to 150 MB, of which their objects are a quarter."""
    count = 2_000
    groups = PodGroups()
    tracemalloc.start()
    try:
        for number in range(count):
            key = GroupKey("ns", f"{number:06}".ljust(length, "n"), GroupSource.LABEL)
            describe(groups, None, x_group(2**31 - 1, key=key))
        size_bytes = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert size_bytes / count < 2_048


def test_a_minimum_beyond_all_pods_takes_no_memory() -> None:
    small, large = known_groups(x_group(2)), known_groups(x_group(2**31 - 1))
    sizes = {sys.getsizeof(each._groups[X_KEY].members) for each in (small, large)}
    assert len(sizes) == 1
    assert large.standing(X_KEY).missing == 2**31 - 1
