from __future__ import annotations

import pytest

from scheduler.client.leases import Lease, LeaseRecord
from scheduler.leader_election import Step, View, next_step

ME = "me_1"
NOW_S = 1_000.0
OWN_LEASE_S = 15.0
BLIND_S = 5.0


def lease_of(holder: str, duration_s: int | None = 15) -> Lease:
    return Lease(LeaseRecord(holder, duration_s, "a", "b", 3), {})


def seen(holder: str, since_s: float, duration_s: int | None = 15) -> View:
    return View().after(lease_of(holder, duration_s), since_s, BLIND_S)


@pytest.mark.parametrize(
    ("view", "holds", "step"),
    [
        pytest.param(View(), False, Step.CREATE, id="there is none"),
        pytest.param(seen("other", NOW_S - 14.9), False, Step.WAIT, id="held"),
        pytest.param(seen("other", NOW_S - 15.0), False, Step.TAKE, id="held, and over"),
        pytest.param(seen("", NOW_S), False, Step.TAKE, id="given back"),
        pytest.param(seen(ME, NOW_S - 99), False, Step.RENEW, id="ours without our knowing"),
        pytest.param(
            seen("other", NOW_S - 2.0, 1), False, Step.TAKE, id="held for a shorter time than ours"
        ),
        pytest.param(
            seen("other", NOW_S - 20.0, 60), False, Step.WAIT, id="held for a longer time than ours"
        ),
        pytest.param(
            seen("other", NOW_S - 14.0, None), False, Step.WAIT, id="held for nobody says how long"
        ),
        pytest.param(
            seen("other", NOW_S - 15.0, None), False, Step.TAKE, id="held for long enough by ours"
        ),
        pytest.param(
            seen("other", NOW_S - 1.0).after(None, NOW_S, BLIND_S),
            False,
            Step.WAIT,
            id="deleted under its holder",
        ),
        pytest.param(
            seen("other", NOW_S - 99.0).after(None, NOW_S - 15.0, BLIND_S),
            False,
            Step.CREATE,
            id="deleted long ago",
        ),
        pytest.param(
            seen("", NOW_S - 1.0).after(None, NOW_S, BLIND_S),
            False,
            Step.CREATE,
            id="given back, deleted",
        ),
        pytest.param(seen(ME, NOW_S - 99), True, Step.RENEW, id="leading"),
        pytest.param(
            seen(ME, NOW_S - 1).after(None, NOW_S, BLIND_S),
            True,
            Step.CREATE,
            id="leading, deleted",
        ),
        pytest.param(seen("other", NOW_S), True, Step.LOST, id="leading, and another's"),
        pytest.param(seen("other", NOW_S - 99), True, Step.LOST, id="leading, was another's"),
        pytest.param(seen("", NOW_S), True, Step.LOST, id="leading, and our name taken out"),
    ],
)
def test_what_to_do(view: View, holds: bool, step: Step) -> None:
    told = next_step(view, ME, holds=holds, now_s=NOW_S, own_lease_s=OWN_LEASE_S)
    assert told is step


def test_time_runs_from_when_a_record_was_first_seen() -> None:
    view = seen("other", 10.0).after(lease_of("other"), 20.0, BLIND_S)
    assert view.valid_until_s(OWN_LEASE_S) == 25.0


def test_a_renewal_is_a_new_record() -> None:
    renewed = Lease(LeaseRecord("other", 15, "a", "c", 3), {})
    assert seen("other", 10.0).after(renewed, 20.0, BLIND_S).valid_until_s(OWN_LEASE_S) == 35.0


def test_a_label_is_no_renewal() -> None:
    labelled = Lease(lease_of("other").record, {"metadata": {"labels": {"seen": "yes"}}})
    assert seen("other", 10.0).after(labelled, 20.0, BLIND_S).valid_until_s(OWN_LEASE_S) == 25.0


def test_a_deleted_lease_leaves_its_holder_the_time_of_a_renewal_that_nobody_saw() -> None:
    gone = seen("other", 10.0).after(None, 20.0, BLIND_S)
    assert gone.after(None, 25.0, BLIND_S).valid_until_s(OWN_LEASE_S) == 35.0


def test_a_deleted_lease_that_nobody_looked_at_for_long_may_have_been_there_meanwhile() -> None:
    gone = seen("other", 10.0).after(None, 20.0, BLIND_S)
    assert gone.after(None, 25.1, BLIND_S).valid_until_s(OWN_LEASE_S) == 40.1
