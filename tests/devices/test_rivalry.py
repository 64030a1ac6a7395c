"""What two schedulers did to each other's devices, found in short stories."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.controlplane import peer
from tests.controlplane.access import USER
from tests.devices.histories import ClaimVersion, PodVersion, claim_version
from tests.devices.rival_life import BERTH, KUBE_SCHEDULER, Contest, Rivalry
from tests.devices.rivalry import examine, judge

USERS: Final = {BERTH: USER, KUBE_SCHEDULER: peer.USER}
LATE: Final = "no pod is bound by Berth with a device that an earlier claim holds"
OWN: Final = "Berth gives no device to two of its own pods"


class Story:
    """Claims and pods of two schedulers, each named by its pod; every act is a version."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.claims: list[ClaimVersion] = []
        self.pods: list[PodVersion] = []
        self._version = 0

    def allocates(self, scheduler: str, pod: str) -> Story:
        """Write an allocation of the only device."""
        results = [{"driver": "d", "pool": "node", "device": "gpu-0"}]
        status = {"allocation": {"devices": {"results": results}}, "reservedFor": [{"uid": pod}]}
        return self._write(scheduler, pod, status)

    def withdraws(self, scheduler: str, pod: str) -> Story:
        """Deallocate a claim."""
        return self._write(scheduler, pod, {})

    def binds(self, scheduler: str, pod: str) -> Story:
        """Bind a pod."""
        self._version += 1
        self.pods.append(PodVersion(self._version, pod, pod, scheduler, "node"))
        target = {"resource": "pods", "subresource": "binding", "namespace": "default", "name": pod}
        body = {"metadata": {"uid": pod}, "target": {"name": "node"}}
        self._event(scheduler, "create", target, 201, requestObject=body)
        return self

    def rivalry(self) -> Rivalry:
        return Rivalry(Contest(), self.events, self.claims, self.pods, 1.0, {}, [], [])

    def _write(self, scheduler: str, pod: str, status: dict[str, Any]) -> Story:
        self._version += 1
        metadata = {
            "name": f"claim-{pod}",
            "uid": f"claim-{pod}",
            "resourceVersion": str(self._version),
            "ownerReferences": [{"uid": pod}],
        }
        claim = {"metadata": metadata, "status": status}
        if all(each.uid != metadata["uid"] for each in self.claims):
            new = {"metadata": {**metadata, "resourceVersion": "0"}, "status": {}}
            self.claims.append(claim_version(new))
        self.claims.append(claim_version(claim))
        target = {"resource": "resourceclaims", "name": metadata["name"]}
        self._event(scheduler, "patch", target, 200, responseObject=claim)
        return self

    def _event(
        self, scheduler: str, verb: str, target: dict[str, str], code: int, **bodies: Any
    ) -> None:
        time = f"2027-01-01T00:00:{self._version:02}.000000Z"
        self.events.append(
            {
                "verb": verb,
                "user": {"username": USERS[scheduler]},
                "objectRef": target,
                "responseStatus": {"code": code},
                "requestReceivedTimestamp": time,
                "stageTimestamp": time,
                **bodies,
            }
        )


def first_by(scheduler: str) -> Story:
    return Story().allocates(scheduler, "x").binds(scheduler, "x")


@pytest.mark.parametrize(
    ("story", "broken"),
    [
        pytest.param(
            first_by(KUBE_SCHEDULER).allocates(BERTH, "y").binds(BERTH, "y"), LATE, id="bound late"
        ),
        pytest.param(
            first_by(KUBE_SCHEDULER).allocates(BERTH, "y").withdraws(BERTH, "y"), "", id="withdrawn"
        ),
        pytest.param(
            first_by(BERTH).allocates(KUBE_SCHEDULER, "y").binds(KUBE_SCHEDULER, "y"),
            "",
            id="kube-scheduler came late",
        ),
        pytest.param(first_by(BERTH).allocates(BERTH, "y"), OWN, id="its own pods"),
    ],
)
def test_berth_answers_for_what_it_allocates_later(story, broken):
    rivalry = story.rivalry()
    found = {each.text for each in judge(rivalry, examine(rivalry)) if each.broken}
    assert found & {LATE, OWN} == ({broken} if broken else set())


def test_a_collision_is_described_by_who_came_first_and_what_became_of_it():
    story = first_by(BERTH).allocates(KUBE_SCHEDULER, "y").binds(KUBE_SCHEDULER, "y")
    (found,) = examine(story.rivalry()).collisions
    assert (found.first, found.second) == (BERTH, KUBE_SCHEDULER)
    assert (found.both_bound, found.is_withdrawn, found.is_forgotten) == (True, False, False)
    assert found.gap_s == 2.0


def test_separated_pools_have_no_collision_at_all():
    story = first_by(BERTH).allocates(KUBE_SCHEDULER, "y").rivalry()
    shared = {each.text for each in judge(story, examine(story)) if each.broken}
    separated = Rivalry(
        Contest(separated=True), story.events, story.claims, story.pods, 1.0, {}, [], []
    )
    broken = {each.text for each in judge(separated, examine(separated)) if each.broken}
    assert broken - shared == {"no device of separated pools is in two claims"}
