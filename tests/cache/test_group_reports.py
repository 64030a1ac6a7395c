"""What is read of groups by those who report about them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache.pod_group_objects import GroupKey, GroupSource
from tests.pod_group_builders import X_KEY, describe, known_groups, member, x_group

OTHER = GroupKey("ns", "other", GroupSource.LABEL)

# --- what a status is derived from --------------------------------------------------------------


def test_a_group_that_nobody_knows_has_no_report():
    assert known_groups(None).report(X_KEY) is None


def test_the_report_has_the_latest_version_of_the_object():
    groups, newer = known_groups(old := x_group()), x_group(phase="Pending")
    describe(groups, old, newer)
    assert groups.report(X_KEY).described_by is newer


def test_a_group_of_members_alone_has_no_object():
    assert known_groups(None, member(0)).report(X_KEY).described_by is None


def test_members_in_all_states_are_counted():
    counts = known_groups(
        x_group(),
        member(0, gate=True),
        member(1),
        member(2, node="n1"),
        member(3, "Running"),
        member(4, "Succeeded"),
        member(5, "Failed"),
    ).report(X_KEY)
    assert counts.standing.counts.members == 6
    assert counts.standing.counts.running == 1


def test_a_member_that_begins_to_run_is_told_of():
    groups, told = known_groups(x_group(), placed := member(0, node="n1")), []
    groups.subscribe(told.append)
    groups.pod_changed(placed, member(0, "Running"))
    assert told == [X_KEY]
    assert groups.report(X_KEY).standing.counts.running == 1


def test_a_member_that_has_run_counts_as_running_no_more():
    groups = known_groups(x_group(), ran := member(0, "Running"))
    groups.pod_changed(ran, None)
    assert groups.report(X_KEY).standing.counts.running == 0


def test_members_that_have_ended_name_a_scheduler_too():
    report = known_groups(x_group(), member(0, "Succeeded", scheduler="other"), member(1)).report(
        X_KEY
    )
    assert report.standing.scheduler_names == ("berth",)
    assert report.all_scheduler_names == {"berth", "other"}


@pytest.mark.parametrize(
    ("members", "owners"),
    [
        pytest.param([()], "", id="none"),
        pytest.param([("job",)], "ns/job", id="one"),
        pytest.param([("job", "crew")], "ns/crew,ns/job", id="two, sorted"),
        pytest.param([("old",), ("new",)], "ns/new", id="those of the last member"),
        pytest.param([("job",), ()], "ns/job", id="a member without an owner says nothing"),
        pytest.param(
            [tuple(f"o{n:03}" for n in range(100))],
            ",".join(f"ns/o{n:03}" for n in range(16)),
            id="no more than 16",
        ),
    ],
)
def test_the_owners_are_those_of_the_last_member_that_has_any(members, owners):
    groups = known_groups(x_group())
    for number, names in enumerate(members):
        groups.pod_changed(None, member(number, owners=names))
    assert groups.report(X_KEY).owners == owners


# --- partial groups -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("members", "is_partial"),
    [
        pytest.param([], False, id="nobody"),
        pytest.param([member(0), member(1), member(2)], False, id="all wait"),
        pytest.param([member(0, node="n1"), member(1)], True, id="one of three has a node"),
        pytest.param([member(0, "Running"), member(1, "Failed")], True, id="one failed"),
        pytest.param([member(n, node="n1") for n in range(3)], False, id="whole"),
        pytest.param([member(0, "Running"), member(1, "Succeeded")], False, id="finishing"),
        pytest.param([member(0, "Failed")], False, id="all failed"),
    ],
)
def test_a_group_is_partial_when_some_of_its_minimum_have_a_node(members, is_partial):
    assert known_groups(x_group(3), *members).partial() == ((X_KEY,) if is_partial else ())


def test_members_without_an_object_are_no_partial_group():
    assert known_groups(None, member(0, node="n1")).partial() == ()


def test_members_that_are_decided_complete_a_group_until_that_is_taken_back():
    groups = known_groups(x_group(2), member(0, node="n1"), waiting := member(1))
    groups.assume(X_KEY, [waiting.metadata.uid])
    assert groups.partial() == ()
    groups.forget(X_KEY, waiting.metadata.uid)
    assert groups.partial() == (X_KEY,)


PHASES = st.sampled_from(["", "n1", "Running", "Succeeded", "Failed", "gone"])
STEPS = st.one_of(
    st.tuples(st.just("rules"), st.integers(0, 4), st.none()),
    st.tuples(st.sampled_from(["assume", "forget"]), st.integers(0, 3), st.none()),
    st.tuples(st.just("pod"), st.integers(0, 3), PHASES),
)


@given(st.lists(STEPS, max_size=20))
def test_counts_kept_along_equal_counts_made_anew(steps):
    groups, described, pods = known_groups(None), None, {}
    for what, number, phase in steps:
        if what == "rules":
            describe(groups, described, described := x_group(number) if number else None)
        elif what == "assume":
            groups.assume(X_KEY, [f"gang-{number}"])
        elif what == "forget":
            groups.forget(X_KEY, f"gang-{number}")
        else:
            old = pods.pop(number, None)
            new = None
            if phase == "n1":
                new = member(number, node="n1")
            elif phase != "gone":
                new = member(number, phase or "Pending")
            if new is not None:
                pods[number] = new
            groups.pod_changed(old, new)
        standing = groups.standing(X_KEY)
        counts = standing.counts
        is_partial = standing.has_begun and standing.missing > 0 and not counts.succeeded
        assert groups.partial() == ((X_KEY,) if is_partial else ())
        assert counts.running == sum(pod.status.phase == "Running" for pod in pods.values())
        assert counts.members == len(pods)
