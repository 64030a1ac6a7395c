"""What the statuses of groups should say."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache.pod_group_objects import XPodGroupStatus
from scheduler.api_writes.pod_group_status import (
    DISRUPTION_TARGET,
    POD_GROUP_SCHEDULED,
    TEXT_LIMIT,
    WantedCondition,
    changed_conditions,
    cut_text,
    wanted_x_status,
    x_status_patch,
)
from tests.pod_group_builders import X_KEY, group, known_groups, member, x_group

V1ALPHA2 = "scheduling.k8s.io/v1alpha2"
NOW_S = 1_000_000_000.0
NOW = "2001-09-09T01:46:40Z"
EARLIER = "2001-01-01T00:00:00Z"


def wanted(minimum: int | None, *members: Any, **shown: Any) -> XPodGroupStatus:
    described_by = x_group(minimum, **shown)
    report = known_groups(described_by, *members).report(X_KEY)
    return wanted_x_status(described_by.status, report, NOW_S)


# --- scheduling.x-k8s.io ------------------------------------------------------------------------

WAITS, GATED, PLACED = (
    member,
    lambda n: member(n, gate=True),
    lambda n: member(n, node="n1"),
)
RUNS, DONE, BROKEN = (
    lambda n: member(n, "Running"),
    lambda n: member(n, "Succeeded"),
    lambda n: member(n, "Failed"),
)


@pytest.mark.parametrize(
    ("members", "phase"),
    [
        pytest.param([], "Pending", id="nobody"),
        pytest.param([RUNS, RUNS], "Pending", id="fewer than the minimum, though they run"),
        pytest.param([WAITS] * 3, "Scheduling", id="all wait"),
        pytest.param([GATED] * 3, "Scheduling", id="gated members are members"),
        pytest.param([PLACED] * 3, "Scheduling", id="all placed, nobody runs"),
        pytest.param([RUNS, RUNS, WAITS], "Scheduling", id="one is missing"),
        pytest.param([RUNS] * 3, "Running", id="all run"),
        pytest.param([RUNS, RUNS, RUNS, WAITS], "Running", id="more than the minimum"),
        pytest.param([RUNS, RUNS, DONE], "Running", id="one has succeeded"),
        pytest.param([DONE] * 3, "Finished", id="all have succeeded"),
        pytest.param([DONE, DONE, DONE, BROKEN], "Finished", id="the minimum has succeeded"),
        pytest.param([RUNS, RUNS, BROKEN], "Failed", id="one has failed"),
        pytest.param([RUNS, WAITS, BROKEN], "Scheduling", id="one has failed, one waits"),
        pytest.param([RUNS, RUNS, RUNS, BROKEN], "Failed", id="one of more has failed"),
    ],
)
@pytest.mark.parametrize("before", ["", "Pending", "Scheduling", "Running"])
def test_the_phase_follows_from_the_members(members, phase, before):
    made = [make(number) for number, make in enumerate(members)]
    assert wanted(3, *made, phase=before).phase == phase


@pytest.mark.parametrize("phase", ["Finished", "Failed"])
def test_a_group_that_has_ended_stays_as_it_is(phase):
    shown = {"phase": phase, "succeeded": 3, "occupiedBy": "ns/job"}
    assert wanted(3, RUNS(0), **shown) == x_group(**shown).status


def test_members_are_counted_by_their_phase():
    status = wanted(9, WAITS(0), PLACED(1), RUNS(2), RUNS(3), DONE(4), DONE(5), DONE(6), BROKEN(7))
    assert (status.running, status.succeeded, status.failed) == (2, 3, 1)


@pytest.mark.parametrize("minimum", [None, 0])
def test_a_group_without_a_minimum_waits_for_its_first_member(minimum):
    assert wanted(minimum).phase == "Pending"
    assert wanted(minimum, RUNS(0)).phase == "Running"


@pytest.mark.parametrize(
    ("before", "owners"),
    [
        pytest.param("", "ns/job", id="from nothing"),
        pytest.param("Pending", "ns/job", id="from Pending"),
        pytest.param("Scheduling", "ns/old", id="not later"),
        pytest.param("Running", "ns/old", id="not when it runs"),
    ],
)
def test_the_owners_are_noted_when_the_minimum_is_first_there(before, owners):
    members = [member(number, owners=("job",)) for number in range(3)]
    assert wanted(3, *members, phase=before, occupiedBy="ns/old").occupied_by == owners


def test_members_without_owners_leave_what_there_is():
    members = [WAITS(number) for number in range(3)]
    assert wanted(3, *members, phase="Pending", occupiedBy="ns/old").occupied_by == "ns/old"


def test_the_start_is_when_the_minimum_was_first_there():
    members = [WAITS(number) for number in range(3)]
    assert wanted(3, *members[:2]).schedule_start_time is None
    assert wanted(3, *members).schedule_start_time == NOW
    shown = {"phase": "Pending", "scheduleStartTime": EARLIER}
    assert wanted(3, *members, **shown).schedule_start_time == EARLIER


def test_the_patch_has_what_is_different_and_leaves_out_zeros():
    shown = XPodGroupStatus("Running", "ns/job", 3, 0, 0, EARLIER)
    patch = x_status_patch(shown, XPodGroupStatus("Pending", "ns/job", 0, 1, 0, EARLIER))
    assert patch == {"phase": "Pending", "running": None, "succeeded": 1}


MEMBERS = st.lists(st.sampled_from([WAITS, GATED, PLACED, RUNS, DONE, BROKEN]), max_size=5)
MEMBERS = MEMBERS.map(lambda makers: [make(number) for number, make in enumerate(makers)])


def by_steps(shown: XPodGroupStatus, members: list[Any], minimum: int) -> str:
    """Return the phase at which the controller of scheduler-plugins comes to rest.

    Source: pkg/controllers/podgroup_controller.go, Reconcile (0.34.7).
    """
    phases = [pod.status.phase for pod in members]
    running, succeeded = phases.count("Running"), phases.count("Succeeded")
    failed, phase = phases.count("Failed"), shown.phase
    while phase not in ("Finished", "Failed"):
        before = phase
        if phase == "":
            phase = "Pending"
        elif phase == "Pending":
            phase = "Scheduling" if len(members) >= minimum else "Pending"
        elif len(members) < minimum:
            phase = "Pending"
        elif succeeded >= minimum:
            phase = "Finished"
        elif failed and failed + running + succeeded >= minimum:
            phase = "Failed"
        else:
            phase = "Running" if running + succeeded >= minimum else "Scheduling"
        if phase == before:
            break
    return phase


@given(st.lists(MEMBERS, min_size=1, max_size=6), st.integers(1, 4))
def test_phases_are_those_at_which_the_controller_comes_to_rest(history, minimum):
    status = XPodGroupStatus()
    for members in history:
        expected = by_steps(status, members, minimum)
        report = known_groups(x_group(minimum), *members).report(X_KEY)
        status = wanted_x_status(status, report, NOW_S)
        assert status.phase == expected


# --- scheduling.k8s.io --------------------------------------------------------------------------

REFUSED = WantedCondition(False, "Unschedulable", "3 of 4 fit")


def condition(status: str, reason: str, message: str, *, name: str = POD_GROUP_SCHEDULED) -> Any:
    return {
        "type": name,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": EARLIER,
        "observedGeneration": 4,
    }


def changed(wanted_one: WantedCondition, *shown: Any, name: str = POD_GROUP_SCHEDULED) -> Any:
    conditions = changed_conditions({name: wanted_one}, group(3, *shown), V1ALPHA2, NOW_S)
    return conditions[0] if conditions else None


def test_a_first_condition_has_the_time_and_the_generation():
    made = changed(REFUSED)
    assert (made.type, made.status, made.reason) == (POD_GROUP_SCHEDULED, "False", "Unschedulable")
    assert (made.message, made.last_transition_time) == ("3 of 4 fit", NOW)
    assert made.observed_generation == 4


@pytest.mark.parametrize(
    ("wanted_one", "shown", "since"),
    [
        pytest.param(REFUSED, ("False", "Unschedulable", "2 fit"), EARLIER, id="another text"),
        pytest.param(REFUSED, ("False", "SchedulerError", "3 of 4 fit"), EARLIER, id="reason"),
        pytest.param(REFUSED, ("False", "Unschedulable", "3 of 4 fit"), None, id="the same"),
        pytest.param(REFUSED, ("True", "Scheduled", ""), None, id="once True never back"),
        pytest.param(
            WantedCondition(True, "Scheduled", "now"),
            ("False", "Unschedulable", "3 of 4 fit"),
            NOW,
            id="a transition",
        ),
        pytest.param(
            WantedCondition(True, "Scheduled", "again"), ("True", "Scheduled", ""), None, id="kept"
        ),
    ],
)
def test_a_condition_is_written_when_it_says_something_else(wanted_one, shown, since):
    made = changed(wanted_one, condition(*shown))
    assert (None if made is None else made.last_transition_time) == since


def test_a_condition_about_an_older_generation_is_written_again():
    older = {**condition("False", *REFUSED[1:]), "observedGeneration": 3}
    assert changed(REFUSED, older).observed_generation == 4


@pytest.mark.parametrize(
    ("version", "type_"),
    [
        pytest.param("v1alpha2", "PodGroupScheduled", id="1.36"),
        pytest.param("v1alpha3", "PodGroupInitiallyScheduled", id="1.37"),
        pytest.param("v1beta1", "PodGroupInitiallyScheduled", id="1.37, beta"),
    ],
)
def test_later_versions_have_another_name_for_the_condition(version, type_):
    conditions = {POD_GROUP_SCHEDULED: REFUSED, DISRUPTION_TARGET: REFUSED._replace(is_true=True)}
    made = changed_conditions(conditions, group(), f"scheduling.k8s.io/{version}", NOW_S)
    assert [each.type for each in made] == [type_, "DisruptionTarget"]


@pytest.mark.parametrize(
    ("shown", "is_written"),
    [
        pytest.param([], False, id="never said"),
        pytest.param([("True", "PreemptionByScheduler", "x")], True, id="a scheduler's"),
        pytest.param([("True", "DeletionByOperator", "x")], False, id="somebody else's"),
        pytest.param([("False", "PreemptionByScheduler", "x")], False, id="taken back already"),
    ],
)
def test_a_disruption_is_taken_back_where_a_scheduler_said_it(shown, is_written):
    spared = WantedCondition(False, "PreemptionByScheduler", "")
    told = [condition(*each, name=DISRUPTION_TARGET) for each in shown]
    assert (changed(spared, *told, name=DISRUPTION_TARGET) is not None) == is_written


@pytest.mark.parametrize("length", [0, TEXT_LIMIT, TEXT_LIMIT + 1, 10 * TEXT_LIMIT])
def test_a_message_is_cut_to_its_limit(length):
    text = cut_text("x" * length)
    assert len(text) == min(length, TEXT_LIMIT)
    assert text.endswith(" ...") == (length > TEXT_LIMIT)
