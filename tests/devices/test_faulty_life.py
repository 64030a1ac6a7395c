"""A small form of ``make devices``; and the judges, on evidence that breaks each promise."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.controlplane.failing_proxy import BINDS, CLAIMS, UNSEEN_OR_REFUSED
from tests.devices import faulty_life
from tests.devices.promises import judge
from tests.scenarios.replicas import TIMES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.devices.faulty_life import Life

pytestmark = pytest.mark.controlplane

SIZE = faulty_life.Size(pods=60, nodes=15, binds=0.2, times=TIMES)


@pytest.fixture(scope="module")
def life(controlplane_binaries: None) -> Life:
    return faulty_life.live(SIZE)


def test_every_promise_is_kept_while_binds_fail_and_the_leader_is_killed(life):
    assert {each.text: each.broken for each in judge(life) if each.broken} == {}


def test_binds_and_writes_of_claims_failed_in_all_ways(life):
    assert set(life.failed) == {
        (kind, fault) for kind in (BINDS, CLAIMS) for fault in UNSEEN_OR_REFUSED
    }


def without_claims(life: Life, wanted: Callable[[Any], bool]) -> Life:
    return replace(life, claims=[each for each in life.claims if not wanted(each)])


def with_stolen_device(life: Life) -> Life:
    claims = list(life.claims)
    index, taken = next((i, each) for i, each in enumerate(claims) if each.devices)
    thief = taken._replace(uid="thief", name="thief")
    return replace(life, claims=[*claims[: index + 1], thief, *claims[index + 1 :]])


def with_second_allocation(life: Life) -> Life:
    claims = list(life.claims)
    index, taken = next((i, each) for i, each in enumerate(claims) if each.devices)
    freed = taken._replace(devices=(), is_allocated=False, version=0)
    claims[index + 1 : index + 1] = [freed, taken._replace(version=0)]
    return replace(life, claims=claims)


def repeated(life: Life, wanted: Callable[[dict[str, Any]], bool]) -> Life:
    event = next(each for each in life.events if wanted(each))
    return replace(life, events=[*life.events, event])


def is_status_write(event: Any) -> bool:
    return event["objectRef"].get("resource") == "resourceclaims" and event["verb"] == "patch"


def is_accepted_bind(event: Any) -> bool:
    return (
        event["objectRef"].get("subresource") == "binding"
        and event["responseStatus"]["code"] == 201
    )


def with_late_write(life: Life) -> Life:
    event = next(each for each in life.events if is_accepted_bind(each))
    late = {**event, "requestReceivedTimestamp": "2999-01-01T00:00:00.000000Z"}
    return replace(life, events=[*life.events, late])


@pytest.mark.parametrize(
    ("broken", "text"),
    [
        pytest.param(with_second_allocation, "each claim is allocated once", id="allocated twice"),
        pytest.param(
            with_stolen_device,
            "no device is in two claims at any moment",
            id="device in two claims",
        ),
        pytest.param(
            lambda life: without_claims(life, lambda each: each.reserved),
            "its claim is reserved for a pod that is bound",
            id="not reserved",
        ),
        pytest.param(
            lambda life: repeated(life, is_status_write),
            "each change of a claim is written once",
            id="written twice",
        ),
        pytest.param(
            lambda life: repeated(life, is_accepted_bind),
            "each pod is bound once",
            id="bound twice",
        ),
        pytest.param(with_late_write, "only the leader writes", id="written later"),
        pytest.param(
            lambda life: without_claims(life, lambda each: each.is_gone),
            "all claims and devices are freed with their pods",
            id="claims left",
        ),
        pytest.param(
            lambda life: replace(life, free=life.free - 1),
            "all claims and devices are freed with their pods",
            id="device left",
        ),
    ],
)
def test_a_broken_promise_is_seen(life, broken, text):
    assert text in {each.text for each in judge(broken(life)) if each.broken}
