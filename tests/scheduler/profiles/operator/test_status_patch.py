"""What a status says, and the patch that makes it say so."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from scheduler.profiles import Condition, ProfileObject, ProfileStatus
from scheduler.profiles.operator import OperatorOptions
from scheduler.profiles.operator.scheduling_profile import read_version
from scheduler.profiles.operator.status_patch import merge_patch, wanted_status
from tests.scheduler.profiles.operator.objects import profile

NOW, BEFORE = "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"
GOOD = Condition(status=True, reason="Valid")


def policy(found: ProfileObject | None = None, **fields: Any) -> ProfileStatus:
    settings = {
        "version": read_version(found or profile(generation=2), OperatorOptions()),
        "accepted": GOOD,
        "active": Condition(status=True, reason="Running"),
        "degraded": Condition(status=False, reason="AsExpected"),
        "active_generation": 2,
        "running_plugins": ("NodeName",),
        **fields,
    }
    return ProfileStatus(**settings)


def conditions(status: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}


def test_one_that_runs() -> None:
    taken = profile(generation=2)
    status = wanted_status(taken, policy(), None, NOW)
    assert conditions(status) == {
        "Accepted": ("True", "Valid"),
        "Active": ("True", "Running"),
        "Degraded": ("False", "AsExpected"),
    }
    assert {each["observedGeneration"] for each in status["conditions"]} == {2}
    assert (status["observedGeneration"], status["activeGeneration"]) == (2, 2)
    assert [each["generation"] for each in status["history"]] == [2]


def test_a_condition_that_stays_keeps_its_time() -> None:
    shown = {
        "conditions": [
            {"type": "Accepted", "status": "True", "lastTransitionTime": BEFORE},
            {"type": "Active", "status": "False", "lastTransitionTime": BEFORE},
        ]
    }
    taken = profile(generation=2, status=shown)
    status = wanted_status(taken, policy(), None, NOW)
    times = {each["type"]: each["lastTransitionTime"] for each in status["conditions"]}
    assert times == {"Accepted": BEFORE, "Active": NOW, "Degraded": NOW}


def test_what_only_looks_on_is_no_good_generation() -> None:
    shadowing = policy(active=Condition(status=False, reason="Shadowing"), active_generation=None)
    taken = profile(generation=2)
    status = wanted_status(taken, shadowing, {"compared": 7}, NOW)
    assert (status["history"], status["shadow"]) == ([], {"compared": 7})


def test_a_status_that_is_as_it_should_be_needs_no_patch() -> None:
    taken = profile(generation=2)
    status = wanted_status(taken, policy(), None, BEFORE)
    again = profile(generation=2, status=status)
    wanted = wanted_status(again, policy(), None, NOW)
    assert merge_patch(status, wanted) == {}


# JSON without null: a merge patch cannot say it, and a status has none.
plain = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=2), plain, max_size=4)


def patched(target: Any, patch: Any) -> Any:
    """Apply a merge patch as RFC 7396, section 2, defines it."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = patched(result.get(key), value)
    return result


@given(objects, objects)
def test_a_patch_makes_the_one_of_the_other(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert patched(old, merge_patch(old, new)) == new
